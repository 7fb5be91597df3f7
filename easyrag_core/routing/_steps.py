"""One step of a model's answer, taken with patience: from a thread, directly, or from a task."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterable,
        Awaitable,
        Callable,
        Generator,
        Iterable,
        Iterator,
    )

__all__ = [
    "AsyncSteps",
    "Came",
    "DirectSteps",
    "Ended",
    "Late",
    "Raised",
    "Step",
    "Steps",
    "ThreadedSteps",
    "answer_step",
    "awaited_step",
]

_logger = logging.getLogger(__name__)

C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)

# A reader that is slower than its model makes the model wait, not the memory grow.
_CAPACITY: Final = 16


@dataclass(frozen=True, slots=True)
class Came(Generic[C_co]):
    """A chunk, or a whole answer."""

    value: C_co


@dataclass(frozen=True, slots=True)
class Ended:
    """The regular end of a stream."""


@dataclass(frozen=True, slots=True)
class Late:
    """Nothing came in time."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The model's call or stream raised."""

    error: BaseException


Step = Came[C] | Ended | Late | Raised


class Steps(Protocol[C_co]):
    """A stream that is read step by step and can be left at any time."""

    def step(self, seconds: float | None) -> Came[C_co] | Ended | Late | Raised:
        """Wait so long for what comes next."""

    def close(self) -> None:
        """Leave the stream; whoever reads it closes it."""


class DirectSteps(Steps[C]):
    """Reads in the caller's own thread: nothing is ever late."""

    def __init__(self, open_stream: Callable[[], Iterable[C]]) -> None:
        self._chunks = _chunks(open_stream)

    def step(self, seconds: float | None) -> Step[C]:  # noqa: ARG002 - a read cannot be limited
        try:
            return Came(next(self._chunks))
        except StopIteration:
            return Ended()
        except BaseException as error:  # noqa: BLE001 - told to whom it concerns
            return Raised(error)

    def close(self) -> None:
        self._chunks.close()


class ThreadedSteps(Steps[C]):
    """Reads in a thread of its own, so that the caller can stop waiting.

    The thread carries the caller's context, runs at most a few chunks ahead, and closes the
    stream as soon as it is left. A read that blocks cannot be ended from outside: then the thread
    closes the stream when the client hands control back, by a chunk, an error or its own timeout.
    """

    def __init__(self, open_stream: Callable[[], Iterable[C]], *, name: str) -> None:
        self._ready: deque[Step[C]] = deque()
        self._changed = threading.Condition()
        self._left = self._begun = False
        context = contextvars.copy_context()
        threading.Thread(
            target=context.run, args=(self._read, open_stream), name=f"model {name}", daemon=True
        ).start()

    def step(self, seconds: float | None) -> Step[C]:
        # A thread cannot wait for more than some centuries.
        limit = None if seconds is None else min(seconds, threading.TIMEOUT_MAX)
        with self._changed:
            if not self._changed.wait_for(lambda: self._ready, limit):
                return Late()
            step = self._ready.popleft()
            self._begun = True
            self._changed.notify()
        return step

    def close(self) -> None:
        with self._changed:
            self._left = True
            self._ready.clear()
            self._changed.notify()

    def _read(self, open_stream: Callable[[], Iterable[C]]) -> None:
        steps = DirectSteps(open_stream)
        step = steps.step(None)
        while self._put(step) and isinstance(step, Came):
            step = steps.step(None)
        steps.close()

    def _put(self, step: Step[C]) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._left or len(self._ready) < _CAPACITY)
            if not self._left:
                self._ready.append(step)
                self._changed.notify()
                # Who reads on at once keeps the first chunk from whoever waits for it.
                self._changed.wait_for(lambda: self._left or self._begun)
            return not self._left


class AsyncSteps(Generic[C]):
    """Reads in the caller's own task; a read that is late is cancelled."""

    def __init__(
        self, open_stream: Callable[[], AsyncIterable[C] | Awaitable[AsyncIterable[C]]]
    ) -> None:
        self._chunks = _achunks(open_stream)

    async def step(self, seconds: float | None) -> Step[C]:
        """Wait so long for what comes next."""
        try:
            return await awaited_step(lambda: anext(self._chunks), seconds)
        except StopAsyncIteration:
            return Ended()

    async def aclose(self) -> None:
        """Leave the stream and close it."""
        await self._chunks.aclose()


def answer_step(run: Callable[[], C], seconds: float | None, *, name: str) -> Step[C]:
    """Wait so long for one whole answer; without a limit, in the caller's own thread."""

    def once() -> Iterator[C]:
        yield run()

    if seconds is None:
        return DirectSteps(once).step(None)
    steps = ThreadedSteps(once, name=name)
    try:
        return steps.step(seconds)
    finally:
        steps.close()


async def awaited_step(run: Callable[[], Awaitable[C]], seconds: float | None) -> Step[C]:
    """Wait so long for one awaitable; a cancellation and an end of iteration go on."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return Came(await run())
    except StopAsyncIteration:
        raise
    except Exception as error:  # noqa: BLE001 - told to whom it concerns
        return Late() if isinstance(error, TimeoutError) and limit.expired() else Raised(error)


def _chunks(open_stream: Callable[[], Iterable[C]]) -> Generator[C, None, None]:
    """Open the stream when it is first asked for a chunk, and close it in any case."""
    stream = open_stream()
    try:
        for chunk in stream:  # noqa: UP028 - closed below, and nowhere else
            yield chunk
    finally:
        _closed(stream)


def _closed(stream: object) -> None:
    close = getattr(stream, "close", None)
    if not callable(close):
        return
    try:
        close()
    except Exception:
        _logger.warning("A model's stream failed to close", exc_info=True)


async def _achunks(
    open_stream: Callable[[], AsyncIterable[C] | Awaitable[AsyncIterable[C]]],
) -> AsyncGenerator[C, None]:
    """The async twin of `_chunks`; a coroutine that gives the stream is awaited first."""
    opened = open_stream()
    stream = await opened if inspect.isawaitable(opened) else opened
    try:
        async for chunk in stream:
            yield chunk
    finally:
        await _aclosed(stream)


async def _aclosed(stream: object) -> None:
    close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
    if not callable(close):
        return
    try:
        closing = close()
        if inspect.isawaitable(closing):
            await closing
    except Exception:
        _logger.warning("A model's stream failed to close", exc_info=True)
