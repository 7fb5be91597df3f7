"""What all requests of one router share: its settings, and a breaker with counts per candidate."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from easyrag_core.routing.failures import Failure, classify_failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from easyrag_core.events import EventHandler
    from easyrag_core.routing.breaker import CircuitBreaker
    from easyrag_core.routing.candidates import ModelCandidate
    from easyrag_core.routing.failures import Classifier
    from easyrag_core.routing.metrics import CandidateMetrics

__all__ = ["Member", "Settings"]

_logger = logging.getLogger(__name__)

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Member(Generic[M]):
    """A candidate with its own breaker and its own counts."""

    candidate: ModelCandidate[M]
    breaker: CircuitBreaker
    metrics: CandidateMetrics


@dataclass(frozen=True, slots=True)
class Settings:
    """A router's settings, checked."""

    first_token_timeout: float | None
    stall_timeout: float | None
    total_timeout: float | None
    empty: str
    mid_stream: str
    moving_kinds: frozenset[str]
    counted_kinds: frozenset[str]
    classify: Classifier | None
    on_event: EventHandler | None
    clock: Callable[[], float]

    def failure(self, error: Exception) -> Failure:
        """Classify an error, by the user's word first; one that fails is logged and left out."""
        told = self._users_word(error)
        return classify_failure(error) if told is None else told

    def hands_on(self, blank: Failure) -> bool:
        """Whether a blank answer is one all the same: a refusal, unless others may be asked."""
        return blank.kind == "refusal" and blank.kind not in self.moving_kinds

    def _users_word(self, error: Exception) -> Failure | None:
        if self.classify is None:
            return None
        told: object = None
        try:
            told = self.classify(error)
        except Exception:
            _logger.warning("classify failed on %r", error, exc_info=True)
        if told is None or isinstance(told, Failure):
            return told
        _logger.warning("classify failed on %r: %r is no Failure", error, told)
        return None
