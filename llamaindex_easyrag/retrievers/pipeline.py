"""Any retrievers at once, and any postprocessors behind them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import QueryBundle

from easyrag_core import InvalidParameterError, RetrievalPipeline
from easyrag_core.errors import check_count, check_timeout
from easyrag_core.pipeline import distinct_names
from llamaindex_easyrag._fusing import checked_weights, reported, with_failed
from llamaindex_easyrag._node_items import NodeItems
from llamaindex_easyrag._stages import checked_parts, stages_of
from llamaindex_easyrag._vectors import aembedded_query, embedded_query
from llamaindex_easyrag.retrievers._channels import checked_retrievers, child_channels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.schema import IndexNode, NodeWithScore

    from easyrag_core import PipelineResult
    from easyrag_core.events import EventHandler
    from llamaindex_easyrag._vectors import Vector

__all__ = ["PipelineRetriever"]

_logger = logging.getLogger(__name__)

_NAMES_HERE = {"k": "similarity_top_k", "postprocessors": "node_postprocessors"}
"""What the core's settings are called here."""


class PipelineRetriever(BaseRetriever):
    """Asks several retrievers in parallel, fuses their answers, and lets postprocessors work on it.

    A retriever that fails or is late is left out, a postprocessor that fails is skipped, both
    with a warning and an `ExceptionEvent`. Postprocessors are the framework's own, ours, and
    those of `easyrag_core` (`Dedupe`, `Rerank`, `ScoreThreshold`, `EvidenceGate`). Results are
    copies; `metadata["easyrag"]` tells rank, channels, what failed, and what happened on the way.
    """

    def __init__(
        self,
        retrievers: Sequence[BaseRetriever] | Mapping[str, BaseRetriever],
        *,
        node_postprocessors: Sequence[Any] = (),
        similarity_top_k: int | None = None,
        fetch_k: int | None = None,
        recall_k: int = 20,
        retriever_weights: Sequence[float] | None = None,
        fusion: str = "rrf",
        rank_constant: float = 60,
        channel_timeout: float | Sequence[float | None] | None = 15.0,
        embed_model: BaseEmbedding | None = None,
        strict: bool = False,
        names: Sequence[str] | None = None,
        on_event: EventHandler | None = None,
        callback_manager: CallbackManager | None = None,
        objects: list[IndexNode] | None = None,
        object_map: dict[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        """Check the settings.

        Args:
            retrievers: At least one; a mapping gives them names.
            node_postprocessors: What happens after fusion, in this order.
            similarity_top_k: How many nodes are returned. Default: 10, or as many as the
                postprocessors leave.
            fetch_k: How many candidates the postprocessors get. Default: 40, or as many as there
                may be.
            recall_k: How many nodes of each retriever's answer are taken; how many it gives is
                its own setting.
            retriever_weights: One finite number >= 0 per retriever, not all of them 0; default:
                1 each. A retriever of weight 0 has no vote.
            fusion: `"rrf"` by rank, or `"score"`: sum of the scores, those of each retriever
                brought to [0, 1].
            rank_constant: For `"rrf"`, >= 0: the larger, the less the first ranks stand out.
            channel_timeout: Seconds for each retriever, or one entry per retriever; `None` waits
                for ever.
            embed_model: Embeds the query once for all retrievers and postprocessors; give it
                where they use this model, or none.
            strict: Raise the first error of a retriever or a postprocessor.
            names: Names of the retrievers in facts and events; default: their classes.
            on_event: Takes an event per stage.
            callback_manager: Receives the retrieval events.
            objects: Index nodes that lead to other objects.
            object_map: The same as a dict.
            verbose: The framework's flag.

        Raises:
            InvalidParameterError: A setting is not as above, or a budget grows along the line:
                `recall_k` of all retrievers, `fetch_k`, what each postprocessor keeps,
                `similarity_top_k`.
        """
        named = isinstance(retrievers, Mapping)
        if named and names is not None:
            raise InvalidParameterError("names", names, "the retrievers have names already")
        told = list(retrievers) if isinstance(retrievers, Mapping) else names
        self._retrievers = checked_retrievers(
            list(retrievers.values()) if isinstance(retrievers, Mapping) else retrievers
        )
        number = len(self._retrievers)
        self._names = _checked_names(told, self._retrievers)
        self._weights = checked_weights("retriever_weights", retriever_weights, number)
        self._timeouts = _checked_timeouts(channel_timeout, number)
        self._parts = checked_parts(node_postprocessors)
        self._recall_k = check_count("recall_k", recall_k, minimum=1)
        self._settings: dict[str, Any] = {
            "fusion": fusion,
            "rank_constant": rank_constant,
            "fetch_k": fetch_k,
            "strict": strict,
            "on_event": on_event,
        }
        self._strict = strict
        self._embed_model = embed_model
        self._similarity_top_k = similarity_top_k
        # Refuses what is wrong now, not later.
        self._similarity_top_k = self._pipeline(QueryBundle("")).k
        super().__init__(
            callback_manager=callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )

    @property
    def similarity_top_k(self) -> int:
        """How many nodes are returned."""
        return self._similarity_top_k or 0

    @similarity_top_k.setter
    def similarity_top_k(self, similarity_top_k: int) -> None:
        before, self._similarity_top_k = self._similarity_top_k, similarity_top_k
        try:
            self._pipeline(QueryBundle(""))
        except InvalidParameterError:
            self._similarity_top_k = before
            raise

    def run(self, query: str | QueryBundle) -> PipelineResult[NodeWithScore]:
        """Retrieve nodes, and tell what each stage did.

        Args:
            query: The query.

        Returns:
            The nodes as `hits`, `stages`, and `errors` by retriever or postprocessor.

        Raises:
            AllChannelsFailedError: No retriever answered.
        """
        bundle = QueryBundle(query) if isinstance(query, str) else query
        if self._embed_model is not None:
            try:
                bundle = _with_vector(bundle, embedded_query(bundle, self._embed_model))
            except Exception as error:  # noqa: BLE001 - a model may fail in any way
                self._go_on_without_vector(error)
        return self._told(self._pipeline(bundle).run(bundle.query_str))

    async def arun(self, query: str | QueryBundle) -> PipelineResult[NodeWithScore]:
        """Retrieve nodes, and tell what each stage did: the async twin of `run`.

        Args:
            query: The query.

        Returns:
            The nodes as `hits`, `stages`, and `errors` by retriever or postprocessor.

        Raises:
            AllChannelsFailedError: No retriever answered.
        """
        bundle = QueryBundle(query) if isinstance(query, str) else query
        if self._embed_model is not None:
            try:
                bundle = _with_vector(bundle, await aembedded_query(bundle, self._embed_model))
            except Exception as error:  # noqa: BLE001 - a model may fail in any way
                self._go_on_without_vector(error)
        return self._told(await self._pipeline(bundle).arun(bundle.query_str))

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.run(query_bundle).hits

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return (await self.arun(query_bundle)).hits

    def _go_on_without_vector(self, error: Exception) -> None:
        """Leave the embedding to the retrievers, each of which may fail alone."""
        if self._strict:
            raise error
        _logger.warning("The query is not embedded for all: %r", error)
        reported({"embed_model": error})

    def _told(self, result: PipelineResult[NodeWithScore]) -> PipelineResult[NodeWithScore]:
        return replace(result, hits=with_failed(result.hits, result.errors))

    def _pipeline(self, query_bundle: QueryBundle) -> RetrievalPipeline[NodeWithScore]:
        """The plan of one request."""
        channels = child_channels(
            self._retrievers,
            self._names,
            query_bundle,
            weights=self._weights,
            timeouts=self._timeouts,
            k=self._recall_k,
        )
        stages = stages_of(self._parts, query_bundle)
        k = self._similarity_top_k
        try:
            return RetrievalPipeline(channels, stages, k=k, items=NodeItems(), **self._settings)
        except InvalidParameterError as error:
            told = _NAMES_HERE.get(error.name, error.name)
            raise InvalidParameterError(told, error.value, error.allowed) from None


def _with_vector(query_bundle: QueryBundle, vector: Vector | None) -> QueryBundle:
    numbers = None if vector is None else [float(number) for number in vector]
    return replace(query_bundle, embedding=numbers)


def _checked_names(names: Any, children: Sequence[BaseRetriever]) -> list[str]:
    if names is None:
        return distinct_names([type(child).__name__ for child in children])
    told = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else []
    if len(told) != len(children):
        raise InvalidParameterError("names", names, "give a list, one per retriever")
    return told


def _checked_timeouts(timeouts: Any, number: int) -> list[float | None]:
    listed = isinstance(timeouts, Iterable) and not isinstance(timeouts, str | Mapping)
    told = list(timeouts) if listed else [timeouts] * number
    if len(told) != number:
        raise InvalidParameterError("channel_timeout", told, f"give one, or {number}")
    for timeout in told:
        check_timeout(timeout, name="channel_timeout")
    return told
