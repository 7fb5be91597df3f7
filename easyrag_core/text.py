"""What a line, a blank edge and a grapheme cluster are, in code points of a Python string."""

from __future__ import annotations

import hashlib
from unicodedata import category

__all__ = [
    "content_end",
    "grapheme_boundary_after",
    "grapheme_boundary_before",
    "indentation_start",
    "is_grapheme_boundary",
    "line_ends_between",
    "line_starts",
    "strip_span",
    "text_digest",
]

_ZWJ = "\u200d"

# Marks that extend what stands before them although their category is not Mn, Me or Mc:
# the zero-width (non-)joiner, halfwidth kana voicing, Thai and Lao AM (UAX 29, Extend and
# SpacingMark). Emoji modifiers and tag characters are ranges, see `_extends`.
_EXTENDING = frozenset("\u200c\u200d\uff9e\uff9f\u0e33\u0eb3")

# UAX 29 "Prepend": letters and signs that belong to what follows.
_PREPENDING = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e"
    "\U000110bd\U000110cd\U000111c2\U000111c3\U000113d1\U0001193f\U00011941\U00011a3a"
    "\U00011a84\U00011a85\U00011a86\U00011a87\U00011a88\U00011a89\U00011d46\U00011f02"
)

# Viramas that join two consonants into one cluster (UAX 29, rule GB9c, and stacked scripts).
_LINKERS = frozenset(
    "\u094d\u09cd\u0acd\u0b4d\u0c4d\u0d4d\u1039\u17d2\u1a60\u1b44\u1bab\u1cf5\u1cf6\ua9c0"
    "\uaaf6\U00010a3f\U00011133\U000113d0\U0001193e\U00011a3a\U00011a47\U00011a99\U00011f42"
)

# Marks that came after Unicode 14, which is what the oldest Python we support knows.
_NEWER_MARKS = frozenset(
    chr(code)
    for first, last in (
        (0x05C8, 0x05C9),
        (0x0897, 0x0897),
        (0x0B53, 0x0B54),
        (0x0CF3, 0x0CF3),
        (0x0ECE, 0x0ECE),
        (0x1ACF, 0x1AF0),
        (0x10D69, 0x10D6D),
        (0x10ECB, 0x10ECF),
        (0x10EF0, 0x10EFF),
        (0x11241, 0x11241),
        (0x113B8, 0x113D2),
        (0x113E1, 0x113E2),
        (0x11B60, 0x11B67),
        (0x11DF0, 0x11DF0),
        (0x11F00, 0x11F03),
        (0x11F34, 0x11F42),
        (0x11F5A, 0x11F5A),
        (0x13440, 0x13455),
        (0x1611E, 0x1612F),
        (0x1D127, 0x1D128),
        (0x1D250, 0x1D281),
        (0x1E08F, 0x1E08F),
        (0x1E4EC, 0x1E4EF),
        (0x1E5EE, 0x1E5EF),
        (0x1E6E3, 0x1E6F5),
    )
    for code in range(first, last + 1)
)


def is_grapheme_boundary(text: str, position: int, *, floor: int = 0) -> bool:
    r"""Tell whether a cut at `position` leaves every user-perceived character whole.

    Follows the extended grapheme clusters of Unicode UAX 29 by the tables of the standard
    library; where it differs it refuses a cut that the standard allows, never the reverse.
    Two lone surrogates that form a pair are kept together as well.

    Args:
        text: The text.
        position: A cut between `text[position - 1]` and `text[position]`.
        floor: A position known to be a boundary; flags are counted from there, so that a long
            run of them costs no more than the distance.

    Returns:
        Whether the cut is allowed. The two ends of the text always are.

    >>> [i for i in range(6) if is_grapheme_boundary("e\u0301\r\nx", i)]
    [0, 2, 4, 5]
    """
    if position <= 0 or position >= len(text):
        return True
    left, right = text[position - 1], text[position]
    if left < "\u0300" and right < "\u0300":
        return not (left == "\r" and right == "\n")
    if category(left) == "Cc":
        return True
    if _extends(right) or left in _PREPENDING:
        return False
    if left == _ZWJ:
        return right < "\u0080"
    if _is_flag(left) and _is_flag(right):
        return _flags_before(text, position, floor) % 2 == 0
    return not (_joins_hangul(left, right) or _pairs(left, right) or _links(text, position))


def grapheme_boundary_before(text: str, position: int, *, floor: int = 0) -> int:
    r"""Return the last boundary at or before `position`, but not before `floor`.

    Args:
        text: The text.
        position: Where a cut is wanted.
        floor: A position known to be a boundary.

    Returns:
        A boundary in `[floor, position]`.

    >>> grapheme_boundary_before("ae\u0301", 2)
    1
    """
    while position > floor and not is_grapheme_boundary(text, position, floor=floor):
        position -= 1
    return position


def grapheme_boundary_after(text: str, position: int, *, floor: int = 0) -> int:
    r"""Return the first boundary after `position`.

    Args:
        text: The text.
        position: A position before the end of the text.
        floor: A position known to be a boundary.

    Returns:
        A boundary in `(position, len(text)]`.

    >>> grapheme_boundary_after("ae\u0301", 1)
    3
    """
    position += 1
    while not is_grapheme_boundary(text, position, floor=floor):
        position += 1
    return min(position, len(text))


def line_starts(text: str) -> list[int]:
    r"""Return where each line starts; lines end at `\n`, `\r\n` or a lone `\r` only.

    Args:
        text: The text.

    Returns:
        Offsets, the first is 0; a line end at the very end opens one more, empty line.

    >>> line_starts("a\r\nb\rc\n")
    [0, 3, 5, 7]
    """
    starts = [0]
    position = 0
    # Splitting at "\n" runs in C; only pieces that hold a "\r" are looked at more closely.
    for line in text.split("\n")[:-1]:
        if "\r" in line:
            starts.extend(_after_carriage_returns(line, position))
        position += len(line) + 1
        starts.append(position)
    starts.extend(_after_carriage_returns(text[position:] + " ", position))
    return starts


def line_ends_between(text: str, start: int, end: int) -> int:
    r"""Count the line ends in `text[start:end]`, a `\r\n` as one.

    Args:
        text: The text.
        start: First position; not inside a `\r\n`.
        end: One past the last position; not inside a `\r\n`.

    Returns:
        The number of line ends.

    >>> line_ends_between("a\r\nb\rc\n", 0, 7)
    3
    """
    count = text.count("\n", start, end)
    carriage_returns = text.count("\r", start, end)
    if carriage_returns:
        count += carriage_returns - text.count("\r\n", start, end)
    return count


def strip_span(text: str, start: int, end: int) -> tuple[int, int]:
    r"""Move both ends of a span past blank edges, keeping the indentation of code.

    An indentation of four spaces or of a tab at the start of a line is content: it is what
    Markdown calls indented code, and what Python means by a block.

    Args:
        text: The text.
        start: First position of the span.
        end: One past its last position.

    Returns:
        The narrower span; empty (`start == end`) when there is nothing but blanks.

    >>> strip_span("  a \n    b  \n", 0, 4), strip_span("  a \n    b  \n", 4, 13)
    ((2, 3), (5, 10))
    """
    piece = text[start:end]
    last = start + len(piece.rstrip())
    first = end - len(piece.lstrip())
    if first >= last:
        return last, last
    if last < end and text[last - 1] in _PREPENDING:
        last += 1  # a sign that belongs to the blank behind it
    if first == start:
        return start, last
    return indentation_start(text, start, first), last


def content_end(text: str) -> int:
    r"""Return where the blanks at the end of a text begin, without a copy of the text.

    Args:
        text: The text.

    Returns:
        One past the last character that is not blank; 0 for a blank text.

    >>> content_end("a \n"), content_end(" ")
    (1, 0)
    """
    end = len(text)
    while end and text[end - 1].isspace():
        start = max(0, end - 4096)
        end = start + len(text[start:end].rstrip())
    return end


def indentation_start(text: str, low: int, first: int) -> int:
    r"""Return where content begins whose own line is indented like code.

    Args:
        text: The text.
        low: Nothing before this position is looked at, but whether a line ends there.
        first: The first character that is not blank at or after `low`.

    Returns:
        The start of the line that holds `first`, if four spaces or a tab stand there; else
        `first`, with the blank before it where both are one grapheme cluster.

    >>> indentation_start("a\n    b", 1, 6), indentation_start("a\n  b", 1, 4)
    (2, 4)
    """
    if first == low:
        return first
    if text[first] >= "\u0300" and not is_grapheme_boundary(text, first):
        return first - 1  # a mark that sits on a blank
    if text[first - 1] not in " \t":
        return first
    if text[first - 2 : first] != "  " and text[first - 1] != "\t":
        return first  # a single blank is no indentation
    line = max(text.rfind("\n", low, first), text.rfind("\r", low, first)) + 1
    if line == 0:
        if low and text[low - 1] not in "\r\n":
            return first
        line = low
    return line if text.startswith(("    ", "\t"), line, first) else first


def text_digest(text: str, *, prefix: str = "") -> str:
    """Return the SHA-256 of a text as 64 lower-case hex digits; lone surrogates are allowed.

    Args:
        text: Any string.
        prefix: Hashed before the text, without a copy of it.

    Returns:
        The digest, the same in every process.

    >>> text_digest("easyrag")[:8], text_digest("rag", prefix="easy")[:8]
    ('85c03407', '85c03407')
    """
    digest = hashlib.sha256(prefix.encode("utf-8", "surrogatepass"))
    digest.update(text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _extends(char: str) -> bool:
    kind = category(char)
    if kind in ("Mn", "Me", "Mc") or char in _EXTENDING:
        return True
    if kind == "Cn":
        return char in _NEWER_MARKS
    return "\U0001f3fb" <= char <= "\U0001f3ff" or "\U000e0020" <= char <= "\U000e007f"


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flags_before(text: str, position: int, floor: int) -> int:
    first = position
    while first > floor and _is_flag(text[first - 1]):
        first -= 1
    return position - first


def _joins_hangul(left: str, right: str) -> bool:
    """Rules GB6 to GB8: leading, vowel and trailing jamo of one syllable stay together."""
    if _is_leading_jamo(left):
        return _is_leading_jamo(right) or _is_later_jamo(right) or _is_syllable(right)
    return _is_later_jamo(right) and (_is_later_jamo(left) or _is_syllable(left))


def _is_leading_jamo(char: str) -> bool:
    return "\u1100" <= char <= "\u115f" or "\ua960" <= char <= "\ua97c"


def _is_later_jamo(char: str) -> bool:
    return "\u1160" <= char <= "\u11ff" or "\ud7b0" <= char <= "\ud7fb"


def _is_syllable(char: str) -> bool:
    return "\uac00" <= char <= "\ud7a3"


def _pairs(left: str, right: str) -> bool:
    return "\ud800" <= left <= "\udbff" and "\udc00" <= right <= "\udfff"


def _links(text: str, position: int) -> bool:
    """Whether a virama, perhaps with joiners after it, ties the letter to the one before."""
    if category(text[position]) != "Lo":
        return False
    before = position - 1
    while before > 0 and text[before] not in _LINKERS and _extends(text[before]):
        before -= 1
    return before > 0 and text[before] in _LINKERS


def _after_carriage_returns(line: str, offset: int) -> list[int]:
    """Starts opened by lone carriage returns; one at the line's end is half of a CRLF."""
    starts = []
    found = line.find("\r")
    while 0 <= found < len(line) - 1:
        starts.append(offset + found + 1)
        found = line.find("\r", found + 1)
    return starts
