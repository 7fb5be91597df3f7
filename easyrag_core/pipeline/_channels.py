"""Channels in parallel: each with its timeout, each allowed to fail alone."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import math
import queue
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from easyrag_core.errors import AllChannelsFailedError, check_timeout

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

__all__ = [
    "ChannelOutcome",
    "Timeouts",
    "arun_channels",
    "distinct_names",
    "in_thread",
    "run_channels",
]

_logger = logging.getLogger("easyrag_core.pipeline")

T = TypeVar("T")

Timeouts: TypeAlias = float | Mapping[str, float | None] | None
"""Seconds for each channel, or for each by its name; `None` waits for ever."""

# A queue cannot wait for as long as a float can say.
_LONGEST_WAIT: Final = 3600.0


@dataclass(slots=True)
class ChannelOutcome(Generic[T]):
    """What the channels gave, in the order in which they were given.

    Attributes:
        results: Channel name to its answer, for those that answered in time.
        errors: Channel name to its error, for those that did not.
        seconds: Channel name to the time that it took.
    """

    results: dict[str, T] = field(default_factory=dict)
    errors: dict[str, Exception] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


def distinct_names(names: Sequence[str]) -> list[str]:
    """Number names that come again.

    Args:
        names: Any names.

    Returns:
        As many names, all different.

    >>> distinct_names(["bm25", "vector", "bm25"])
    ['bm25', 'vector', 'bm25 2']
    """
    seen: Counter[str] = Counter()
    told = []
    for name in names:
        seen[name] += 1
        told.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return told


def run_channels(
    calls: Mapping[str, Callable[[], T]],
    *,
    timeout: Timeouts = 15.0,
    strict: bool = False,
) -> ChannelOutcome[T]:
    """Run every call at once, in threads that carry the caller's context.

    A call that raises or is late is left out, recorded and logged; the rest go on. A late
    thread cannot be stopped: it is a daemon, its answer is thrown away. What is no `Exception`,
    such as `KeyboardInterrupt` or a cancellation, is raised here.

    Args:
        calls: Channel name to a call without arguments.
        timeout: Seconds for each channel, counted from the start, or a mapping that gives each
            its own; `None` waits for ever.
        strict: Raise the first failing channel's own error instead of going on without it.

    Returns:
        Answers and errors by channel name, in the order of `calls`.

    Raises:
        AllChannelsFailedError: No channel answered.
        Exception: Under `strict`, what the first failing channel raised.
        InvalidParameterError: The timeout is not a positive number.

    >>> run_channels({"a": lambda: 1, "b": lambda: 1 // 0}).results
    {'a': 1}
    """
    timeouts = _each(calls, timeout)
    if list(timeouts.values()) == [None]:
        answers = {name: _guarded(call) for name, call in calls.items()}
    else:
        answers = _in_threads(calls, timeouts)
    return _outcome(answers, timeouts=timeouts, strict=strict)


async def arun_channels(
    calls: Mapping[str, Callable[[], Awaitable[T]]],
    *,
    timeout: Timeouts = 15.0,  # noqa: ASYNC109 - one deadline per channel, not for the whole
    strict: bool = False,
) -> ChannelOutcome[T]:
    """Run every call at once, as tasks: the async twin of `run_channels`.

    When the caller is cancelled, the channels are cancelled too and the cancellation goes on. A
    channel's own cancellation is raised here, as by `run_channels`.

    Args:
        calls: Channel name to a call that gives an awaitable.
        timeout: Seconds for each channel, counted from the start, or a mapping that gives each
            its own; `None` waits for ever.
        strict: Raise the first failing channel's own error instead of going on without it.

    Returns:
        Answers and errors by channel name, in the order of `calls`.

    Raises:
        AllChannelsFailedError: No channel answered.
        Exception: Under `strict`, what the first failing channel raised.
        InvalidParameterError: The timeout is not a positive number.
    """
    timeouts = _each(calls, timeout)
    answers: dict[str, _Answer[T]] = {}

    async def answer(name: str, call: Callable[[], Awaitable[T]]) -> None:
        limit = asyncio.timeout(timeouts[name])
        started = time.perf_counter()
        given = answers[name] = _Answer()
        try:
            async with limit:
                given.value.append(await call())
            if limit.expired():  # it caught its cancellation, and answered all the same
                given.value.clear()
                given.error = _late(name, timeouts[name])
        except Exception as error:  # noqa: BLE001 - a channel may fail in any way
            late = isinstance(error, TimeoutError) and limit.expired()
            given.error = _late(name, timeouts[name]) if late else error
        except BaseException as error:
            given.error = error
            raise
        finally:
            given.seconds = time.perf_counter() - started

    try:
        async with asyncio.TaskGroup() as group:
            for name, call in calls.items():
                group.create_task(answer(name, call))
    except BaseExceptionGroup as failed:
        # As raised by the channel: callers do not know that there is a group.
        raise failed.exceptions[0] from None
    return _outcome(answers, timeouts=timeouts, strict=strict)


async def in_thread(call: Callable[[], T]) -> T:
    """Wait for a call in a thread of its own, which carries the caller's context.

    Not in the loop's pool: a call that hangs would take a place there from others, and keep the
    loop from closing. The thread is a daemon; when the caller is cancelled, its answer is thrown
    away.

    Args:
        call: A call without arguments.

    Returns:
        What it gives; what it raises is raised here.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Answer[T]] = loop.create_future()

    def settle(answer: _Answer[T]) -> None:
        if not done.done():
            done.set_result(answer)

    def work() -> None:
        answer = _guarded(call)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, answer)

    _start(work, "call")
    answer = await done
    if answer.error is not None:
        raise answer.error
    return answer.value[0]


@dataclass(slots=True)
class _Answer(Generic[T]):
    """One channel's end: a list with the value, or an error, and the time that it took."""

    value: list[T] = field(default_factory=list)
    error: BaseException | None = None
    seconds: float = 0.0


def _each(calls: Mapping[str, object], timeout: Timeouts) -> dict[str, float | None]:
    """Give each channel its timeout."""
    if isinstance(timeout, Mapping):
        return {name: check_timeout(timeout[name]) for name in calls}
    return dict.fromkeys(calls, check_timeout(timeout))


def _guarded(call: Callable[[], T]) -> _Answer[T]:
    started = time.perf_counter()
    answer: _Answer[T] = _Answer()
    try:
        answer.value.append(call())
    except BaseException as error:  # noqa: BLE001 - the caller's thread decides what goes on
        answer.error = error
    answer.seconds = time.perf_counter() - started
    return answer


def _start(work: Callable[[], None], name: str) -> None:
    # Each thread gets a copy of its own: one context cannot be entered twice at a time.
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name=f"channel {name}", daemon=True).start()


def _in_threads(
    calls: Mapping[str, Callable[[], T]], timeouts: Mapping[str, float | None]
) -> dict[str, _Answer[T]]:
    done: queue.SimpleQueue[tuple[str, _Answer[T]]] = queue.SimpleQueue()

    def work(name: str, call: Callable[[], T]) -> None:
        done.put((name, _guarded(call)))

    for name, call in calls.items():
        _start(partial(work, name, call), name)
    return _collect(done, timeouts)


def _collect(
    done: queue.SimpleQueue[tuple[str, _Answer[T]]], timeouts: Mapping[str, float | None]
) -> dict[str, _Answer[T]]:
    started = time.monotonic()
    ends = {name: math.inf if s is None else started + s for name, s in timeouts.items()}
    answers: dict[str, _Answer[T]] = {}
    while ends:
        left = min(ends.values()) - time.monotonic()
        try:
            name, answer = done.get(timeout=min(max(left, 0.0), _LONGEST_WAIT))
        except queue.Empty:
            now = time.monotonic()
            ends = {name: end for name, end in ends.items() if end > now}
            continue
        interrupted = not isinstance(answer.error, Exception | None)
        # One that was given up before the others ended has had its time.
        if ends.pop(name, None) is not None or interrupted:
            answers[name] = answer
        if interrupted:
            break
    return answers


def _outcome(
    answers: Mapping[str, _Answer[T]], *, timeouts: Mapping[str, float | None], strict: bool
) -> ChannelOutcome[T]:
    for answer in answers.values():
        if not isinstance(answer.error, Exception | None):
            raise answer.error
    outcome: ChannelOutcome[T] = ChannelOutcome()
    for name, timeout in timeouts.items():
        answer = answers.get(name) or _Answer(error=_late(name, timeout), seconds=timeout or 0.0)
        error = answer.error
        outcome.seconds[name] = answer.seconds
        if error is None:
            outcome.results[name] = answer.value[0]
            continue
        if strict or not isinstance(error, Exception):
            raise error
        _logger.warning("Channel %r failed and is left out: %r", name, error)
        outcome.errors[name] = error
    if timeouts and not outcome.results:
        raise AllChannelsFailedError(outcome.errors)
    return outcome


def _late(name: str, timeout: float | None) -> TimeoutError:
    return TimeoutError(f"channel {name!r} gave no answer within {timeout:g} seconds")
