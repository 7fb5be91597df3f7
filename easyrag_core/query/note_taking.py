"""Notes on a conversation, taken while it goes on."""

from __future__ import annotations

import asyncio
import threading
from contextvars import Context
from typing import TYPE_CHECKING

from easyrag_core.errors import InvalidParameterError
from easyrag_core.query._degradation import report_degradation
from easyrag_core.query.memory import MemoryState, parse_summary

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from easyrag_core.events import EventHandler
    from easyrag_core.query.memory import ConversationMemory, SummaryStep
    from easyrag_core.query.prompts import Message

__all__ = ["NoteTaker"]


class NoteTaker:
    """Has a model take the notes that are due, in the background and one at a time.

    Nobody waits for them, and they are no part of the caller's run: its context is not carried
    over. Where the model fails, that is told, and the next message tries again.

    >>> from easyrag_core import ConversationMemory, Message
    >>> def ask(messages):
    ...     return '{"topics": ["Redis"]}'
    >>> async def aask(messages):
    ...     return ask(messages)
    >>> taker = NoteTaker(ConversationMemory(window=2), ask=ask, aask=aask)
    >>> talk = [Message("user", "Redis?"), Message("user", "Price?")]
    >>> taker.begin(talk)
    >>> taker.join()
    >>> taker.state.notes.topics
    ('Redis',)
    """

    def __init__(
        self,
        memory: ConversationMemory,
        *,
        ask: Callable[[Sequence[Message]], str],
        aask: Callable[[Sequence[Message]], Awaitable[str]],
        state: MemoryState | None = None,
        on_event: EventHandler | None = None,
    ) -> None:
        """Begin where a conversation stands.

        Args:
            memory: Says what is due.
            ask: Gives a model's reply to messages; called in a thread.
            aask: The same for `abegin`, called in a task.
            state: What `state` was when the conversation was last used.
            on_event: Hears when a summary fails.

        Raises:
            InvalidParameterError: `state` is no `MemoryState`.
        """
        given: object = state
        if not isinstance(given, MemoryState | None):
            raise InvalidParameterError("state", state, "give a MemoryState or None")
        self.memory: ConversationMemory = memory
        self.state: MemoryState = MemoryState() if state is None else state
        self._ask = ask
        self._aask = aask
        self._on_event = on_event
        self._lock = threading.Lock()
        self._working = False
        self._thread: threading.Thread | None = None
        self._task: asyncio.Task[None] | None = None

    def context(self, history: Sequence[Message]) -> list[Message]:
        """Return what a prompt should hold; see `ConversationMemory.context`.

        Args:
            history: The whole conversation, oldest first.

        Returns:
            The notes as a system message, if there are any, and the messages after them.
        """
        return self.memory.context(history, self.state)

    def forget(self) -> None:
        """Drop the notes, for a conversation that begins anew."""
        self.state = MemoryState()

    def begin(self, history: Sequence[Message]) -> None:
        """Take notes in a thread, if they are due and nobody is at it.

        Args:
            history: The whole conversation, oldest first.
        """
        if (step := self._begun(history)) is not None:
            self._thread = threading.Thread(target=self._summarize, args=(step,), daemon=True)
            self._thread.start()

    async def abegin(self, history: Sequence[Message]) -> None:
        """Take notes in a task: the async twin of `begin`.

        Args:
            history: The whole conversation, oldest first.
        """
        if (step := self._begun(history)) is not None:
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._asummarize(step), context=Context())

    def join(self, timeout: float | None = None) -> None:
        """Wait for notes that a thread is taking.

        Args:
            timeout: The most seconds; `None` waits for ever.
        """
        if self._thread is not None:
            self._thread.join(timeout)

    async def ajoin(self) -> None:
        """Wait for notes that a task is taking."""
        if self._task is not None:
            await self._task

    def _begun(self, history: Sequence[Message]) -> SummaryStep | None:
        with self._lock:
            step = None if self._working else self.memory.due(history, self.state)
            self._working = self._working or step is not None
        return step

    def _summarize(self, step: SummaryStep) -> None:
        try:
            self._learn(self._ask(step.messages), step)
        except Exception as error:  # noqa: BLE001 - a model may fail in any way
            self._failed(error)
        finally:
            self._working = False

    async def _asummarize(self, step: SummaryStep) -> None:
        try:
            self._learn(await self._aask(step.messages), step)
        except Exception as error:  # noqa: BLE001 - a model may fail in any way
            self._failed(error)
        finally:
            self._working = False

    def _learn(self, reply: str, step: SummaryStep) -> None:
        self.state = parse_summary(reply, step, self.state, on_event=self._on_event)

    def _failed(self, error: Exception) -> None:
        report_degradation("memory", "the model failed", error=error, on_event=self._on_event)
