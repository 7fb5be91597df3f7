"""Chunks seen over their source: coloured spans in a notebook, marks in a terminal."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Self

from easyrag_core.chunking.view._lines import plain
from easyrag_core.chunking.view._page import page
from easyrag_core.chunking.view._segments import Picture
from easyrag_core.errors import InvalidParameterError, check_count
from easyrag_core.text import line_starts
from easyrag_core.types import Chunk

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ChunkView"]

_MOST_IN_REPR = 2000


class ChunkView:
    """Shows where chunks lie in their text.

    In a notebook the text is drawn with a colour for each chunk, stripes where several overlap,
    a dashed line where none is, headings at the margin, and the facts of a chunk on hover. In a
    terminal `[3|` opens chunk 3 and `|3]` closes it; `[!|…|!]` holds what is in no chunk.
    Control characters are shown as symbols; all else is the text as it is, and all of it is
    escaped. Parents that are in the list with their children are drawn only where no child is.

    >>> from easyrag_core.chunking.document import DocumentChunker
    >>> text = "One is here. Two is there. 三在这里。四在那里。"
    >>> print(ChunkView(text, DocumentChunker(30, 14).chunk(text)))
    2 chunks · 37 characters · 24 to 26 each, median 25 · 13 in several chunks
    1 │ [0|One is here. [1|Two is there.|0] 三在这里。四在那里。|1]
    """

    def __init__(
        self,
        text: str,
        chunks: Iterable[Chunk],
        *,
        title: str | None = None,
        max_chars: int | None = 20_000,
    ) -> None:
        """Check that the chunks are this text's.

        Args:
            text: The source that the chunks were cut from, as it was.
            chunks: Chunks in any order; neighbours in the list get different colours.
            title: Stands above the view, such as a file name.
            max_chars: The most characters of the text to show; `None` for all. What is left out
                is said.

        Raises:
            InvalidParameterError: The text is no string, a chunk is not a slice of it, or
                `max_chars` is no whole number of at least 1.
        """
        _check_text(text)
        if max_chars is not None:
            max_chars = check_count("max_chars", max_chars, minimum=1)
        self._text = text
        self._chunks = list(chunks)
        self._title = title
        self._max_chars = max_chars
        for at, chunk in enumerate(self._chunks):
            _check_place(text, chunk.start, chunk.end, f"chunks[{at}]")
            if text[chunk.start : chunk.end] != chunk.text:
                raise InvalidParameterError(
                    f"chunks[{at}]", chunk.text, "its text does not stand at its place in `text`"
                )

    @classmethod
    def from_spans(
        cls,
        text: str,
        spans: Iterable[tuple[int, int]],
        *,
        title: str | None = None,
        max_chars: int | None = 20_000,
    ) -> Self:
        """View plain places, whoever made them.

        Args:
            text: The source.
            spans: `(start, end)` in code points, in any order.
            title: Stands above the view.
            max_chars: The most characters of the text to show; `None` for all.

        Returns:
            The view; the spans are numbered from 0.

        Raises:
            InvalidParameterError: The text is no string, a span is empty or not in it, or
                `max_chars` is no whole number of at least 1.

        >>> ChunkView.from_spans("检索 and 生成", [(0, 2), (7, 9)])
        2 chunks · 9 characters · 2 to 2 each, median 2 · 3 in no chunk
        1 │ [0|检索|0] [!|and|!] [1|生成|1]
        """
        _check_text(text)
        lines = line_starts(text)
        chunks = []
        for index, (start, end) in enumerate(spans):
            _check_place(text, start, end, f"spans[{index}]")
            first, last = bisect_right(lines, start), bisect_right(lines, end - 1)
            chunks.append(Chunk("", "", index, text[start:end], start, end, first, last))
        return cls(text, chunks, title=title, max_chars=max_chars)

    def _repr_html_(self) -> str:
        """Return the view for a notebook: one element with its own style."""
        return page(Picture(self._text, self._chunks, self._max_chars), self._title)

    def __str__(self) -> str:
        """Return the view for a terminal."""
        picture = Picture(self._text, self._chunks, self._max_chars)
        return plain(picture, self._title, advice="max_chars=None shows all.")

    def __repr__(self) -> str:
        """Return the beginning of the view for a terminal."""
        most = min(self._max_chars or _MOST_IN_REPR, _MOST_IN_REPR)
        picture = Picture(self._text, self._chunks, most)
        return plain(picture, self._title, advice="print it, or see it in a notebook.")


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise InvalidParameterError("text", type(text).__name__, "give the source, a str")


def _check_place(text: str, start: int, end: int, name: str) -> None:
    if not 0 <= start < end <= len(text):
        raise InvalidParameterError(
            name, (start, end), f"0 <= start < end <= {len(text)}, the length of the text"
        )
