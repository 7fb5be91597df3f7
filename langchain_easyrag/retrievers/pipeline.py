"""Any retrievers at once, and any postprocessors behind them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_core.retrievers import RetrieverLike  # noqa: TC002 - pydantic reads it
from langchain_core.runnables import ensure_config
from pydantic import Field
from typing_extensions import override

from easyrag_core import InvalidParameterError, RetrievalPipeline
from easyrag_core.errors import check_count, check_timeout
from easyrag_core.events import EventHandler  # noqa: TC001 - pydantic reads it
from langchain_easyrag._document_items import DocumentItems
from langchain_easyrag._fusing import with_failed
from langchain_easyrag._given import is_listing
from langchain_easyrag._query_vectors import one_request
from langchain_easyrag._settings import check_settings
from langchain_easyrag._stages import checked_parts, stages_of
from langchain_easyrag.retrievers._channels import child_channels
from langchain_easyrag.retrievers._children import ParentRetriever, child_config, listed_children

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
        Callbacks,
    )
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableConfig

    from easyrag_core import PipelineResult

__all__ = ["PipelineRetriever"]


class PipelineRetriever(ParentRetriever):
    """Ask several retrievers at once, fuse what they give, and let postprocessors work on it.

    The retrievers run in parallel, in threads or as tasks; each gets the caller's whole config
    and a child run. One that fails or is late is left out, a postprocessor that fails is
    skipped, both with a warning. Postprocessors are LangChain's own (compressors, rerankers,
    transformers), ours, and those of `easyrag_core` (`Dedupe`, `Rerank`, `ScoreThreshold`,
    `EvidenceGate`). Results are copies: score, rank, channels, what failed and what happened on
    the way are under `metadata["easyrag"]`.

    Instantiate:
        ```python
        from easyrag_core import EvidenceGate, Rerank
        from langchain_easyrag import MMRCompressor, PipelineRetriever

        retriever = PipelineRetriever(
            retrievers={"words": bm25, "meaning": vectors.as_retriever()},
            postprocessors=[
                Rerank(cross_encoder, candidate_limit=30, min_score=0.1),
                EvidenceGate(0.3),
                MMRCompressor(k=5, embeddings=embeddings),
            ],
            k=5,
        )
        ```

    Search:
        ```python
        retriever.invoke("what is RAG?", k=3)
        ```

    See how it came to it:
        ```python
        for stage in retriever.run("what is RAG?").stages:
            ...
        ```
    """

    retrievers: list[RetrieverLike]
    """Who is asked: retrievers, or any runnables from a query to documents."""

    postprocessors: list[Any] = Field(default_factory=list)
    """What happens after fusion, in this order."""

    names: list[str] | None = None
    """What the retrievers are called in facts and events; by default what they call themselves."""

    weights: list[float] | None = None
    """How much each retriever's vote counts; 1 each if not given."""

    recall_k: int = 20
    """How many documents each retriever is asked for, and how many of its answer are taken."""

    fetch_k: int | None = None
    """How many candidates the postprocessors get: 40, or as many as there may be."""

    k: int | None = None
    """How many documents to return: 10, or as many as the postprocessors leave."""

    fusion: str = "rrf"
    """`"rrf"` fuses ranks, `"score"` adds scores that were brought to [0, 1] per retriever."""

    rank_constant: float = 60
    """The larger, the less the first ranks stand out."""

    channel_timeout: float | list[float | None] | None = 15.0
    """Seconds that each retriever has, or a list with one for each; `None` waits for ever."""

    id_key: str | None = None
    """Documents with the same metadata value under this key are taken for one."""

    score_key: str | None = None
    """Where retrievers that are not ours put their scores, higher is better."""

    strict: bool = False
    """Raise the first error of a retriever or a postprocessor instead of going on without it."""

    on_event: EventHandler | None = Field(default=None, exclude=True, repr=False)
    """Takes an event per stage."""

    def __init__(
        self, *, retrievers: Sequence[RetrieverLike] | Mapping[str, RetrieverLike], **kwargs: Any
    ) -> None:
        """Check the settings.

        Args:
            retrievers: Who is asked, at least one; a mapping gives them names.
            **kwargs: The fields of this class; `tags`, `metadata` and `name`.

        Raises:
            InvalidParameterError: A setting is not as above, or a budget grows along the line:
                `recall_k` of all retrievers, `fetch_k`, what each postprocessor keeps, `k`.
        """
        fields = {**kwargs, **listed_children(retrievers, kwargs.get("names"))}
        check_settings(
            {**fields, "channel_timeout": None},
            known=type(self).model_fields,
            channels=len(fields["retrievers"]),
        )
        fields["postprocessors"] = checked_parts(kwargs.get("postprocessors", ()))
        _check_timeouts(kwargs.get("channel_timeout"), len(fields["retrievers"]))
        check_count("recall_k", kwargs.get("recall_k", 20), minimum=1)
        super().__init__(**fields)
        self._pipeline(lambda _: {}, lambda: None)  # refuses what is wrong now, not later

    @override
    def asked(self) -> Sequence[RetrieverLike]:
        """Return the runnables that are asked."""
        return self.retrievers

    def run(
        self, query: str, config: RunnableConfig | None = None, *, k: int | None = None
    ) -> PipelineResult[Document]:
        """Retrieve documents, and tell what each stage did.

        Args:
            query: The query.
            config: Goes on to every retriever.
            k: How many documents are wanted this time.

        Returns:
            The documents as `hits`, `stages`, and `errors` by retriever or postprocessor.

        Raises:
            AllChannelsFailedError: No retriever answered.
        """
        config = ensure_config(config)
        pipeline = self._pipeline(lambda _: config, lambda: config.get("callbacks"))
        with one_request():
            return _told(pipeline.run(query, k=k))

    async def arun(
        self, query: str, config: RunnableConfig | None = None, *, k: int | None = None
    ) -> PipelineResult[Document]:
        """Retrieve documents, and tell what each stage did: the async twin of `run`."""
        config = ensure_config(config)
        pipeline = self._pipeline(lambda _: config, lambda: config.get("callbacks"))
        with one_request():
            return _told(await pipeline.arun(query, k=k))

    @override
    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        parent_config: RunnableConfig | None = None,
    ) -> list[Document]:
        return _told(self._child_pipeline(run_manager, parent_config).run(query, k=k)).hits

    @override
    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        parent_config: RunnableConfig | None = None,
    ) -> list[Document]:
        return _told(await self._child_pipeline(run_manager, parent_config).arun(query, k=k)).hits

    def _child_pipeline(
        self,
        run_manager: CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun,
        config: RunnableConfig | None,
    ) -> RetrievalPipeline[Document]:
        return self._pipeline(
            lambda tag: child_config(config, run_manager, tag), run_manager.get_child
        )

    def _pipeline(
        self, config_of: Callable[[str], RunnableConfig], callbacks: Callable[[], Callbacks]
    ) -> RetrievalPipeline[Document]:
        """The plan of one request: the same each time but for who listens."""
        timeouts = self.channel_timeout
        channels = child_channels(
            self.retrievers,
            config_of,
            weights=self.weights,
            timeouts=timeouts if isinstance(timeouts, list) else [timeouts] * len(self.retrievers),
            names=self.names,
            k=self.recall_k,
        )
        return RetrievalPipeline(
            channels,
            stages_of(self.postprocessors, callbacks),
            fusion=self.fusion,
            rank_constant=self.rank_constant,
            fetch_k=self.fetch_k,
            k=self.k,
            items=DocumentItems(id_key=self.id_key, score_key=self.score_key),
            strict=self.strict,
            on_event=self.on_event,
        )


def _told(result: PipelineResult[Document]) -> PipelineResult[Document]:
    return replace(result, hits=with_failed(result.hits, result.errors))


def _check_timeouts(timeouts: Any, number: int) -> None:
    if not is_listing(timeouts):
        check_timeout(timeouts, name="channel_timeout")
        return
    listed = list(timeouts)
    if len(listed) != number:
        raise InvalidParameterError("channel_timeout", listed, f"give one, or {number}")
    for timeout in listed:
        check_timeout(timeout, name="channel_timeout")
