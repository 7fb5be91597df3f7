"""The hits of the channels of a hybrid index into one ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from easyrag_core.ranking.hit_fusion import fused_hits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from easyrag_core.index.hybrid._config import HybridConfig
    from easyrag_core.types import Hit

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

    >>> from easyrag_core import Hit, HybridConfig
    >>> words, meaning = [Hit("a", 7.1, 1), Hit("b", 3.0, 2)], [Hit("b", 0.9, 1)]
    >>> [hit.id for hit in fuse_hits({"bm25": words, "vector": meaning}, config=HybridConfig())]
    ['b', 'a']
    """
    return fused_hits(
        channels,
        fusion=config.fusion,
        weights=config.weights_of(channels),
        rank_constant=config.rank_constant,
        k=k,
    )
