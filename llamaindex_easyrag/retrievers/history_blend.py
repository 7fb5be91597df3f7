"""A follow-up searched with what was said before, with or without a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index.core.base.base_retriever import BaseRetriever

from easyrag_core import HistoryBlend, InvalidParameterError, RetrievalPipeline
from easyrag_core.errors import check_count, check_timeout
from llamaindex_easyrag._conversation import spoken
from llamaindex_easyrag._node_items import NodeItems
from llamaindex_easyrag.query_transforms import QueryRewriteTransform
from llamaindex_easyrag.query_transforms._transform import checked_memory
from llamaindex_easyrag.retrievers._channels import checked_retrievers, query_channels
from llamaindex_easyrag.retrievers._queries import query_bundles, with_queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.memory import BaseMemory
    from llama_index.core.schema import NodeWithScore, QueryBundle

    from easyrag_core.query import WeightedQuery

__all__ = ["HistoryBlendRetriever"]


class HistoryBlendRetriever(BaseRetriever):
    """Searches a question, at a small weight the last answer, and a rewrite if there is one.

    The question itself is always searched, whatever a model makes of it, and the scores of all
    searches are added, so the retriever should give scores, as ours do. Results are copies;
    `metadata["easyrag"]["queries"]` tells which texts found a node.
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        memory: BaseMemory,
        *,
        rewriter: QueryRewriteTransform | None = None,
        blend: HistoryBlend | None = None,
        similarity_top_k: int = 10,
        channel_timeout: float | None = 15.0,
        strict: bool = False,
        callback_manager: CallbackManager | None = None,
        verbose: bool = False,
    ) -> None:
        """Check the settings.

        Args:
            retriever: Who is asked; how many nodes each search gives is its own setting.
            memory: Where the conversation is.
            rewriter: Makes the question complete.
            blend: How much what counts; `HistoryBlend()` if not given.
            similarity_top_k: How many nodes are returned.
            channel_timeout: Seconds for each search; `None` waits for ever.
            strict: Raise the first error of the retriever.
            callback_manager: Receives the retrieval events.
            verbose: The framework's flag.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        (self._retriever,) = checked_retrievers([retriever])
        given: Any = rewriter, blend
        if not isinstance(given[0], QueryRewriteTransform | None):
            raise InvalidParameterError("rewriter", rewriter, "give a QueryRewriteTransform")
        if not isinstance(given[1], HistoryBlend | None):
            raise InvalidParameterError("blend", blend, "give a HistoryBlend")
        known = checked_memory(memory)
        if known is None:
            raise InvalidParameterError("memory", memory, "give a memory of LlamaIndex")
        self._memory = known
        self._rewriter = rewriter
        self._blend = blend or HistoryBlend()
        self.similarity_top_k: int = check_count("similarity_top_k", similarity_top_k, minimum=1)
        check_timeout(channel_timeout, name="channel_timeout")
        self._timeout = channel_timeout
        self._strict = strict
        super().__init__(callback_manager=callback_manager, verbose=verbose)

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {} if self._rewriter is None else {"rewriter": self._rewriter}

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        said, rewrite = self._memory.get(), None
        if self._rewriter is not None:
            rewrite = self._rewriter.rewrite(query_bundle, said)
        queries = self._queries(query_bundle, said, rewrite)
        bundles = query_bundles(query_bundle, [query.text for query in queries])
        return with_queries(self._pipeline(queries, bundles).run(query_bundle.query_str), bundles)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        said, rewrite = await self._memory.aget(), None
        if self._rewriter is not None:
            rewrite = await self._rewriter.arewrite(query_bundle, said)
        queries = self._queries(query_bundle, said, rewrite)
        bundles = query_bundles(query_bundle, [query.text for query in queries])
        result = await self._pipeline(queries, bundles).arun(query_bundle.query_str)
        return with_queries(result, bundles)

    def _queries(
        self, query_bundle: QueryBundle, said: Sequence[ChatMessage], rewrite: str | None
    ) -> list[WeightedQuery]:
        return self._blend.queries(query_bundle.query_str, spoken(said), rewrite=rewrite)

    def _pipeline(
        self, queries: Sequence[WeightedQuery], bundles: Mapping[str, QueryBundle]
    ) -> RetrievalPipeline[NodeWithScore]:
        weights = [query.weight for query in queries]
        return RetrievalPipeline(
            query_channels(self._retriever, bundles, timeout=self._timeout, weights=weights),
            fusion="score",
            items=NodeItems(self._blend.normalization, "sum"),
            k=self.similarity_top_k,
            strict=self._strict,
        )
