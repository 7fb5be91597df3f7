"""Which characters make words, which are written without spaces, which are folded away."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ASTRAL_MARKS",
    "CJK",
    "CONNECTORS",
    "RUNS",
    "TRIGRAM_SCRIPT",
    "WITHOUT_SPACES",
    "class_of",
    "fold_case",
    "fold_dotless",
    "fold_letters",
    "normalize",
    "script",
]

CONNECTORS: Final = ".+#-"
"""What may stand inside or at the edge of an identifier: `v2.3`, `C++`, `C#`, `ORD-0012`."""

# Han, kana and Bopomofo. The middle dot U+30FB is punctuation and stays out.
_CJK_BLOCKS: Final = (
    (0x2E80, 0x2FDF),
    (0x3005, 0x3007),
    (0x3021, 0x3029),
    (0x3031, 0x3035),
    (0x3038, 0x303C),
    (0x3041, 0x3096),
    (0x3099, 0x309A),
    (0x309D, 0x309F),
    (0x30A1, 0x30FA),
    (0x30FC, 0x30FF),
    (0x3105, 0x312F),
    (0x31A0, 0x31BF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x1AFF0, 0x1B16F),
    (0x20000, 0x3FFFD),
)

# Scripts of South-East Asia that put no space between words.
_TRIGRAM_BLOCKS: Final = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19DF),  # Tai Le, New Tai Lue
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x1B00, 0x1B7F),  # Balinese
    (0xA980, 0xA9FF),  # Javanese, Burmese extended
    (0xAA60, 0xAADF),  # Burmese extended, Tai Viet
)

ASTRAL_MARKS: Final = "\U00010000-\U0001cfff\U0001da00-\U0001efff"
"""Blocks of rare scripts with marks.

They are named whole, since a pattern looks through a list of single characters of these planes
one by one; their few symbols are dropped with the words.
"""

# Signs that change how a word looks and not which word it is: soft hyphen, joiners, direction
# marks, variation selectors, the Arabic tatweel. The zero-width space borders on them.
_INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u0640\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\U000e0001-\U000e01ef"
)
# Vowel points and accents that Hebrew and Arabic writers may leave out.
_POINTS: Final = (
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8"
)
# Arabic letters that keyboards and writers of one language use for each other.
_SAME_LETTERS: Final = {"أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا", "ى": "ي", "ی": "ي", "ک": "ك"}
# Real writing puts a handful of marks on a letter. To bring a run of them into its one order
# takes time in the square of its length, so that what is beyond this is not read.
_MOST_MARKS: Final = 30
_SAMPLED: Final = 6
# "6½" is six and a half, not sixty-one over two, which NFKC alone would make of it.
_FRACTION = re.compile("[¼-¾⅐-⅟↉]")
# Hebrew writes a double mark inside acronyms, often as a plain quote.
_HEBREW_MARK = re.compile("[\"'\u05f3\u05f4](?<=[\u05d0-\u05ea].)(?=[\u05d0-\u05ea])")


def _block_class(blocks: tuple[tuple[int, int], ...]) -> str:
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in blocks)


CJK: Final = re.compile(f"[{_block_class(_CJK_BLOCKS)}]+")
"""A run of Han, kana and Bopomofo."""

TRIGRAM_SCRIPT: Final = re.compile(f"[{_block_class(_TRIGRAM_BLOCKS)}]")
"""A character of Thai, Lao, Khmer, Burmese or a relative."""

WITHOUT_SPACES: Final = re.compile(f"[{_block_class(_CJK_BLOCKS + _TRIGRAM_BLOCKS)}]")
"""A character of a script that puts no space between words."""

RUNS: Final = re.compile(
    "[{0}]+|[{1}]+|[^{0}{1}]+".format(*map(_block_class, (_CJK_BLOCKS, _TRIGRAM_BLOCKS)))
)
"""A run of CJK, of a trigram script, or of anything else."""


def normalize(text: str) -> str:
    """Bring a text to NFKC with one form of each letter and digit, and no invisible signs."""
    if not _needing_care().search(text):
        return unicodedata.normalize("NFKC", text)
    composed = _composed(_FRACTION.sub(r" \g<0>", text))
    folded = _HEBREW_MARK.sub("", _folded_signs().sub(_fold_sign, composed))
    if folded == composed:
        return composed
    # A dropped joiner may have stood between a letter and its accent.
    return _composed(folded)


@cache
def _needing_care() -> re.Pattern[str]:
    """Find what NFKC alone does not bring to one form, or would take long for."""
    care = re.compile(f"{_folded_signs().pattern}|{_FRACTION.pattern}|[\u05d0-\u05ea]")

    def needs_care(sign: str) -> bool:
        composed = unicodedata.normalize("NFKC", sign)
        marked = any(map(unicodedata.combining, composed))
        return marked or care.search(sign + composed) is not None

    # The other planes are named whole: their few texts may take the longer way.
    return re.compile(f"[{class_of(needs_care)}\U00010000-\U0010ffff]")


def _composed(text: str) -> str:
    few, many = _runs_of_marks()
    # A run that is too long shows in a sample: looking there costs a tenth.
    if few.search(text[::_SAMPLED]):
        text = many.sub(r"\1", text)
    return unicodedata.normalize("NFKC", text)


@cache
def _runs_of_marks() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Find a run in every sixth character of a text, and what is to be kept of it in the text."""
    ranges: list[list[int]] = []
    for point in filter(_is_reordered, range(0x300, 0x20000)):
        if ranges and point == ranges[-1][1] + 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    marks = "[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges) + "]"
    least = (_MOST_MARKS + 1) // _SAMPLED
    return re.compile(f"{marks}{{{least}}}"), re.compile(f"({marks}{{{_MOST_MARKS}}}){marks}+")


def _is_reordered(point: int) -> bool:
    """Whether a character, taken apart, is nothing but marks that have an order."""
    sign = chr(point)
    if unicodedata.combining(sign):
        return True
    parts = unicodedata.decomposition(sign).split()
    return bool(parts) and all(
        unicodedata.combining(chr(int(part, 16))) for part in parts if part[0] != "<"
    )


@cache
def _folded_signs() -> re.Pattern[str]:
    letters = "".join(_SAME_LETTERS)
    return re.compile(f"[{class_of(str.isdecimal)}{_INVISIBLE}{_POINTS}{letters}]")


def _fold_sign(match: re.Match[str]) -> str:
    sign, start = match[0], match.start()
    before = match.string[start - 1 : start]
    if sign == "\u200b":  # the zero-width space is a mere hint where no spaces are written
        return "" if TRIGRAM_SCRIPT.match(before) else " "
    if sign == "\u200c":  # the non-joiner parts Persian stems from endings; elsewhere it shapes
        return " " if "\u0600" <= before <= "\u06ff" else ""
    digit = unicodedata.decimal(sign, None)
    return _SAME_LETTERS.get(sign, "") if digit is None else str(digit)


def fold_case(term: str) -> str:
    """Fold a normalised term so that it meets every spelling in capitals and small letters.

    Capitals do not tell the Turkish dotless i from the other: both become one.
    """
    return fold_dotless(fold_letters(term))


def fold_dotless(term: str) -> str:
    """Put the dot on a Turkish "ı": in capitals, and on many keyboards, it is "i"."""
    return term if term.isascii() else term.replace("ı", "i")


def fold_letters(term: str) -> str:
    """Case-fold a normalised term, so that it is normalised again."""
    if term.isascii():
        return term.lower()
    # Turkish "İ" folds to "i" and a dot above that no lower-case writer types.
    folded = term.casefold().replace("i\u0307", "i")
    return unicodedata.normalize("NFKC", folded)


@cache
def script(character: str) -> str:
    """Name the script of a letter; digits count as Latin, marks have none of their own."""
    if character.isdecimal():
        return "LATIN"
    if not character.isalpha() or unicodedata.category(character) == "Lm":
        return ""
    # Unicode names begin with the script: "LATIN SMALL LETTER A", "HANGUL SYLLABLE GA".
    return unicodedata.name(character, "").partition(" ")[0]


def class_of(belongs: Callable[[str], bool]) -> str:
    """Return the basic plane's characters of a kind as a character class; some milliseconds."""
    return "".join(filter(belongs, map(chr, range(0x80, 0x10000))))
