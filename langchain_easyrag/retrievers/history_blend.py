"""A follow-up searched with what was said before, with or without a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from langchain_core.documents import Document
from langchain_core.retrievers import RetrieverLike  # noqa: TC002 - pydantic reads it
from langchain_core.runnables import Runnable, RunnableSerializable
from langchain_core.runnables.utils import get_unique_config_specs
from pydantic import ConfigDict, Field
from typing_extensions import override

from easyrag_core import HistoryBlend, InvalidParameterError, report_degradation
from easyrag_core.errors import check_count
from easyrag_core.pipeline import NO_LIMIT
from langchain_easyrag._settings import check_settings
from langchain_easyrag.retrievers._queries import QueryItems, queries_pipeline
from langchain_easyrag.runnables._conversation import asked_in

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langchain_core.runnables.utils import ConfigurableFieldSpec

    from easyrag_core import RetrievalPipeline
    from langchain_easyrag.runnables._conversation import Asked

__all__ = ["HistoryBlendRetriever"]


class HistoryBlendRetriever(RunnableSerializable[Any, list[Document]]):
    """Search a question, at a small weight the last answer, and a rewrite if there is one.

    Stands where `create_history_aware_retriever` stands: a runnable from `input` and
    `chat_history` to documents. The question itself is always searched, whatever a model makes
    of it, and the scores of all searches are added, so the retriever should give scores, as ours
    do. Results are copies with the `queries` that found them under `metadata["easyrag"]`.

    Instantiate:
        ```python
        from langchain_easyrag import HistoryBlendRetriever, QueryRewriter

        without_model = HistoryBlendRetriever(bm25)
        with_model = HistoryBlendRetriever(bm25, rewriter=QueryRewriter(llm))
        ```

    Search:
        ```python
        without_model.invoke({"input": "And its price?", "chat_history": messages})
        ```
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    retriever: RetrieverLike
    """Who is asked."""

    rewriter: Runnable[Any, Any] | None = None
    """Makes the question complete, usually a `QueryRewriter`; gets the whole input."""

    blend: HistoryBlend = Field(default_factory=HistoryBlend)
    """How much what counts."""

    k: int | None = None
    """How many documents to return; `None` returns all."""

    score_key: str | None = None
    """Where a retriever that is not ours puts its scores, higher is better."""

    channel_timeout: float | None = 15.0
    """Seconds that each search has; `None` waits for ever."""

    strict: bool = False
    """Raise what the rewriter or a search raises instead of going on without it."""

    input_key: str = "input"
    """Where in a mapping the question is."""

    history_key: str = "chat_history"
    """Where in a mapping the conversation is."""

    def __init__(self, retriever: RetrieverLike, **kwargs: Any) -> None:
        """Check the settings.

        Args:
            retriever: Who is asked.
            **kwargs: The fields of this class.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        for name, given in (("retriever", retriever), ("rewriter", kwargs.get("rewriter"))):
            if not isinstance(given, Runnable) and (given is not None or name == "retriever"):
                raise InvalidParameterError(name, given, "give a runnable")
        if not isinstance(kwargs.get("blend", HistoryBlend()), HistoryBlend):
            raise InvalidParameterError("blend", kwargs["blend"], "give a HistoryBlend")
        check_settings(kwargs, known=type(self).model_fields)
        super().__init__(**{**kwargs, "retriever": retriever})

    @property
    @override
    def InputType(self) -> Any:
        """A text, a mapping, or messages."""
        return Any

    @property
    @override
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The configurable fields of retriever and rewriter."""
        asked = [self.retriever, *filter(None, [self.rewriter])]
        return get_unique_config_specs(spec for one in asked for spec in one.config_specs)

    @override
    def invoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Search.

        Args:
            input: A text, a mapping with `input` and `chat_history`, or messages.
            config: Goes on to retriever and rewriter, in child runs.
            **kwargs: `k`, how many documents are wanted this time.

        Returns:
            Documents, best first.

        Raises:
            AllChannelsFailedError: No search answered.
            InvalidParameterError: The input is none of these.
        """
        run: Any = self._run
        return self._call_with_config(run, input, config, **kwargs)

    @override
    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Search: the async twin of `invoke`."""
        run: Any = self._arun
        return await self._acall_with_config(run, input, config, **kwargs)

    def _run(self, value: Any, config: Any, k: int | None = None) -> list[Document]:
        asked, rewrite = self._asked(value), None
        if self.rewriter is not None:
            try:
                rewrite = self.rewriter.invoke(value, config)
            except Exception as error:  # noqa: BLE001 - a rewriter may fail in any way
                self._failed(error)
        pipeline = self._pipeline(asked, rewrite, config)
        return pipeline.run(asked.question, k=self._wanted(k)).hits

    async def _arun(
        self, value: Any, config: RunnableConfig, k: int | None = None
    ) -> list[Document]:
        asked, rewrite = self._asked(value), None
        if self.rewriter is not None:
            try:
                rewrite = await self.rewriter.ainvoke(value, config)
            except Exception as error:  # noqa: BLE001 - a rewriter may fail in any way
                self._failed(error)
        pipeline = self._pipeline(asked, rewrite, config)
        return (await pipeline.arun(asked.question, k=self._wanted(k))).hits

    def _asked(self, value: Any) -> Asked:
        return asked_in(value, input_key=self.input_key, history_key=self.history_key)

    def _failed(self, error: Exception) -> None:
        report_degradation("rewrite", "the rewriter failed", error=error, strict=self.strict)

    def _wanted(self, k: int | None) -> int:
        k = self.k if k is None else k
        return NO_LIMIT if k is None else check_count("k", k)

    def _pipeline(
        self, asked: Asked, rewrite: Any, config: RunnableConfig
    ) -> RetrievalPipeline[Document]:
        told = rewrite if isinstance(rewrite, str) else None
        queries = self.blend.queries(asked.question, asked.history, rewrite=told)
        items = QueryItems.of(
            queries,
            merge="sum",
            normalization=self.blend.normalization,
            score_key=self.score_key,
        )
        return queries_pipeline(
            self.retriever,
            queries,
            lambda _: config,
            items=items,
            timeout=self.channel_timeout,
            strict=self.strict,
        )
