"""What all our splitters share: one way from documents to chunks, sync and async."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.runnables import run_in_executor
from langchain_text_splitters import TextSplitter
from typing_extensions import override

from easyrag_core.bulk import BULK_CHARACTERS, collection_paused
from langchain_easyrag._given import documents_of_texts, given_documents
from langchain_easyrag._identity import document_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_core.documents import Document

    from easyrag_core.chunking.parent_child import Chunker

__all__ = ["PlacedTextSplitter"]


class PlacedTextSplitter(TextSplitter):
    """A splitter whose chunks have a place, an id, and the id of their document."""

    @property
    def chunker(self) -> Chunker:
        """The core's chunker, with this splitter's settings."""
        raise NotImplementedError

    def pieces_of(self, document: Document, document_id: str) -> Iterable[Document]:
        """Split one document.

        Args:
            document: The document; it stays as it is.
            document_id: Its id, as the chunks know it.

        Returns:
            The chunks, in order.
        """
        raise NotImplementedError

    @override
    def create_documents(
        self, texts: Iterable[str], metadatas: Iterable[dict[Any, Any]] | None = None
    ) -> list[Document]:
        """Split texts into documents.

        Args:
            texts: The texts.
            metadatas: One dict per text; each of its chunks gets a shallow copy.

        Returns:
            The chunks of all texts, in order.

        Raises:
            InvalidParameterError: There are more or fewer metadata than texts, `texts` is one
                string, or the length function fails.
        """
        return self.split_documents(documents_of_texts(texts, metadatas))

    @override
    def split_documents(self, documents: Iterable[Document]) -> list[Document]:
        """Split documents into smaller ones; the given ones stay as they are.

        Args:
            documents: The documents.

        Returns:
            The chunks of all documents, in order.

        Raises:
            InvalidParameterError: It is no list of documents, or the length function fails.
        """
        documents = given_documents(documents)
        chunks: list[Document] = []
        for document, id_ in zip(documents, document_ids(documents), strict=True):
            # A slow measure would hold the collector still for too long.
            bulk = len(document.page_content) > BULK_CHARACTERS and self._length_function is len
            with collection_paused(when=bulk):
                chunks.extend(self.pieces_of(document, id_))
        return chunks

    async def asplit_text(self, text: str) -> list[str]:
        """Split one text in a thread: the async twin of `split_text`."""
        return await run_in_executor(None, self.split_text, text)

    async def acreate_documents(
        self, texts: Iterable[str], metadatas: Iterable[dict[Any, Any]] | None = None
    ) -> list[Document]:
        """Split texts in a thread: the async twin of `create_documents`."""
        return await run_in_executor(None, self.create_documents, texts, metadatas)

    async def asplit_documents(self, documents: Iterable[Document]) -> list[Document]:
        """Split documents in a thread: the async twin of `split_documents`."""
        return await run_in_executor(None, self.split_documents, documents)

    @override
    async def atransform_documents(
        self, documents: Sequence[Document], **kwargs: Any
    ) -> Sequence[Document]:
        """Split documents in a thread: the async twin of `transform_documents`."""
        return await run_in_executor(None, self.split_documents, documents)
