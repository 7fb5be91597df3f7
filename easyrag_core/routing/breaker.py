"""A circuit breaker: who fails in a row is left alone for a while, then tried by one caller.

The pattern with its three states is Michael Nygard's ("Release It!", 2007).
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from easyrag_core.errors import InvalidParameterError, check_count, check_number
from easyrag_core.routing._checks import check_callable, check_hook

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

__all__ = ["CircuitBreaker", "CircuitState", "Permit", "StateChange"]

_logger = logging.getLogger(__name__)

_MOST_SECONDS: Final = "give a finite number of seconds of at least 0"


class CircuitState(StrEnum):
    """What a breaker lets through: everything, nothing, or one probe."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


StateChange: TypeAlias = Callable[[CircuitState, CircuitState], None]
"""Is told the state that was and the state that is, outside of the breaker's lock."""


class Permit:
    """Leave to make one call. Whoever holds it says once how the call ended.

    As a context manager it is released at the end, unless the call has been told before: a
    cancelled caller frees the place it held and says nothing about the model.

    Attributes:
        is_probe: Whether this is the one call that a half-open circuit lets through.
    """

    __slots__ = ("__weakref__", "_breaker", "_generation", "_settled", "is_probe")

    def __init__(self, breaker: CircuitBreaker, generation: int, *, is_probe: bool) -> None:
        """Made by `CircuitBreaker.acquire`."""
        self._breaker: CircuitBreaker = breaker
        self._generation: int = generation
        self._settled: bool = False
        self.is_probe: bool = is_probe

    def success(self) -> None:
        """The model answered. Only the first word about a call counts."""
        self._breaker._settle(self, failed=False)  # noqa: SLF001 - the two are one thing

    def failure(self, *, retry_after: float | None = None) -> None:
        """The model failed. Only the first word about a call counts.

        Args:
            retry_after: Seconds for which the model asked to be left alone.
        """
        self._breaker._settle(self, failed=True, retry_after=retry_after)  # noqa: SLF001

    def release(self) -> None:
        """The call ended without a word about the model: cancelled, or the caller's own fault."""
        self._breaker._settle(self, failed=None)  # noqa: SLF001

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


class CircuitBreaker:
    """Three states around one model, safe to share between threads and tasks.

    Closed, it lets everything through. After `failure_threshold` failures in a row it opens: no
    call until the deadline, which never moves closer. Then it is half-open: exactly one probe
    is in flight; its success closes the circuit, its failure opens it anew, and when it is
    released or lost (its permit is gone) the next caller probes. What is told late, by calls
    from before the last change, neither opens nor closes anything; only a longer `Retry-After`
    of a call from before the opening still moves the deadline away.

    Args:
        failure_threshold: Failures in a row that open it, at least 1.
        reset_timeout: Seconds until it is tried again.
        max_retry_after: The longest time in seconds for which a model may ask to be left alone:
            without a bound, one wrong header would be the end of it.
        clock: Seconds that never run back.
        on_change: Is told of each change of state; so are those of its twins. One that fails is
            logged.

    Raises:
        InvalidParameterError: A threshold under 1, seconds that are negative or not finite, or
            something else where a function belongs.

    >>> now = [0.0]
    >>> breaker = CircuitBreaker(clock=lambda: now[0])
    >>> for _ in range(2):
    ...     breaker.acquire().failure()
    >>> breaker.state.value, breaker.acquire(), breaker.retry_after
    ('open', None, 30.0)
    >>> now[0] = 31.0
    >>> probe, second = breaker.acquire(), breaker.acquire()
    >>> probe.is_probe, second
    (True, None)
    >>> probe.success()
    >>> breaker.state.value
    'closed'
    """

    def __init__(
        self,
        *,
        failure_threshold: int = 2,
        reset_timeout: float = 30.0,
        max_retry_after: float = 3600.0,
        clock: Callable[[], float] = time.monotonic,
        on_change: StateChange | None = None,
    ) -> None:
        """Begin closed."""
        self.failure_threshold: int = check_count("failure_threshold", failure_threshold, minimum=1)
        self.reset_timeout: float = _checked_seconds("reset_timeout", reset_timeout)
        self.max_retry_after: float = _checked_seconds("max_retry_after", max_retry_after)
        check_callable("clock", clock)
        check_hook("on_change", on_change)
        self.clock: Callable[[], float] = clock
        self._listeners: tuple[StateChange, ...] = () if on_change is None else (on_change,)
        # Reentrant: a forgotten stream that is collected right here releases its own permit.
        self._lock = threading.RLock()
        self._stored = CircuitState.CLOSED
        self._failures = 0
        # Also the generation of a permit: a call that began before the last opening ends late.
        self._openings = 0
        self._deadline = float("-inf")
        self._asked_until = float("-inf")
        self._probe: weakref.ref[Permit] | None = None

    def twin(self, *, on_change: StateChange | None = None) -> CircuitBreaker:
        """Make a closed breaker with the same settings and clock.

        Args:
            on_change: Is told of the twin's changes of state, after this one's own listener.

        Returns:
            A breaker that shares no state with this one.
        """
        made = CircuitBreaker(
            failure_threshold=self.failure_threshold,
            reset_timeout=self.reset_timeout,
            max_retry_after=self.max_retry_after,
            clock=self.clock,
            on_change=on_change,
        )
        made._listeners = (*self._listeners, *made._listeners)
        return made

    def acquire(self) -> Permit | None:
        """Ask for leave to make a call. Never waits.

        Returns:
            A permit, to be settled by its owner alone; `None` while the circuit is open, or
            half-open with its probe in flight.
        """
        with self._lock:
            before = self._stored
            permit = self._issued()
            after = self._stored
        self._tell(before, after)
        return permit

    @property
    def state(self) -> CircuitState:
        """The state now: an open circuit whose time is over is half-open."""
        with self._lock:
            return self._state(self.clock())

    @property
    def retry_after(self) -> float:
        """Seconds until a call may be let through; 0 when one may be, or a probe is in flight."""
        with self._lock:
            return self._wait(self.clock())

    def snapshot(self) -> dict[str, Any]:
        """Tell how it stands, in plain JSON types.

        Returns:
            `state`, `retry_after` in seconds, `consecutive_failures`, `openings` so far, and
            whether a probe is in flight (`probing`).
        """
        with self._lock:
            now = self.clock()
            return {
                "state": self._state(now).value,
                "retry_after": self._wait(now),
                "consecutive_failures": self._failures,
                "openings": self._openings,
                "probing": self._is_probing(),
            }

    # All below run under the lock, but for `_settle` and `_tell`.

    def _state(self, now: float) -> CircuitState:
        over = self._stored is CircuitState.OPEN and now >= self._deadline
        return CircuitState.HALF_OPEN if over else self._stored

    def _wait(self, now: float) -> float:
        return max(0.0, self._deadline - now) if self._stored is CircuitState.OPEN else 0.0

    def _issued(self) -> Permit | None:
        if self._stored is CircuitState.CLOSED:
            return Permit(self, self._openings, is_probe=False)
        if self._state(self.clock()) is CircuitState.OPEN or self._is_probing():
            return None
        self._stored = CircuitState.HALF_OPEN
        probe = Permit(self, self._openings, is_probe=True)
        # Weak, so that the place of an owner who is gone without a word is free again.
        self._probe = weakref.ref(probe)
        return probe

    def _is_probing(self) -> bool:
        return self._probe is not None and self._probe() is not None

    def _settle(
        self, permit: Permit, *, failed: bool | None, retry_after: float | None = None
    ) -> None:
        with self._lock:
            if permit._settled:  # noqa: SLF001 - the two are one thing
                return
            permit._settled = True  # noqa: SLF001
            before = self._stored
            self._record(permit, failed=failed, retry_after=retry_after)
            after = self._stored
        self._tell(before, after)

    def _record(self, permit: Permit, *, failed: bool | None, retry_after: float | None) -> None:
        probed = self._probe is not None and self._probe() is permit
        if probed:
            self._probe = None
        current = permit._generation == self._openings  # noqa: SLF001
        if failed is None:
            return
        if not failed:
            if probed or (current and self._stored is CircuitState.CLOSED):
                self._close()
            return
        asked = self.clock() + min(max(retry_after or 0.0, 0.0), self.max_retry_after)
        if current:
            self._asked_until = max(self._asked_until, asked)
            self._failures += 1
            if probed or self._failures >= self.failure_threshold:
                self._open()
        elif self._stored is CircuitState.OPEN and self._is_of_last_closed(permit):
            self._deadline = max(self._deadline, asked)

    def _is_of_last_closed(self, permit: Permit) -> bool:
        return permit._generation == self._openings - 1 and not permit.is_probe  # noqa: SLF001

    def _open(self) -> None:
        self._stored = CircuitState.OPEN
        self._openings += 1
        usual = self.clock() + self.reset_timeout
        self._deadline = max(self._deadline, usual, self._asked_until)

    def _close(self) -> None:
        self._stored = CircuitState.CLOSED
        self._failures = 0
        self._asked_until = float("-inf")

    def _tell(self, before: CircuitState, after: CircuitState) -> None:
        for listener in self._listeners if before is not after else ():
            try:
                listener(before, after)
            except Exception:
                _logger.warning("A circuit's listener failed", exc_info=True)


def _checked_seconds(name: str, value: object) -> float:
    seconds = check_number(name, value, allowed=_MOST_SECONDS)
    if not 0 <= seconds < float("inf"):
        raise InvalidParameterError(name, value, _MOST_SECONDS)
    return seconds
