"""What a definition, an attribute and a comment look like in a line of each language.

No parser: a definition is told by the line that it begins with. Where a pattern is wrong, a cut
is less good or a symbol has no name; nothing is lost.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from easyrag_core.chunking.code._block_comments import blocks_of
from easyrag_core.chunking.code._families import ANY, FAMILIES, NEVER

if TYPE_CHECKING:
    from easyrag_core.chunking.code._block_comments import Block
    from easyrag_core.chunking.code._families import Family

__all__ = ["BACKWARDS", "Grammar", "grammar_of", "kind_of"]


class Grammar(NamedTuple):
    """How lines of one language are read.

    Attributes:
        definitions: Match a line, from its start, that begins a top-level definition; groups
            `word` (what kind it is) and `name` where there are such.
        next_definition: Finds the line end before such a line.
        last_definition: Finds the last of them, backwards from where the search ends.
        attribute: Matches a line, from its first non-blank, that belongs to what follows it.
        mark: What every attribute that may take several lines begins with, or nothing.
        comments: What a comment's line begins with.
        blocks: The comments that go over several lines.
        unfit: Matches, from its first non-blank, a line that no chunk should begin with, and a
            place that is blank.
        next_edge: Finds the line end before a line without indentation that is fit.
    """

    definitions: tuple[re.Pattern[str], ...]
    next_definition: re.Pattern[str]
    last_definition: re.Pattern[str]
    attribute: re.Pattern[str] | None
    mark: str
    comments: tuple[str, ...]
    blocks: tuple[Block, ...]
    unfit: re.Pattern[str]
    next_edge: re.Pattern[str]


BACKWARDS = r"(?s:.*)"
"""Before a pattern: matches at its last place, at a cost that follows the distance to it."""

_CLOSING = (
    r"[)\]}]|</|\*[\s/]|(?:else|elif|elsif|elseif|except|finally|catch|rescue|ensure|end|fi|done|esac"
    r"|then|do|begin|in|endif|endfunction|EOF)\b"
)
_KINDS = {
    "function": "Function func fun fn def defn defp define sub proc subroutine init async",
    "method": "- + method",
    "class": "class classdef actor defclass setClass setRefClass object",
    "struct": "struct structure record defstruct cl-defstruct",
    "interface": "interface @interface protocol trait defprotocol role signature setGeneric",
    "module": "module mod defmodule package unit library namespace ns program structure functor",
}


@cache
def kind_of(word: str | None) -> str:
    """Return what kind of thing a definition's word makes, in a word of at most nine letters.

    Args:
        word: The word that a definition's line holds, if it holds one.

    Returns:
        A word in title case, such as `Function`.

    >>> kind_of("def"), kind_of("struct"), kind_of(None)
    ('Function', 'Struct', 'Function')
    """
    if word is None:
        return "Function"
    first = word.lower().split()[0].rstrip("!")
    for kind, words in _KINDS.items():
        if first in words.lower().split():
            return kind.title()
    if first.startswith(("def", "cl-def", "cdef", "cpdef")):
        return "Function"
    return first.lstrip("@").title()[:9]


@cache
def grammar_of(language: str) -> Grammar:
    """Return how lines of a language are read.

    Args:
        language: As GitHub writes it; one that is not known is read by words that many share.

    Returns:
        The grammar.
    """
    for family in FAMILIES:
        if language in family.languages.split("|"):
            return _grammar(family, language)
    return _grammar(ANY, language)


def _grammar(family: Family, language: str) -> Grammar:
    flags = re.IGNORECASE | re.MULTILINE if family.ignore_case else re.MULTILINE
    sources = [_expanded(source) for source in family.definitions]
    any_definition = "|".join(re.sub(r"\?P<\w+>", "?:", source) for source in sources)
    unfit = rf"\s|{_CLOSING}|{_expanded(family.unfit)}"
    line_end = rf"\n(?={any_definition or NEVER})"
    return Grammar(
        definitions=tuple(re.compile(source, flags) for source in sources),
        next_definition=re.compile(line_end, flags),
        last_definition=re.compile(BACKWARDS + line_end, flags),
        attribute=re.compile(_expanded(family.attribute)) if family.attribute else None,
        mark=family.mark,
        comments=tuple(family.comments.split()),
        blocks=blocks_of(language, family.comments),
        unfit=re.compile(unfit),
        next_edge=re.compile(rf"\n(?!{unfit})"),
    )


def _expanded(source: str) -> str:
    return source.replace(r"\h", r"[ \t]")
