"""BM25 as a LangChain retriever that is a document index too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from langchain_core.documents import Document
from langchain_core.indexing.base import DocumentIndex
from langchain_core.runnables import run_in_executor
from pydantic import Field, SkipValidation
from typing_extensions import override

from easyrag_core import (
    Analyzer,
    BM25Params,
    HybridIndex,
    InMemoryChunkStore,
    InvalidParameterError,
    field_texts,
)
from easyrag_core.errors import check_count
from langchain_easyrag._convert import (
    chunk_of_document,
    documents_of_hits,
    stored_documents,
    with_id,
)
from langchain_easyrag._given import documents_of_texts, given_documents
from langchain_easyrag._identity import document_ids
from langchain_easyrag._settings import check_settings
from langchain_easyrag.retrievers._bm25_settings import chosen_index, params_of
from langchain_easyrag.retrievers._refill import refilled

if TYPE_CHECKING:
    from os import PathLike

    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.indexing import DeleteResponse, UpsertResponse

    from easyrag_core import Hit

__all__ = ["BM25Retriever", "DocumentFilter", "Preprocess"]

DocumentFilter = Callable[[Document], bool]
"""Tells of a document whether it may be found."""

Preprocess = Callable[[str], Sequence[str]]
"""Turns a text into terms."""

_TAKEN = ("analyzer", "bm25_params", "docs", "field_weights", "processes", "show_progress")


class BM25Retriever(DocumentIndex):
    """Find documents by BM25, in any language, and keep the index up to date.

    Takes the arguments of langchain-community's `BM25Retriever`, so that changing the import is
    enough. Only documents that hold a term of the query are returned; their scores are exact
    after every `upsert` and `delete`. Results are copies: rank and score are under
    `metadata["easyrag"]`; a value of yours under that key is not in them, but stays in `docs`.

    Instantiate:
        ```python
        from langchain_easyrag import BM25Retriever

        retriever = BM25Retriever.from_documents(documents, k=5)
        ```

    Search:
        ```python
        retriever.invoke("what is RAG?")
        retriever.invoke("what is RAG?", k=2, filter=lambda d: d.metadata["year"] > 2020)
        ```

    Keep up to date:
        ```python
        retriever.upsert(new_documents)
        retriever.delete(["an id"])
        index(documents, record_manager, retriever, cleanup="scoped_full", ...)
        ```
    """

    k: int = 4
    """How many documents to return; a call may say otherwise."""

    filter: DocumentFilter | None = None
    """Only documents for which this is true are found; a call can narrow it further."""

    preprocess_func: Preprocess | None = None
    """Turns a text into terms; the default is an analyzer that knows all scripts."""

    vectorizer: Any = Field(default=None, repr=False)
    """The `BM25Index`; the name is langchain-community's."""

    corpus: Annotated[dict[str, Document], SkipValidation] = Field(
        default_factory=dict, repr=False, exclude=True
    )
    """The documents by id."""

    def __init__(
        self,
        *,
        docs: Iterable[Document] | None = None,
        vectorizer: Any = None,
        k: int = 4,
        preprocess_func: Preprocess | None = None,
        analyzer: Analyzer | Preprocess | None = None,
        bm25_params: BM25Params | Mapping[str, Any] | None = None,
        filter: DocumentFilter | None = None,  # noqa: A002 - the word of both frameworks
        field_weights: Mapping[str, int] | None = None,
        processes: int | None = None,
        show_progress: bool = False,
        **kwargs: Any,
    ) -> None:
        """Index the documents.

        Args:
            docs: The documents; they are kept as copies. More can come by `upsert`.
            vectorizer: A `BM25Index` that already holds the documents; anything else, such as
                one of rank_bm25, is replaced by an index of ours.
            k: How many documents to return.
            preprocess_func: Turns a text into terms.
            analyzer: The same, or an `Analyzer`. Default: `StandardAnalyzer()`.
            bm25_params: `k1` and `b`; `epsilon` is accepted and has no effect, since no weight
                is ever negative here.
            filter: Tells of a document whether it may be found.
            field_weights: Entries of the metadata that are searched beside the text, and how
                often each counts, e.g. `{"heading_path": 2}`; a list is taken as its lines.
            processes: Number of worker processes that read a large lot of documents, at most.
            show_progress: Show a bar while indexing.
            **kwargs: `tags`, `metadata` and `name` of the retriever.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        if analyzer is not None and preprocess_func is not None:
            raise InvalidParameterError("analyzer", analyzer, "preprocess_func is given as well")
        index = chosen_index(
            vectorizer,
            params=bm25_params,
            analyzer=analyzer or preprocess_func,
            field_weights=field_weights,
        )
        kwargs.update(k=k, filter=filter, preprocess_func=preprocess_func, vectorizer=index)
        check_settings(kwargs, known=type(self).model_fields, taken=_TAKEN, internal=("corpus",))
        super().__init__(**kwargs)
        documents = [] if docs is None else given_documents(docs, name="docs")
        keys = document_ids(documents)
        copies = [with_id(document, document.id) for document in documents]
        if index is not vectorizer:
            self._add(keys, copies, processes=processes, show_progress=show_progress)
        else:
            self.corpus.update(zip(keys, copies, strict=True))

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        metadatas: Iterable[dict[Any, Any]] | None = None,
        ids: Iterable[str | None] | None = None,
        bm25_params: BM25Params | Mapping[str, Any] | None = None,
        preprocess_func: Preprocess | None = None,
        **kwargs: Any,
    ) -> BM25Retriever:
        """Index texts.

        Args:
            texts: The texts.
            metadatas: One dict per text.
            ids: One id per text; `None` leaves a document without.
            bm25_params: `k1` and `b`.
            preprocess_func: Turns a text into terms.
            **kwargs: Further arguments of the constructor.

        Returns:
            The retriever.

        Raises:
            InvalidParameterError: There are more or fewer metadata or ids than texts.
        """
        documents = documents_of_texts(texts, metadatas, ids)
        return cls(
            docs=documents, bm25_params=bm25_params, preprocess_func=preprocess_func, **kwargs
        )

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        *,
        bm25_params: BM25Params | Mapping[str, Any] | None = None,
        preprocess_func: Preprocess | None = None,
        **kwargs: Any,
    ) -> BM25Retriever:
        """Index documents.

        Args:
            documents: The documents; they are kept as copies.
            bm25_params: `k1` and `b`.
            preprocess_func: Turns a text into terms.
            **kwargs: Further arguments of the constructor.

        Returns:
            The retriever.
        """
        return cls(
            docs=documents, bm25_params=bm25_params, preprocess_func=preprocess_func, **kwargs
        )

    @classmethod
    async def afrom_texts(cls, texts: Iterable[str], *args: Any, **kwargs: Any) -> BM25Retriever:
        """Index texts in a thread: the async twin of `from_texts`."""
        return await run_in_executor(None, cls.from_texts, texts, *args, **kwargs)

    @classmethod
    async def afrom_documents(cls, documents: Iterable[Document], **kwargs: Any) -> BM25Retriever:
        """Index documents in a thread: the async twin of `from_documents`."""
        return await run_in_executor(None, cls.from_documents, documents, **kwargs)

    def persist(self, path: str | PathLike[str]) -> None:
        """Save index and documents as one folder, in one step.

        Metadata are kept as JSON: tuples come back as lists, and keys that are numbers as texts.

        Args:
            path: A new or empty folder, or one that holds an earlier save.

        Raises:
            IndexFormatError: The path holds something else.
            InvalidParameterError: Metadata of a document are no JSON values.
            OSError: The disk refuses.
        """
        store = InMemoryChunkStore()
        store.put_many(chunk_of_document(document, key) for key, document in self.corpus.items())
        HybridIndex(bm25=self.vectorizer, store=store).save(path)

    @classmethod
    def from_persist_dir(
        cls,
        path: str | PathLike[str],
        *,
        preprocess_func: Preprocess | None = None,
        analyzer: Analyzer | Preprocess | None = None,
        **kwargs: Any,
    ) -> BM25Retriever:
        """Load what `persist` saved.

        Args:
            path: The folder.
            preprocess_func: What the index was built with, if that was no analyzer of ours.
            analyzer: The same.
            **kwargs: Further arguments of the constructor.

        Returns:
            The retriever.

        Raises:
            FileNotFoundError: The path does not exist.
            IndexFormatError: What is there is damaged, foreign or of another version, or was
                built with another analyzer.
        """
        index = HybridIndex.load(path, analyzer=analyzer or preprocess_func)
        corpus = stored_documents(index, index.store.ids())
        return cls(vectorizer=index.bm25, corpus=corpus, preprocess_func=preprocess_func, **kwargs)

    async def apersist(self, path: str | PathLike[str]) -> None:
        """Save in a thread: the async twin of `persist`."""
        await run_in_executor(None, self.persist, path)

    @classmethod
    async def afrom_persist_dir(cls, path: str | PathLike[str], **kwargs: Any) -> BM25Retriever:
        """Load in a thread: the async twin of `from_persist_dir`."""
        return await run_in_executor(None, cls.from_persist_dir, path, **kwargs)

    @property
    def docs(self) -> list[Document]:
        """The documents as they were given, in the order in which they came."""
        return list(self.corpus.values())

    @override
    def upsert(
        self,
        items: Sequence[Document],
        /,
        *,
        processes: int | None = None,
        show_progress: bool = False,
        **kwargs: Any,
    ) -> UpsertResponse:
        """Add documents; one that is there under the same id is replaced.

        Args:
            items: The documents. One without an id gets one that depends on its content and
                its source only.
            processes: As in the constructor.
            show_progress: Show a bar.
            **kwargs: Ignored.

        Returns:
            The ids under `succeeded`; `failed` is empty.

        Raises:
            InvalidParameterError: It is no list of documents.
        """
        items = given_documents(items, name="items")
        keys = document_ids(items)
        copies = [with_id(document, key) for document, key in zip(items, keys, strict=True)]
        self._add(keys, copies, processes=processes, show_progress=show_progress)
        return {"succeeded": list(dict.fromkeys(keys)), "failed": []}

    def _add(self, keys: list[str], copies: list[Document], **how: Any) -> None:
        texts = [document.page_content for document in copies]
        metadatas = [document.metadata for document in copies]
        fields = field_texts(metadatas, self.vectorizer.field_weights)
        self.vectorizer.add(keys, texts, fields=fields, **how)
        self.corpus.update(zip(keys, copies, strict=True))

    @override
    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> DeleteResponse:
        """Remove documents; ids that are not there are ignored.

        Args:
            ids: The ids.
            **kwargs: Ignored.

        Returns:
            What was removed.

        Raises:
            InvalidParameterError: `ids` is not a list.
        """
        if ids is None or isinstance(ids, str):
            raise InvalidParameterError("ids", ids, "give the list of ids to delete")
        present = [id_ for id_ in dict.fromkeys(ids) if id_ in self.corpus]
        self.vectorizer.remove(present)
        for id_ in present:
            self.corpus.pop(id_, None)
        return {"succeeded": present, "num_deleted": len(present), "failed": [], "num_failed": 0}

    @override
    def get(self, ids: Sequence[str], /, **kwargs: Any) -> list[Document]:
        """Return copies of documents, in the order of the ids; what is not there is left out.

        Args:
            ids: The ids.
            **kwargs: Ignored.

        Returns:
            The documents.
        """
        found = (self.corpus.get(id_) for id_ in dict.fromkeys(ids))
        return [with_id(document, document.id) for document in found if document is not None]

    @override
    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun | None = None,
        k: int | None = None,
        filter: DocumentFilter | None = None,
        params: BM25Params | Mapping[str, Any] | None = None,
    ) -> list[Document]:
        limit = check_count("k", self.k if k is None else k)
        changed = None if params is None else params_of(params)
        allowed = self._allowed(filter)

        def search(reach: int) -> list[Hit]:
            hits: list[Hit] = self.vectorizer.search(query, reach, filter=allowed, params=changed)
            return hits

        return refilled(
            search(limit), search, lambda hits: documents_of_hits(hits, self.corpus), limit
        )

    @override
    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        return await run_in_executor(None, self._get_relevant_documents, query, **kwargs)

    def _allowed(self, narrower: DocumentFilter | None) -> Callable[[str], bool] | None:
        tests = [test for test in (self.filter, narrower) if test is not None]
        corpus = self.corpus

        def allowed(id_: str) -> bool:
            document = corpus.get(id_)
            return document is not None and all(test(document) for test in tests)

        return allowed if tests else None
