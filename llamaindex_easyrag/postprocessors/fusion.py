"""The given order and the order by words, fused."""

from __future__ import annotations

from collections.abc import Callable, Sequence  # noqa: TC003 - pydantic reads the annotations
from typing import TYPE_CHECKING, Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.callbacks import CallbackManager

from easyrag_core import BM25Index, StandardAnalyzer
from easyrag_core.errors import check_count
from llamaindex_easyrag._convert import content_for_embedding
from llamaindex_easyrag._facts import scored_node
from llamaindex_easyrag._fusing import Fusion, checked_weights, fused_nodes
from llamaindex_easyrag.postprocessors._reranker import Reranker

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore, QueryBundle

__all__ = ["RRFPostprocessor"]

_CHANNELS = ("given", "bm25")


class RRFPostprocessor(Reranker):
    """Fuses the order of the nodes that it is given with their order by words.

    The nodes come in one order: that of a vector search, mostly. The second order is BM25 of
    the query over these nodes. Reciprocal rank fusion of the two lifts nodes that name what was
    asked, without another index or model. A node that comes twice counts once, at its first
    place. Without a query the given order stays.

    Scores are fused scores; `metadata["easyrag"]` tells both ranks and both scores.
    """

    top_n: int | None = Field(default=None, description="How many nodes are kept; None: all.")
    weights: tuple[float, float] | None = Field(
        default=None, description="How much the given order and the words count; 1 each."
    )
    rank_constant: float = Field(
        default=60, description="The larger, the less the first ranks stand out."
    )
    analyzer: Callable[[str], Sequence[str]] | None = Field(
        default=None, exclude=True, description="Turns a text into terms."
    )

    def __init__(
        self,
        top_n: int | None = None,
        *,
        weights: Sequence[float] | None = None,
        rank_constant: float = 60,
        analyzer: Callable[[str], Sequence[str]] | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        """Check the settings.

        Args:
            top_n: How many nodes are kept, >= 0; `None` keeps all.
            weights: How much the given order and the order by words count: two finite numbers
                >= 0; default: 1 each.
            rank_constant: Finite, >= 0.
            analyzer: Turns a text into terms; default: `StandardAnalyzer()`. It is not part of
                `to_dict()`.
            callback_manager: Receives the `RERANKING` events.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        if top_n is not None:
            check_count("top_n", top_n)
        told = checked_weights("weights", weights, 2)
        Fusion("rrf", weights=told, rank_constant=rank_constant).fuse([[], []])
        settings: dict[str, Any] = {
            "top_n": top_n,
            "weights": told,
            "rank_constant": rank_constant,
            "analyzer": analyzer,
            "callback_manager": callback_manager or CallbackManager(),
        }
        super().__init__(**settings)

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which the settings are saved."""
        return "RRFPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        top_n = len(nodes) if self.top_n is None else self.top_n
        with self.reranking(nodes, query_bundle, top_n) as result:
            words = [] if query_bundle is None else self._by_words(nodes, query_bundle.query_str)
            rankings = dict(zip(_CHANNELS, (nodes, words), strict=True))
            fusion = Fusion("rrf", weights=self.weights, rank_constant=self.rank_constant)
            result.extend(fused_nodes(rankings, fusion, k=top_n))
        return result

    def _by_words(self, nodes: list[NodeWithScore], query: str) -> list[NodeWithScore]:
        by_id = {found.node.node_id: found.node for found in reversed(nodes)}
        index = BM25Index(analyzer=self.analyzer or StandardAnalyzer())
        # In the given order, so that equal scores keep it.
        ids = list(dict.fromkeys(found.node.node_id for found in nodes))
        index.add(ids, [content_for_embedding(by_id[node_id]) for node_id in ids])
        hits = index.search(query, len(ids))
        return [scored_node(by_id[hit.id], hit.score, {"channels": {}}) for hit in hits]
