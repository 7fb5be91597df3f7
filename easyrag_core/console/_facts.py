"""A hit from what a framework's result carries with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from easyrag_core.types import ChannelScore, Hit

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["hit_of_facts"]


def hit_of_facts(id_: str, rank: int, facts: Mapping[str, Any]) -> Hit:
    """Build a hit from the retrieval facts of a document or a node.

    Args:
        id_: The chunk's id.
        rank: Its place in the answer, from 1.
        facts: What stands under `metadata["easyrag"]`.

    Returns:
        The hit, with its reasons in words.
    """
    channels = {
        name: ChannelScore(place["rank"], place["score"])
        for name, place in facts.get("channels", {}).items()
    }
    return Hit(
        id_,
        float(facts.get("score") or 0.0),
        rank,
        channels,
        reasons=tuple(_reasons(channels, facts.get("mmr"), first=rank == 1)),
    )


def _reasons(
    channels: Mapping[str, ChannelScore], mmr: Mapping[str, Any] | None, *, first: bool
) -> list[str]:
    reasons = [
        f"{name}: rank {place.rank}" + ("" if place.score is None else f", score {place.score:.3f}")
        for name, place in channels.items()
    ]
    if mmr is not None:
        over = "" if first else " over what stands above"
        reasons.append(f"mmr: gain {mmr['gain']:.3f}{over}")
    return reasons
