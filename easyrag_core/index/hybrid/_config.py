"""How the channels of a hybrid index are asked and fused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from easyrag_core.errors import (
    InvalidParameterError,
    check_choice,
    check_count,
    check_number,
    check_timeout,
)
from easyrag_core.ranking.fusion import reciprocal_rank_fusion

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["HybridConfig"]

_CHANNELS: Final = ("bm25", "vector")


@dataclass(frozen=True, slots=True)
class HybridConfig:
    """How the two channels are asked and fused.

    Attributes:
        bm25_k: Candidates that the words give; at least `k` of a search are taken.
        vector_k: Candidates that the vectors give; likewise.
        fusion: `"rrf"` fuses ranks; `"score"` adds scores brought to [0, 1] per channel.
        rank_constant: For `"rrf"`: the larger, the less the first ranks stand out.
        merge_threshold: Share of a parent's children that must be hit to merge them, in (0, 1].
        weights: Weight by channel, `"bm25"` and `"vector"`; 1 each where not given.
        channel_timeout: Seconds that each channel has where channels run in parallel; `None`
            for no limit.
    """

    bm25_k: int = 10
    vector_k: int = 10
    fusion: Literal["rrf", "score"] = "rrf"
    rank_constant: float = 60
    merge_threshold: float = 0.5
    weights: Mapping[str, float] | None = None
    channel_timeout: float | None = 15.0

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            InvalidParameterError: A value is out of range or of another kind.
        """
        check_count("bm25_k", self.bm25_k, minimum=1)
        check_count("vector_k", self.vector_k, minimum=1)
        check_choice("fusion", self.fusion, ("rrf", "score"))
        check_timeout(self.channel_timeout, name="channel_timeout")
        threshold = check_number("merge_threshold", self.merge_threshold)
        if not 0 < threshold <= 1:  # also refuses NaN
            raise InvalidParameterError("merge_threshold", threshold, "give a number in (0, 1]")
        # A copy: what the caller does to the mapping later has not been checked.
        object.__setattr__(self, "weights", _checked_weights(self.weights))
        check_number("rank_constant", self.rank_constant)
        # The kernel knows what weights and constants are allowed.
        reciprocal_rank_fusion(
            [[], []], weights=self.weights_of(_CHANNELS), rank_constant=self.rank_constant
        )

    def weights_of(self, channels: Iterable[str]) -> list[float]:
        """Return the weight of each channel.

        Args:
            channels: Channel names.

        Returns:
            Weights in the same order.
        """
        return [float((self.weights or {}).get(name, 1.0)) for name in channels]


def _checked_weights(weights: Any) -> dict[str, float] | None:
    if weights is None:
        return None
    if not isinstance(weights, Mapping) or not set(weights) <= set(_CHANNELS):
        raise InvalidParameterError("weights", weights, "a mapping of 'bm25' and 'vector'")
    checked = {name: check_number("weights", weight) for name, weight in weights.items()}
    if not any(checked.get(name, 1.0) for name in _CHANNELS):
        raise InvalidParameterError("weights", weights, "one of them must be above 0")
    return checked
