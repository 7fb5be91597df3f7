"""Postprocessors that re-rank nodes by fusion and by diversity."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence  # noqa: TC003 - pydantic reads the annotations
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from llama_index.core.base.embeddings.base import BaseEmbedding  # noqa: TC002 - as above
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import QueryBundle
from llama_index_instrumentation import get_dispatcher

from easyrag_core import (
    BM25Index,
    ChannelOutcome,
    StandardAnalyzer,
    lexical_vectors,
    maximal_marginal_relevance,
)
from easyrag_core.errors import check_choice, check_count
from llamaindex_easyrag._convert import content_for_embedding
from llamaindex_easyrag._facts import facts_of, scored_node
from llamaindex_easyrag._fusing import Fusion, checked_weights, fused_nodes
from llamaindex_easyrag._vectors import (
    Vector,
    VectorCache,
    cosines,
    embedded_nodes,
    embedded_query,
    known_vectors,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llama_index.core.schema import NodeWithScore

__all__ = ["MMRPostprocessor", "RRFPostprocessor"]

_logger = logging.getLogger(__name__)
_dispatcher = get_dispatcher(__name__)

_CHANNELS = ("given", "bm25")
_RELEVANCES = ("query", "score")


class _Reranker(BaseNodePostprocessor):
    """A postprocessor that reports what it does as the framework's rerankers do."""

    def __eq__(self, other: object) -> bool:
        """Equal settings make equal postprocessors, whoever listens to their events."""
        if not isinstance(other, type(self)) or self.to_dict() != other.to_dict():
            return False
        told = type(self).model_fields.keys() - {"callback_manager"}
        return all(getattr(self, name) == getattr(other, name) for name in told)

    # Settings can be changed, so a hash would not last.
    __hash__ = None  # type: ignore[assignment]

    @contextmanager
    def _reranking(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None, top_n: int
    ) -> Iterator[list[NodeWithScore]]:
        """Report the start and, when the list that is handed out has been filled, the end."""
        name = self.class_name()
        query = query_bundle or QueryBundle("")
        _dispatcher.event(ReRankStartEvent(query=query, nodes=nodes, top_n=top_n, model_name=name))
        payload: dict[str, Any] = {
            EventPayload.NODES: nodes,
            EventPayload.MODEL_NAME: name,
            EventPayload.QUERY_STR: query.query_str,
            EventPayload.TOP_K: top_n,
        }
        result: list[NodeWithScore] = []
        with self.callback_manager.event(CBEventType.RERANKING, payload=payload) as event:
            yield result
            event.on_end(payload={EventPayload.NODES: result})
        _dispatcher.event(ReRankEndEvent(nodes=result))


class RRFPostprocessor(_Reranker):
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
        with self._reranking(nodes, query_bundle, top_n) as result:
            words = [] if query_bundle is None else self._by_words(nodes, query_bundle.query_str)
            answers = dict(zip(_CHANNELS, (nodes, words), strict=True))
            fusion = Fusion("rrf", weights=self.weights, rank_constant=self.rank_constant)
            result.extend(fused_nodes(_CHANNELS, ChannelOutcome(answers), fusion, k=top_n))
        return result

    def _by_words(self, nodes: list[NodeWithScore], query: str) -> list[NodeWithScore]:
        by_id = {found.node.node_id: found.node for found in reversed(nodes)}
        index = BM25Index(analyzer=self.analyzer or StandardAnalyzer())
        # In the given order, so that equal scores keep it.
        ids = list(dict.fromkeys(found.node.node_id for found in nodes))
        index.add(ids, [content_for_embedding(by_id[node_id]) for node_id in ids])
        hits = index.search(query, len(ids))
        return [scored_node(by_id[hit.id], hit.score, {"channels": {}}) for hit in hits]


class MMRPostprocessor(_Reranker):
    """Keeps nodes that are relevant and differ from each other (maximal marginal relevance).

    Vectors are looked for in this order: the nodes' own, the vector store's, the embedding
    model's (one batch, with a cache). Where they cannot be had for all nodes, words are
    compared instead, so that the results of a keyword search are made diverse too. The query is
    embedded at most once, and not at all if its bundle brings a vector.

    Nodes keep their scores and come in the order in which they were picked;
    `metadata["easyrag"]["mmr"]` tells gain and relevance.
    """

    top_n: int = Field(default=10, description="How many nodes are kept.")
    lambda_mult: float = Field(default=0.7, description="1: relevance alone; 0: novelty alone.")
    relevance: str = Field(default="query", description="What relevance is measured by.")
    normalize_relevance: bool = Field(
        default=True, description="Whether scores are brought to [0, 1] first."
    )
    missing_vectors: str = Field(
        default="append", description="What happens to nodes with an unusable vector."
    )
    strict: bool = Field(default=False, description="Whether a failing model's error is raised.")
    embed_model: BaseEmbedding | None = Field(
        default=None, exclude=True, description="Embeds the query, and nodes without a vector."
    )
    vector_store: Any = Field(
        default=None, exclude=True, description="Where vectors are looked up by node id."
    )
    analyzer: Callable[[str], Sequence[str]] | None = Field(
        default=None, exclude=True, description="Turns a text into terms."
    )
    _cache: VectorCache = PrivateAttr()

    def __init__(
        self,
        top_n: int = 10,
        *,
        lambda_mult: float = 0.7,
        relevance: str = "query",
        normalize_relevance: bool = True,
        missing_vectors: str = "append",
        embed_model: BaseEmbedding | None = None,
        vector_store: Any = None,
        index: Any = None,
        analyzer: Callable[[str], Sequence[str]] | None = None,
        strict: bool = False,
        cache_size: int = 1024,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        """Check the settings.

        Args:
            top_n: How many nodes are kept, >= 0.
            lambda_mult: In [0, 1]; 1 is relevance alone, 0 is novelty alone.
            relevance: `"query"`: the cosine to the query; `"score"`: the scores that the nodes
                come with. Without a vector of the query scores are used, and without scores the
                given order.
            normalize_relevance: Bring scores to [0, 1] first: other scores than cosines have
                another scale, on which `lambda_mult` would mean nothing.
            missing_vectors: What happens to a node whose vector is broken or of another length:
                `"append"` puts it last, `"drop"` leaves it out, `"keep"` takes it as similar
                to none.
            embed_model: Embeds the query, and the nodes without a vector. It is not part of
                `to_dict()`; nor are the next three.
            vector_store: A vector store of the framework, or a `VectorIndex`.
            index: A `VectorStoreIndex` or a `HybridRetriever`: stands for its vector store and,
                unless another one is given, its embedding model.
            analyzer: Turns a text into terms; default: `StandardAnalyzer()`.
            strict: Raise a failing embedding model's error instead of comparing words.
            cache_size: How many vectors of nodes are kept between calls.
            callback_manager: Receives the `RERANKING` events.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        check_count("top_n", top_n)
        check_count("cache_size", cache_size)
        check_choice("relevance", relevance, _RELEVANCES)
        maximal_marginal_relevance(
            [], [], k=0, lambda_mult=lambda_mult, missing_vectors=missing_vectors
        )
        settings: dict[str, Any] = {
            "top_n": top_n,
            "lambda_mult": lambda_mult,
            "relevance": relevance,
            "normalize_relevance": normalize_relevance,
            "missing_vectors": missing_vectors,
            "embed_model": embed_model or getattr(index, "_embed_model", None),
            "vector_store": vector_store or getattr(index, "vector_store", None),
            "analyzer": analyzer,
            "strict": strict,
            "callback_manager": callback_manager or CallbackManager(),
        }
        super().__init__(**settings)
        self._cache = VectorCache(cache_size)

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which the settings are saved."""
        return "MMRPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        with self._reranking(nodes, query_bundle, self.top_n) as result:
            distinct: dict[str, NodeWithScore] = {}
            for found in nodes:
                distinct.setdefault(found.node.node_id, found)
            result.extend(self._picked(list(distinct.values()), query_bundle))
        return result

    def _picked(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None
    ) -> list[NodeWithScore]:
        vectors, asked = self._vectors(nodes, query_bundle)
        size = len(vectors[0] if asked is None else asked) if vectors else 0
        # A broken vector costs its own node the place, and nobody else.
        usable = [vector if len(vector) == size else None for vector in vectors]
        relevance = _given_relevance(nodes) if asked is None else cosines(usable, asked)
        picks = maximal_marginal_relevance(
            usable,
            relevance,
            k=self.top_n,
            lambda_mult=self.lambda_mult,
            normalize_relevance=self.normalize_relevance and asked is None,
            missing_vectors=self.missing_vectors,
        )
        picked = []
        for rank, (index, gain) in enumerate(zip(*picks, strict=True), start=1):
            facts = {"rank": rank, "mmr": {"gain": gain, "relevance": relevance[index]}}
            found = nodes[index]
            known = {"score": found.score, **facts_of(found.node)}
            picked.append(scored_node(found.node, found.score, {**known, **facts}))
        return picked

    def _vectors(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None
    ) -> tuple[Sequence[Vector], Vector | None]:
        """The nodes' vectors and, if relevance is measured by it, the query's."""
        query = query_bundle if self.relevance == "query" else None
        if query is not None and not query.query_str.strip():
            query = None
        try:
            bare = [found.node for found in nodes]
            known = known_vectors(bare, self.vector_store)
            if nodes and self.embed_model is not None:
                known = [*embedded_nodes(bare, known, self.embed_model, self._cache)]
            vectors = [vector for vector in known if vector is not None]
            if len(vectors) == len(nodes):
                return vectors, None if query is None else embedded_query(query, self.embed_model)
        except Exception as error:
            if self.strict:
                raise
            _logger.warning("No vectors, words are compared instead: %r", error)
            _dispatcher.event(ExceptionEvent(exception=error))
        return self._lexical(nodes, query)

    def _lexical(
        self, nodes: list[NodeWithScore], query: QueryBundle | None
    ) -> tuple[Sequence[Vector], Vector | None]:
        texts = [content_for_embedding(found.node) for found in nodes]
        asked = [] if query is None else [query.query_str]
        rows = list(lexical_vectors([*texts, *asked], self.analyzer or StandardAnalyzer()))
        return (rows, None) if query is None else (rows[:-1], rows[-1])


def _given_relevance(nodes: Sequence[NodeWithScore]) -> list[float]:
    """The nodes' scores, or their order where one of them has none."""
    scores = [found.score for found in nodes if found.score is not None]
    return scores if len(scores) == len(nodes) else [-float(i) for i in range(len(nodes))]
