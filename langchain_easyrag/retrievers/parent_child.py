"""Small chunks are found, the large ones that hold them are read."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.runnables import run_in_executor
from pydantic import Field, InstanceOf
from typing_extensions import override

from easyrag_core import InvalidParameterError
from easyrag_core.errors import check_count, check_texts
from langchain_easyrag._convert import (
    documents_of_chunks,
    facts_of,
    stored_documents,
    with_facts,
)
from langchain_easyrag._given import given_documents
from langchain_easyrag._identity import document_ids
from langchain_easyrag._parents import Families, ParentStore
from langchain_easyrag.retrievers._store_writes import StoreWrite
from langchain_easyrag.retrievers.hybrid import HybridRetriever
from langchain_easyrag.text_splitters import ParentChildTextSplitter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableConfig
    from langchain_core.vectorstores import VectorStore

    from easyrag_core import Chunk

__all__ = ["ParentChildRetriever"]

_logger = logging.getLogger(__name__)

R = TypeVar("R")

# So many children for each parent wanted: several may share one.
_CHILDREN = 5
_DEEPER = 4


class ParentChildRetriever(HybridRetriever):
    """Search small chunks by words and by meaning, and return the large ones that hold them.

    Documents are added whole, and cut here. Children are indexed as by `HybridRetriever`; a
    parent comes once, at its best child's place and with its score; the children that were hit,
    with their places, are under `metadata["easyrag"]["children"]`; a value of yours under
    `"easyrag"` is not in results. When too few parents are left, the search goes deeper.

    Documents are kept up to date by their ids: adding one again replaces it with all its
    chunks, and deleting it deletes them.

    Instantiate:
        ```python
        from langchain_easyrag import ParentChildRetriever

        retriever = ParentChildRetriever.from_documents(documents, embeddings, k=4)
        ```

    Search:
        ```python
        retriever.invoke("what is RAG?", k=2)
        ```

    Keep up to date:
        ```python
        retriever.add_documents(new_and_changed_documents)
        retriever.delete(["a document's id"])
        retriever.persist("index")
        ```
    """

    splitter: InstanceOf[ParentChildTextSplitter] = Field(default_factory=ParentChildTextSplitter)
    """Cuts documents into parents and children; a store that it has is not used."""

    parents: Any = None
    """Where the parents are kept, instead of in the index: a `ChunkStore`, or a
    `BaseStore[str, Document]` such as `ChunkDocstore`."""

    k: int = 4
    """How many documents to return."""

    child_k: int | None = None
    """How many children to look at. Default: five for each document wanted, and more as long as
    there are too few."""

    def __init__(self, **kwargs: Any) -> None:
        """Check the settings.

        Args:
            **kwargs: The fields of this class, and what `HybridRetriever` takes. With
                `weights=(0, 1)` the words have no say, with `(1, 0)` the vectors.

        Raises:
            InvalidParameterError: A setting is out of range.
        """
        super().__init__(**kwargs)
        if self.parents is not None:
            ParentStore(self.parents)

    @property
    def _parent_store(self) -> ParentStore:
        return ParentStore(self.index if self.parents is None else self.parents)

    @override
    def add_documents(
        self,
        documents: Iterable[Document],
        *,
        add_to_vector_store: bool = True,
        show_progress: bool = False,
    ) -> list[str]:
        """Cut documents and index them; one that is there under the same id is replaced.

        Only chunks whose text is new are embedded. A document without an id gets one that
        depends on its content and its source: give ids to documents that change.

        Args:
            documents: Whole documents; they stay as they are.
            add_to_vector_store: Add the children to `vector_store` too.
            show_progress: Show a bar while embedding.

        Returns:
            The ids of the documents.

        Raises:
            InvalidParameterError: It is no list of documents.
        """
        plan = self._plan(documents)
        rows = self._vector_side.rows(plan.chunks, show_progress=show_progress)
        write = partial(self._write, plan, rows)
        store = self.vector_store if add_to_vector_store else None
        if store is None:
            return write()
        try:
            plan.skip(store.get_by_ids(plan.names) if plan.names else ())
        except NotImplementedError:
            _logger.debug("%s gives no documents by id: all are embedded.", store)
        return self._both(store, write, plan).run()

    @override
    async def aadd_documents(
        self, documents: Iterable[Document], *, add_to_vector_store: bool = True
    ) -> list[str]:
        """Cut documents and index them: the async twin of `add_documents`."""
        plan = await run_in_executor(None, self._plan, documents)
        rows = await self._vector_side.arows(plan.chunks)
        write = partial(self._write, plan, rows)
        store = self.vector_store if add_to_vector_store else None
        if store is None:
            return await run_in_executor(None, write)
        try:
            plan.skip(await store.aget_by_ids(plan.names) if plan.names else ())
        except NotImplementedError:
            _logger.debug("%s gives no documents by id: all are embedded.", store)
        return await self._both(store, write, plan).arun()

    def _both(self, store: VectorStore, write: Callable[[], R], plan: _Plan) -> StoreWrite[R]:
        """Plan a write into the vector store and the index."""
        new = dict(zip(plan.names, plan.children, strict=True))
        return StoreWrite(store, self.index, new, plan.gone, write, _embedded)

    def _plan(self, documents: Iterable[Document]) -> _Plan:
        """Cut documents and see what has gone; of an id that comes twice the last counts."""
        documents = given_documents(documents)
        chunk = self.splitter.chunker.chunk
        families = {
            id_: chunk(document.page_content, id_, metadata=document.metadata)
            for id_, document in zip(document_ids(documents), documents, strict=True)
        }
        chunks = list(chain.from_iterable(families.values()))
        kept = {chunk.id for chunk in chunks}
        children = (chunk for chunk in chunks if chunk.kind != "parent")
        return _Plan(
            families=families,
            chunks=chunks,
            children=_embedded(children),
            gone=[id_ for id_ in self._children_here(families) if id_ not in kept],
        )

    def _children_here(self, document_ids: Iterable[str]) -> list[str]:
        here = chain.from_iterable(map(self.index.chunks_of, document_ids))
        return [id_ for id_ in here if id_ in self.index.bm25]

    def _write(self, plan: _Plan, rows: Sequence[Any]) -> list[str]:
        """Replace documents; parents come before the children that lead to them, and go after."""
        store = None if self.parents is None else self._parent_store
        vectors = dict(zip((chunk.id for chunk in plan.chunks), rows, strict=True))
        for document_id, family in plan.families.items():
            apart = [c for c in family if c.kind == "parent"] if store else []
            before = self._parents_here([document_id]) if store else []
            if store:
                store.write(apart)
            kept = {parent.id for parent in apart}
            chunks = [chunk for chunk in family if chunk.id not in kept]
            self.index.update_document(document_id, chunks, [vectors[c.id] for c in chunks])
            if store:
                store.delete([id_ for id_ in before if id_ not in kept])
        return list(plan.families)

    def _parents_here(self, document_ids: Iterable[str]) -> list[str]:
        """Return the parents of documents, as the index knows them by their children."""
        children = self._children_here(document_ids)
        parents = self.index.store.parents_of(children).values()
        return list(dict.fromkeys(parent for parent in parents if parent is not None))

    @override
    def delete(self, ids: Iterable[str]) -> int:
        """Remove documents with all their chunks, in the stores too; unknown ids are ignored.

        Args:
            ids: The ids of the documents.

        Returns:
            How many documents were removed.

        Raises:
            InvalidParameterError: `ids` is no list of texts.
        """
        here, children = self._here(ids)
        remove = partial(self._remove, here)
        if self.vector_store is None:
            return remove()
        return StoreWrite(self.vector_store, self.index, {}, children, remove, _embedded).run()

    @override
    async def adelete(self, ids: Iterable[str]) -> int:
        """Remove documents: the async twin of `delete`."""
        here, children = await run_in_executor(None, self._here, ids)
        remove = partial(self._remove, here)
        if self.vector_store is None:
            return await run_in_executor(None, remove)
        write = StoreWrite(self.vector_store, self.index, {}, children, remove, _embedded)
        return await write.arun()

    def _here(self, ids: Iterable[str]) -> tuple[list[str], list[str]]:
        """Return those documents that are here, and all their children."""
        if isinstance(ids, str):
            raise InvalidParameterError("ids", ids, "give a list of ids")
        unique = dict.fromkeys(check_texts("ids", ids))
        here = [id_ for id_ in unique if self.index.chunks_of(id_)]
        return here, self._children_here(here)

    def _remove(self, document_ids: Sequence[str]) -> int:
        parents = self._parents_here(document_ids)
        for document_id in document_ids:
            self.index.delete_document(document_id)
        if self.parents is not None:
            self._parent_store.delete(parents)
        return len(document_ids)

    @override
    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        child_k: int | None = None,
        parent_config: RunnableConfig | None = None,
    ) -> list[Document]:
        wanted, reach, fixed = self._sizes(k, child_k)
        while True:
            found = super()._get_relevant_documents(
                query, run_manager=run_manager, k=reach, parent_config=parent_config
            )
            families = self._hit(found)
            documents = families.expanded(families.read(), wanted)
            if fixed or len(documents) >= wanted or len(found) < reach:
                return documents
            reach *= _DEEPER

    @override
    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        child_k: int | None = None,
        parent_config: RunnableConfig | None = None,
    ) -> list[Document]:
        wanted, reach, fixed = self._sizes(k, child_k)
        while True:
            found = await super()._aget_relevant_documents(
                query, run_manager=run_manager, k=reach, parent_config=parent_config
            )
            families = await run_in_executor(None, self._hit, found)
            documents = families.expanded(await families.aread(), wanted)
            if fixed or len(documents) >= wanted or len(found) < reach:
                return documents
            reach *= _DEEPER

    def _sizes(self, k: int | None, child_k: int | None) -> tuple[int, int, bool]:
        """Return how many parents and children are wanted, and whether the latter is a limit."""
        wanted = check_count("k", self.k if k is None else k)
        children = self.child_k if child_k is None else child_k
        if children is None:
            return wanted, _CHILDREN * wanted, False
        return wanted, check_count("child_k", children), True

    def _hit(self, found: Sequence[Document]) -> Families:
        """Gather what was found; what the index knows of a child is newer than a vector store."""
        here = stored_documents(self.index, [document.id for document in found if document.id])
        current = [
            with_facts(here[document.id], facts_of(document)) if document.id in here else document
            for document in found
        ]
        return Families(
            current, store=self._parent_store, parent_key="parent_id", strict=self.strict
        )


def _embedded(chunks: Iterable[Chunk]) -> list[Document]:
    """Return children as a vector store holds them."""
    return documents_of_chunks(chunks, {}, embedded=True)


@dataclass(slots=True)
class _Plan:
    """What adding documents comes to.

    Attributes:
        families: Parents and children by document.
        chunks: All of them.
        children: The children that a vector store has to embed.
        gone: Ids of children that the documents no longer have.
    """

    families: dict[str, list[Chunk]]
    chunks: list[Chunk]
    children: list[Document]
    gone: list[str]

    @property
    def names(self) -> list[str]:
        """The ids of the children."""
        return [child.id for child in self.children if child.id is not None]

    def skip(self, there: Iterable[Document]) -> None:
        """Leave out the children whose text is there already."""
        known = {document.id: document.page_content for document in there}
        self.children = [c for c in self.children if known.get(c.id) != c.page_content]
