"""Marks that hold to their neighbours: what may end a chunk, and what may begin one."""

from __future__ import annotations

import re

from easyrag_core.text import is_grapheme_boundary

__all__ = [
    "BEFORE_BLANK",
    "BREAKING_SPACE",
    "CJK",
    "CLOSERS",
    "MOST_CLOSERS",
    "NEVER_FIRST",
    "UNFIT_FIRST",
    "UNFIT_LAST",
    "WIDE_CLAUSES",
    "WIDE_ENDS",
    "WORD_EDGE",
    "behind_straight_quotes",
    "is_abbreviation",
    "may_cut",
]

# Marks that close what came before. Before a blank, straight quotes and “ (as in German) close too.
CLOSERS = r")\]}”’»›）］｝」』】〕〉》〗〙〛｠｣﹂﹄"
BEFORE_BLANK = CLOSERS + "\"'“‘"
MOST_CLOSERS = 8
"""So many closing marks in a row are looked at; more of them are no prose."""
_OPENERS = frozenset("([{（［｛「『【〔〈《〖〘〚｟｢﹁﹃")
_OPENING_QUOTES = frozenset("“‘«‹")

WIDE_ENDS = "。！？｡।॥؟۔።။។៕‼⁇⁈⁉"
WIDE_CLAUSES = "；，、：､﹐﹑،؛"
NEVER_FIRST = frozenset(")]}”’»›）］｝」』】〕〉》〗〙〛｠｣﹂﹄…‥" + WIDE_ENDS + WIDE_CLAUSES)
CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_BLANKS = frozenset(char for char in map(chr, range(0x3001)) if char.isspace())
UNFIT_FIRST = NEVER_FIRST | _BLANKS
"""What may not begin a chunk, or must be looked behind first."""
UNFIT_LAST = _OPENERS | _BLANKS
"""What may not end a chunk, or must be looked before first."""

# No-break spaces are blanks, but not places to break.
BREAKING_SPACE = r"[^\S\u00a0\u2007\u202f]"

# The edge of a word: a character that is no letter or digit of an alphabet with spaces.
WORD_EDGE = re.compile(rf"[\W_{CJK}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")

_WORD_BEFORE = re.compile(r"(?:[^\W\d_]|\.)+\Z")
_LIST_NUMBER = re.compile(r"(?:\A|[\r\n])[ \t]*\d{1,3}\Z")
# None of these has five letters in a row: `is_abbreviation` counts on it.
_ABBREVIATIONS = frozenset(
    [
        *["dr", "mr", "mrs", "ms", "prof", "st", "jr", "sr", "gen", "col", "lt", "capt", "rev"],
        *["hon", "gov", "inc", "ltd", "corp", "co", "bros", "dept", "vs", "cf", "fig", "figs"],
        *["no", "nos", "vol", "pp", "eq", "sec", "ch", "ed", "eds", "al", "e.g", "i.e", "viz"],
        *["resp", "incl", "etc", "bzw", "nr", "ca", "vgl", "usw", "sog", "evtl", "mme", "mlle"],
        *["sra", "srta", "ud", "uds", "núm", "pág", "рис", "стр", "им", "т.е", "т.д"],
    ]
)
_LONGEST_WORD_LOOKED_AT = 24
_LONGEST_GAP = 16
_LONGEST_QUOTATION = 400
_STRAIGHT_QUOTES = "\"'"


def may_cut(text: str, position: int, floor: int) -> bool:
    """Whether a chunk may end here: no closing mark begins the next, no opening one ends this."""
    if position >= len(text):
        return True
    following, before = text[position], text[position - 1]
    if following in UNFIT_FIRST:
        following = text[position : position + _LONGEST_GAP].lstrip()[:1]
        if following in NEVER_FIRST:
            return False
    if before in _OPENING_QUOTES:
        return False
    if before in UNFIT_LAST:
        before = text[max(0, position - _LONGEST_GAP) : position].rstrip()[-1:]
        if before in _OPENERS:
            return False
    return is_grapheme_boundary(text, position, floor=floor)


def is_abbreviation(text: str, position: int) -> bool:
    """Whether the full stop before `position` ends an initial, an abbreviation or `1.`."""
    before = text[max(0, position - _LONGEST_WORD_LOOKED_AT) : position].rstrip()
    if not before.endswith("."):
        return False
    if before[-6:-1].isalpha():
        return False  # no abbreviation has five letters, and most words do
    before = before[:-1]
    if _LIST_NUMBER.search(before) is not None:
        return True
    word = _WORD_BEFORE.search(before)
    if word is None:
        return False
    letters = word.group().lower()
    return len(letters.rpartition(".")[2]) == 1 or letters in _ABBREVIATIONS


def behind_straight_quotes(text: str, position: int) -> int:
    """Return where straight quotes end that close a quotation before `position`.

    A straight quote closes when the line has an odd number of them so far.
    """
    while (quote := text[position : position + 1]) in _STRAIGHT_QUOTES and quote:
        line = max(text.rfind("\n", 0, position) + 1, position - _LONGEST_QUOTATION)
        if text.count(quote, line, position) % 2 == 0:
            break
        position += 1
    return position
