"""Nodes that are relevant and differ from each other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence  # noqa: TC003 - pydantic reads the annotations
from typing import TYPE_CHECKING, Any

from llama_index.core.base.embeddings.base import BaseEmbedding  # noqa: TC002 - as above
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index_instrumentation import get_dispatcher

from easyrag_core import (
    InvalidParameterError,
    StandardAnalyzer,
    cosines,
    fitting_vectors,
    lexical_vectors,
    maximal_marginal_relevance,
)
from easyrag_core.errors import check_choice, check_count
from llamaindex_easyrag._convert import content_for_embedding
from llamaindex_easyrag._facts import facts_of, scored_node
from llamaindex_easyrag._vectors import (
    Vector,
    VectorCache,
    embedded_nodes,
    embedded_query,
    is_usable,
    known_vectors,
)
from llamaindex_easyrag.postprocessors._reranker import Reranker

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore, QueryBundle

__all__ = ["MMRPostprocessor"]

_logger = logging.getLogger(__name__)
_dispatcher = get_dispatcher(__name__)

_RELEVANCES = ("query", "score")


class MMRPostprocessor(Reranker):
    """Keeps nodes that are relevant and differ from each other (maximal marginal relevance).

    Vectors are looked for in this order: the nodes' own, the vector store's, the embedding
    model's (one batch, with a cache). Where none can be had or compared, words are compared
    instead, so that the results of a keyword search are made diverse too. The query is
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
            missing_vectors: What happens to a node without a usable vector when others have one:
                `"append"` puts it last, `"drop"` leaves it out, `"keep"` takes it as similar
                to none.
            embed_model: Embeds the query, and the nodes without a vector. It is not part of
                `to_dict()`; nor are the next three.
            vector_store: A vector store of the framework, or a `VectorIndex`.
            index: A `VectorStoreIndex` or a `HybridRetriever`: stands for its vector store and,
                unless another one is given, its embedding model.
            analyzer: Turns a text into terms; default: `StandardAnalyzer()`.
            strict: Raise where vectors fail, or none can be compared, instead of comparing words.
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
        with self.reranking(nodes, query_bundle, self.top_n) as result:
            distinct: dict[str, NodeWithScore] = {}
            for found in nodes:
                distinct.setdefault(found.node.node_id, found)
            result.extend(self._picked(list(distinct.values()), query_bundle))
        return result

    def _picked(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None
    ) -> list[NodeWithScore]:
        vectors, asked = self._vectors(nodes, query_bundle)
        # A broken vector costs its own node the place, and nobody else.
        usable = fitting_vectors(vectors, asked)
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
    ) -> tuple[Sequence[Vector | None], Vector | None]:
        """The nodes' vectors and, if relevance is measured by it, the query's."""
        query = query_bundle if self.relevance == "query" else None
        if query is not None and not query.query_str.strip():
            query = None
        try:
            bare = [found.node for found in nodes]
            known = known_vectors(bare, self.vector_store)
            if nodes and self.embed_model is not None:
                known = [*embedded_nodes(bare, known, self.embed_model, self._cache)]
            if any(vector is not None for vector in known):
                usable = [vector if is_usable(vector) else None for vector in known]
                return usable, self._asked(query, usable)
        except Exception as error:
            if self.strict:
                raise
            _logger.warning("No vectors, words are compared instead: %r", error)
            _dispatcher.event(ExceptionEvent(exception=error))
        return self._lexical(nodes, query)

    def _asked(self, query: QueryBundle | None, usable: Sequence[Vector | None]) -> Vector | None:
        """The query's vector; an error where no node can be compared by these vectors."""
        asked = None if query is None else embedded_query(query, self.embed_model)
        compared = [vector is not None for vector in fitting_vectors(usable, asked)]
        if not any(compared) or not (asked is None or is_usable(asked)):
            allowed = "some must be finite and as long as that of the query"
            raise InvalidParameterError("vectors", f"those of {len(usable)} nodes", allowed)
        return asked

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
