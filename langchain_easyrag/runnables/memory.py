"""A conversation's last messages, and notes on what came before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.chat_history import BaseChatMessageHistory
from typing_extensions import override

from easyrag_core import ConversationMemory, InvalidParameterError, NoteTaker
from langchain_easyrag.runnables._conversation import framework_messages, spoken
from langchain_easyrag.runnables._model_call import ModelCall, check_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable

    from easyrag_core import MemoryState, Message
    from easyrag_core.events import EventHandler

__all__ = ["SummarizedChatHistory"]


class SummarizedChatHistory(BaseChatMessageHistory):
    """Show a long conversation as notes on its older part and its last messages.

    Stands around any `BaseChatMessageHistory`, which keeps every message. When a window of
    messages is full, a model takes notes on its older half, in the background: topics,
    constraints and open points, never the answers. Until they are done `messages` holds the
    messages themselves; where the model fails, the next message tries again. Tool messages are
    kept and not shown.

    Instantiate:
        ```python
        from langchain_easyrag import SummarizedChatHistory

        history = SummarizedChatHistory(InMemoryChatMessageHistory(), llm, window=8)
        ```

    Use:
        ```python
        RunnableWithMessageHistory(chain, lambda session: histories[session], ...)
        ```
    """

    def __init__(
        self,
        history: BaseChatMessageHistory,
        llm: Runnable[Any, Any],
        *,
        window: int = 8,
        prompt: Any = None,
        structured: bool | str = False,
        state: MemoryState | None = None,
        on_event: EventHandler | None = None,
    ) -> None:
        """Check the settings.

        Args:
            history: Where the messages are.
            llm: Who takes notes.
            window: Messages of user and assistant that make a half of them due; at least 2.
            prompt: A `PromptTemplate` of `easyrag_core` with `{summary}` and `{history}`; ours,
                if not given.
            structured: Hold the reply to a schema, as in `QueryRewriter`.
            state: What `state` was when the conversation was last used.
            on_event: Hears when a summary fails.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        if not isinstance(history, BaseChatMessageHistory):
            allowed = "give a BaseChatMessageHistory"
            raise InvalidParameterError("history", history, allowed)
        memory = ConversationMemory(prompt, window=window)
        call = ModelCall(check_model(llm), memory.reply_schema, structured=structured)

        def ask(messages: Sequence[Message]) -> str:
            return call.ask(framework_messages(messages), {})

        async def aask(messages: Sequence[Message]) -> str:
            return await call.aask(framework_messages(messages), {})

        self._history = history
        self._notes = NoteTaker(memory, ask=ask, aask=aask, state=state, on_event=on_event)

    @property
    def state(self) -> MemoryState:
        """The notes, and how far they go; keep `state.to_dict()` beside the conversation."""
        return self._notes.state

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # theirs is an attribute
        """The notes as a system message, if there are any, and the messages after them."""
        return self._shown(self._history.messages)

    @override
    async def aget_messages(self) -> list[BaseMessage]:
        """Return the same, without waiting for the store."""
        return self._shown(await self._history.aget_messages())

    def _shown(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        return framework_messages(self._notes.context(spoken(messages)))

    @override
    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages, and take notes in a thread where they are due.

        Args:
            messages: The new messages.
        """
        self._history.add_messages(messages)
        self._notes.begin(spoken(self._history.messages))

    @override
    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages, and take notes in a task where they are due."""
        await self._history.aadd_messages(messages)
        await self._notes.abegin(spoken(await self._history.aget_messages()))

    @override
    def clear(self) -> None:
        """Forget messages and notes."""
        self._history.clear()
        self._notes.forget()

    @override
    async def aclear(self) -> None:
        """Forget messages and notes: the async twin of `clear`."""
        await self._history.aclear()
        self._notes.forget()

    def join(self, timeout: float | None = None) -> None:
        """Wait for notes that a thread is taking; before a program ends, or in a test.

        Args:
            timeout: The most seconds; `None` waits for ever.
        """
        self._notes.join(timeout)

    async def ajoin(self) -> None:
        """Wait for notes that a task is taking."""
        await self._notes.ajoin()
