"""A hit from what a framework's result carries with it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

from easyrag_core.types import ChannelScore, Hit

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["hit_of_facts", "known_channels"]


def hit_of_facts(id_: str, rank: int, facts: Mapping[str, Any]) -> Hit:
    """Build a hit from the retrieval facts of a document or a node.

    Args:
        id_: The chunk's id.
        rank: Its place in the answer, from 1.
        facts: What stands under `metadata["easyrag"]`.

    Returns:
        The hit, with its reasons in words.

    >>> facts = {"score": 0.5, "channels": {"bm25": {"rank": 2, "score": 7.0}}, "mmr": {"gain": 1}}
    >>> hit_of_facts("a", 1, facts).reasons
    ('bm25: rank 2, score 7.000', 'mmr: gain 1.000')
    """
    channels = dict(_channels(facts))
    score = facts.get("score")
    reasons = [*_placed(channels), *_steps(facts, first=rank == 1)]
    return Hit(id_, math.nan if score is None else float(score), rank, channels, None, (*reasons,))


def known_channels(told: Any) -> dict[str, dict[str, Any]]:
    """Return the places that facts tell under `channels`; what is of another shape is none.

    Facts come back from stores and from others' metadata, where anything may stand.

    >>> known_channels({"bm25": {"rank": 2, "score": 7.1}, "vector": None, "mine": {"rank": "1st"}})
    {'bm25': {'rank': 2, 'score': 7.1}}
    """
    if not isinstance(told, Mapping):
        return {}
    places = ((name, place) for name, place in told.items() if isinstance(place, Mapping))
    return {str(name): dict(p) for name, p in places if isinstance(p.get("rank"), int)}


def _channels(facts: Mapping[str, Any], outer: str = "") -> Iterator[tuple[str, ChannelScore]]:
    """Give each channel, and below it those of a channel that fused others itself."""
    for name, place in known_channels(facts.get("channels")).items():
        score = place.get("score")
        known = float(score) if isinstance(score, Real) else None
        yield outer + name, ChannelScore(place["rank"], known)
        yield from _channels(place, f"{outer}{name} › ")


def _placed(channels: Mapping[str, ChannelScore]) -> Iterator[str]:
    for name, place in channels.items():
        score = "" if place.score is None else f", score {place.score:.3f}"
        yield f"{name}: rank {place.rank}{score}"


def _steps(facts: Mapping[str, Any], *, first: bool) -> Iterator[str]:
    """Tell what happened behind the fusion."""
    told = facts.get("reasons", ())
    # A pipeline's stage says the gain in its own words.
    if (mmr := facts.get("mmr")) is not None and not any(": gain " in reason for reason in told):
        over = "" if first else " over what stands above"
        yield f"mmr: gain {mmr['gain']:.3f}{over}"
    if children := facts.get("children"):
        ids = ", ".join(child["id"] for child in children)
        yield f"parent of {len(children)} that were found: {ids}"
    yield from told
