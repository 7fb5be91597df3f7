"""The vector side of a hybrid search: our own index, a vector store, or a retriever."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from easyrag_core import embed_in_batches
from langchain_easyrag._convert import documents_of_scores, rows_of
from langchain_easyrag._given import as_documents
from langchain_easyrag.retrievers._children import request_size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import RetrieverLike
    from langchain_core.runnables import RunnableConfig
    from langchain_core.vectorstores import VectorStore

    from easyrag_core import Chunk, Hit, HybridIndex
    from langchain_easyrag._vectors import Vector

__all__ = ["VectorSide"]


@dataclass(frozen=True, slots=True)
class VectorSide:
    """Where vectors are searched; at most one of store and retriever is there.

    Attributes:
        index: Searched with `model` if there is neither store nor retriever.
        model: Embeds the query for the index.
        store: Embeds the query itself.
        search_kwargs: Goes to the store with every search.
        retriever: Any runnable from a query to documents.
    """

    index: HybridIndex
    model: Embeddings | None
    store: VectorStore | None
    search_kwargs: Mapping[str, Any]
    retriever: RetrieverLike | None

    @property
    def exists(self) -> bool:
        """Whether there is anything to ask."""
        return any(side is not None for side in (self.model, self.store, self.retriever))

    @property
    def own_model(self) -> Embeddings | None:
        """The model of the index, if it is the index that is asked."""
        return self.model if self.store is None and self.retriever is None else None

    @property
    def is_foreign(self) -> bool:
        """Whether it is not the index that is asked: it gives documents, and not hits of ours."""
        return self.store is not None or self.retriever is not None

    def ask(self, config: RunnableConfig, query: str, k: int) -> list[Document]:
        """Ask a store or a retriever.

        Args:
            config: Goes to the retriever.
            query: The query; it is embedded once.
            k: How many results are wanted.

        Returns:
            Documents, best first.

        Raises:
            AnswerError: The retriever gives something else than documents.
        """
        if self.retriever is not None:
            size = request_size(self.retriever, k)
            return as_documents(self.retriever.invoke(query, config, **size))
        return [] if self.store is None else _nearest(self.store, query, self._sized(k))

    async def aask(self, config: RunnableConfig, query: str, k: int) -> list[Document]:
        """Ask a store or a retriever: the async twin of `ask`."""
        if self.retriever is not None:
            size = request_size(self.retriever, k)
            return as_documents(await self.retriever.ainvoke(query, config, **size))
        return [] if self.store is None else await _anearest(self.store, query, self._sized(k))

    def _sized(self, k: int) -> dict[str, Any]:
        return {"k": k, **self.search_kwargs}

    def embedded(self, query: str) -> Vector | None:
        """Embed the query for the index."""
        return None if self.model is None else self.model.embed_query(query)

    async def aembedded(self, query: str) -> Vector | None:
        """Embed the query for the index: the async twin of `embedded`."""
        return None if self.model is None else await self.model.aembed_query(query)

    def search_of(self, vector: Vector | None) -> Callable[[int], Sequence[Hit]]:
        """Return what searches the index for a vector; nothing is found where there are none."""
        vectors = self.index.vectors
        if vector is None or vectors is None:
            return lambda _: ()
        return partial(vectors.search, vector)

    def rows(self, chunks: Sequence[Chunk], *, show_progress: bool) -> list[Any]:
        """Embed the chunks that the index has no vector of, if it is the index that is asked.

        Args:
            chunks: Chunks to be added.
            show_progress: Show a bar.

        Returns:
            One vector or `None` per chunk.
        """
        model, pending = self.own_model, self.index.without_vector(chunks)
        if model is None or not pending:
            return [None] * len(chunks)
        texts = [chunk.embedding_text for chunk in pending]
        vectors = embed_in_batches(model.embed_documents, texts, show_progress=show_progress)
        return rows_of(chunks, pending, vectors)

    async def arows(self, chunks: Sequence[Chunk]) -> list[Any]:
        """Embed chunks: the async twin of `rows`, without a progress bar."""
        model, pending = self.own_model, self.index.without_vector(chunks)
        if model is None or not pending:
            return [None] * len(chunks)
        vectors = await model.aembed_documents([chunk.embedding_text for chunk in pending])
        return rows_of(chunks, pending, vectors)


def _nearest(store: VectorStore, query: str, search: Mapping[str, Any]) -> list[Document]:
    """Search a store, with scores if it gives any."""
    try:
        return documents_of_scores(store.similarity_search_with_score(query, **search))
    except NotImplementedError:
        return store.similarity_search(query, **search)


async def _anearest(store: VectorStore, query: str, search: Mapping[str, Any]) -> list[Document]:
    try:
        return documents_of_scores(await store.asimilarity_search_with_score(query, **search))
    except NotImplementedError:
        return await store.asimilarity_search(query, **search)
