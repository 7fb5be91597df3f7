"""Documents that are relevant and different."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import run_in_executor
from pydantic import ConfigDict, PrivateAttr
from typing_extensions import override

from easyrag_core import (
    EasyRAGError,
    StandardAnalyzer,
    cosines,
    fitting_vectors,
    lexical_vectors,
    maximal_marginal_relevance,
)
from easyrag_core.errors import check_text
from langchain_easyrag._convert import facts_of, given_score, with_facts
from langchain_easyrag._given import given_documents
from langchain_easyrag._settings import check_settings
from langchain_easyrag._vectors import (
    Vector,
    VectorCache,
    aembedded,
    embedded,
    is_usable,
    stored_id,
    stored_vectors,
)

if TYPE_CHECKING:
    from langchain_core.callbacks import Callbacks

__all__ = ["MMRCompressor"]

_logger = logging.getLogger(__name__)


class MMRCompressor(BaseDocumentCompressor):
    """Keep the documents that are relevant and unlike each other.

    Maximal marginal relevance: each pick is the document with the largest
    `lambda_mult * relevance - (1 - lambda_mult) * similarity to what is picked already`.

    Finds the documents' vectors itself: in their metadata, in the vector store by id, from the
    embedding model in one batch, else from their words, so that results of BM25 alone become
    diverse too. Results are copies; gain and relevance are under `metadata["easyrag"]["mmr"]`;
    what stands under that key and is not ours may be replaced.

    Instantiate:
        ```python
        from langchain_easyrag import MMRCompressor

        compressor = MMRCompressor(k=5, lambda_mult=0.7, embeddings=embeddings)
        ```

    Use:
        ```python
        compressor.compress_documents(documents, "what is RAG?")
        ```
    """

    k: int = 4
    """How many documents to keep."""

    lambda_mult: float = 0.7
    """From 0 (difference only) to 1 (relevance only)."""

    relevance: str = "query"
    """`"query"`: cosine to the query; `"score"`: the scores that the documents came with.
    Without an embedding model for the query, scores are used."""

    normalize_relevance: bool = True
    """Bring scores to [0, 1] first; other scores than cosines have another scale."""

    embeddings: Embeddings | None = None
    """Embeds the query, and documents without a vector."""

    vector_store: Any = None
    """Where vectors are looked up by id: a vector store, a `VectorIndex` or a `HybridIndex`."""

    vector_key: str | None = None
    """Metadata key under which documents carry their own vector."""

    missing_vectors: str = "append"
    """What happens to a document without a usable vector when others have one: `"drop"`,
    `"append"` (last), or `"keep"` (similar to none)."""

    analyzer: Callable[[str], list[str]] | None = None
    """Turns texts into terms where there are no vectors. Default: `StandardAnalyzer()`."""

    cache_size: int = 1024
    """How many vectors of texts are kept between calls."""

    strict: bool = False
    """Raise an embedding model's error instead of going on with the words."""

    model_config: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    _cache: VectorCache = PrivateAttr()

    def __init__(self, **kwargs: Any) -> None:
        """Check the settings.

        Args:
            **kwargs: The fields of this class.

        Raises:
            InvalidParameterError: A setting is unknown or out of range.
        """
        check_settings(kwargs, known=type(self).model_fields)
        super().__init__(**kwargs)
        self._cache = VectorCache(self.cache_size)

    @override
    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Pick relevant and different documents.

        Args:
            documents: Candidates, best first.
            query: What was asked.
            callbacks: Not used.

        Returns:
            Copies of at most `k` documents, in the order in which they were picked.
        """
        candidates = self._candidates(documents, query)
        if candidates.model is not None:
            try:
                candidates.fill(*embedded(candidates.model, candidates.texts, candidates.asked))
            except Exception as error:  # noqa: BLE001 - a model may fail in any way
                self._go_on_without_model(candidates, error)
        return self._picked(candidates)

    @override
    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Pick relevant and different documents: the async twin of `compress_documents`."""
        candidates = await run_in_executor(None, self._candidates, documents, query)
        if candidates.model is not None:
            try:
                vectors = await aembedded(candidates.model, candidates.texts, candidates.asked)
                candidates.fill(*vectors)
            except Exception as error:  # noqa: BLE001 - a model may fail in any way
                self._go_on_without_model(candidates, error)
        return await run_in_executor(None, self._picked, candidates)

    def _candidates(self, documents: Sequence[Document], query: str) -> _Candidates:
        """Gather what is known without a model, and what the model is to be asked."""
        documents, query = _distinct(given_documents(documents)), check_text("query", query).strip()
        found = [self._own_vector(document) for document in documents]
        lookups = [
            stored_id(document) if vector is None else None
            for document, vector in zip(documents, found, strict=True)
        ]
        stored = stored_vectors(self.vector_store, lookups)
        found = [
            own if own is not None else other if is_usable(other) else None
            for own, other in zip(found, stored, strict=True)
        ]
        model = self.embeddings
        if model is None:
            model = getattr(self.vector_store, "embeddings", None)
        candidates = _Candidates(documents, query, found, self._cache)
        if documents and model is not None:
            candidates.prepare(model, with_query=self.relevance == "query" and bool(query))
        return candidates

    def _own_vector(self, document: Document) -> Vector | None:
        own = None if self.vector_key is None else document.metadata.get(self.vector_key)
        return own if is_usable(own) else None

    def _go_on_without_model(self, candidates: _Candidates, error: Exception) -> None:
        if self.strict:
            raise error
        _logger.warning("The embedding model failed, scores or words stand in: %r", error)
        if candidates.texts:
            candidates.vectors = [None] * len(candidates.documents)

    def _picked(self, candidates: _Candidates) -> list[Document]:
        if not candidates.documents:
            return []
        vectors, asked = candidates.vectors, candidates.query_vector
        # A broken vector costs its own document the place, and nobody else.
        fitting = fitting_vectors(vectors, asked)
        if all(vector is None for vector in fitting):
            if any(vector is not None for vector in vectors):
                _logger.warning("No vector is as long as the query's: words stand in.")
            fitting, asked = self._lexical(candidates)
        vectors = fitting
        relevance = candidates.scores() if asked is None else cosines(vectors, asked)
        result = maximal_marginal_relevance(
            vectors,
            relevance,
            k=self.k,
            lambda_mult=self.lambda_mult,
            normalize_relevance=self.normalize_relevance and asked is None,
            missing_vectors=self.missing_vectors,
        )
        picks = zip(result.indices, result.gains, strict=True)
        return [
            _explained(candidates.documents[index], rank, gain, relevance[index])
            for rank, (index, gain) in enumerate(picks, start=1)
        ]

    def _lexical(self, candidates: _Candidates) -> tuple[list[Vector | None], Vector | None]:
        texts = [document.page_content for document in candidates.documents]
        asked = [candidates.query] if self.relevance == "query" and candidates.query else []
        rows = list(lexical_vectors([*texts, *asked], self.analyzer or StandardAnalyzer()))
        return (rows[:-1], rows[-1]) if asked else (rows, None)


class _UnusableError(EasyRAGError, ValueError):
    """An embedding model answered, and gave nothing to compare with."""


@dataclass(slots=True)
class _Candidates:
    """One request: what is known, and what is still to be embedded."""

    documents: list[Document]
    query: str
    vectors: list[Vector | None]
    cache: VectorCache
    model: Embeddings | None = None
    asked: str | None = None
    texts: list[str] = field(default_factory=list)
    query_vector: Vector | None = None

    def prepare(self, model: Embeddings, *, with_query: bool) -> None:
        self._take(self.cache.get)
        missing = (d for d, v in zip(self.documents, self.vectors, strict=True) if v is None)
        self.texts = list(dict.fromkeys(document.page_content for document in missing))
        self.asked = self.query if with_query else None
        if self.texts or with_query:
            self.model = model

    def fill(self, vectors: Sequence[Vector], query_vector: Vector | None) -> None:
        pairs = zip(self.texts, vectors, strict=True)
        fresh = {text: vector for text, vector in pairs if is_usable(vector)}
        self._take(fresh.get)
        self.cache.put(list(fresh), list(fresh.values()))
        if all(vector is None for vector in self.vectors):
            raise _UnusableError("no document got a vector of numbers")
        self.texts = []  # what is there counts, even if the query has nothing to compare
        if self.asked is not None and not is_usable(query_vector):
            raise _UnusableError("the query got no vector of numbers")
        self.query_vector = query_vector

    def _take(self, find: Callable[[str], Vector | None]) -> None:
        self.vectors = [
            find(document.page_content) if vector is None else vector
            for document, vector in zip(self.documents, self.vectors, strict=True)
        ]

    def scores(self) -> list[float | None]:
        """Return the scores that the documents came with; if there are none, by their order."""
        scores = [given_score(document) for document in self.documents]
        if all(score is None for score in scores):
            return [-float(place) for place in range(len(scores))]
        return scores


def _distinct(documents: Sequence[Document]) -> list[Document]:
    """Keep the first of the documents with one id."""
    first: dict[object, Document] = {}
    for document in documents:
        first.setdefault(id(document) if document.id is None else document.id, document)
    return list(first.values())


def _explained(document: Document, rank: int, gain: float, relevance: float | None) -> Document:
    mmr = {"gain": float(gain), "relevance": relevance}
    return with_facts(document, {**facts_of(document), "rank": rank, "mmr": mmr})
