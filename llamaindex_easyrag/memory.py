"""A conversation's last messages, and notes on what came before."""

from __future__ import annotations

import asyncio
import threading
from contextvars import Context
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.bridge.pydantic import Field, PrivateAttr, SerializeAsAny
from llama_index.core.memory import BaseMemory, Memory

from easyrag_core import (
    ConversationMemory,
    InvalidParameterError,
    MemoryState,
    parse_summary,
    report_degradation,
)
from llamaindex_easyrag._conversation import chat_messages, spoken
from llamaindex_easyrag._step import achat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.base.llms.types import ChatMessage

    from easyrag_core import SummaryStep
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
    _notes: ConversationMemory = PrivateAttr()
    _prompt: Any = PrivateAttr(default=None)
    _on_event: Any = PrivateAttr(default=None)
    _state: MemoryState = PrivateAttr(default_factory=MemoryState)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)
    _working: bool = PrivateAttr(default=False)
    _thread: threading.Thread | None = PrivateAttr(default=None)
    _task: asyncio.Task[None] | None = PrivateAttr(default=None)

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
        given: Any = memory, llm, state
        if not isinstance(given[0], BaseMemory):
            raise InvalidParameterError("memory", memory, "give a memory of LlamaIndex")
        if not isinstance(given[1], BaseLLM):
            raise InvalidParameterError("llm", llm, "give a model of LlamaIndex")
        if not isinstance(given[2], MemoryState | None):
            raise InvalidParameterError("state", state, "give a MemoryState or None")
        notes = ConversationMemory(prompt, window=window)
        super().__init__(memory=memory, window=window)  # type: ignore[call-arg]
        self._llm, self._notes, self._on_event, self._prompt = llm, notes, on_event, prompt
        self._state = MemoryState() if state is None else state

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with the notes; what runs in the background, and who listens, stays behind."""
        return _restored, (type(self), self.memory, self._llm, self._settings)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> SummarizedMemory:
        """Copy the messages and the notes; the model is shared."""
        return _restored(type(self), deepcopy(self.memory, memo), self._llm, self._settings)

    @property
    def _settings(self) -> dict[str, Any]:
        return {"window": self.window, "prompt": self._prompt, "state": self._state}

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
        return self._state

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
        if (step := self._begun(self.get_all())) is not None:
            self._thread = threading.Thread(target=self._summarize, args=(step,), daemon=True)
            self._thread.start()

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        """Add messages, and take notes in a task where they are due."""
        await self.memory.aput_messages(messages)
        if (step := self._begun(await self.aget_all())) is not None:
            # Without the caller's context: the notes are no part of its trace.
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._asummarize(step), context=Context())

    def set(self, messages: list[ChatMessage]) -> None:
        """Replace every message; notes on others are forgotten when they are next read.

        Args:
            messages: The conversation, oldest first.
        """
        self.memory.set(messages)

    def reset(self) -> None:
        """Forget messages and notes."""
        self.memory.reset()
        self._state = MemoryState()

    async def areset(self) -> None:
        """Forget messages and notes: the async twin of `reset`."""
        await self.memory.areset()
        self._state = MemoryState()

    def join(self, timeout: float | None = None) -> None:
        """Wait for notes that a thread is taking; before a program ends, or in a test.

        Args:
            timeout: Seconds; `None` waits for ever.
        """
        if self._thread is not None:
            self._thread.join(timeout)

    async def ajoin(self) -> None:
        """Wait for notes that a task is taking."""
        if self._task is not None:
            await self._task

    def _shown(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        return chat_messages(self._notes.context(spoken(messages), self._state))

    def _begun(self, messages: Sequence[ChatMessage]) -> SummaryStep | None:
        """Return what is due, if nobody is at it."""
        with self._lock:
            step = None if self._working else self._notes.due(spoken(messages), self._state)
            self._working = self._working or step is not None
        return step

    def _summarize(self, step: SummaryStep) -> None:
        try:
            reply = self._llm.chat(chat_messages(step.messages)).message.content or ""
            self._state = parse_summary(reply, step, self._state, on_event=self._on_event)
        except Exception as error:  # noqa: BLE001 - a model may fail in any way
            self._failed(error)
        finally:
            self._working = False

    async def _asummarize(self, step: SummaryStep) -> None:
        try:
            response = await achat(self._llm, chat_messages(step.messages))
            reply = response.message.content or ""
            self._state = parse_summary(reply, step, self._state, on_event=self._on_event)
        except Exception as error:  # noqa: BLE001 - a model may fail in any way
            self._failed(error)
        finally:
            self._working = False

    def _failed(self, error: Exception) -> None:
        report_degradation("memory", "the model failed", error=error, on_event=self._on_event)


def _restored(
    kind: type[SummarizedMemory], memory: BaseMemory, llm: BaseLLM, settings: dict[str, Any]
) -> SummarizedMemory:
    return kind(memory, llm, **settings)
