"""Where content begins and ends between the blocks: blank lines and paragraphs."""

from __future__ import annotations

import re

from easyrag_core.text import is_grapheme_boundary

__all__ = [
    "content_start",
    "last_content",
    "last_paragraph",
    "paragraph_stop",
    "paragraphs_stop_before",
]

_BLANKS = re.compile(r"[^\S\n]*+")
_BLANK_AHEAD = re.compile(r"\n[ \t]*+(?:\n|\Z)")
_BLANK_LINES = re.compile(r"(?:[^\S\n]*+\n)*+")
_INDENTATION = re.compile(r" {1,3}(?=[^ \t\n])")
_SPACED_BLANK_LINE = re.compile(r"\n[ \t]++(?=\n)")


def content_start(text: str, start: int, stop: int, *, kept: int = -1) -> int:
    """Return where content begins, without up to three spaces before it, which mean nothing.

    Args:
        text: The document, its lines ending at line feeds.
        start: Start of a line.
        stop: Nothing at or behind this position is looked at.
        kept: Start of a line whose indentation does mean something.

    Returns:
        The position, `stop` when there is no content.
    """
    if text[start : start + 1].isspace():
        blank = _BLANK_LINES.match(text, start, stop)
        start = blank.end() if blank else start
        if start != kept and text.startswith(" ", start):
            indentation = _INDENTATION.match(text, start, stop)
            if indentation and is_grapheme_boundary(text, indentation.end()):
                return indentation.end()
    return start


def last_content(text: str, start: int, stop: int) -> int:
    """Return where the blanks at the end of a stretch begin.

    Args:
        text: The document.
        start: Start of the stretch.
        stop: End of the stretch.

    Returns:
        One past the last character that is not blank; `start` for a blank stretch.
    """
    while stop > start and text[stop - 1].isspace():
        stop -= 1
    return stop


def paragraph_stop(text: str, start: int, stop: int) -> int:
    """Return where the line behind a paragraph starts.

    Args:
        text: The document, its lines ending at line feeds.
        start: Where the paragraph starts.
        stop: Nothing at or behind this position is looked at.

    Returns:
        The start of the first blank line, `stop` if there is none.
    """
    blank = _BLANK_AHEAD.search(text, start, stop)
    return blank.start() + 1 if blank else stop


def paragraphs_stop_before(text: str, start: int, limit: int) -> int:
    """Return where the last paragraph ends that does so before or at `limit`.

    Args:
        text: The document, its lines ending at line feeds.
        start: Start of the first paragraph.
        limit: A position in the text.

    Returns:
        Where its content ends; `start` if there is no such paragraph.
    """
    # Blanks that end a line may be beyond the limit, and so may those of a line of blanks alone.
    if text[limit : limit + 1].isspace():
        limit = _past_blanks(text, limit)
    end = max(text.rfind("\n\n", start, limit + 2), start)
    stop = limit + 2
    if text[limit + 1 : stop].isspace():
        stop = _past_blanks(text, limit + 1) + 1
    spaced = _SPACED_BLANK_LINE.search(text, end, stop)
    while spaced is not None and spaced.start() <= limit:
        end = spaced.start()
        spaced = _SPACED_BLANK_LINE.search(text, spaced.end(), stop)
    return last_content(text, start, end)


def _past_blanks(text: str, position: int) -> int:
    blanks = _BLANKS.match(text, position)
    return blanks.end() if blanks else position


def last_paragraph(text: str, start: int, end: int) -> int:
    """Return where the last of some paragraphs starts.

    Args:
        text: The document, its lines ending at line feeds.
        start: Start of the first.
        end: End of the last one's content.

    Returns:
        The start of its content.
    """
    stop = paragraphs_stop_before(text, start, end - 1)
    return content_start(text, text.find("\n", stop, end) + 1, end) if stop > start else start
