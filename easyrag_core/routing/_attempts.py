"""One request's way through the candidates: what is tried, what failed, what is told of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Generic, TypeVar

from easyrag_core.errors import (
    CircuitOpenError,
    FirstTokenTimeoutError,
    ModelUnavailableError,
)
from easyrag_core.events import emit
from easyrag_core.routing._endings import BlankAnswerError
from easyrag_core.routing._steps import Came, Ended, Late, Raised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType
    from typing import Self

    from easyrag_core.events import AttributeValue
    from easyrag_core.routing._settings import Member, Settings
    from easyrag_core.routing._steps import Step
    from easyrag_core.routing.breaker import Permit
    from easyrag_core.routing.failures import Failure

__all__ = ["Attempt", "Attempts"]

M = TypeVar("M")
R = TypeVar("R")


class Attempt(Generic[M]):
    """One candidate's turn. Left without a word about its end, it counts as cancelled."""

    def __init__(self, member: Member[M], permit: Permit, settings: Settings) -> None:
        self._member = member
        self._permit = permit
        self._settings = settings
        self._told = False
        self.candidate = member.candidate
        self.started = settings.clock()
        member.metrics.count("calls")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._told:
            self._permit.release()
            self._member.metrics.count("cancelled")
            self._tell("cancelled")

    @property
    def total_timeout(self) -> float | None:
        """Seconds for the whole answer."""
        return _limit(self.candidate.total_timeout, self._settings.total_timeout)

    @property
    def first_token_timeout(self) -> float | None:
        """Seconds until the first content."""
        return _limit(self.candidate.first_token_timeout, self._settings.first_token_timeout)

    @property
    def stall_timeout(self) -> float | None:
        """Seconds between chunks."""
        return _limit(self.candidate.stall_timeout, self._settings.stall_timeout)

    @property
    def is_limited(self) -> bool:
        """Whether anything may come too late."""
        limits = (self.first_token_timeout, self.stall_timeout, self.total_timeout)
        return any(limit is not None for limit in limits)

    def first_token(self) -> None:
        """Tell that the first content is there."""
        seconds = self._settings.clock() - self.started
        self._member.metrics.first_token(seconds)
        self._emit("easyrag.routing.first_token", {}, seconds)

    def succeeded(self) -> None:
        """Tell that the answer is whole."""
        self._permit.success()
        self._member.metrics.count("successes")
        self._tell("success")

    def failed(self, error: Exception, failure: Failure) -> None:
        """Tell how the answer failed."""
        if failure.kind in self._settings.counted_kinds:
            self._permit.failure(retry_after=failure.retry_after)
        else:
            self._permit.release()
        self._member.metrics.failed(failure.kind)
        kind = type(error).__name__
        self._tell("failure", {"error.type": kind, "easyrag.routing.failure": failure.kind})

    def _tell(self, outcome: str, more: dict[str, AttributeValue] | None = None) -> None:
        self._told = True
        attributes: dict[str, AttributeValue] = {
            "easyrag.routing.outcome": outcome,
            "easyrag.routing.probe": self._permit.is_probe,
            **(more or {}),
        }
        self._emit("easyrag.routing.attempt", attributes, self._settings.clock() - self.started)

    def _emit(self, name: str, attributes: dict[str, AttributeValue], seconds: float) -> None:
        told = {"gen_ai.request.model": self.candidate.name, **attributes}
        emit(self._settings.on_event, name, told, seconds=seconds)


def _limit(own: float | None, general: float | None) -> float | None:
    seconds = general if own is None else own
    return None if seconds is None or math.isinf(seconds) else seconds


class Attempts(Generic[M]):
    """The candidates of one request, each asked at most once, and their errors."""

    def __init__(self, members: Sequence[Member[M]], settings: Settings) -> None:
        self._members = members
        self.settings = settings
        self.errors: dict[str, BaseException] = {}

    def __iter__(self) -> Iterator[Attempt[M]]:
        for member in self._members:
            permit = member.breaker.acquire()
            if permit is None:
                self._skip(member)
            else:
                yield Attempt(member, permit, self.settings)

    def _skip(self, member: Member[M]) -> None:
        name, wait = member.candidate.name, member.breaker.retry_after
        member.metrics.count("skipped")
        self.errors[name] = CircuitOpenError(wait)
        attributes: dict[str, AttributeValue] = {
            "gen_ai.request.model": name,
            "easyrag.routing.retry_after": wait,
        }
        emit(self.settings.on_event, "easyrag.routing.skipped", attributes)

    def failed(self, attempt: Attempt[M], error: Exception, failure: Failure | None = None) -> bool:
        """Take an attempt's failure; true when the next candidate may be asked."""
        failure = failure or self.settings.failure(error)
        self.errors[attempt.candidate.name] = error
        attempt.failed(error, failure)
        return failure.kind in self.settings.moving_kinds

    def accepts(
        self, attempt: Attempt[M], step: Step[R], is_blank: Callable[[R], bool] | None
    ) -> bool:
        """Take the whole answer of a call; false when the next candidate is to be asked."""
        error, failure = self._error(attempt, step, is_blank), None
        if isinstance(step, Came) and isinstance(error, BlankAnswerError):
            failure = self.settings.failure(error)
            error = None if self.settings.hands_on(failure) else error
        if error is None:
            attempt.succeeded()
        elif not isinstance(error, Exception) or not self.failed(attempt, error, failure):
            raise error
        return error is None

    def _error(
        self, attempt: Attempt[M], step: Step[R], is_blank: Callable[[R], bool] | None
    ) -> BaseException | None:
        if isinstance(step, Raised):
            return step.error
        name = attempt.candidate.name
        if isinstance(step, Late | Ended):
            return TimeoutError(f"{name!r} gave no whole answer within {attempt.total_timeout:g} s")
        if is_blank is None or self.settings.empty == "accept" or not is_blank(step.value):
            return None
        return BlankAnswerError(name, [step.value])

    def failure(self) -> ModelUnavailableError:
        """Make the error that stands for all attempts."""
        tried = {
            name: error
            for name, error in self.errors.items()
            if not isinstance(error, CircuitOpenError)
        }
        if not tried:
            return self._all_open()
        error = ModelUnavailableError(self.errors)
        if all(isinstance(each, FirstTokenTimeoutError) for each in tried.values()):
            error = FirstTokenTimeoutError(self.errors, "No model gave its first content in time")
        error.__cause__ = list(tried.values())[-1]
        return error

    def _all_open(self) -> CircuitOpenError:
        waits = [e.retry_after for e in self.errors.values() if isinstance(e, CircuitOpenError)]
        return CircuitOpenError(min(waits), self.errors, "All circuits are open")
