"""How a pipeline reads and writes scored nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llama_index.core.schema import NodeWithScore

from easyrag_core import InvalidParameterError
from easyrag_core.explanation import known_channels
from easyrag_core.ranking.hit_fusion import known_score
from llamaindex_easyrag._facts import facts_of, scored_node
from llamaindex_easyrag._fusing import Fusion, fused_nodes
from llamaindex_easyrag._sources import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NodeItems"]


@dataclass(frozen=True, slots=True)
class NodeItems:
    """Scored nodes, each with what was found out about it under one metadata key.

    Attributes:
        normalization: For fusion by score: `"min_max"`, `"z_score"` or `"none"`.
        combine: For fusion by score: `"sum"`, `"max"` or `"mnz"`.
    """

    normalization: str = "min_max"
    combine: str = "sum"

    def checked(self, answer: Any) -> list[NodeWithScore]:
        """Return an answer as a list of scored nodes."""
        listing = isinstance(answer, Iterable) and not isinstance(answer, str | bytes | Mapping)
        nodes = list(answer) if listing else [answer]
        if not listing or not all(isinstance(one, NodeWithScore) for one in nodes):
            raise InvalidParameterError("answer", answer, "a list of NodeWithScore is expected")
        return nodes

    def id_of(self, item: NodeWithScore) -> str:
        """Return the node's id."""
        return item.node.node_id

    def score_of(self, item: NodeWithScore) -> float | None:
        """Return the score; NaN is none."""
        return known_score(item.score)

    def content_of(self, item: NodeWithScore) -> str:
        """Return the node's text."""
        return text_of(item.node)

    def fused(
        self,
        rankings: Mapping[str, Sequence[NodeWithScore]],
        *,
        fusion: str,
        weights: Sequence[float],
        rank_constant: float,
        k: int,
    ) -> list[NodeWithScore]:
        """Fuse rankings; see `fused_nodes`."""
        settings = Fusion(fusion, self.normalization, self.combine, tuple(weights), rank_constant)
        return fused_nodes(rankings, settings, k=k)

    def scored(self, item: NodeWithScore, score: float | None) -> NodeWithScore:
        """Return a copy with another score."""
        told = None if score is None else float(score)
        return scored_node(item.node, told, {"score": told})

    def joined(self, kept: NodeWithScore, others: Sequence[NodeWithScore]) -> NodeWithScore:
        """Return a copy with the channels of all, and which documents the others belong to."""
        channels = known_channels(facts_of(kept.node).get("channels"))
        for other in others:
            for name, place in known_channels(facts_of(other.node).get("channels")).items():
                if name not in channels or place["rank"] < channels[name]["rank"]:
                    channels[name] = place
        same = [{"id": one.node.node_id, "source": one.node.ref_doc_id or ""} for one in others]
        return scored_node(kept.node, kept.score, {"channels": channels, "same": same})

    def finished(
        self, items: Sequence[NodeWithScore], reasons: Mapping[str, Sequence[str]]
    ) -> list[NodeWithScore]:
        """Return nodes with their final ranks and reasons; copies, where these are new."""
        told = []
        for rank, one in enumerate(items, start=1):
            facts = facts_of(one.node)
            why = list(reasons.get(one.node.node_id, ()))
            new = {"rank": rank} | ({"reasons": why} if why else {})
            same = facts | new == facts
            told.append(one if same else scored_node(one.node, one.score, new))
        return told
