"""Several retrievers asked at once, their answers fused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.constants import DEFAULT_SIMILARITY_TOP_K

from easyrag_core import InvalidParameterError, RetrievalPipeline
from easyrag_core.errors import check_choice, check_count, check_timeout
from easyrag_core.pipeline import distinct_names
from llamaindex_easyrag._fusing import Fusion, checked_weights, with_failed
from llamaindex_easyrag._node_items import NodeItems
from llamaindex_easyrag.retrievers._channels import checked_retrievers, child_channels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle

__all__ = ["FusionRetriever"]

# The framework's names for what it does, in our words.
_MODES = {
    "reciprocal_rerank": Fusion("rrf"),
    "relative_score": Fusion("score"),
    "dist_based_score": Fusion("score", normalization="z_score"),
    "simple": Fusion("score", normalization="none", combine="max"),
    "rrf": Fusion("rrf"),
    "score": Fusion("score"),
}


class FusionRetriever(BaseRetriever):
    """Asks several retrievers in parallel and fuses their answers by rank or by score.

    Takes the place of the framework's `QueryFusionRetriever` with one query, and needs no LLM.
    A node is known by its id and has one vote in each answer, at its best place. A retriever
    that fails or is late is left out with a warning and an `ExceptionEvent`; the rest answer.
    Results are copies with the fused score; `metadata["easyrag"]` tells each retriever's rank
    and score.
    """

    def __init__(
        self,
        retrievers: Sequence[BaseRetriever],
        llm: Any = None,
        query_gen_prompt: str | None = None,
        mode: str | None = None,
        similarity_top_k: int = DEFAULT_SIMILARITY_TOP_K,
        num_queries: int = 1,
        use_async: bool = True,  # noqa: FBT001, FBT002 - the framework's order of arguments
        verbose: bool = False,  # noqa: FBT001, FBT002 - as above
        callback_manager: CallbackManager | None = None,
        objects: list[IndexNode] | None = None,
        object_map: dict[str, Any] | None = None,
        retriever_weights: Sequence[float] | None = None,
        *,
        fusion: str | None = None,
        rank_constant: float = 60,
        channel_timeout: float | None = 15.0,
        strict: bool = False,
        names: Sequence[str] | None = None,
    ) -> None:
        """Check the settings.

        Args:
            retrievers: At least one.
            llm: Accepted as the framework's retriever has it; never used.
            query_gen_prompt: As `llm`.
            mode: The framework's name for `fusion`: `"reciprocal_rerank"` is `"rrf"`,
                `"relative_score"` is `"score"`, `"dist_based_score"` the sum of the scores as
                deviations from their mean, `"simple"` the best raw score.
            similarity_top_k: How many nodes are returned, >= 0.
            num_queries: 1; queries from a model are not made here.
            use_async: As `llm`: retrievers always run in parallel.
            verbose: The framework's flag.
            callback_manager: Receives the retrieval events.
            objects: Index nodes that lead to other objects.
            object_map: The same as a dict.
            retriever_weights: One finite number >= 0 per retriever, not all of them 0; default:
                1 each. A retriever of weight 0 has no vote.
            fusion: `"rrf"` (default) by rank, or `"score"`: sum of the scores, those of each
                retriever brought to [0, 1].
            rank_constant: For `"rrf"`, >= 0: the larger, the less the first ranks stand out.
            channel_timeout: Seconds for each retriever; `None` waits for ever.
            strict: Raise a failing retriever's own error.
            names: Names of the retrievers in results and warnings; default: their classes.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        del llm, query_gen_prompt, use_async
        if num_queries != 1:
            allowed = "1: this retriever asks the query as it is and needs no LLM"
            raise InvalidParameterError("num_queries", num_queries, allowed)
        if mode is not None and fusion is not None:
            raise InvalidParameterError("mode", mode, "fusion is given as well")
        self._retrievers = checked_retrievers(retrievers)
        name = "fusion" if mode is None else "mode"
        # The framework's modes are members of an enumeration, which are strings too.
        word = getattr(mode, "value", mode) or fusion or "rrf"
        self._fusion = replace(
            _MODES[check_choice(name, word, [*_MODES])],
            weights=checked_weights("retriever_weights", retriever_weights, len(self._retrievers)),
            rank_constant=rank_constant,
        )
        self._fusion.fuse([[] for _ in self._retrievers])  # refuses what is wrong now, not later
        check_timeout(channel_timeout, name="channel_timeout")
        self._timeout = channel_timeout
        self._strict = strict
        if isinstance(names, str):
            raise InvalidParameterError("names", names, "give a list, one per retriever")
        self._names = distinct_names(names or [type(child).__name__ for child in self._retrievers])
        if len(self._names) != len(self._retrievers):
            raise InvalidParameterError("names", names, "give one per retriever")
        self.similarity_top_k: int = check_count("similarity_top_k", similarity_top_k)
        super().__init__(
            callback_manager=callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        pipeline, query = self._pipeline(query_bundle), query_bundle.query_str
        result = pipeline.run(query, k=self.similarity_top_k)
        return with_failed(result.hits, result.errors)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        pipeline, query = self._pipeline(query_bundle), query_bundle.query_str
        result = await pipeline.arun(query, k=self.similarity_top_k)
        return with_failed(result.hits, result.errors)

    def _pipeline(self, query_bundle: QueryBundle) -> RetrievalPipeline[NodeWithScore]:
        channels = child_channels(
            self._retrievers,
            self._names,
            query_bundle,
            weights=self._fusion.weights,
            timeouts=[self._timeout] * len(self._retrievers),
        )
        return RetrievalPipeline(
            channels,
            fusion=self._fusion.by,
            rank_constant=self._fusion.rank_constant,
            items=NodeItems(self._fusion.normalization, self._fusion.combine),
            strict=self._strict,
        )
