"""Retrieval facts: what is told about a node, where no model reads it and no hash shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index.core.schema import NodeWithScore

from easyrag_core.explanation import known_channels
from easyrag_core.ranking.hit_fusion import known_score

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from llama_index.core.schema import BaseNode

    from easyrag_core import FusedItem, Hit

__all__ = [
    "FACTS_KEY",
    "RetrievalMetadata",
    "facts_of",
    "facts_of_fused",
    "facts_of_hit",
    "scored_node",
]

FACTS_KEY = "easyrag"
"""The metadata key under which retrieval facts stand."""


class RetrievalMetadata(dict[str, Any]):
    """Metadata of a retrieved node whose `str()` leaves the retrieval facts out.

    The framework makes `TextNode.hash` from `str(metadata)`, and its own fusion knows a node by
    that hash: facts that show in it would make one passage, found twice, two.
    """

    def __str__(self) -> str:
        """Show the metadata as it was before retrieval."""
        return str({key: value for key, value in self.items() if key != FACTS_KEY})


def facts_of(node: BaseNode) -> dict[str, Any]:
    """Return the retrieval facts of a node; empty where there are none.

    Args:
        node: Any node.

    Returns:
        A copy, one level deep.
    """
    facts = node.metadata.get(FACTS_KEY)
    return dict(facts) if isinstance(facts, dict) else {}


def facts_of_hit(hit: Hit) -> dict[str, Any]:
    """Return a hit's facts as plain JSON values.

    Args:
        hit: What the core found.

    Returns:
        Score, rank and, for each channel, its rank and raw score.
    """
    channels = {
        name: {"rank": place.rank, "score": place.score} for name, place in hit.channels.items()
    }
    return {"score": hit.score, "rank": hit.rank, "channels": channels}


def facts_of_fused(
    item: FusedItem[str], rank: int, sources: Mapping[str, NodeWithScore | None]
) -> dict[str, Any]:
    """Return a fused node's facts as plain JSON values.

    Args:
        item: The fused item.
        rank: Its rank, from 1.
        sources: Channel name, in the order of the rankings, to what that channel gave.

    Returns:
        Score, rank and, for each channel that found it, its rank and raw score.
    """
    channels = {
        name: _channel_facts(source, place)
        for (name, source), place in zip(sources.items(), item.ranks, strict=True)
        if source is not None and place is not None
    }
    return {"score": item.score, "rank": rank, "channels": channels}


def _channel_facts(source: NodeWithScore, rank: int) -> dict[str, Any]:
    inner = known_channels(facts_of(source.node).get("channels"))
    facts: dict[str, Any] = {"rank": rank, "score": known_score(source.score)}
    return {**facts, "channels": inner} if len(inner) > 1 else facts


def scored_node(node: BaseNode, score: float | None, facts: Mapping[str, Any]) -> NodeWithScore:
    """Return a scored copy of a node that carries facts which no model reads.

    Args:
        node: The node; it is left as it is.
        score: The score, higher is better.
        facts: JSON values; they replace facts that the node carries under the same names.

    Returns:
        The copy, of the node's own class.
    """
    metadata = RetrievalMetadata(node.metadata)
    metadata[FACTS_KEY] = {**facts_of(node), **facts}
    own = {
        "relationships": dict(node.relationships),
        "excluded_embed_metadata_keys": _hiding(node.excluded_embed_metadata_keys),
        "excluded_llm_metadata_keys": _hiding(node.excluded_llm_metadata_keys),
    }
    copy = node.model_copy(update={"metadata": metadata, **own})
    return NodeWithScore(node=copy, score=score)


def _hiding(keys: Sequence[str]) -> list[str]:
    return list(keys) if FACTS_KEY in keys else [*keys, FACTS_KEY]
