"""Channels in parallel: each with its timeout, each allowed to fail alone."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import queue
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from easyrag_core.errors import AllChannelsFailedError, check_timeout

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

__all__ = ["ChannelOutcome", "arun_channels", "distinct_names", "run_channels"]

_logger = logging.getLogger(__name__)

T = TypeVar("T")

# A queue cannot wait for as long as a float can say.
_LONGEST_WAIT: Final = 3600.0


@dataclass(slots=True)
class ChannelOutcome(Generic[T]):
    """What the channels gave, in the order in which they were given.

    Attributes:
        results: Channel name to its answer, for those that answered in time.
        errors: Channel name to its error, for those that did not.
    """

    results: dict[str, T] = field(default_factory=dict)
    errors: dict[str, Exception] = field(default_factory=dict)


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
    timeout: float | None = 15.0,
    strict: bool = False,
) -> ChannelOutcome[T]:
    """Run every call at once, in threads that carry the caller's context.

    A call that raises or is late is left out, recorded and logged; the rest go on. A late
    thread cannot be stopped: it is a daemon, its answer is thrown away. What is no `Exception`,
    such as `KeyboardInterrupt` or a cancellation, is raised here.

    Args:
        calls: Channel name to a call without arguments.
        timeout: Seconds for each channel, counted from the start; `None` waits for ever.
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
    check_timeout(timeout)
    if timeout is None and len(calls) == 1:
        answers = {name: _guarded(call) for name, call in calls.items()}
    else:
        answers = _in_threads(calls, timeout)
    return _outcome(calls, answers, timeout=timeout, strict=strict)


async def arun_channels(
    calls: Mapping[str, Callable[[], Awaitable[T]]],
    *,
    timeout: float | None = 15.0,  # noqa: ASYNC109 - one deadline per channel, not for the whole
    strict: bool = False,
) -> ChannelOutcome[T]:
    """Run every call at once, as tasks: the async twin of `run_channels`.

    When the caller is cancelled, the channels are cancelled too and the cancellation goes on. A
    channel's own cancellation is raised here, as by `run_channels`.

    Args:
        calls: Channel name to a call that gives an awaitable.
        timeout: Seconds for each channel, counted from the start; `None` waits for ever.
        strict: Raise the first failing channel's own error instead of going on without it.

    Returns:
        Answers and errors by channel name, in the order of `calls`.

    Raises:
        AllChannelsFailedError: No channel answered.
        Exception: Under `strict`, what the first failing channel raised.
        InvalidParameterError: The timeout is not a positive number.
    """
    check_timeout(timeout)
    answers: dict[str, _Answer[T]] = {}

    async def answer(name: str, call: Callable[[], Awaitable[T]]) -> None:
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                answers[name] = _Answer(value=[await call()])
        except Exception as error:  # noqa: BLE001 - a channel may fail in any way
            late = isinstance(error, TimeoutError) and limit.expired()
            answers[name] = _Answer(error=_late(name, timeout) if late else error)
        except BaseException as error:
            answers[name] = _Answer(error=error)
            raise

    try:
        async with asyncio.TaskGroup() as group:
            for name, call in calls.items():
                group.create_task(answer(name, call))
    except BaseExceptionGroup as failed:
        # As raised by the channel: callers do not know that there is a group.
        raise failed.exceptions[0] from None
    return _outcome(calls, answers, timeout=timeout, strict=strict)


@dataclass(slots=True)
class _Answer(Generic[T]):
    """One channel's end: a list with the value, or an error."""

    value: list[T] = field(default_factory=list)
    error: BaseException | None = None


def _guarded(call: Callable[[], T]) -> _Answer[T]:
    try:
        return _Answer(value=[call()])
    except BaseException as error:  # noqa: BLE001 - the caller's thread decides what goes on
        return _Answer(error=error)


def _in_threads(
    calls: Mapping[str, Callable[[], T]], timeout: float | None
) -> dict[str, _Answer[T]]:
    done: queue.SimpleQueue[tuple[str, _Answer[T]]] = queue.SimpleQueue()

    def work(name: str, call: Callable[[], T]) -> None:
        done.put((name, _guarded(call)))

    for name, call in calls.items():
        # Each thread gets a copy of its own: one context cannot be entered twice at a time.
        context = contextvars.copy_context()
        threading.Thread(
            target=context.run, args=(work, name, call), name=f"channel {name}", daemon=True
        ).start()
    return _collect(done, len(calls), timeout)


def _collect(
    done: queue.SimpleQueue[tuple[str, _Answer[T]]], count: int, timeout: float | None
) -> dict[str, _Answer[T]]:
    deadline = None if timeout is None else time.monotonic() + timeout
    answers: dict[str, _Answer[T]] = {}
    while len(answers) < count:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        try:
            name, answer = done.get(timeout=None if left is None else min(left, _LONGEST_WAIT))
        except queue.Empty:
            if left is not None and left <= _LONGEST_WAIT:
                break
            continue
        answers[name] = answer
        if not isinstance(answer.error, Exception | None):
            break
    return answers


def _outcome(
    calls: Mapping[str, object],
    answers: Mapping[str, _Answer[T]],
    *,
    timeout: float | None,
    strict: bool,
) -> ChannelOutcome[T]:
    for answer in answers.values():
        if not isinstance(answer.error, Exception | None):
            raise answer.error
    outcome: ChannelOutcome[T] = ChannelOutcome()
    for name in calls:
        answer = answers.get(name) or _Answer(error=_late(name, timeout))
        error = answer.error
        if error is None:
            outcome.results[name] = answer.value[0]
            continue
        if strict or not isinstance(error, Exception):
            raise error
        _logger.warning("Channel %r failed and is left out: %r", name, error)
        outcome.errors[name] = error
    if calls and not outcome.results:
        raise AllChannelsFailedError(outcome.errors)
    return outcome


def _late(name: str, timeout: float | None) -> TimeoutError:
    return TimeoutError(f"channel {name!r} gave no answer within {timeout} seconds")
