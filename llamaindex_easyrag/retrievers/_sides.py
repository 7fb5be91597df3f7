"""A hybrid search whose vector side is somebody else's."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from llama_index.core.vector_stores.types import MetadataFilters

from easyrag_core import InvalidParameterError, RetrievalPipeline
from llamaindex_easyrag._filters import matches
from llamaindex_easyrag._fusing import Fusion, with_failed
from llamaindex_easyrag._node_items import NodeItems
from llamaindex_easyrag.retrievers._channels import child_channels
from llamaindex_easyrag.retrievers.bm25 import BM25Retriever

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.indices.base import BaseIndex
    from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle

    from easyrag_core import Channel, HybridConfig

__all__ = ["TwoSides"]

_NAMES = ("bm25", "vector")
# A filter that a store cannot express is applied afterwards, to a longer list.
_DEEPER = 4


class TwoSides:
    """Asks a word side and a vector side in parallel and fuses what passes the filters."""

    def __init__(
        self,
        nodes: Sequence[BaseNode] | None,
        bm25: BaseRetriever | None,
        vector: BaseRetriever | BaseIndex[Any],
        *,
        config: HybridConfig,
        filters: MetadataFilters | None,
        analyzer: Any,
        strict: bool,
    ) -> None:
        """Build the sides that are not given.

        Args:
            nodes: What the word side is built of if it is not given.
            bm25: The word side, or `None`.
            vector: The vector side, or an index that makes one.
            config: Candidates, fusion, weights and timeout.
            filters: Hold for both sides.
            analyzer: For the word side that is built here.
            strict: Raise a failing side's own error.

        Raises:
            InvalidParameterError: Nodes and a word side are given, or neither, or the vector
                side is no retriever.
        """
        if (nodes is None) == (bm25 is None):
            allowed = "give either nodes or a bm25_retriever beside a vector_retriever"
            raise InvalidParameterError("bm25_retriever", bm25, allowed)
        self._config = config
        self._filters = filters
        self._strict = strict
        self._fusion = Fusion(
            config.fusion,
            weights=tuple(config.weights_of(_NAMES)),
            rank_constant=config.rank_constant,
        )
        self.vector_store = getattr(vector, "vector_store", None)
        self.embed_model = getattr(vector, "_embed_model", None)
        self._built: list[tuple[Any, int]] = []
        if bm25 is None:
            bm25 = BM25Retriever(nodes, filters=filters, analyzer=analyzer)
            self._built.append((bm25, config.bm25_k))
        if hasattr(vector, "as_retriever"):
            flat = filters is not None and _is_flat(filters)
            vector = vector.as_retriever(**({"filters": filters} if flat else {}))
            deeper = 1 if flat or filters is None else _DEEPER
            self._built.append((vector, config.vector_k * deeper))
        if not (hasattr(vector, "retrieve") and hasattr(vector, "aretrieve")):
            allowed = "give a retriever, or an index that makes one"
            raise InvalidParameterError("vector_retriever", vector, allowed)
        self._children = (bm25, vector)

    def make_room(self, k: int) -> None:
        """Let the sides that were built here give at least `k` candidates.

        Args:
            k: How many nodes are wanted in the end.
        """
        for child, candidates in self._built:
            child.similarity_top_k = max(candidates, k)

    def narrowed(
        self,
        filters: MetadataFilters | None,
        k: int,
        narrow: Callable[[BaseRetriever, int], BaseRetriever],
    ) -> TwoSides:
        """Return the same sides with other filters for what they give.

        Args:
            filters: Hold for both sides.
            k: How many nodes are wanted in the end.
            narrow: Makes of a side one with these filters and so many candidates.

        Returns:
            A copy.
        """
        made = copy(self)
        made._filters = filters  # noqa: SLF001 - it is one of ours
        words, vectors = self._children
        made._children = (  # noqa: SLF001 - as above
            narrow(words, max(k, self._config.bm25_k)),
            narrow(vectors, max(k, self._config.vector_k)),
        )
        return made

    def retrieve(self, query_bundle: QueryBundle, k: int) -> list[NodeWithScore]:
        """Ask both sides, in threads.

        Args:
            query_bundle: The query; each side gets a copy.
            k: How many nodes are wanted.

        Returns:
            Copies of the nodes with fused scores.

        Raises:
            AllChannelsFailedError: Both sides failed.
        """
        result = self._pipeline(query_bundle).run(query_bundle.query_str, k=k)
        return with_failed(result.hits, result.errors)

    async def aretrieve(self, query_bundle: QueryBundle, k: int) -> list[NodeWithScore]:
        """Ask both sides, as tasks: the async twin of `retrieve`.

        Args:
            query_bundle: The query; each side gets a copy.
            k: How many nodes are wanted.

        Returns:
            Copies of the nodes with fused scores.

        Raises:
            AllChannelsFailedError: Both sides failed.
        """
        result = await self._pipeline(query_bundle).arun(query_bundle.query_str, k=k)
        return with_failed(result.hits, result.errors)

    def _pipeline(self, query_bundle: QueryBundle) -> RetrievalPipeline[NodeWithScore]:
        channels = child_channels(
            self._children,
            _NAMES,
            query_bundle,
            weights=self._fusion.weights,
            timeouts=[self._config.channel_timeout] * len(_NAMES),
        )
        if self._filters is not None:
            channels = [self._filtered(channel) for channel in channels]
        return RetrievalPipeline(
            channels,
            fusion=self._fusion.by,
            rank_constant=self._fusion.rank_constant,
            items=NodeItems(),
            strict=self._strict,
        )

    def _filtered(self, channel: Channel[NodeWithScore]) -> Channel[NodeWithScore]:
        """The channel with what passes the filters alone."""

        def search(query: str, k: int) -> list[NodeWithScore]:
            return self._passing(channel.search(query, k))

        async def asearch(query: str, k: int) -> list[NodeWithScore]:
            if channel.asearch is None:
                return search(query, k)
            return self._passing(await channel.asearch(query, k))

        return replace(channel, search=search, asearch=asearch)

    def _passing(self, found: Sequence[NodeWithScore]) -> list[NodeWithScore]:
        return [one for one in found if matches(self._filters, one.node)]


def _is_flat(filters: MetadataFilters) -> bool:
    return not any(isinstance(part, MetadataFilters) for part in filters.filters)
