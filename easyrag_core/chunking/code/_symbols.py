"""The kind and name of a chunk that is one top-level definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from easyrag_core.chunking.code._block_comments import opens_block
from easyrag_core.chunking.code._grammars import kind_of
from easyrag_core.chunking.code._line_cuts import blank_lines_end, group_start

if TYPE_CHECKING:
    from easyrag_core.chunking.code._grammars import Grammar

__all__ = ["CODE_BLOCK", "symbol_of"]

CODE_BLOCK = "CodeBlock"
"""The type of a chunk that is not one definition; no other type is longer."""


def symbol_of(view: str, start: int, end: int, grammar: Grammar) -> tuple[str, str]:
    r"""Return what `view[start:end]` defines, if it is one whole top-level definition.

    Args:
        view: The text, with `\n` as its only line end.
        start: The start of a line with content.
        end: The end of a line.
        grammar: How the language is read.

    Returns:
        Kind and name, such as `("Function", "main")`; `("CodeBlock", "")` for anything else.
    """
    if view[start].isspace() or not grammar.definitions or (start and view[start - 1] != "\n"):
        return CODE_BLOCK, ""
    line = _definition_line(view, start, end, grammar)
    if line < 0:
        return CODE_BLOCK, ""
    other = grammar.next_edge.search(view, line, end)
    while other and view.startswith(grammar.comments, other.end()):
        other = grammar.next_edge.search(view, other.end(), end)
    if other:
        return CODE_BLOCK, ""
    following = blank_lines_end(view, end)
    if following < len(view) and grammar.unfit.match(view, following):
        return CODE_BLOCK, ""
    return _named(view, line, end, grammar)


def _definition_line(view: str, start: int, end: int, grammar: Grammar) -> int:
    """Return the start of the line that defines, behind its attributes; -1 without one."""
    if start and grammar.next_definition.match(view, start - 1):
        return start
    first = start + 1 if view[start] == "\ufeff" else start
    if not start and any(pattern.match(view, first, end) for pattern in grammar.definitions):
        return first
    line = view[first:end].partition("\n")[0].rstrip()
    attribute = grammar.attribute is not None and grammar.attribute.match(line)
    comment = line.startswith(grammar.comments) or opens_block(view, first, grammar.blocks)
    if not attribute and not comment:
        return -1
    found = grammar.next_definition.search(view, start, end)
    if found and group_start(view, found.end(), start, grammar) == start:
        return found.end()
    return -1


def _named(view: str, line: int, end: int, grammar: Grammar) -> tuple[str, str]:
    for pattern in grammar.definitions:
        match = pattern.match(view, line, end)
        if match:
            parts = match.groupdict()
            return kind_of(parts.get("word")), (parts.get("name") or "").strip(" \t\"'`")
    return CODE_BLOCK, ""
