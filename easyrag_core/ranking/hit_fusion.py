"""The hits of several channels into one ranking that can be explained."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any

from easyrag_core.errors import check_choice
from easyrag_core.ranking.fusion import reciprocal_rank_fusion, score_fusion
from easyrag_core.types import ChannelScore, Hit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from easyrag_core.ranking.fusion import FusedItem

__all__ = ["fused_hits", "known_score"]

_logger = logging.getLogger(__name__)


def known_score(score: Any) -> float | None:
    """Return a score that can be compared: `None`, NaN and what is no number are none.

    >>> known_score(0.5), known_score(float("nan")), known_score(None), known_score("high")
    (0.5, None, None, None)
    """
    try:
        number = float(score)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


def fused_hits(
    rankings: Mapping[str, Sequence[Hit]],
    *,
    fusion: str = "rrf",
    weights: Sequence[float] | None = None,
    rank_constant: float = 60,
    k: int | None = None,
) -> list[Hit]:
    """Fuse named rankings of hits into one.

    Each ranking votes once for an id, at its best rank. A score of `None` or NaN counts as
    absent; a ranking without any score is taken by its ranks.

    Args:
        rankings: Hits, best first, by the name of the channel that gave them.
        fusion: `"rrf"` fuses ranks; `"score"` adds scores brought to [0, 1] per ranking.
        weights: One finite number >= 0 per ranking. Default: 1 each.
        rank_constant: For `"rrf"`, finite, >= 0.
        k: How many to return; `None` returns all.

    Returns:
        Hits with fused score and rank, and with rank and raw score of each channel.

    Raises:
        InvalidParameterError: A setting is not as above.

    >>> words, meaning = [Hit("a", 7.1, 1), Hit("b", 3.0, 2)], [Hit("b", 0.9, 1)]
    >>> [hit.id for hit in fused_hits({"bm25": words, "vector": meaning})]
    ['b', 'a']
    """
    items: list[FusedItem[str]]
    if check_choice("fusion", fusion, ("rrf", "score")) == "rrf":
        items = reciprocal_rank_fusion(
            [[hit.id for hit in hits] for hits in rankings.values()],
            weights=weights,
            rank_constant=rank_constant,
            k=k,
        )
    else:
        pairs = [_scored(hits) for hits in rankings.values()]
        items = score_fusion(pairs, weights=weights, unscored="append", k=k)
    sources = {name: _best(hits, fusion) for name, hits in rankings.items()}
    return [_fused(item, rank, sources) for rank, item in enumerate(items, start=1)]


def _scored(hits: Sequence[Hit]) -> list[tuple[str, float | None]]:
    scores = [known_score(hit.score) for hit in hits]
    if hits and all(score is None for score in scores):
        _logger.warning("A ranking gives no scores: its ranks are taken in their place.")
        scores = [-float(rank) for rank in range(len(hits))]
    return [(hit.id, score) for hit, score in zip(hits, scores, strict=True)]


def _best(hits: Sequence[Hit], fusion: str) -> dict[str, Hit]:
    """Give of each id the hit that counts: its first, or under `"score"` its best scored."""
    if fusion == "score":
        hits = sorted(hits, key=_worth, reverse=True)
    return {hit.id: hit for hit in reversed(hits)}


def _worth(hit: Hit) -> float:
    score = known_score(hit.score)
    return -math.inf if score is None else score


def _fused(item: FusedItem[str], rank: int, sources: Mapping[str, Mapping[str, Hit]]) -> Hit:
    places = zip(sources.items(), item.ranks, strict=True)
    found = {name: (place, hits[item.key]) for (name, hits), place in places if place is not None}
    channels = {
        name: ChannelScore(place, known_score(hit.score)) for name, (place, hit) in found.items()
    }
    best = min(found.values(), key=lambda pair: pair[0])[1]
    reasons = (_told(name, place) for name, place in channels.items())
    return Hit(item.key, item.score, rank, channels, best.query, (*reasons, *best.reasons))


def _told(name: str, place: ChannelScore) -> str:
    return f"{name}: rank {place.rank}" + (
        "" if place.score is None else f", score {place.score:.4g}"
    )
