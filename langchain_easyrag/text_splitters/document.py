"""Prose into chunks, by sentences, paragraphs or words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from easyrag_core import DocumentChunker
from langchain_easyrag._pieces import documents_of_pieces
from langchain_easyrag.text_splitters._placed import PlacedTextSplitter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from langchain_core.documents import Document

    from easyrag_core.chunking.document import Boundary

__all__ = ["DocumentTextSplitter"]


class DocumentTextSplitter(PlacedTextSplitter):
    """Split prose at sentences, paragraphs or words, each chunk with its exact place.

    Every chunk is a slice of the text that was given: `text[start_index:end_index]` equals its
    `page_content`. Its metadata are the source's, and `document_id`, `chunk_index`,
    `start_index`, `end_index`, `start_line` and `end_line` (lines from 1). The size limit holds
    for every chunk as `length_function` measures it.

    Each chunk has an id that depends on its document and its text, not on its position, so that
    adding an edited document again replaces only what changed. `document_id` is the source's
    `Document.id`. Without one it is derived from the content and from `metadata["source"]`;
    equal documents of one call are counted, so that none of them is lost.

    Setup:
        Install `easyrag-core[langchain]`.

    Instantiate:
        ```python
        from langchain_easyrag import DocumentTextSplitter

        splitter = DocumentTextSplitter(chunk_size=800, chunk_overlap=100)
        by_tokens = DocumentTextSplitter.from_tiktoken_encoder("cl100k_base", chunk_size=200)
        ```

    Use:
        ```python
        chunks = splitter.split_documents(documents)
        chunks[0].metadata["start_index"], chunks[0].metadata["start_line"]
        ```
    """

    def __init__(
        self,
        chunk_size: int = 800,
        chunk_overlap: int | None = None,
        *,
        length_function: Callable[[str], int] = len,
        boundary: Boundary = "sentence",
        strip_whitespace: bool = True,
        add_start_index: bool = True,
    ) -> None:
        """Check the settings.

        Args:
            chunk_size: Upper limit of a chunk, in units of `length_function`; above 0.
            chunk_overlap: Upper limit of what two neighbours share, in the same unit; at least
                0 and below `chunk_size`. Default: an eighth of the size, at most 100.
            length_function: Measures a text; it may be slow.
            boundary: Where a chunk may end: `"character"`, `"word"`, `"sentence"` or
                `"paragraph"`.
            strip_whitespace: Leave blank edges out of the chunks.
            add_start_index: Accepted for code that sets it on any splitter; the place is always
                given.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        self._chunker = DocumentChunker(
            chunk_size,
            chunk_overlap,
            length_function=length_function,
            boundary=boundary,
            strip=strip_whitespace,
        )
        super().__init__(
            chunk_size=self._chunker.chunk_size,
            chunk_overlap=self._chunker.chunk_overlap,
            length_function=length_function,
            keep_separator=True,
            add_start_index=add_start_index,
            strip_whitespace=strip_whitespace,
        )

    @property
    @override
    def chunker(self) -> DocumentChunker:
        """The core's chunker, with these settings."""
        return self._chunker

    @override
    def split_text(self, text: str) -> list[str]:
        """Split one text.

        Args:
            text: The text.

        Returns:
            The chunks, each a slice of the text.
        """
        return [text[start:end] for start, end in self._chunker.spans(text)]

    @override
    def pieces_of(self, document: Document, document_id: str) -> Iterable[Document]:
        """Split one document; see `split_documents`."""
        pieces = self._chunker.iter_pieces(document.page_content, document_id)
        return documents_of_pieces(document, document_id, pieces)
