"""Any retriever's results, made diverse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.retrievers import RetrieverLike  # noqa: TC002 - pydantic reads it
from typing_extensions import override

from easyrag_core.errors import InvalidParameterError, check_count, check_text
from langchain_easyrag._given import as_documents
from langchain_easyrag._settings import check_lambda, check_settings
from langchain_easyrag.document_compressors import MMRCompressor
from langchain_easyrag.retrievers._by_vector import aby_vector, by_vector
from langchain_easyrag.retrievers._children import (
    ParentRetriever,
    child_config,
    request_size,
    vector_sources,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableConfig

__all__ = ["MMRRetriever"]


class MMRRetriever(ParentRetriever):
    """Ask a retriever for many documents and keep the relevant and different ones.

    The retriever is asked for `fetch_k` documents if it takes a `k` per call; it gets the
    caller's whole config and a child run. Vectors are looked up where the retriever has its
    own: in its vector store, in its index, or in those of its children.

    Instantiate:
        ```python
        from langchain_easyrag import MMRRetriever

        retriever = MMRRetriever(retriever=hybrid, k=5, fetch_k=30, lambda_mult=0.7)
        ```

    Search:
        ```python
        retriever.invoke("what is RAG?", k=3, lambda_mult=0.5)
        ```
    """

    retriever: RetrieverLike
    """Who is asked: a retriever, or any runnable from a query to documents."""

    k: int = 4
    """How many documents to return."""

    fetch_k: int = 20
    """How many candidates to choose from."""

    lambda_mult: float = 0.7
    """From 0 (difference only) to 1 (relevance only)."""

    compressor: MMRCompressor | None = None
    """What picks; `k` and `lambda_mult` of this retriever come before its own."""

    def __init__(self, **kwargs: Any) -> None:
        """Check the settings, and see where the retriever's vectors are.

        Args:
            **kwargs: The fields of this class and of `MMRCompressor`; `tags`, `metadata` and
                `name`.

        Raises:
            InvalidParameterError: A setting is out of range.
        """
        shared = {"k", "lambda_mult"}
        names = MMRCompressor.model_fields.keys() - shared
        options = {name: kwargs.pop(name) for name in names & kwargs.keys()}
        if options and kwargs.get("compressor") is not None:
            name, value = next(iter(options.items()))
            raise InvalidParameterError(name, value, "a compressor is given as well")
        check_settings(kwargs, known=type(self).model_fields, taken=names)
        super().__init__(**kwargs)
        if self.compressor is None:
            self.compressor = MMRCompressor(**{**vector_sources(self.retriever), **options})

    @override
    def asked(self) -> Sequence[RetrieverLike]:
        """Return the runnables that are asked."""
        return [self.retriever]

    @override
    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        lambda_mult: float | None = None,
        parent_config: RunnableConfig | None = None,
    ) -> list[Document]:
        compressor = self._compressor(k, lambda_mult)
        size = self._fetch(compressor.k)
        config = child_config(parent_config, run_manager)
        child = by_vector(self.retriever, check_text("query", query))
        found = child.invoke(query, config, **request_size(self.retriever, size))
        return compressor.compress_documents(as_documents(found)[:size], query)

    @override
    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        lambda_mult: float | None = None,
        parent_config: RunnableConfig | None = None,
    ) -> list[Document]:
        compressor = self._compressor(k, lambda_mult)
        size = self._fetch(compressor.k)
        config = child_config(parent_config, run_manager)
        child = await aby_vector(self.retriever, check_text("query", query))
        found = await child.ainvoke(query, config, **request_size(self.retriever, size))
        return await compressor.acompress_documents(as_documents(found)[:size], query)

    def _fetch(self, k: int) -> int:
        return max(self.fetch_k, k)

    def _compressor(self, k: int | None, lambda_mult: float | None) -> MMRCompressor:
        """Return the compressor with this call's settings; its cache is shared."""
        settings = {
            "k": check_count("k", self.k if k is None else k),
            "lambda_mult": self.lambda_mult if lambda_mult is None else lambda_mult,
        }
        check_lambda(settings["lambda_mult"])
        compressor = self.compressor or MMRCompressor()
        return compressor.model_copy(update=settings)
