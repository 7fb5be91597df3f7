"""Several retrievers asked at once, their rankings fused into one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.retrievers import RetrieverLike  # noqa: TC002 - pydantic reads it
from pydantic import Field
from typing_extensions import override

from easyrag_core import InvalidParameterError, RetrievalPipeline
from easyrag_core.errors import check_count
from easyrag_core.pipeline import NO_LIMIT
from langchain_easyrag._document_items import DocumentItems
from langchain_easyrag._fusing import fuse_documents, with_failed
from langchain_easyrag._given import is_listing
from langchain_easyrag._settings import check_settings
from langchain_easyrag.retrievers._channels import child_channels
from langchain_easyrag.retrievers._children import ParentRetriever, child_config, listed_children

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableConfig

__all__ = ["FusionRetriever", "fuse_documents"]


class FusionRetriever(ParentRetriever):
    """Ask several retrievers at once and fuse their rankings.

    Takes the arguments of LangChain's `EnsembleRetriever`. The retrievers run in parallel, in
    threads or as tasks; each gets the caller's whole config and a child run. One that fails or
    is late is left out with a warning. Each retriever has one vote per document; documents are
    told apart by `id_key` if given, else by their id, else by content and source. Results are
    copies: fused score, and rank and score per retriever, are under `metadata["easyrag"]`; a
    value of yours under that key is not in them.

    Instantiate:
        ```python
        from langchain_easyrag import FusionRetriever

        retriever = FusionRetriever(retrievers=[bm25, vectors.as_retriever()], weights=[1, 2], k=5)
        ```

    Search:
        ```python
        retriever.invoke("what is RAG?", config={"tags": ["web"]}, k=3)
        ```
    """

    retrievers: list[RetrieverLike]
    """Who is asked: retrievers, or any runnables from a query to documents."""

    weights: list[float] | None = None
    """How much each retriever's vote counts; 1 each if not given."""

    rank_constant: float = 60
    """The larger, the less the first ranks stand out."""

    id_key: str | None = None
    """Documents with the same metadata value under this key are taken for one."""

    score_key: str | None = None
    """Where retrievers that are not ours put their scores, higher is better."""

    fusion: str = "rrf"
    """`"rrf"` fuses ranks, `"score"` adds scores that were brought to [0, 1] per retriever."""

    k: int | None = Field(default=None)
    """How many documents to return; `None` returns all."""

    channel_timeout: float | None = 15.0
    """Seconds that each retriever has; `None` waits for ever."""

    strict: bool = False
    """Raise a failing retriever's own error instead of going on without it."""

    def __init__(
        self,
        *,
        retrievers: Sequence[RetrieverLike],
        weights: Sequence[float] | None = None,
        c: float | None = None,
        **kwargs: Any,
    ) -> None:
        """Check the settings.

        Args:
            retrievers: Who is asked, at least one.
            weights: One finite number >= 0 per retriever, not all of them 0.
            c: `rank_constant` by the name that `EnsembleRetriever` gives it.
            **kwargs: The fields of this class; `tags`, `metadata` and `name`.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        if c is not None:
            if "rank_constant" in kwargs:
                raise InvalidParameterError("c", c, "rank_constant is given as well")
            kwargs["rank_constant"] = c
        if not is_listing(retrievers):
            raise InvalidParameterError("retrievers", retrievers, "give a list of at least one")
        children = listed_children(retrievers)["retrievers"]
        # An empty list of weights means none, as it does for EnsembleRetriever.
        votes = list(weights) if is_listing(weights) else weights
        fields = {**kwargs, "retrievers": children, "weights": None if votes == [] else votes}
        check_settings(fields, known=type(self).model_fields, taken=("c",), channels=len(children))
        super().__init__(**fields)

    @property
    def c(self) -> float:
        """The rank constant by the name that `EnsembleRetriever` gives it."""
        return self.rank_constant

    @override
    def asked(self) -> Sequence[RetrieverLike]:
        """Return the runnables that are asked."""
        return self.retrievers

    @override
    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        parent_config: RunnableConfig | None = None,
    ) -> list[Document]:
        wanted = self._wanted(k)
        result = self._pipeline(run_manager, parent_config).run(query, k=wanted)
        return with_failed(result.hits, result.errors)

    @override
    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        parent_config: RunnableConfig | None = None,
    ) -> list[Document]:
        wanted = self._wanted(k)
        result = await self._pipeline(run_manager, parent_config).arun(query, k=wanted)
        return with_failed(result.hits, result.errors)

    def _wanted(self, k: int | None) -> int:
        k = self.k if k is None else k
        return NO_LIMIT if k is None else check_count("k", k)

    def _pipeline(
        self,
        run_manager: CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun,
        config: RunnableConfig | None,
    ) -> RetrievalPipeline[Document]:
        channels = child_channels(
            self.retrievers,
            lambda tag: child_config(config, run_manager, tag),
            weights=self.weights,
            timeouts=[self.channel_timeout] * len(self.retrievers),
        )
        return RetrievalPipeline(
            channels,
            fusion=self.fusion,
            rank_constant=self.rank_constant,
            items=DocumentItems(id_key=self.id_key, score_key=self.score_key),
            strict=self.strict,
        )
