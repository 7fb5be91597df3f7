"""Vector stores asked by a vector that is there already."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from langchain_core.vectorstores import InMemoryVectorStore, VectorStoreRetriever
from typing_extensions import override

from langchain_easyrag._query_vectors import aembedded_query, embedded_query

if TYPE_CHECKING:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import RetrieverLike

    from langchain_easyrag._vectors import Vector

__all__ = ["aby_vector", "by_vector"]

_logger = logging.getLogger(__name__)


def by_vector(child: RetrieverLike, query: str) -> RetrieverLike:
    """Return a retriever that asks the same store the same, without embedding the query itself.

    Args:
        child: Any retriever.
        query: The query; it is embedded once per request.

    Returns:
        The one for a plain retriever of a store that is known to embed the query and look for
        its vector, and to do no more; else the retriever that was given.
    """
    model = _model_of(child)
    if model is None:
        return child
    try:
        return _ByVector.of(child, embedded_query(model, query))
    except Exception as error:  # noqa: BLE001 - a model may fail in any way
        _logger.debug("Left to the store, which will fail itself: %r", error)
        return child


async def aby_vector(child: RetrieverLike, query: str) -> RetrieverLike:
    """Return a retriever that does not embed the query itself: the async twin of `by_vector`."""
    model = _model_of(child)
    if model is None:
        return child
    try:
        return _ByVector.of(child, await aembedded_query(model, query))
    except Exception as error:  # noqa: BLE001 - a model may fail in any way
        _logger.debug("Left to the store, which will fail itself: %r", error)
        return child


def _model_of(child: RetrieverLike) -> Embeddings | None:
    if type(child) is not VectorStoreRetriever or child.search_type != "similarity":
        return None
    store = child.vectorstore
    return store.embeddings if _is_plain(store) else None


def _is_plain(store: Any) -> bool:
    if type(store) is InMemoryVectorStore:
        return True
    kind = f"{type(store).__module__}.{type(store).__name__}"
    if kind.startswith("langchain_qdrant."):
        # Its other modes search by words, too.
        return getattr(getattr(store, "retrieval_mode", None), "value", None) == "dense"
    return kind in {
        "langchain_chroma.vectorstores.Chroma",
        "langchain_community.vectorstores.faiss.FAISS",
    }


class _ByVector(VectorStoreRetriever):
    """The retriever of one request."""

    vector: Any

    @classmethod
    def of(cls, child: Any, vector: Vector) -> _ByVector:
        settings = {name: getattr(child, name) for name in type(child).model_fields}
        return cls(**{**settings, "name": child.get_name()}, vector=list(vector))

    @override
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        search = {**self.search_kwargs, **kwargs}
        return self.vectorstore.similarity_search_by_vector(self.vector, **search)

    @override
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        search = {**self.search_kwargs, **kwargs}
        return await self.vectorstore.asimilarity_search_by_vector(self.vector, **search)
