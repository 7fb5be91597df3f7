"""Chunkers of one form, ours and the peers': text, size and overlap to pieces with true places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from easyrag_core.chunking.document import DocumentChunker
from easyrag_core.chunking.markdown import MarkdownChunker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["JUDGED", "MARKDOWN", "PROSE", "Cut", "Piece", "located"]


class Piece(NamedTuple):
    """A chunk: its place, and what is indexed for it."""

    start: int
    end: int
    indexed: str


Cut: TypeAlias = "Callable[[str, int, int], list[Piece]]"
"""Text, size and overlap to pieces."""


def sentences(text: str, size: int, overlap: int) -> list[Piece]:
    """Ours, as it is by default."""
    return _ours(text, DocumentChunker(size, overlap))


def paragraphs(text: str, size: int, overlap: int) -> list[Piece]:
    """Ours, at blank lines."""
    return _ours(text, DocumentChunker(size, overlap, boundary="paragraph"))


def markdown(text: str, size: int, overlap: int) -> list[Piece]:
    """Ours, at headings; the path of headings is indexed."""
    return _ours(text, MarkdownChunker(size, overlap))


def _ours(text: str, chunker: Any) -> list[Piece]:
    chunks = chunker.chunk(text)
    return [Piece(chunk.start, chunk.end, chunk.embedding_text) for chunk in chunks]


def recursive(text: str, size: int, overlap: int) -> list[Piece]:
    """LangChain's, with its default separators."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    peer = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=overlap)
    return located(text, peer.split_text(text), overlap)


def sentence_splitter(text: str, size: int, overlap: int) -> list[Piece]:
    """LlamaIndex's, counting characters."""
    from llama_index.core.node_parser import SentenceSplitter

    peer = SentenceSplitter(chunk_size=size, chunk_overlap=overlap, tokenizer=list)
    return located(text, peer.split_text(text), overlap)


def headers(text: str, size: int, overlap: int) -> list[Piece]:
    """LangChain's, by headings and then recursively; headings go to metadata, by default."""
    return _headers(text, size, overlap, strip=True)


def headers_kept(text: str, size: int, overlap: int) -> list[Piece]:
    """The same with the headings left in the text."""
    return _headers(text, size, overlap, strip=False)


def _headers(text: str, size: int, overlap: int, *, strip: bool) -> list[Piece]:
    from langchain_text_splitters import MarkdownHeaderTextSplitter, RecursiveCharacterTextSplitter

    marks = [("#" * level, f"Header {level}") for level in range(1, 7)]
    sections = MarkdownHeaderTextSplitter(marks, strip_headers=strip).split_text(text)
    peer = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=overlap)
    pieces = [document.page_content for document in peer.split_documents(sections)]
    return located(text, pieces, overlap)


def located(text: str, pieces: Iterable[str], overlap: int) -> list[Piece]:
    """Find the true places of pieces in order.

    Blanks and characters without a shape do not count: some peers change or drop them.

    Raises:
        ValueError: A piece is not in the text.
    """
    places = [place for place, char in enumerate(text) if _has_shape(char)]
    dense = "".join(filter(_has_shape, text))
    found, end = [], 0
    for piece in pieces:
        wanted = "".join(filter(_has_shape, piece))
        # Ends never decrease, but a peer may hand over the overlap alone as one more chunk.
        start = dense.find(wanted, max(0, end - overlap, end - len(wanted)))
        if start < 0:
            raise ValueError(f"not in the text, or not in order: {piece!r}")
        end = start + len(wanted)
        found.append(Piece(places[start], places[end - 1] + 1, piece))
    return found


def _has_shape(char: str) -> bool:
    return char.isprintable() and not char.isspace()


PROSE: dict[str, Cut] = {
    "easyrag sentence": sentences,
    "easyrag paragraph": paragraphs,
    "RecursiveCharacter": recursive,
    "SentenceSplitter": sentence_splitter,
}
MARKDOWN: dict[str, Cut] = {
    "easyrag Markdown": markdown,
    "easyrag sentence": sentences,
    "easyrag paragraph": paragraphs,
    "MarkdownHeader+Rec.": headers,
    "same, headers kept": headers_kept,
    "RecursiveCharacter": recursive,
    "SentenceSplitter": sentence_splitter,
}
JUDGED = ("easyrag sentence", "easyrag paragraph", "easyrag Markdown")
