"""A question searched in several wordings, or part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index.core.base.base_retriever import BaseRetriever

from easyrag_core import InvalidParameterError, RetrievalPipeline
from easyrag_core.errors import check_choice, check_count, check_timeout
from llamaindex_easyrag._node_items import NodeItems
from llamaindex_easyrag.query_transforms import MultiQueryTransform, QueryDecomposeTransform
from llamaindex_easyrag.retrievers._channels import checked_retrievers, query_channels
from llamaindex_easyrag.retrievers._queries import query_bundles, with_queries

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.base.llms.base import BaseLLM
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle

    from easyrag_core.events import EventHandler

__all__ = ["MultiQueryRetriever"]

_DEFAULT_K = 10


class MultiQueryRetriever(BaseRetriever):
    """Asks one retriever several queries in parallel and fuses what it finds.

    The queries are other wordings of the question, which is always one of them, or its
    sub-questions. A query that fails or is late is left out with a warning and an
    `ExceptionEvent`; where the model fails the question alone is searched. Results are copies;
    `metadata["easyrag"]["queries"]` tells which queries found a node.
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        llm: BaseLLM | None = None,
        prompt: Any = None,
        *,
        query_transform: MultiQueryTransform | QueryDecomposeTransform | None = None,
        count: int = 3,
        merge: str = "rrf",
        rank_constant: float = 60,
        similarity_top_k: int | None = None,
        embed_model: BaseEmbedding | None = None,
        channel_timeout: float | None = 15.0,
        strict: bool = False,
        on_error: str = "fallback",
        on_event: EventHandler | None = None,
        callback_manager: CallbackManager | None = None,
        objects: list[IndexNode] | None = None,
        object_map: dict[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        """Check the settings.

        Args:
            retriever: Who is asked; how many nodes each query gives is its own setting.
            llm: Who words the queries; by default `Settings.llm`, when there is something to
                ask.
            prompt: For `MultiQueryTransform`.
            query_transform: Makes the queries in place of `llm`, `prompt`, `count` and
                `on_error`: a `MultiQueryTransform` or a `QueryDecomposeTransform`.
            count: How many queries, the question itself included; for 1 no model is asked.
            merge: `"rrf"` by rank, or `"max"`: the best score that any query gave.
            rank_constant: For `"rrf"`, >= 0: the larger, the less the first ranks stand out.
            similarity_top_k: How many nodes are returned; default: as many as the retriever
                says for one query, else 10.
            embed_model: Embeds all queries in one batch for the retriever; give the retriever's
                own model, and only one that embeds queries as it embeds texts. Without it the
                retriever embeds each query, in parallel.
            channel_timeout: Seconds for each query; `None` waits for ever.
            strict: Raise the first error of the retriever.
            on_error: `"fallback"` goes on with the question alone, `"raise"` raises the model's
                error.
            on_event: Takes an event per stage, and hears when the model is done without.
            callback_manager: Receives the retrieval events.
            objects: Index nodes that lead to other objects.
            object_map: The same as a dict.
            verbose: The framework's flag.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        (self._retriever,) = checked_retrievers([retriever])
        self._transform = _checked_transform(query_transform) or MultiQueryTransform(
            llm, prompt, count=count, on_error=on_error, on_event=on_event
        )
        if query_transform is not None and (llm is not None or prompt is not None):
            allowed = "it has a model and a prompt of its own"
            raise InvalidParameterError("query_transform", query_transform, allowed)
        by_rank = check_choice("merge", merge, ("rrf", "max")) == "rrf"
        self._settings: dict[str, Any] = {
            "fusion": "rrf" if by_rank else "score",
            "rank_constant": rank_constant,
            "items": NodeItems() if by_rank else NodeItems("none", "max"),
            "strict": strict,
            "on_event": on_event,
        }
        check_timeout(channel_timeout, name="channel_timeout")
        self._timeout = channel_timeout
        if similarity_top_k is not None:
            check_count("similarity_top_k", similarity_top_k, minimum=1)
        self._similarity_top_k = similarity_top_k
        if embed_model is not None and not hasattr(embed_model, "get_text_embedding_batch"):
            raise InvalidParameterError("embed_model", embed_model, "give an embedding model")
        self._embed_model = embed_model
        self._pipeline({"query 1": None})  # refuses what is wrong now, not later
        super().__init__(
            callback_manager=callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {"query_transform": self._transform}

    @property
    def similarity_top_k(self) -> int:
        """How many nodes are returned."""
        if self._similarity_top_k is not None:
            return self._similarity_top_k
        own = getattr(self._retriever, "similarity_top_k", None)
        return own if isinstance(own, int) and own > 0 else _DEFAULT_K

    @similarity_top_k.setter
    def similarity_top_k(self, similarity_top_k: int) -> None:
        self._similarity_top_k = check_count("similarity_top_k", similarity_top_k, minimum=1)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        queries = self._transform.queries(query_bundle)
        vectors = None
        if self._embed_model is not None and len(queries) > 1:
            vectors = self._embed_model.get_text_embedding_batch(queries)
        bundles = query_bundles(query_bundle, queries, vectors)
        result = self._pipeline(bundles).run(query_bundle.query_str)
        return with_queries(result, bundles)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        queries = await self._transform.aqueries(query_bundle)
        vectors = None
        if self._embed_model is not None and len(queries) > 1:
            vectors = await self._embed_model.aget_text_embedding_batch(queries)
        bundles = query_bundles(query_bundle, queries, vectors)
        result = await self._pipeline(bundles).arun(query_bundle.query_str)
        return with_queries(result, bundles)

    def _pipeline(self, bundles: Any) -> RetrievalPipeline[NodeWithScore]:
        channels = query_channels(self._retriever, bundles, timeout=self._timeout)
        return RetrievalPipeline(channels, k=self.similarity_top_k, **self._settings)


def _checked_transform(transform: Any) -> MultiQueryTransform | QueryDecomposeTransform | None:
    known = (MultiQueryTransform, QueryDecomposeTransform)
    if transform is not None and not isinstance(transform, known):
        allowed = "give a MultiQueryTransform or a QueryDecomposeTransform"
        raise InvalidParameterError("query_transform", transform, allowed)
    return transform
