"""The facts of pieces into Documents, with nothing made in between: for texts of any size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

if TYPE_CHECKING:
    from collections.abc import Iterable

    from easyrag_core.chunking.markdown import SectionPiece

__all__ = ["documents_of_pieces", "documents_of_sections"]


def documents_of_pieces(
    source: Document, document_id: str, pieces: Iterable[tuple[str, str, int, int, int, int]]
) -> list[Document]:
    """Make one document per piece of a source, each with the source's metadata and its place.

    Args:
        source: The document that was cut; it stays as it is.
        document_id: Its id, as the chunks know it.
        pieces: Id, text, start, end, first and last line of each chunk.

    Returns:
        Documents in the order of the pieces.
    """
    # What `Document.__init__` ends in: the same validation, at half the time per chunk.
    validate, new = Document.__pydantic_validator__.validate_python, Document.__new__
    # The keys are laid out once, in this order; each chunk takes a copy with its own values.
    place: dict[Any, Any] = {**source.metadata, "document_id": document_id}
    place.update(chunk_index=0, start_index=0, end_index=0, start_line=0, end_line=0)
    documents = []
    for index, (id_, text, start, end, start_line, end_line) in enumerate(pieces):
        place["chunk_index"], place["start_index"], place["end_index"] = index, start, end
        place["start_line"], place["end_line"] = start_line, end_line
        fields = {"page_content": text, "id": id_, "metadata": place.copy()}
        documents.append(validate(fields, self_instance=new(Document)))
    return documents


def documents_of_sections(
    source: Document,
    document_id: str,
    pieces: Iterable[SectionPiece],
    *,
    front_matter: str | None,
    embedded: bool,
) -> list[Document]:
    """Make one document per piece of Markdown; see `documents_of_pieces`.

    Args:
        source: The document that was cut; it stays as it is.
        document_id: Its id, as the chunks know it.
        pieces: The facts of each chunk.
        front_matter: That of the document; metadata of the source's own win.
        embedded: Whether `page_content` is what is embedded, with its context, or the chunk's
            own text.

    Returns:
        Documents in the order of the pieces.
    """
    validate, new = Document.__pydantic_validator__.validate_python, Document.__new__
    place: dict[Any, Any] = dict(source.metadata)
    if front_matter is not None:
        place.setdefault("front_matter", front_matter)
    place["document_id"] = document_id
    place.update(chunk_index=0, start_index=0, end_index=0, start_line=0, end_line=0)
    documents = []
    for index, (id_, text, start, end, line, last_line, path, shown, _, language) in enumerate(
        pieces
    ):
        placed = place.copy()
        placed["chunk_index"], placed["start_index"], placed["end_index"] = index, start, end
        placed["start_line"], placed["end_line"] = line, last_line
        if path:
            placed["heading_path"] = list(path)
        if language:
            placed["language"] = language
        fields = {"page_content": shown if embedded else text, "id": id_, "metadata": placed}
        documents.append(validate(fields, self_instance=new(Document)))
    return documents
