"""Models behind circuit breakers: who is asked, for how long, and who is asked next."""

from easyrag_core.routing.breaker import CircuitBreaker, CircuitState, Permit, StateChange
from easyrag_core.routing.candidates import ModelCandidate, ordered_candidates
from easyrag_core.routing.failures import (
    COUNTED_KINDS,
    FAILURE_KINDS,
    MOVING_KINDS,
    Classifier,
    Failure,
    FailureKind,
    classify_failure,
    retry_after_of,
)
from easyrag_core.routing.metrics import CandidateMetrics, RoutingSnapshot
from easyrag_core.routing.router import ModelRouter
from easyrag_core.routing.streams import DeltaReader, StreamReset
from easyrag_core.routing.vectors import VectorRouter

__all__ = [
    "COUNTED_KINDS",
    "FAILURE_KINDS",
    "MOVING_KINDS",
    "CandidateMetrics",
    "CircuitBreaker",
    "CircuitState",
    "Classifier",
    "DeltaReader",
    "Failure",
    "FailureKind",
    "ModelCandidate",
    "ModelRouter",
    "Permit",
    "RoutingSnapshot",
    "StateChange",
    "StreamReset",
    "VectorRouter",
    "classify_failure",
    "ordered_candidates",
    "retry_after_of",
]
