"""Prose into chunks: windows that end at sentences, paragraphs or words, with true places."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from easyrag_core.chunking._pack import MeasuringRuler
from easyrag_core.chunking._windows import CUTTERS, CharacterRuler, walk
from easyrag_core.errors import InvalidParameterError, check_choice, check_count
from easyrag_core.text import line_ends_between, text_digest
from easyrag_core.types import Chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from easyrag_core.chunking._windows import Ruler
    from easyrag_core.types import LengthFunction

__all__ = ["Boundary", "ChunkNames", "DocumentChunker"]

Boundary: TypeAlias = Literal["character", "word", "sentence", "paragraph"]
"""Where a chunk may end, see `DocumentChunker`."""

_ID_LENGTH = 32


class DocumentChunker:
    """Cuts a text into overlapping chunks of at most `chunk_size`.

    Every chunk is a slice of the text as given, every non-blank character is in a chunk, no
    chunk is longer than the limit (unless one grapheme cluster alone is), and no cut falls into
    a grapheme cluster. Ids depend on the document's id and the chunk's text, not on its place.
    Time grows linearly with the text. Instances never change: share them between threads.

    >>> chunker = DocumentChunker(chunk_size=30, chunk_overlap=14)
    >>> [chunk.text for chunk in chunker.chunk("One is here. Two is there. 三在这里。四在那里。")]
    ['One is here. Two is there.', 'Two is there. 三在这里。四在那里。']
    """

    def __init__(
        self,
        chunk_size: int = 800,
        chunk_overlap: int | None = None,
        *,
        length_function: LengthFunction = len,
        boundary: Boundary = "sentence",
        strip: bool = True,
        id_factory: Callable[[Chunk], str] | None = None,
    ) -> None:
        """Check the settings.

        Args:
            chunk_size: The longest chunk allowed, in units of `length_function`; at least 1.
            chunk_overlap: The longest overlap of neighbours, in the same unit, smaller than
                `chunk_size`; by default 100, but no more than an eighth of `chunk_size`.
            length_function: Measures a text; `len` by default. It is called on the final strings
                and a few times a chunk, so it may be a tokenizer.
            boundary: Where a chunk may end. `"sentence"`: at the strongest of blank line, line
                end, sentence end, clause, space in the second half of the window.
                `"paragraph"`: at a blank line wherever there is one, else as before. `"word"`:
                at the last word that fits. `"character"`: a plain sliding window, moved only off
                grapheme clusters.
            strip: Leave blank edges out of the chunks; the indentation of code is kept.
            id_factory: Makes a chunk's id from the chunk, whose own id is still empty.

        Raises:
            InvalidParameterError: A size is no whole number or out of range, the boundary is
                unknown, or a function cannot be called.
        """
        self._chunk_size = check_count("chunk_size", chunk_size, minimum=1)
        if chunk_overlap is None:
            chunk_overlap = min(100, self._chunk_size // 8)
        self._chunk_overlap = check_count("chunk_overlap", chunk_overlap)
        if self._chunk_overlap >= self._chunk_size:
            raise InvalidParameterError(
                "chunk_overlap", chunk_overlap, f"it must be smaller than chunk_size={chunk_size}"
            )
        for name, function in (("length_function", length_function), ("id_factory", id_factory)):
            if function is not None and not callable(function):
                raise InvalidParameterError(name, function, "give a function")
        if length_function is None:
            raise InvalidParameterError("length_function", None, "give a function, such as len")
        self._boundary = cast("Boundary", check_choice("boundary", boundary, get_args(Boundary)))
        self._length_function = length_function
        self._strip = bool(strip)
        self._id_factory = id_factory

    @property
    def chunk_size(self) -> int:
        """The longest chunk allowed, in units of `length_function`."""
        return self._chunk_size

    @property
    def chunk_overlap(self) -> int:
        """The longest overlap allowed, in units of `length_function`."""
        return self._chunk_overlap

    @property
    def length_function(self) -> LengthFunction:
        """The measure of sizes."""
        return self._length_function

    @property
    def boundary(self) -> Boundary:
        """Where a chunk may end."""
        return self._boundary

    @property
    def strip(self) -> bool:
        """Whether blank edges are left out of chunks."""
        return self._strip

    def __repr__(self) -> str:
        """Show the settings as they would be written."""
        return (
            f"DocumentChunker(chunk_size={self._chunk_size}, chunk_overlap={self._chunk_overlap}, "
            f"length_function={self._length_function!r}, boundary={self._boundary!r}, "
            f"strip={self._strip})"
        )

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the places of the chunks alone: the fastest way to cut.

        Args:
            text: The text as it is; line ends, BOM and blanks are kept and counted.

        Returns:
            `(start, end)` in code points, in order; `text[start:end]` is the chunk.

        Raises:
            InvalidParameterError: `text` is not a string, or `length_function` raises or gives
                something else than a whole number of at least 0.
        """
        _check_text(text)
        return walk(self._ruler(text))

    def chunk(
        self,
        text: str,
        document_id: str | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
    ) -> list[Chunk]:
        """Cut a text into chunks.

        Args:
            text: The text as it is.
            document_id: The document's id; by default derived from the text.
            metadata: Copied, not deeply, to each chunk.

        Returns:
            The chunks in order; an empty or blank text gives none.

        Raises:
            InvalidParameterError: `text` is not a string.
        """
        return list(self.iter_chunks(text, document_id, metadata=metadata))

    def iter_chunks(
        self,
        text: str,
        document_id: str | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
    ) -> Iterator[Chunk]:
        """Yield the chunks of a text one by one; as `chunk` otherwise.

        Args:
            text: The text as it is.
            document_id: The document's id; by default derived from the text.
            metadata: Copied, not deeply, to each chunk.

        Yields:
            The chunks in order.

        Raises:
            InvalidParameterError: `text` is not a string.
        """
        _check_text(text)
        if document_id is None:
            document_id = text_digest(text)[:_ID_LENGTH]
        pieces = self.iter_pieces(text, document_id)
        for index, (id_, piece, start, end, start_line, end_line) in enumerate(pieces):
            chunk = Chunk(id_, document_id, index, piece, start, end, start_line, end_line)
            if metadata:
                chunk.metadata.update(metadata)
            if self._id_factory is not None:
                chunk.id = self._id_factory(chunk)
            yield chunk

    def iter_pieces(
        self, text: str, document_id: str
    ) -> Iterator[tuple[str, str, int, int, int, int]]:
        """Yield the facts of each chunk: for those who build objects of their own.

        Args:
            text: The text as it is.
            document_id: The document's id.

        Yields:
            Id, text, start, end, first line and last line of each chunk, in order. With an
            `id_factory` the id is empty: it is made from the chunk.

        Raises:
            InvalidParameterError: `text` is not a string.
        """
        spans = self.spans(text)
        name = ChunkNames(document_id).name if self._id_factory is None else _no_name
        # Nearly all texts have line feeds alone, which one call in C counts.
        count = _line_ends_between if "\r" in text else str.count
        last, last_line = 0, 1
        for start, end in spans:
            piece = text[start:end]
            # Counted once: on from the last chunk's end, or back over the overlap.
            if start < last:
                line = last_line - count(text, "\n", start, last)
            else:
                line = last_line + count(text, "\n", last, start)
            last, last_line = end, line + count(piece, "\n", 0, end - start)
            yield name(piece), piece, start, end, line, last_line - (piece[-1] in "\r\n")

    def _ruler(self, text: str) -> Ruler:
        cutter = CUTTERS[self._boundary]
        size, overlap, strip = self._chunk_size, self._chunk_overlap, self._strip
        if self._length_function is len:
            return CharacterRuler(text, cutter, size=size, overlap=overlap, strip=strip)
        return MeasuringRuler(
            text,
            cutter,
            size=size,
            overlap=overlap,
            strip=strip,
            length_function=self._length_function,
        )


class ChunkNames:
    """Names the chunks of one document by what they say, not by where they stand."""

    def __init__(self, document_id: str, *, context: str = "") -> None:
        """Hash what all the names share.

        Args:
            document_id: The document's id.
            context: What else tells chunks of equal text apart, such as a language.
        """
        # Lengths stand before the parts, so that no two lists of parts look alike.
        shared = f"{len(document_id)}:{document_id}{len(context)}:{context}"
        self._shared = hashlib.sha256(shared.encode("utf-8", "surrogatepass"))
        self._path: tuple[str, ...] = ()
        self._above = self._below(())
        self._seen: dict[str, int] = {}

    def name(self, text: str, heading_path: tuple[str, ...] = ()) -> str:
        """Return the id of the next chunk with this text under these headings.

        Args:
            text: The chunk's text.
            heading_path: The titles above it.

        Returns:
            32 lower-case hex digits: SHA-256 over document id, headings, text, and the ordinal
            among equal ones in the document.
        """
        # Neighbours stand under the same headings, told by the same tuple.
        if heading_path is not self._path:
            self._path, self._above = heading_path, self._below(heading_path)
        digest = self._above.copy()
        digest.update(text.encode("utf-8", "surrogatepass"))
        first = digest.hexdigest()[:_ID_LENGTH]
        if first not in self._seen:
            self._seen[first] = 0
            return first
        ordinal = self._seen[first] = self._seen[first] + 1
        return text_digest(f"{first}#{ordinal}")[:_ID_LENGTH]

    def _below(self, heading_path: tuple[str, ...]) -> hashlib._Hash:
        digest = self._shared.copy()
        told = "".join([f"{len(part)}:{part}" for part in heading_path])
        digest.update(f"{told}|".encode("utf-8", "surrogatepass"))
        return digest


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise InvalidParameterError("text", type(text).__name__, "give a str; decode bytes first")


def _no_name(_text: str) -> str:
    return ""


def _line_ends_between(text: str, _line_feed: str, start: int, end: int) -> int:
    """Count like `str.count`, but carriage returns too."""
    return line_ends_between(text, start, end)
