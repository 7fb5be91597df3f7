"""A hybrid search whose sides are one index of our own and an embedding model."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from easyrag_core import Channel, RetrievalPipeline
from llamaindex_easyrag._fusing import reported
from llamaindex_easyrag._vectors import aembedded_query, embedded_query

if TYPE_CHECKING:
    from collections.abc import Callable

    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.schema import QueryBundle

    from easyrag_core import Hit, HybridIndex, PipelineResult
    from llamaindex_easyrag._vectors import Vector

__all__ = ["OwnSides"]


@dataclass(frozen=True, slots=True)
class OwnSides:
    """One search: words and meaning asked in parallel, each allowed to fail alone.

    The vector side is embedding and search together, so that an embedding that cannot be
    searched with costs that side alone.

    Attributes:
        index: Words and vectors.
        model: Embeds the query; without it the words alone are asked.
        accepts: Tells by id whether a node may be found; `None` accepts all.
        k: How many hits are wanted.
        strict: Raise a failing side's own error.
    """

    index: HybridIndex
    model: BaseEmbedding | None
    accepts: Callable[[str], bool] | None
    k: int
    strict: bool

    def search(self, query_bundle: QueryBundle) -> tuple[list[Hit], dict[str, str]]:
        """Ask both sides, in threads.

        Args:
            query_bundle: The query; it is left as it is.

        Returns:
            Hits, best first, and the errors of the sides that failed.

        Raises:
            AllChannelsFailedError: Both sides failed.
        """
        pipeline = self._pipeline(query_bundle)
        if pipeline is None:
            return [], {}
        return _told(pipeline.run(query_bundle.query_str, k=self.k))

    async def asearch(self, query_bundle: QueryBundle) -> tuple[list[Hit], dict[str, str]]:
        """Ask both sides, as tasks: the async twin of `search`.

        Args:
            query_bundle: The query; it is left as it is.

        Returns:
            Hits, best first, and the errors of the sides that failed.

        Raises:
            AllChannelsFailedError: Both sides failed.
        """
        pipeline = self._pipeline(query_bundle)
        if pipeline is None:
            return [], {}
        return _told(await pipeline.arun(query_bundle.query_str, k=self.k))

    def _pipeline(self, query_bundle: QueryBundle) -> RetrievalPipeline[Hit] | None:
        """The pipeline with two channels, or one; `None` where no channel has a say."""
        config = self.index.config
        names = ("bm25",) if self.model is None else ("bm25", "vector")
        weights = config.weights_of(names)
        if not any(weights):
            return None
        timeout = config.channel_timeout
        channels = [
            Channel("bm25", self._words, k=config.bm25_k, weight=weights[0], timeout=timeout)
        ]
        if self.model is not None:
            search = partial(self._meaning, query_bundle, self.model)
            asearch = partial(self._ameaning, query_bundle, self.model)
            sized: dict[str, Any] = {"k": config.vector_k, "weight": weights[1]}
            channels.append(Channel("vector", search, timeout=timeout, asearch=asearch, **sized))
        return RetrievalPipeline(
            channels,
            fusion=config.fusion,
            rank_constant=config.rank_constant,
            strict=self.strict,
        )

    def _words(self, query: str, k: int) -> list[Hit]:
        return self.index.bm25.search(query, k, filter=self.accepts)

    def _meaning(
        self, query_bundle: QueryBundle, model: BaseEmbedding, _: str, k: int
    ) -> list[Hit]:
        return self._nearest(embedded_query(query_bundle, model), k)

    async def _ameaning(
        self, query_bundle: QueryBundle, model: BaseEmbedding, _: str, k: int
    ) -> list[Hit]:
        vector = await aembedded_query(query_bundle, model)
        return await asyncio.to_thread(self._nearest, vector, k)

    def _nearest(self, vector: Vector | None, k: int) -> list[Hit]:
        """Search; nothing is found where there is nothing to search with, or in."""
        vectors = self.index.vectors
        if vector is None or vectors is None:
            return []
        return vectors.search(vector, k, filter=self.accepts)


def _told(result: PipelineResult[Hit]) -> tuple[list[Hit], dict[str, str]]:
    return result.hits, reported(result.errors)
