"""Several queries embedded in one batch, for a hybrid search with an index of its own."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from langchain_core.embeddings import Embeddings
from typing_extensions import override

from easyrag_core import embed_in_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_easyrag.retrievers.hybrid import HybridRetriever

__all__ = ["with_query_vectors"]

_logger = logging.getLogger(__name__)


class _KnownQueries(Embeddings):
    """A model that has embedded some queries before."""

    def __init__(self, model: Embeddings, vectors: Mapping[str, list[float]]) -> None:
        self._model, self._vectors = model, vectors

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._model.embed_documents(texts)

    @override
    def embed_query(self, text: str) -> list[float]:
        known = self._vectors.get(text)
        return self._model.embed_query(text) if known is None else known

    @override
    async def aembed_query(self, text: str) -> list[float]:
        known = self._vectors.get(text)
        return await self._model.aembed_query(text) if known is None else known


def with_query_vectors(
    retriever: HybridRetriever,
    queries: Sequence[str],
    embed_queries: Callable[[list[str]], list[list[float]]],
) -> HybridRetriever:
    """Return a retriever that knows the vectors of queries.

    Args:
        retriever: One with a model of its own; it stays as it is.
        queries: Different texts.
        embed_queries: Embeds them all in one call. Where it fails, each is embedded alone.

    Returns:
        A copy over the same index, or the retriever itself.
    """
    texts = [query.strip() for query in queries if query.strip()]
    if retriever.embeddings is None or len(texts) < 2:
        return retriever
    try:
        rows = embed_in_batches(embed_queries, texts, batch_size=len(texts))
    except Exception as error:  # noqa: BLE001 - a model may fail in any way
        _logger.warning("Embedding the queries in one batch failed: %r", error)
        return retriever
    vectors = {text: list(map(float, row)) for text, row in zip(texts, rows, strict=True)}
    return retriever.model_copy(update={"embeddings": _KnownQueries(retriever.embeddings, vectors)})
