"""Lines, blank edges and grapheme clusters."""

from __future__ import annotations

import re

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core.text import (
    content_end,
    grapheme_boundary_after,
    grapheme_boundary_before,
    indentation_start,
    is_grapheme_boundary,
    line_ends_between,
    line_starts,
    strip_span,
    text_digest,
)
from tests.strategies import nasty_texts


def _oracle(text: str) -> set[int]:
    """Boundaries of extended grapheme clusters as the `regex` package sees them."""
    return {0, len(text)} | {match.start() for match in regex.finditer(r"\X", text)}


@given(nasty_texts())
def test_no_cut_falls_into_a_grapheme_cluster(text: str) -> None:
    """Every boundary of ours is one of Unicode's extended grapheme clusters."""
    ours = {i for i in range(len(text) + 1) if is_grapheme_boundary(text, i)}
    assert ours <= _oracle(text)


@pytest.mark.parametrize(
    ("text", "boundaries"),
    [
        ("👨‍👩‍👧‍👦👍🏽e\u0301e\u0301", [0, 7, 9, 11, 13]),
        ("🇩🇪🇫🇷🇨", [0, 2, 4, 5]),
        ("\u1100\u1161\u11a8\u1100\u1161\u11a8", [0, 3, 6]),
        ("각가", [0, 1, 2]),
        ("नमस्ते", [0, 1, 2, 6]),
        ("क्ष", [0, 3]),
        ("กำ", [0, 2]),
        ("a\r\nb\n\rc", [0, 1, 3, 4, 5, 6, 7]),
        ("\ud83d\ude00x", [0, 2, 3]),
        ("☺️❤️‍🔥", [0, 2, 6]),
        ("ｶﾞ", [0, 2]),
        ("葛\U000e0100城", [0, 2, 3]),
        ("🏴\U000e0067\U000e0062\U000e007f.", [0, 4, 5]),
    ],
)
def test_clusters_of_many_scripts(text: str, boundaries: list[int]) -> None:
    """Families, flags, jamo, viramas, variation selectors, tags and surrogate pairs hold."""
    assert [i for i in range(len(text) + 1) if is_grapheme_boundary(text, i)] == boundaries


@given(nasty_texts(), st.integers(0, 400))
def test_nearest_boundaries(text: str, position: int) -> None:
    """The searches return the nearest boundary on the side asked for."""
    position = min(position, len(text))
    before = grapheme_boundary_before(text, position)
    assert is_grapheme_boundary(text, before)
    assert not any(is_grapheme_boundary(text, i) for i in range(before + 1, position + 1))
    if position < len(text):
        after = grapheme_boundary_after(text, position)
        assert is_grapheme_boundary(text, after)
        assert not any(is_grapheme_boundary(text, i) for i in range(position + 1, after))


@given(nasty_texts())
def test_lines_end_at_three_marks_only(text: str) -> None:
    r"""Lines end at `\n`, `\r\n` and `\r`, not at U+2028, `\x0b`, `\x0c` or U+0085."""
    starts = [0] + [match.end() for match in re.finditer(r"\r\n|\n|\r", text)]
    assert line_starts(text) == starts
    assert line_ends_between(text, 0, len(text)) == len(starts) - 1


@given(nasty_texts(), st.data())
def test_strip_span_leaves_blanks_alone(text: str, data: st.DataObject) -> None:
    """Only blanks are left out, and the result holds every other character."""
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    first, last = strip_span(text, start, end)
    assert start <= first <= last <= end
    assert text[first:last].strip() == text[start:end].strip()
    assert first == last or not text[last - 1].isspace()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("  plain  ", "plain"),
        ("    code()\n", "    code()"),
        ("\n\n    code()\n", "    code()"),
        ("\n\tcode()\n", "\tcode()"),
        ("\n  two\n", "two"),
        ("\u3000\u3000全角缩进", "全角缩进"),
        (" \t mixed", "mixed"),
        ("   ", ""),
    ],
)
def test_the_indentation_of_code_is_kept(text: str, kept: str) -> None:
    """Four spaces or a tab at a line's start are content, other blanks at the edge are not."""
    first, last = strip_span(text, 0, len(text))
    assert text[first:last] == kept


def test_indentation_counts_only_at_the_start_of_a_line() -> None:
    """Blanks in the middle of a line are no indentation."""
    assert indentation_start("a        b", 1, 9) == 9
    assert indentation_start("a\r        b", 1, 10) == 2


@given(nasty_texts())
def test_content_end_is_where_rstrip_stops(text: str) -> None:
    """The end found without a copy is the end that `str.rstrip` finds."""
    assert content_end(text) == len(text.rstrip())


def test_content_end_of_many_blanks() -> None:
    """Blocks of blanks longer than one step are passed over."""
    assert content_end("a" + " " * 100_000) == 1
    assert content_end(" " * 100_000) == 0


def test_digest_takes_lone_surrogates_and_tells_texts_apart() -> None:
    """Any string has a digest: 64 lower-case hex digits, different for texts of equal hash()."""
    assert re.fullmatch(r"[0-9a-f]{64}", text_digest("\ud83d"))
    assert text_digest("Aa") != text_digest("BB")
