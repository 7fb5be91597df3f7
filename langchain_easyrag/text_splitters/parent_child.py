"""Two sizes at once: small chunks to find, large ones to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from easyrag_core import DocumentChunker
from easyrag_core.chunking.parent_child import ParentChildChunker
from langchain_easyrag._convert import documents_of_chunks
from langchain_easyrag._parents import ParentStore
from langchain_easyrag.text_splitters._placed import PlacedTextSplitter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from langchain_core.documents import Document
    from langchain_core.stores import BaseStore

    from easyrag_core import ChunkStore, HybridIndex
    from easyrag_core.chunking.parent_child import Chunker

__all__ = ["ParentChildTextSplitter"]


class ParentChildTextSplitter(PlacedTextSplitter):
    """Split documents into large chunks, and each of those into small ones.

    Parents and children come one after the other: a parent lists its `child_ids`, a child knows
    its `parent_id`, and the places of both are those in the source. A chunk that is small
    enough to be both comes once, with neither. With a `store`, the parents go there, and only
    the children come back, ready for a vector store; `ParentExpansionCompressor` finds the
    parents again. `ParentChildRetriever` does all of it.

    Setup:
        Install `easyrag-core[langchain]`.

    Instantiate:
        ```python
        from langchain_easyrag import (
            ChunkDocstore,
            MarkdownSectionTextSplitter,
            ParentChildTextSplitter,
        )

        docstore = ChunkDocstore()
        splitter = ParentChildTextSplitter(
            chunk_size=400,
            parent_splitter=MarkdownSectionTextSplitter(2000),
            store=docstore,
        )
        ```

    Use:
        ```python
        vector_store.add_documents(splitter.split_documents(documents))
        ```
    """

    def __init__(
        self,
        chunk_size: int = 400,
        chunk_overlap: int | None = None,
        *,
        parent_chunk_size: int = 2000,
        parent_splitter: PlacedTextSplitter | Chunker | None = None,
        child_splitter: PlacedTextSplitter | Chunker | None = None,
        store: ChunkStore | BaseStore[str, Document] | HybridIndex | None = None,
        prefix_headings: bool = True,
        length_function: Callable[[str], int] = len,
        add_start_index: bool = True,
    ) -> None:
        """Check the settings.

        Args:
            chunk_size: Upper limit of a child, in units of `length_function`; above 0.
            chunk_overlap: Upper limit of what two children share, in the same unit, below
                `chunk_size`. Default: an eighth of the size, at most 100.
            parent_chunk_size: Upper limit of a parent, at least `chunk_size`.
            parent_splitter: Makes the parents, instead of one for prose of the size above: a
                splitter of this package, or a chunker of the core.
            child_splitter: Makes the children, instead of one for prose of the sizes above.
            store: Where the parents go. Default: they are returned with their children.
            prefix_headings: Whether `page_content` says what a chunk belongs to, where the
                splitters above know that; else it is a slice of the source.
            length_function: Measures a text; it may be slow.
            add_start_index: Accepted for code that sets it on any splitter; the place is always
                given.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        parent = _chunker_of(parent_splitter)
        child = _chunker_of(child_splitter)
        if parent is None:
            parent = DocumentChunker(parent_chunk_size, 0, length_function=length_function)
        if child is None:
            child = DocumentChunker(chunk_size, chunk_overlap, length_function=length_function)
        self._chunker = ParentChildChunker(parent, child)
        self._store = None if store is None else ParentStore(store)
        self._prefix_headings = bool(prefix_headings)
        super().__init__(
            chunk_size=getattr(child, "chunk_size", chunk_size),
            chunk_overlap=getattr(child, "chunk_overlap", 0),
            length_function=getattr(child, "length_function", length_function),
            keep_separator=True,
            add_start_index=add_start_index,
            strip_whitespace=True,
        )

    @property
    @override
    def chunker(self) -> ParentChildChunker:
        """The core's chunker, with these settings."""
        return self._chunker

    @override
    def split_text(self, text: str) -> list[str]:
        """Split one text; nothing is stored.

        Args:
            text: The text.

        Returns:
            The `page_content` of parents and children; of the children alone if there is a
            store for the parents.

        Raises:
            InvalidParameterError: `text` is not a string, or a length function fails.
        """
        chunks = self._chunker.iter_chunks(text, "")
        if self._store is not None:
            chunks = (chunk for chunk in chunks if chunk.kind != "parent")
        if self._prefix_headings:
            return [chunk.embedding_text for chunk in chunks]
        return [chunk.text for chunk in chunks]

    @override
    def pieces_of(self, document: Document, document_id: str) -> Iterable[Document]:
        """Split one document; see `split_documents`."""
        text, metadata = document.page_content, document.metadata
        chunks = self._chunker.chunk(text, document_id, metadata=metadata)
        if self._store is not None:
            self._store.write([chunk for chunk in chunks if chunk.kind == "parent"])
            chunks = [chunk for chunk in chunks if chunk.kind != "parent"]
        return documents_of_chunks(chunks, {}, embedded=self._prefix_headings)


def _chunker_of(splitter: Any) -> Any:
    return splitter.chunker if isinstance(splitter, PlacedTextSplitter) else splitter
