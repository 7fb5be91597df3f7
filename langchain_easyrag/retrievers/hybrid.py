"""Words and meaning together: BM25 and vectors over the same documents."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from langchain_core.embeddings import Embeddings  # noqa: TC002 - pydantic reads it
from langchain_core.retrievers import RetrieverLike  # noqa: TC002 - pydantic reads it
from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import VectorStore  # noqa: TC002 - pydantic reads it
from pydantic import Field, InstanceOf
from typing_extensions import override

from easyrag_core import HybridConfig, HybridIndex, InvalidParameterError
from easyrag_core.errors import check_count, check_text, check_texts
from langchain_easyrag._convert import (
    chunks_of_documents,
    documents_of_stored,
)
from langchain_easyrag._given import documents_of_texts
from langchain_easyrag._settings import check_settings
from langchain_easyrag.retrievers._children import ParentRetriever, child_config
from langchain_easyrag.retrievers._hybrid_search import HybridSearch
from langchain_easyrag.retrievers._side_settings import CONFIG_NAMES, index_and_settings
from langchain_easyrag.retrievers._store_writes import StoreWrite
from langchain_easyrag.retrievers._vector_side import VectorSide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from os import PathLike

    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableConfig

    from easyrag_core import Analyzer, Chunk, ChunkStore

__all__ = ["HybridRetriever"]

_logger = logging.getLogger(__name__)

R = TypeVar("R")


class HybridRetriever(ParentRetriever):
    """Search by words and by meaning at once, and fuse both rankings.

    The words are found by an index of our own. The meaning is found by the same index with an
    embedding model, by any vector store, or by any retriever. Both sides run in parallel; one
    that fails or is late is left out with a warning. Without a vector side it is BM25 alone,
    with a warning. Results are copies: fused score, and rank and score per side, are under
    `metadata["easyrag"]`; a value of yours under that key is not in them.

    Instantiate:
        ```python
        from langchain_easyrag import HybridRetriever

        own = HybridRetriever.from_documents(documents, embeddings)
        ```

    Search:
        ```python
        own.invoke("what is RAG?", k=5)
        ```

    Keep up to date:
        ```python
        own.add_documents(new_documents)
        own.delete(["an id"])
        own.persist("index")
        ```
    """

    index: HybridIndex = Field(repr=False)
    """Words, content and, with `embeddings`, vectors."""

    embeddings: Embeddings | None = None
    """Embeds queries and documents for the index."""

    vector_store: VectorStore | None = None
    """The vector side, instead of the index."""

    search_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Goes to the vector store with every search."""

    vector_retriever: RetrieverLike | None = None
    """The vector side, instead of the index; its documents are its own affair."""

    k: int = 10
    """How many documents to return."""

    settings: InstanceOf[HybridConfig] = Field(default_factory=HybridConfig)
    """How both sides are asked and fused; the index's own where nothing else is said."""

    strict: bool = False
    """Raise a failing side's own error instead of going on without it."""

    def __init__(self, *, index: HybridIndex | None = None, **kwargs: Any) -> None:
        """Check the settings.

        Args:
            index: Where the documents are. Default: a new, empty one.
            **kwargs: The fields of this class, and those of `HybridConfig` to change single
                ones: `bm25_k`, `vector_k`, `fusion`, `rank_constant`, `weights` (by side, or
                two in this order), `channel_timeout`; `tags`, `metadata` and `name`.

        Raises:
            InvalidParameterError: A setting is out of range, or there is more than one vector
                side.
        """
        kwargs.update(index_and_settings(kwargs, index))
        check_settings(kwargs, known=type(self).model_fields, taken=CONFIG_NAMES)
        super().__init__(**kwargs)
        if self.vector_store is not None and self.vector_retriever is not None:
            raise InvalidParameterError(
                "vector_retriever", self.vector_retriever, "vector_store is given as well"
            )
        if not self._vector_side.exists:
            _logger.warning("No embeddings and no vector store: searching by BM25 alone.")

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        embeddings: Embeddings | None = None,
        *,
        add_to_vector_store: bool = True,
        show_progress: bool = False,
        **kwargs: Any,
    ) -> Self:
        """Index documents.

        Args:
            documents: The documents; they stay as they are.
            embeddings: Embeds them, and the queries.
            add_to_vector_store: Add them to `vector_store` too; say `False` if they are there.
            show_progress: Show a bar.
            **kwargs: Further arguments of the constructor.

        Returns:
            The retriever.
        """
        retriever = cls(embeddings=embeddings, **kwargs)
        retriever.add_documents(
            documents, add_to_vector_store=add_to_vector_store, show_progress=show_progress
        )
        return retriever

    @classmethod
    async def afrom_documents(
        cls,
        documents: Iterable[Document],
        embeddings: Embeddings | None = None,
        *,
        add_to_vector_store: bool = True,
        **kwargs: Any,
    ) -> Self:
        """Index documents: the async twin of `from_documents`."""
        retriever = cls(embeddings=embeddings, **kwargs)
        await retriever.aadd_documents(documents, add_to_vector_store=add_to_vector_store)
        return retriever

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        embeddings: Embeddings | None = None,
        metadatas: Iterable[dict[Any, Any]] | None = None,
        *,
        ids: Iterable[str | None] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Index texts.

        Args:
            texts: The texts.
            embeddings: Embeds them, and the queries.
            metadatas: One dict per text.
            ids: One id per text.
            **kwargs: Further arguments of `from_documents`.

        Returns:
            The retriever.

        Raises:
            InvalidParameterError: There are more or fewer metadata or ids than texts.
        """
        return cls.from_documents(documents_of_texts(texts, metadatas, ids), embeddings, **kwargs)

    @property
    def _vector_side(self) -> VectorSide:
        return VectorSide(
            index=self.index,
            model=self.embeddings,
            store=self.vector_store,
            search_kwargs=self.search_kwargs,
            retriever=self.vector_retriever,
        )

    @override
    def asked(self) -> Sequence[RetrieverLike]:
        """Return the runnables that are asked."""
        return [] if self.vector_retriever is None else [self.vector_retriever]

    def add_documents(
        self,
        documents: Iterable[Document],
        *,
        add_to_vector_store: bool = True,
        show_progress: bool = False,
    ) -> list[str]:
        """Add documents; one that is there under the same id is replaced.

        Where the vector store or the index fails, both are left as they were, as far as the
        store allows.

        Args:
            documents: The documents; they stay as they are. One without an id gets one that
                depends on its content and its source only.
            add_to_vector_store: Add them to `vector_store` too.
            show_progress: Show a bar while embedding.

        Returns:
            Their ids.
        """
        chunks = chunks_of_documents(documents)
        rows = self._vector_side.rows(chunks, show_progress=show_progress)
        add = partial(self.index.add, chunks, rows)
        if self.vector_store is not None and add_to_vector_store:
            self._stored(self.vector_store, add, new=chunks).run()
        else:
            add()
        return [chunk.id for chunk in chunks]

    async def aadd_documents(
        self, documents: Iterable[Document], *, add_to_vector_store: bool = True
    ) -> list[str]:
        """Add documents: the async twin of `add_documents`, without a progress bar."""
        chunks = await run_in_executor(None, chunks_of_documents, documents)
        rows = await self._vector_side.arows(chunks)
        add = partial(self.index.add, chunks, rows)
        if self.vector_store is not None and add_to_vector_store:
            await self._stored(self.vector_store, add, new=chunks).arun()
        else:
            await run_in_executor(None, add)
        return [chunk.id for chunk in chunks]

    def _stored(
        self,
        store: VectorStore,
        write: Callable[[], R],
        *,
        new: Sequence[Chunk] = (),
        gone: Sequence[str] = (),
    ) -> StoreWrite[R]:
        """Plan a write into the vector store and the index; of an id that comes twice the last."""
        documents = zip((chunk.id for chunk in new), documents_of_stored(new), strict=True)
        return StoreWrite(store, self.index, dict(documents), gone, write, documents_of_stored)

    def delete(self, ids: Iterable[str]) -> int:
        """Remove documents, in the vector store too; ids that are not there are ignored.

        Args:
            ids: The ids.

        Returns:
            How many were removed.

        Raises:
            InvalidParameterError: `ids` is no list of texts.
        """
        gone = check_texts("ids", ids)
        remove = partial(self.index.remove, gone)
        if self.vector_store is None:
            return remove()
        return self._stored(self.vector_store, remove, gone=gone).run()

    async def adelete(self, ids: Iterable[str]) -> int:
        """Remove documents: the async twin of `delete`."""
        gone = check_texts("ids", ids)
        remove = partial(self.index.remove, gone)
        if self.vector_store is None:
            return await run_in_executor(None, remove)
        return await self._stored(self.vector_store, remove, gone=gone).arun()

    @override
    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        parent_config: RunnableConfig | None = None,
    ) -> list[Document]:
        search = self._search(query, k, child_config(parent_config, run_manager, "vector"))
        return search.documents() if search.asks else []

    @override
    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        parent_config: RunnableConfig | None = None,
    ) -> list[Document]:
        search = self._search(query, k, child_config(parent_config, run_manager, "vector"))
        return await search.adocuments() if search.asks else []

    def _search(self, query: str, k: int | None, config: RunnableConfig) -> HybridSearch:
        return HybridSearch(
            check_text("query", query).strip(),
            check_count("k", self.k if k is None else k),
            index=self.index,
            side=self._vector_side,
            settings=self.settings,
            strict=self.strict,
            config=config,
        )

    def persist(self, path: str | PathLike[str]) -> None:
        """Save the index as one folder, in one step; a vector store keeps its own.

        Metadata are kept as JSON: tuples come back as lists, and keys that are numbers as texts.

        Args:
            path: A new or empty folder, or one that holds an earlier save.

        Raises:
            IndexFormatError: The path holds something else.
            InvalidParameterError: Metadata of a document are no JSON values.
            OSError: The disk refuses.
        """
        self.index.save(path)

    @classmethod
    def from_persist_dir(
        cls,
        path: str | PathLike[str],
        embeddings: Embeddings | None = None,
        *,
        store: ChunkStore | None = None,
        analyzer: Analyzer | Callable[[str], Sequence[str]] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Load what `persist` saved.

        Args:
            path: The folder.
            embeddings: The model that the documents were embedded with.
            store: The content, if the index was saved without.
            analyzer: What the index was built with, if that was no analyzer of ours.
            **kwargs: Further arguments of the constructor.

        Returns:
            The retriever.

        Raises:
            FileNotFoundError: The path does not exist.
            IndexFormatError: What is there is damaged, foreign or of another version.
        """
        index = HybridIndex.load(path, store=store, analyzer=analyzer)
        return cls(index=index, embeddings=embeddings, **kwargs)
