"""A conversation's last messages, and notes on what came before."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.bridge.pydantic import Field, PrivateAttr, SerializeAsAny
from llama_index.core.memory import BaseMemory, Memory

from easyrag_core import ConversationMemory, InvalidParameterError, NoteTaker
from llamaindex_easyrag._conversation import chat_messages, spoken
from llamaindex_easyrag._step import achat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.base.llms.types import ChatMessage

    from easyrag_core import MemoryState, Message
    from easyrag_core.events import EventHandler

__all__ = ["SummarizedMemory"]


class SummarizedMemory(BaseMemory):
    """Shows a long conversation as notes on its older part and its last messages.

    Stands around any memory of the framework, which keeps every message, and wherever a memory
    may stand. When a window of messages is full, a model takes notes on its older half, in the
    background: topics, constraints and open points, never the answers. Until they are done `get`
    returns the messages themselves; where the model fails, the next message tries again. Tool
    messages are kept and not shown.
    """

    memory: SerializeAsAny[BaseMemory] = Field(description="Keeps every message.")
    window: int = Field(default=8, description="Messages that make a half of them due.")

    _llm: BaseLLM = PrivateAttr()
    _notes: NoteTaker = PrivateAttr()
    _prompt: Any = PrivateAttr(default=None)

    def __init__(
        self,
        memory: BaseMemory,
        llm: BaseLLM,
        *,
        window: int = 8,
        prompt: Any = None,
        state: MemoryState | None = None,
        on_event: EventHandler | None = None,
    ) -> None:
        """Check the settings.

        Args:
            memory: Where the messages are.
            llm: Who takes notes.
            window: Messages of user and assistant that make a half of them due; at least 2.
            prompt: A `PromptTemplate` of `easyrag_core` with `{summary}` and `{history}`; ours,
                if not given.
            state: What `state` was when the conversation was last used.
            on_event: Hears when a summary fails.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        given: Any = memory, llm
        if not isinstance(given[0], BaseMemory):
            raise InvalidParameterError("memory", memory, "give a memory of LlamaIndex")
        if not isinstance(given[1], BaseLLM):
            raise InvalidParameterError("llm", llm, "give a model of LlamaIndex")
        conversation = ConversationMemory(prompt, window=window)

        def ask(messages: Sequence[Message]) -> str:
            return llm.chat(chat_messages(messages)).message.content or ""

        async def aask(messages: Sequence[Message]) -> str:
            return (await achat(llm, chat_messages(messages))).message.content or ""

        notes = NoteTaker(conversation, ask=ask, aask=aask, state=state, on_event=on_event)
        super().__init__(memory=memory, window=window)  # type: ignore[call-arg]
        self._llm, self._notes, self._prompt = llm, notes, prompt

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with the notes; what runs in the background, and who listens, stays behind."""
        return _restored, (type(self), self.memory, self._llm, self._settings)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> SummarizedMemory:
        """Copy the messages and the notes; the model is shared."""
        return _restored(type(self), deepcopy(self.memory, memo), self._llm, self._settings)

    @property
    def _settings(self) -> dict[str, Any]:
        return {"window": self.window, "prompt": self._prompt, "state": self.state}

    @classmethod
    def class_name(cls) -> str:
        """Return the name in saved settings."""
        return "SummarizedMemory"

    @classmethod
    def from_defaults(cls, *, llm: BaseLLM, **kwargs: Any) -> SummarizedMemory:  # type: ignore[override]
        """Keep the messages in a memory of the framework's default kind.

        Args:
            llm: Who takes notes.
            **kwargs: Of the constructor.

        Returns:
            The memory.
        """
        memory = kwargs.pop("memory", None) or Memory.from_defaults()
        return cls(memory, llm, **kwargs)

    @property
    def state(self) -> MemoryState:
        """The notes, and how far they go; keep `state.to_dict()` beside the conversation."""
        return self._notes.state

    def get(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:  # noqa: A002 - theirs
        """Return what a prompt should hold: notes, if there are any, and the last messages.

        Args:
            input: Not used.
            **kwargs: Not used.

        Returns:
            A system message with the notes, and the messages after them.
        """
        del input, kwargs
        return self._shown(self.get_all())

    async def aget(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:  # noqa: A002
        """Return what a prompt should hold: the async twin of `get`."""
        del input, kwargs
        return self._shown(await self.aget_all())

    def get_all(self) -> list[ChatMessage]:
        """Return every message."""
        return self.memory.get_all()

    async def aget_all(self) -> list[ChatMessage]:
        """Return every message: the async twin of `get_all`."""
        return await self.memory.aget_all()

    def put(self, message: ChatMessage) -> None:
        """Add a message, and take notes in a thread where they are due.

        Args:
            message: The new message.
        """
        self.put_messages([message])

    async def aput(self, message: ChatMessage) -> None:
        """Add a message, and take notes in a task where they are due."""
        await self.aput_messages([message])

    def put_messages(self, messages: list[ChatMessage]) -> None:
        """Add messages, and take notes in a thread where they are due.

        Args:
            messages: The new messages, oldest first.
        """
        self.memory.put_messages(messages)
        self._notes.begin(spoken(self.get_all()))

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        """Add messages, and take notes in a task where they are due."""
        await self.memory.aput_messages(messages)
        await self._notes.abegin(spoken(await self.aget_all()))

    def set(self, messages: list[ChatMessage]) -> None:
        """Replace every message; notes on others are forgotten when they are next read.

        Args:
            messages: The conversation, oldest first.
        """
        self.memory.set(messages)

    def reset(self) -> None:
        """Forget messages and notes."""
        self.memory.reset()
        self._notes.forget()

    async def areset(self) -> None:
        """Forget messages and notes: the async twin of `reset`."""
        await self.memory.areset()
        self._notes.forget()

    def join(self, timeout: float | None = None) -> None:
        """Wait for notes that a thread is taking; before a program ends, or in a test.

        Args:
            timeout: Seconds; `None` waits for ever.
        """
        self._notes.join(timeout)

    async def ajoin(self) -> None:
        """Wait for notes that a task is taking."""
        await self._notes.ajoin()

    def _shown(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        return chat_messages(self._notes.context(spoken(messages)))


def _restored(
    kind: type[SummarizedMemory], memory: BaseMemory, llm: BaseLLM, settings: dict[str, Any]
) -> SummarizedMemory:
    return kind(memory, llm, **settings)
