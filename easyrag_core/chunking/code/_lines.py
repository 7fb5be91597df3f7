r"""A text as lines that all end with `\n`, whatever they end with in the source."""

from __future__ import annotations

import re

from easyrag_core.text import content_end

__all__ = ["Lines"]

_INDENTED = re.compile(r"\n( +|\t+)\S")


class Lines:
    r"""A text whose line ends are all `\n`, place for place as long as the original.

    Attributes:
        text: The text as given.
        view: The same with other line ends replaced: a CRLF by a blank and a line feed.
        end: Where the last line with content ends.
        step: How much the first line is indented that is indented at all.
    """

    __slots__ = ("end", "step", "text", "view")

    def __init__(self, text: str) -> None:
        """Look once at the whole text.

        Args:
            text: The text.
        """
        self.text = text
        self.view = text
        if "\r" in text:
            self.view = text.replace("\r\n", " \n").replace("\r", "\n")
        indented = _INDENTED.search(self.view)
        self.step = len(indented[1]) if indented else 0
        last = content_end(text)
        self.end = self.line_end(last) if last else 0

    def line_end(self, position: int) -> int:
        """Return where the line that holds `position` ends, without its line end."""
        end = self.view.find("\n", position)
        if end < 0:
            return len(self.view)
        return end - 1 if self.text.startswith("\r\n", end - 1) and end > position else end

    def content_end(self, start: int, cut: int) -> int:
        """Return where the last line with content before a cut ends, not before `start`."""
        if cut >= self.end:
            return self.end
        end = cut - 1
        while self.view[end - 1] == "\n":
            end -= 1
        if not self.view[end - 1].isspace():
            return end
        return self.line_end(start + len(self.view[start:end].rstrip()))
