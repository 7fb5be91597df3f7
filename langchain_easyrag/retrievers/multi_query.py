"""One question asked in several wordings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

from langchain_core.messages import BaseMessage
from langchain_core.retrievers import RetrieverLike  # noqa: TC002 - pydantic reads it
from langchain_core.runnables import Runnable, run_in_executor
from pydantic import Field
from typing_extensions import override

from easyrag_core import (
    InvalidParameterError,
    WeightedQuery,
    distinct_queries,
    parse_queries,
    report_degradation,
)
from easyrag_core.errors import check_choice, check_count, check_text
from easyrag_core.pipeline import NO_LIMIT
from langchain_easyrag._given import is_listing
from langchain_easyrag._settings import check_settings
from langchain_easyrag.retrievers._children import ParentRetriever, child_config
from langchain_easyrag.retrievers._queries import QueryItems, queries_pipeline
from langchain_easyrag.retrievers._query_vectors import with_query_vectors
from langchain_easyrag.retrievers.hybrid import HybridRetriever
from langchain_easyrag.runnables.generator import MultiQueryGenerator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.documents import Document
    from langchain_core.language_models import BaseLanguageModel
    from langchain_core.runnables import RunnableConfig

    from easyrag_core import RetrievalPipeline

__all__ = ["MultiQueryRetriever"]


class MultiQueryRetriever(ParentRetriever):
    """Ask a retriever with several wordings of a question, at once, and merge what it finds.

    Takes the arguments of langchain-classic's `MultiQueryRetriever`. The question itself is
    always among the queries, unless `include_original=False` and there are others. A query that
    fails is left out with a warning; where the model fails, the question is asked alone. Results
    are copies: the fused score, rank and score per query, and the `queries` that found a
    document are under `metadata["easyrag"]`.

    Instantiate:
        ```python
        from langchain_easyrag import MultiQueryRetriever

        retriever = MultiQueryRetriever.from_llm(bm25, llm, count=4, k=5)
        ```

    Search:
        ```python
        retriever.invoke("How do I cut costs?")[0].metadata["easyrag"]["queries"]
        ```
    """

    retriever: RetrieverLike
    """Who is asked with each query."""

    llm_chain: Runnable[Any, Any]
    """From `{"question": …}` to queries: a list, or a text with one a line."""

    include_original: bool = True
    """Whether the question itself is asked too, first."""

    count: int | None = None
    """The most queries; as many as the chain gives, if not said."""

    merge: str = "rrf"
    """`"rrf"` fuses ranks, `"max"` takes each document's best score."""

    rank_constant: float = 60
    """The larger, the less the first ranks stand out."""

    id_key: str | None = None
    """Documents with the same metadata value under this key are taken for one."""

    score_key: str | None = None
    """Where a retriever that is not ours puts its scores, higher is better."""

    k: int | None = None
    """How many documents to return; `None` returns all."""

    embed_queries: Callable[[list[str]], list[list[float]]] | None = Field(
        default=None, exclude=True, repr=False
    )
    """Embeds all queries in one call for a `HybridRetriever` with a model of its own: the model's
    `embed_documents`, where it makes no difference between queries and documents."""

    channel_timeout: float | None = 15.0
    """Seconds that each query has; `None` waits for ever."""

    strict: bool = False
    """Raise what the chain or a query raises instead of going on without it."""

    verbose: bool = True
    """Has no effect: queries are told in the results and traced as runs."""

    def __init__(
        self, *, retriever: RetrieverLike, llm_chain: Runnable[Any, Any], **kwargs: Any
    ) -> None:
        """Check the settings.

        Args:
            retriever: Who is asked with each query.
            llm_chain: From `{"question": …}` to queries.
            **kwargs: The fields of this class; `tags`, `metadata` and `name`.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        for name, given in (("retriever", retriever), ("llm_chain", llm_chain)):
            if not isinstance(given, Runnable):
                raise InvalidParameterError(name, given, "give a runnable")
        kwargs.pop("parser_key", None)  # theirs is deprecated, and does nothing
        check_settings(kwargs, known=type(self).model_fields, taken=("retriever", "llm_chain"))
        check_choice("merge", kwargs.get("merge", "rrf"), ("rrf", "max"))
        if kwargs.get("count") is not None:
            check_count("count", kwargs["count"], minimum=1)
        if kwargs.get("embed_queries") is not None and not isinstance(retriever, HybridRetriever):
            allowed = "only a HybridRetriever takes vectors of queries"
            raise InvalidParameterError("embed_queries", kwargs["embed_queries"], allowed)
        super().__init__(**{**kwargs, "retriever": retriever, "llm_chain": llm_chain})

    @classmethod
    def from_llm(
        cls,
        retriever: RetrieverLike,
        llm: BaseLanguageModel[Any] | Runnable[Any, Any],
        prompt: Any = None,
        parser_key: str | None = None,  # noqa: ARG003 - theirs is deprecated, and does nothing
        include_original: bool = True,  # noqa: FBT001, FBT002 - theirs
        *,
        count: int = 3,
        structured: bool | str = False,
        **kwargs: Any,
    ) -> Self:
        """Ask a model for the queries.

        Args:
            retriever: Who is asked with each query.
            llm: Who words them.
            prompt: A template with `{question}`, and `{count}` if wanted; ours, if not given.
            parser_key: Has no effect.
            include_original: Whether the question itself is asked too.
            count: How many queries are wanted, the question itself included.
            structured: Hold the reply to a schema, as in `MultiQueryGenerator`.
            **kwargs: Further fields of this class.

        Returns:
            The retriever.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        generator = MultiQueryGenerator(
            llm,
            prompt=prompt,
            count=count,
            structured=structured,
            on_error="raise" if kwargs.get("strict") else "fallback",
            input_key="question",
        )
        return cls(
            retriever=retriever,
            llm_chain=generator,
            include_original=include_original,
            count=count,
            **kwargs,
        )

    @override
    def asked(self) -> Sequence[RetrieverLike]:
        """Return the runnables that are asked."""
        return [self.retriever, self.llm_chain]

    @override
    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        parent_config: RunnableConfig | None = None,
    ) -> list[Document]:
        wanted, question = self._wanted(k), check_text("query", query)
        config = child_config(parent_config, run_manager, "queries")
        try:
            worded = self.llm_chain.invoke({"question": question}, config)
        except Exception as error:  # noqa: BLE001 - a chain may fail in any way
            worded = self._failed(error)
        queries = self._queries(question, worded)
        pipeline = self._pipeline(self._embedded(queries), queries, run_manager, parent_config)
        return pipeline.run(question, k=wanted).hits

    @override
    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        parent_config: RunnableConfig | None = None,
    ) -> list[Document]:
        wanted, question = self._wanted(k), check_text("query", query)
        config = child_config(parent_config, run_manager, "queries")
        try:
            worded = await self.llm_chain.ainvoke({"question": question}, config)
        except Exception as error:  # noqa: BLE001 - a chain may fail in any way
            worded = self._failed(error)
        queries = self._queries(question, worded)
        asked = await run_in_executor(None, self._embedded, queries)
        pipeline = self._pipeline(asked, queries, run_manager, parent_config)
        return (await pipeline.arun(question, k=wanted)).hits

    def _wanted(self, k: int | None) -> int:
        k = self.k if k is None else k
        return NO_LIMIT if k is None else check_count("k", k)

    def _failed(self, error: Exception) -> list[str]:
        report_degradation("expansion", "the chain failed", error=error, strict=self.strict)
        return []

    def _queries(self, query: str, worded: Any) -> list[WeightedQuery]:
        """Return what is asked: the question first, each text once, never nothing."""
        count = NO_LIMIT if self.count is None else self.count
        # A chain may end in a message, or be one of LangChain's old ones.
        worded = worded.get("text") if isinstance(worded, Mapping) else worded
        worded = str(worded.text) if isinstance(worded, BaseMessage) else worded
        if isinstance(worded, str):
            texts = parse_queries(worded, query, count=count, strict=self.strict)
        else:
            listed = worded if is_listing(worded) else ()
            texts = [text for text in listed if isinstance(text, str) and text.strip()]
        queries = distinct_queries([query, *texts])[:count]
        if not self.include_original:
            queries = queries[1:] or queries
        return [WeightedQuery(text) for text in queries]

    def _embedded(self, queries: Sequence[WeightedQuery]) -> RetrieverLike:
        """Return who is asked, with the vectors of all queries where they come in one batch."""
        if self.embed_queries is None or not isinstance(self.retriever, HybridRetriever):
            return self.retriever
        texts = [query.text for query in queries]
        return with_query_vectors(self.retriever, texts, self.embed_queries)

    def _pipeline(
        self,
        retriever: RetrieverLike,
        queries: Sequence[WeightedQuery],
        run_manager: CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun,
        config: RunnableConfig | None,
    ) -> RetrievalPipeline[Document]:
        return queries_pipeline(
            retriever,
            queries,
            lambda tag: child_config(config, run_manager, tag),
            items=QueryItems.of(
                queries, merge=self.merge, id_key=self.id_key, score_key=self.score_key
            ),
            rank_constant=self.rank_constant,
            timeout=self.channel_timeout,
            strict=self.strict,
        )
