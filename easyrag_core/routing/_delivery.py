"""What the caller of a stream is given: nothing before the first content, then every chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from easyrag_core.errors import FirstTokenTimeoutError, StreamInterruptedError
from easyrag_core.events import emit
from easyrag_core.routing._endings import BlankAnswerError
from easyrag_core.routing._steps import Came, Late, Raised
from easyrag_core.routing.streams import DeltaReader, StreamReset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from easyrag_core.errors import ModelUnavailableError
    from easyrag_core.routing._attempts import Attempt, Attempts
    from easyrag_core.routing._steps import Step
    from easyrag_core.routing.failures import Failure

__all__ = ["Delivery"]

M = TypeVar("M")
C = TypeVar("C")


class Delivery(Generic[M, C]):
    """Decides, step by step and without waiting itself, what the caller of a stream is given.

    A driver calls `begin` for each attempt, then takes steps with `patience` until `over`.
    """

    def __init__(self, attempts: Attempts[M], reader: DeltaReader[C]) -> None:
        """Begin with nothing handed over."""
        self._attempts = attempts
        self._settings = attempts.settings
        self._reader = reader
        self._texts: list[str] = []
        self._handed_over = False
        self._continuable = True
        self._error: BaseException | None = None
        self.done = False

    @property
    def partial(self) -> str:
        """The text that was handed over and holds."""
        return "".join(self._texts)

    @property
    def prefill(self) -> str:
        """The text that the next model is to continue; "" for a fresh answer."""
        return self.partial if self._settings.mid_stream == "continue" else ""

    def begin(self, attempt: Attempt[M]) -> None:
        """Turn to another attempt.

        Args:
            attempt: Whose steps come next.
        """
        self._attempt = attempt
        self._held: list[C] = []
        self._begun = False
        self.over = False
        started, total = attempt.started, attempt.total_timeout
        first = attempt.first_token_timeout
        self._first_until = None if first is None else started + first
        self._total_until = None if total is None else started + total
        self._stall = attempt.stall_timeout
        self._given_at: float | None = None

    def patience(self) -> float | None:
        """Say how long to wait for the next step.

        Returns:
            Seconds of at least 0; `None` for ever.
        """
        now = self._settings.clock()
        self._pause(now)
        limits = [] if self._total_until is None else [self._total_until - now]
        if self._begun and self._stall is not None:
            limits.append(self._stall)
        if not self._begun and self._first_until is not None:
            limits.append(self._first_until - now)
        return max(0.0, min(limits)) if limits else None

    def take(self, step: Step[C]) -> Sequence[C | StreamReset]:
        """Take a step.

        Args:
            step: What came, or that nothing did.

        Returns:
            What the caller is given for it, in order.

        Raises:
            StreamInterruptedError: The stream broke off and nobody may go on.
            BaseException: What the model raised, when it is not for the next candidate.
        """
        if isinstance(step, Came):
            self._given_at = self._settings.clock()
            return self._came(step.value, self._given_at)
        if isinstance(step, Raised):
            return self._failed(step.error)
        if isinstance(step, Late):
            return self._failed(self._late())
        return self._ended()

    def failure(self) -> ModelUnavailableError:
        """Make the error that stands for all attempts.

        Returns:
            A `StreamInterruptedError` when something was handed over and nobody was left to go on.
        """
        return self._interrupted() if self._handed_over else self._attempts.failure()

    def _pause(self, now: float) -> None:
        """Leave out of the model's time what its reader took over the last chunk."""
        if self._given_at is not None and self._total_until is not None:
            self._total_until += now - self._given_at
        self._given_at = None

    def _came(self, chunk: C, now: float) -> Sequence[C | StreamReset]:
        # Chunks that come without a pause leave no wait that could end too late.
        if _is_over(self._total_until, now):
            return self._failed(self._late())
        if self._begun:
            self._hand_over(chunk)
            return (chunk,)
        self._held.append(chunk)
        if not self._reader.carries_content(chunk):
            return self._failed(self._late()) if _is_over(self._first_until, now) else ()
        self._begun = True
        self._attempt.first_token()
        return self._released()

    def _released(self) -> list[C | StreamReset]:
        given: list[C | StreamReset] = [*self._turned(), *self._held]
        for chunk in self._held:
            self._hand_over(chunk)
        self._held = []
        return given

    def _hand_over(self, chunk: C) -> None:
        self._handed_over = True
        self._texts.append(self._reader.text_of(chunk))
        if self._settings.mid_stream == "continue":
            self._continuable = self._continuable and self._reader.leaves_continuable(chunk)

    def _turned(self) -> list[StreamReset]:
        """Tell that another model goes on, or starts anew."""
        if self._error is None or not self._handed_over:
            return []
        name, mode = self._attempt.candidate.name, self._settings.mid_stream
        attributes = {"gen_ai.request.model": name, "easyrag.routing.mid_stream": mode}
        emit(self._settings.on_event, "easyrag.routing.switched", attributes)
        if mode == "continue":
            return []
        reset = StreamReset(name, self.partial, self._error)
        self._texts, self._continuable = [], True
        return [reset]

    def _ended(self) -> Sequence[C | StreamReset]:
        if not self._begun and not self._is_accepted():
            blank = BlankAnswerError(self._attempt.candidate.name, self._held)
            failure = self._settings.failure(blank)
            # A refusal to go on from another model's words leaves them half an answer.
            if self.prefill or not self._settings.hands_on(failure):
                return self._failed(blank, failure)
        given = [] if self._begun else self._released()
        self._attempt.succeeded()
        self.over = self.done = True
        return given

    def _is_accepted(self) -> bool:
        """Whether chunks that came to the end without content are taken as they are."""
        told = self._reader.is_answer
        if told is not None and told(self._held):
            return True
        return self._settings.empty == "accept" and not self._handed_over

    def _late(self) -> TimeoutError:
        name = self._attempt.candidate.name
        if self._begun:
            return TimeoutError(f"{name!r} fell silent: nothing more came in time")
        seconds = self._settings.clock() - self._attempt.started
        return FirstTokenTimeoutError(reason=f"{name!r} gave no content within {seconds:.3g} s")

    def _failed(self, error: BaseException, failure: Failure | None = None) -> Sequence[C]:
        if not isinstance(error, Exception):
            raise error
        self.over = True
        self._error = error
        moves = self._attempts.failed(self._attempt, error, failure)
        if self._handed_over and not (moves and self._may_turn()):
            raise self._interrupted()
        if not moves:
            raise error
        return ()

    def _may_turn(self) -> bool:
        mode = self._settings.mid_stream
        return mode == "restart" or (mode == "continue" and self._continuable)

    def _interrupted(self) -> StreamInterruptedError:
        error = StreamInterruptedError(self.partial, self._attempts.errors)
        error.__cause__ = self._error
        return error


def _is_over(until: float | None, now: float) -> bool:
    return until is not None and now >= until
