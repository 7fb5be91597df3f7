"""A hybrid search whose sides are one index of our own and an embedding model."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from easyrag_core import arun_channels, fuse_hits, run_channels
from llamaindex_easyrag._fusing import reported
from llamaindex_easyrag._vectors import aembedded_query, embedded_query

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.schema import QueryBundle

    from easyrag_core import ChannelOutcome, Hit, HybridIndex
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
        calls: dict[str, Callable[[], list[Hit] | None]] = {
            "bm25": partial(self._words, query_bundle)
        }
        if self.model is not None:
            calls["vector"] = partial(self._meaning, query_bundle, self.model)
        timeout = self.index.config.channel_timeout
        return self._fused(run_channels(calls, timeout=timeout, strict=self.strict))

    async def asearch(self, query_bundle: QueryBundle) -> tuple[list[Hit], dict[str, str]]:
        """Ask both sides, as tasks: the async twin of `search`.

        Args:
            query_bundle: The query; it is left as it is.

        Returns:
            Hits, best first, and the errors of the sides that failed.

        Raises:
            AllChannelsFailedError: Both sides failed.
        """
        calls: dict[str, Callable[[], Awaitable[list[Hit] | None]]] = {
            "bm25": partial(asyncio.to_thread, self._words, query_bundle)
        }
        if self.model is not None:
            calls["vector"] = partial(self._ameaning, query_bundle, self.model)
        timeout = self.index.config.channel_timeout
        outcome = await arun_channels(calls, timeout=timeout, strict=self.strict)
        return self._fused(outcome)

    def _words(self, query_bundle: QueryBundle) -> list[Hit]:
        reach = max(self.index.config.bm25_k, self.k)
        return self.index.bm25.search(query_bundle.query_str, reach, filter=self.accepts)

    def _meaning(self, query_bundle: QueryBundle, model: BaseEmbedding) -> list[Hit] | None:
        return self._nearest(embedded_query(query_bundle, model))

    async def _ameaning(self, query_bundle: QueryBundle, model: BaseEmbedding) -> list[Hit] | None:
        return await asyncio.to_thread(self._nearest, await aembedded_query(query_bundle, model))

    def _nearest(self, vector: Vector | None) -> list[Hit] | None:
        """Search; `None` where there is nothing to search with, or in."""
        vectors = self.index.vectors
        if vector is None or vectors is None:
            return None
        reach = max(self.index.config.vector_k, self.k)
        return vectors.search(vector, reach, filter=self.accepts)

    def _fused(self, outcome: ChannelOutcome[list[Hit] | None]) -> tuple[list[Hit], dict[str, str]]:
        failed = reported(outcome.errors)
        asked = {name: hits for name, hits in outcome.results.items() if hits is not None}
        return fuse_hits(asked, config=self.index.config, k=self.k), failed
