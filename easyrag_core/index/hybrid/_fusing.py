"""The hits of several channels into one ranking that can be explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from easyrag_core.ranking.fusion import reciprocal_rank_fusion, score_fusion
from easyrag_core.types import ChannelScore, Hit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from easyrag_core.index.hybrid._config import HybridConfig
    from easyrag_core.ranking.fusion import FusedItem

__all__ = ["fuse_hits"]


def fuse_hits(
    channels: Mapping[str, Sequence[Hit]], *, config: HybridConfig, k: int | None = None
) -> list[Hit]:
    """Fuse the hits of several channels into one ranking.

    Args:
        channels: Channel name to its hits, best first.
        config: `fusion`, `weights` and `rank_constant` are used.
        k: How many to return; `None` returns all.

    Returns:
        Hits with fused score and rank, and with rank and raw score of each channel.

    >>> from easyrag_core import HybridConfig
    >>> words, meaning = [Hit("a", 7.1, 1), Hit("b", 3.0, 2)], [Hit("b", 0.9, 1)]
    >>> [hit.id for hit in fuse_hits({"bm25": words, "vector": meaning}, config=HybridConfig())]
    ['b', 'a']
    """
    weights = config.weights_of(channels)
    if config.fusion == "rrf":
        items: list[FusedItem[str]] = reciprocal_rank_fusion(
            [[hit.id for hit in hits] for hits in channels.values()],
            weights=weights,
            rank_constant=config.rank_constant,
            k=k,
        )
    else:
        items = score_fusion(
            [[(hit.id, hit.score) for hit in hits] for hits in channels.values()],
            weights=weights,
            k=k,
        )
    raw = {name: {hit.id: hit.score for hit in hits} for name, hits in channels.items()}
    return [_fused_hit(item, rank, raw) for rank, item in enumerate(items, start=1)]


def _fused_hit(item: FusedItem[str], rank: int, raw: Mapping[str, Mapping[str, float]]) -> Hit:
    channels = {
        name: ChannelScore(place, raw[name][item.key])
        for name, place in zip(raw, item.ranks, strict=True)
        if place is not None
    }
    reasons = tuple(
        f"{name}: rank {place.rank}, score {place.score:.4g}" for name, place in channels.items()
    )
    return Hit(item.key, item.score, rank, channels, reasons=reasons)
