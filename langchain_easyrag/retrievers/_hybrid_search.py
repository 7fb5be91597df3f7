"""One hybrid search: the pipeline with two channels."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import run_in_executor

from easyrag_core import Channel, RetrievalPipeline
from langchain_easyrag._document_items import DocumentItems
from langchain_easyrag._fusing import with_failed
from langchain_easyrag.retrievers._refill import document_hits, fused_documents

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableConfig

    from easyrag_core import Hit, HybridConfig, HybridIndex, PipelineResult
    from langchain_easyrag.retrievers._vector_side import VectorSide

__all__ = ["HybridSearch"]


class HybridSearch:
    """Words and meaning asked at once, for one query.

    Where both sides are those of our own index, hits are fused and the documents of the best are
    read afterwards; where the vector side is somebody else's, documents are fused.
    """

    def __init__(
        self,
        query: str,
        k: int,
        *,
        index: HybridIndex,
        side: VectorSide,
        settings: HybridConfig,
        strict: bool,
        config: RunnableConfig,
    ) -> None:
        """Keep what the search is about.

        Args:
            query: The query, without spaces around it.
            k: How many documents are wanted.
            index: Words, content and perhaps vectors.
            side: The vector side.
            settings: How both are asked and fused.
            strict: Raise a failing side's own error.
            config: Goes to a retriever that is the vector side.
        """
        self._query, self._k = query, k
        self._index, self._side, self._config = index, side, config
        self._settings, self._strict = settings, strict
        self._names = ("bm25", "vector") if side.exists else ("bm25",)
        self._deeper: dict[str, Callable[[int], Sequence[Hit]]] = {
            "bm25": partial(index.bm25.search, query)
        }

    @property
    def asks(self) -> bool:
        """Whether there is anything to ask; a model would embed nothing as something."""
        return bool(self._query) and any(self._settings.weights_of(self._names))

    def documents(self) -> list[Document]:
        """Search.

        Returns:
            Documents with their facts, best first.

        Raises:
            AllChannelsFailedError: Both sides failed.
        """
        if self._side.is_foreign:
            result = self._foreign().run(self._query, k=self._k)
            return with_failed(result.hits, result.errors)
        return self._read(self._own().run(self._query, k=self._k))

    async def adocuments(self) -> list[Document]:
        """Search: the async twin of `documents`."""
        if self._side.is_foreign:
            result = await self._foreign().arun(self._query, k=self._k)
            return with_failed(result.hits, result.errors)
        return await run_in_executor(
            None, self._read, await self._own().arun(self._query, k=self._k)
        )

    def _foreign(self) -> RetrievalPipeline[Document]:
        ask, aask = (partial(f, self._config) for f in (self._side.ask, self._side.aask))
        words = partial(document_hits, self._index)
        return self._pipeline(words, ask, aask, DocumentItems())

    def _own(self) -> RetrievalPipeline[Hit]:
        return self._pipeline(self._index.bm25.search, self._nearest, self._anearest, None)

    def _pipeline(
        self, words: Any, meaning: Any, ameaning: Any, items: Any
    ) -> RetrievalPipeline[Any]:
        settings = self._settings
        shared: dict[str, Any] = {"timeout": settings.channel_timeout}
        weights = settings.weights_of(self._names)
        channels = [Channel("bm25", words, k=settings.bm25_k, weight=weights[0], **shared)]
        if self._side.exists:
            shared |= {"weight": weights[1], "asearch": ameaning}
            channels.append(Channel("vector", meaning, k=settings.vector_k, **shared))
        return RetrievalPipeline(
            channels,
            fusion=settings.fusion,
            rank_constant=settings.rank_constant,
            items=items,
            strict=self._strict,
        )

    def _nearest(self, query: str, k: int) -> Sequence[Hit]:
        search = self._deeper["vector"] = self._side.search_of(self._side.embedded(query))
        return search(k)

    async def _anearest(self, query: str, k: int) -> Sequence[Hit]:
        search = self._side.search_of(await self._side.aembedded(query))
        self._deeper["vector"] = search
        return await run_in_executor(None, search, k)

    def _read(self, result: PipelineResult[Hit]) -> list[Document]:
        # What a late side has found since counts no more.
        sides = {
            name: self._deeper[name]
            for name in self._names
            if name in self._deeper and name not in result.errors
        }
        found = fused_documents(
            result.hits, sides, index=self._index, config=self._settings, k=self._k
        )
        return with_failed(found, result.errors)
