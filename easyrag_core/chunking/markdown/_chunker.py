"""Markdown into chunks: by headings, then by blocks, with true places and the path of titles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast, get_args

from easyrag_core.chunking.document import ChunkNames, DocumentChunker
from easyrag_core.chunking.markdown._blocks import (
    BlockKind,
    find_blocks,
    find_front_matter,
    with_line_feeds,
)
from easyrag_core.chunking.markdown._gauge import CharacterGauge, MeasuringGauge
from easyrag_core.chunking.markdown._pack import Packer
from easyrag_core.chunking.markdown._sections import find_sections
from easyrag_core.errors import InvalidParameterError, check_choice, check_count
from easyrag_core.text import line_ends_between, text_digest
from easyrag_core.types import Chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from easyrag_core.chunking.markdown._cut import Piece
    from easyrag_core.chunking.markdown._gauge import Gauge
    from easyrag_core.chunking.markdown._sections import Path
    from easyrag_core.types import LengthFunction

__all__ = ["Heading", "HeadingPathIn", "HorizontalRule", "MarkdownChunker", "SectionPiece"]

HeadingPathIn: TypeAlias = Literal["embedding_text", "metadata"]
HorizontalRule: TypeAlias = Literal["hard", "soft"]


SectionPiece: TypeAlias = "tuple[str, str, int, int, int, int, Path, str, str, str]"
"""Id, text, start, end, first line, last line, heading path, embedded text, kind, language."""


class Heading(NamedTuple):
    """A heading that no list, block quote or code holds.

    Attributes:
        line: Its first line, from 1.
        level: From 1 to 6.
        title: What it says, as it is written.
    """

    line: int
    level: int
    title: str


class MarkdownChunker:
    r"""Cuts Markdown at its headings, and long sections between and inside their blocks.

    CommonMark decides what a heading, a fence, a list or a quote is, GFM what a table is. Every
    chunk is a slice of the text as given; every non-blank character is in a chunk, but for front
    matter, which is in each chunk's `metadata["front_matter"]`. What a chunk's text does not
    say itself is in its `embedding_text`: the titles above it, the header of a cut table, the
    fence of cut code. No `embedding_text` is longer than the limit (unless one grapheme cluster
    alone is), and a block that fits is never cut. Ids depend on the document's id, the titles
    and the text, not on the place. Time grows linearly with the text. Instances never change:
    share them between threads.

    >>> chunker = MarkdownChunker(chunk_size=60)
    >>> for chunk in chunker.chunk("# Guide\n\n## Install\n\nRun `pip`.\n\n## 使用\n\n先建索引。"):
    ...     print(chunk.heading_path, repr(chunk.text))
    ('Guide',) '# Guide\n\n## Install\n\nRun `pip`.\n\n## 使用\n\n先建索引。'
    """

    def __init__(
        self,
        chunk_size: int = 1400,
        chunk_overlap: int = 0,
        *,
        min_chunk_size: int | None = None,
        max_heading_level: int = 6,
        heading_path_in: HeadingPathIn = "embedding_text",
        length_function: LengthFunction = len,
        merge_small: bool = True,
        horizontal_rule: HorizontalRule = "hard",
        id_factory: Callable[[Chunk], str] | None = None,
    ) -> None:
        """Check the settings.

        Args:
            chunk_size: The longest `embedding_text` allowed, in units of `length_function`; at
                least 1.
            chunk_overlap: The longest overlap of neighbours, in the same unit, smaller than
                `chunk_size`; there is one only where a paragraph is cut.
            min_chunk_size: A chunk this long takes no further section in; by default, as many
                small neighbours are packed together as fit. At most `chunk_size`.
            max_heading_level: Deeper headings are text; from 1 to 6.
            heading_path_in: `"embedding_text"`: the titles stand there in a line of their own,
                unless the chunk's text begins with all of them. `"metadata"`: they are in
                `heading_path` alone.
            length_function: Measures a text; `len` by default. It is called on the final strings
                and a few times a chunk, so it may be a tokenizer. That something more does not
                fit is also told by its own length, so lengths should roughly add up.
            merge_small: Pack small neighbouring sections under one heading together. The chunk
                then has the titles that they share. Sections under no common heading, or on
                both sides of a rule that cuts, are never joined.
            horizontal_rule: `"hard"`: a rule cuts. `"soft"`: it is a block like any other.
            id_factory: Makes a chunk's id from the chunk, whose own id is still empty.

        Raises:
            InvalidParameterError: A size or level is no whole number or out of range, a word is
                unknown, or a function cannot be called.
        """
        prose = DocumentChunker(
            chunk_size, chunk_overlap, length_function=length_function, id_factory=id_factory
        )
        self._chunk_size, self._chunk_overlap = prose.chunk_size, prose.chunk_overlap
        self._min_chunk_size = min_chunk_size
        if min_chunk_size is not None:
            self._min_chunk_size = check_count("min_chunk_size", min_chunk_size)
            if self._min_chunk_size > self._chunk_size:
                raise InvalidParameterError(
                    "min_chunk_size", min_chunk_size, f"at most chunk_size={chunk_size} is"
                )
        self._max_heading_level = check_count("max_heading_level", max_heading_level, minimum=1)
        if self._max_heading_level > 6:
            raise InvalidParameterError("max_heading_level", max_heading_level, "1 to 6 are")
        places, rules = get_args(HeadingPathIn), get_args(HorizontalRule)
        self._heading_path_in = check_choice("heading_path_in", heading_path_in, places)
        self._horizontal_rule = check_choice("horizontal_rule", horizontal_rule, rules)
        self._length_function = length_function
        self._merge_small = bool(merge_small)
        self._id_factory = id_factory

    @property
    def chunk_size(self) -> int:
        """The longest `embedding_text` allowed, in units of `length_function`."""
        return self._chunk_size

    @property
    def chunk_overlap(self) -> int:
        """The longest overlap allowed, in units of `length_function`."""
        return self._chunk_overlap

    @property
    def min_chunk_size(self) -> int | None:
        """From which length on a chunk takes no further section in."""
        return self._min_chunk_size

    @property
    def max_heading_level(self) -> int:
        """The deepest level that cuts."""
        return self._max_heading_level

    @property
    def heading_path_in(self) -> HeadingPathIn:
        """Where the titles above a chunk are told."""
        return cast("HeadingPathIn", self._heading_path_in)

    @property
    def length_function(self) -> LengthFunction:
        """The measure of sizes."""
        return self._length_function

    @property
    def merge_small(self) -> bool:
        """Whether small neighbouring sections are packed together."""
        return self._merge_small

    @property
    def horizontal_rule(self) -> HorizontalRule:
        """Whether a rule cuts."""
        return cast("HorizontalRule", self._horizontal_rule)

    def __repr__(self) -> str:
        """Show the settings as they would be written."""
        return (
            f"MarkdownChunker(chunk_size={self._chunk_size}, chunk_overlap={self._chunk_overlap}, "
            f"min_chunk_size={self._min_chunk_size}, max_heading_level={self._max_heading_level}, "
            f"heading_path_in={self._heading_path_in!r}, "
            f"length_function={self._length_function!r}, merge_small={self._merge_small}, "
            f"horizontal_rule={self._horizontal_rule!r})"
        )

    @staticmethod
    def headings(text: str) -> list[Heading]:
        r"""Return the headings of a document, as CommonMark has them.

        Args:
            text: The document as it is.

        Returns:
            Those that stand in no list, block quote, code, HTML or front matter, in order.

        Raises:
            InvalidParameterError: `text` is not a string.

        >>> MarkdownChunker.headings("# A #\n\n> # quoted\n\nB\n---\n")
        [Heading(line=1, level=1, title='A'), Heading(line=5, level=2, title='B')]
        """
        _check_text(text)
        shadow = with_line_feeds(text)
        matter = find_front_matter(shadow)
        headings = []
        line, counted = 1, 0
        for block in find_blocks(shadow, matter[2] if matter else 0):
            if block.kind == BlockKind.HEADING:
                line += line_ends_between(text, counted, block.start)
                counted = block.start
                headings.append(Heading(line, block.level, block.info))
        return headings

    def chunk(
        self,
        text: str,
        document_id: str | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
    ) -> list[Chunk]:
        """Cut a document into chunks.

        Args:
            text: The document as it is.
            document_id: The document's id; by default derived from the text.
            metadata: Copied, not deeply, to each chunk; `front_matter` is added if there is some
                and the caller has none.

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
        """Yield the chunks of a document one by one; as `chunk` otherwise.

        Args:
            text: The document as it is.
            document_id: The document's id; by default derived from the text.
            metadata: Copied, not deeply, to each chunk.

        Yields:
            The chunks in order.

        Raises:
            InvalidParameterError: `text` is not a string.
        """
        _check_text(text)
        front_matter = self.front_matter(text)
        own: dict[str, Any] = {} if front_matter is None else {"front_matter": front_matter}
        own.update(metadata or {})
        if document_id is None:
            document_id = text_digest(text)[:32]
        id_factory = self._id_factory
        for index, piece in enumerate(self.iter_pieces(text, document_id)):
            id_, content, start, end, line, last_line, path, embedded, kind, language = piece
            chunk = Chunk(
                id_,
                document_id,
                index,
                content,
                start,
                end,
                line,
                last_line,
                path,
                embedded,
                None,
                kind,
                language,
                own.copy(),
            )
            if id_factory:
                chunk.id = id_factory(chunk)
            yield chunk

    @staticmethod
    def front_matter(text: str) -> str | None:
        r"""Return the metadata block at the very start of a document, without its marks.

        Args:
            text: The document as it is.

        Returns:
            YAML from between `---`, or TOML from between `+++`; `None` without such a block.

        Raises:
            InvalidParameterError: `text` is not a string.

        >>> MarkdownChunker.front_matter("---\ntitle: x\n---\n# A\n")
        'title: x'
        """
        _check_text(text)
        if not text.startswith(("---", "+++", "\ufeff")):
            return None
        matter = find_front_matter(with_line_feeds(text))
        return text[matter[0] : matter[1]].strip() if matter else None

    def iter_pieces(self, text: str, document_id: str) -> Iterator[SectionPiece]:
        """Yield the facts of each chunk: for those who build objects of their own.

        Args:
            text: The text as it is.
            document_id: The document's id.

        Yields:
            Facts in order. With an `id_factory` the id is empty: it is made from the chunk.

        Raises:
            InvalidParameterError: `text` is not a string.
        """
        _check_text(text)
        shadow = with_line_feeds(text)
        matter = find_front_matter(shadow)
        pieces = self._pieces(text, shadow, matter[2] if matter else 0)
        name = ChunkNames(document_id).name if self._id_factory is None else _no_name
        count = shadow.count
        last, last_line = 0, 1
        for path, (start, end, (lead, trail), kind, language) in pieces:
            content = text[start:end]
            # Counted once: on from the last chunk's end, or back over the overlap.
            if start < last:
                line = last_line - count("\n", start, last)
            else:
                line = last_line + count("\n", last, start)
            last, last_line = end, line + count("\n", start, end)
            embedded = lead + content + trail if lead or trail else content
            id_ = name(content, path)
            yield id_, content, start, end, line, last_line, path, embedded, kind, language

    def _pieces(self, text: str, shadow: str, start: int) -> Iterator[tuple[Path, Piece]]:
        gauge: Gauge
        if self._length_function is len:
            gauge = CharacterGauge(text, shadow, self._chunk_size)
        else:
            gauge = MeasuringGauge(text, shadow, self._chunk_size, self._length_function)
        blocks = find_blocks(shadow, start)
        packer = Packer(
            shadow,
            blocks,
            gauge,
            overlap=self._chunk_overlap,
            minimum=self._min_chunk_size,
            merge=self._merge_small,
            show_path=self._heading_path_in == "embedding_text",
        )
        sections = find_sections(
            shadow,
            blocks,
            start,
            max_level=self._max_heading_level,
            rules_cut=self._horizontal_rule == "hard",
        )
        return packer.pieces(sections)


def _no_name(_text: str, _path: Path) -> str:
    return ""


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise InvalidParameterError("text", type(text).__name__, "give a str; decode bytes first")
