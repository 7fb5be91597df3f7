"""What is written above a piece of code before it is embedded."""

from __future__ import annotations

from functools import lru_cache
from string import Formatter
from typing import TYPE_CHECKING

from easyrag_core.errors import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["DEFAULT_TEMPLATE", "CodeFrame", "check_template"]

DEFAULT_TEMPLATE = (
    "Language: {language}\nFile: {file}\nSymbolType: {symbol_type}\nLines: {lines}\n"
    "Summary: {summary}\nKeywords: {keywords}\n\n{code}"
)
"""The frame of the code unless the caller gives another; empty lines of it are left out."""

_FIELDS = (
    *("language", "file", "symbol_type", "symbol", "lines", "start_line", "end_line"),
    *("summary", "keywords", "code"),
)
# What differs from chunk to chunk, and is empty in some.
_OFTEN_EMPTY = frozenset(("symbol", "summary", "keywords"))
# A frame may take no more than this part of the limit.
_SHARE = 3

_Line = tuple[str, tuple[str, ...]]


def check_template(template: object) -> str:
    """Refuse a template that could not be filled in.

    Args:
        template: What the caller gave.

    Returns:
        The same template.

    Raises:
        InvalidParameterError: It is no string, holds a field that is not known, or does not
            hold `{code}` just once.
    """
    allowed = "give a text with {code} once and, where wanted, " + ", ".join(
        f"{{{field}}}" for field in _FIELDS[:-1]
    )
    if not isinstance(template, str):
        raise InvalidParameterError("template", template, allowed)
    try:
        parts = list(Formatter().parse(template))
    except ValueError:
        raise InvalidParameterError("template", template, allowed) from None
    fields = [field for _, field, _, _ in parts if field is not None]
    plain = not any(spec or conversion for _, _, spec, conversion in parts)
    if not plain or fields.count("code") != 1 or not set(fields) <= set(_FIELDS):
        raise InvalidParameterError("template", template, allowed)
    return template


class CodeFrame:
    """A template with the facts of one document filled in.

    A line of the template all of whose fields are empty is left out.

    Attributes:
        is_even: Whether the frame is equally long for every chunk, but for line numbers and
            symbol types.
        is_usual: Whether just symbol type, lines and code differ from chunk to chunk.
    """

    def __init__(self, template: str, *, language: str, file: str, described: bool) -> None:
        """Fill in what all chunks of the document share.

        Args:
            template: A template that `check_template` has seen.
            language: The language, or the empty string.
            file: The path, or the empty string.
            described: Whether chunks have a summary and keywords.
        """
        known = {"language": language, "file": file}
        if not described:
            known |= {"summary": "", "keywords": ""}
        lines = [_filled(line, known) for line in _parsed(template)]
        self._lines = [line for line in lines if line is not None]
        self.is_even = not any(_OFTEN_EMPTY & set(fields) for _, fields in self._lines)
        self._pattern = "\n".join(pattern for pattern, _ in self._lines)
        self._fields = [field for _, fields in self._lines for field in fields]
        usual = self._fields == ["symbol_type", "lines", "code"]
        self.is_usual = usual and "\0" not in self._pattern
        if self.is_usual:
            self._between = (self._pattern % ("\0", "\0", "\0")).split("\0")

    def usual_text(self, symbol_type: str, lines: str, code: str) -> str:
        """Put in the facts of a usual frame; as `text`, only faster.

        Args:
            symbol_type: The symbol type.
            lines: First and last line.
            code: The code.

        Returns:
            The text to embed.
        """
        first, second, third, last = self._between
        return f"{first}{symbol_type}{second}{lines}{third}{code}{last}"

    def text(self, facts: Mapping[str, str]) -> str:
        """Put a chunk's facts in.

        Args:
            facts: Field to text, for every field that chunks have.

        Returns:
            The text to embed.
        """
        if self.is_even:
            return self._pattern % tuple([facts[field] for field in self._fields])
        kept = [
            pattern % tuple([facts[field] for field in fields])
            for pattern, fields in self._lines
            if not fields or any(facts[field] for field in fields)
        ]
        return "\n".join(kept)

    @classmethod
    def within(
        cls,
        template: str,
        limit: int,
        measure: Callable[[str], int],
        *,
        language: str,
        file: str,
        described: bool,
        facts: Mapping[str, str],
    ) -> CodeFrame:
        """Return a frame that takes no more than a third of the limit.

        Where the whole one does, the path loses its outermost folders, then itself; then the
        code stands alone.

        Args:
            template: A template that `check_template` has seen.
            limit: The longest text to embed.
            measure: The length of a text.
            language: The language.
            file: The path.
            described: Whether chunks have a summary and keywords.
            facts: The longest facts of any chunk, without code.

        Returns:
            The frame.
        """
        while True:
            frame = cls(template, language=language, file=file, described=described)
            if measure(frame.text(facts)) * _SHARE <= limit:
                return frame
            if not file:
                return cls("{code}", language="", file="", described=False)
            file = file.partition("/")[2]


@lru_cache(maxsize=64)
def _parsed(template: str) -> tuple[tuple[tuple[str, str | None], ...], ...]:
    """Return the literals and fields of each line."""
    return tuple(
        tuple((literal, field) for literal, field, _, _ in Formatter().parse(line))
        for line in template.split("\n")
    )


def _filled(line: Iterable[tuple[str, str | None]], known: Mapping[str, str]) -> _Line | None:
    r"""Return a line as a pattern for `%` and the fields left in it; `None` to leave it out."""
    pattern, left, seen, empty = "", [], False, True
    for literal, field in line:
        pattern += literal.replace("%", "%%")
        if field is None:
            continue
        seen = True
        if field in known:
            pattern += known[field].replace("%", "%%")
            empty &= not known[field]
        else:
            pattern += "%s"
            left.append(field)
            empty = False
    return None if seen and empty else (pattern, tuple(left))
