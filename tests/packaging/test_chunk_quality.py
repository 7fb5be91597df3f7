"""The benchmark of chunk quality: its measures and its places are right."""

from __future__ import annotations

import doctest

import pytest

from tests.benchmarks import _answers, chunk_quality
from tests.benchmarks._answers import Document, Question, Scores, interval
from tests.benchmarks._chunkers import located

TEXT = "One two three. 一二三。 Four five six."
DOCUMENTS = [Document(TEXT), Document("Elsewhere, two three.")]


def test_the_examples_of_the_measures_run():
    """Every example in the docstrings of the measures holds."""
    assert doctest.testmod(_answers).attempted > 0
    assert doctest.testmod(_answers).failed == 0


@pytest.mark.parametrize(
    ("found", "recall", "precision", "iou"),
    [
        ([(0, 0, 14)], 1, 2 / 3, 2 / 3),
        ([(0, 0, 7)], 1 / 2, 1 / 2, 1 / 3),
        ([(0, 0, 7), (0, 4, 14)], 1, 2 / 4, 2 / 4),  # what is found twice is read twice
        ([(0, 15, 19)], 0, 0, 0),
        ([(1, 0, 21)], 0, 0, 0),  # the same words elsewhere are not the answer
        ([(0, 0, 6), (0, 6, 14)], 1 / 2, 1 / 2, 1 / 3),  # a word that is cut is in neither
        ([], 0, 0, 0),
    ],
    ids=["whole", "half", "twice", "beside", "elsewhere", "cut", "nothing"],
)
def test_scores_count_tokens(found, recall, precision, iou):
    """Recall, precision and IoU of "two three" are what a hand counts."""
    asked = Question("?", 0, 4, 13, 0)
    assert Scores.of(asked, found, DOCUMENTS) == pytest.approx((recall, precision, iou))


def test_chinese_counts_by_characters():
    """Two of three characters are two thirds."""
    assert Scores.of(Question("?", 0, 15, 18, 0), [(0, 0, 17)], DOCUMENTS).recall == 2 / 3


def test_an_interval_is_the_same_in_every_run_and_holds_the_mean():
    """The bootstrap is seeded; more of the same evidence narrows it."""
    few, many = ([0.0, 1.0] * count for count in (20, 500))
    assert interval(few, range(40)) == interval(few, range(40))
    wide, narrow = interval(few, range(40)), interval(many, range(1000))
    assert wide.low < wide.mean == narrow.mean == 0.5 < wide.high
    assert narrow.high - narrow.low < (wide.high - wide.low) / 3


def test_questions_about_one_paragraph_are_drawn_together():
    """Copies of a question are no new evidence."""
    values = [float(at % 2) for at in range(40)]
    once, copied = interval(values, range(40)), interval(values * 9, [*range(40)] * 9)
    assert copied == pytest.approx(once)


def test_places_are_found_though_a_peer_changes_blanks():
    """Repeated text, changed blanks and a piece of overlap alone keep their places."""
    text = "# A\n\nab  ab\u200b ab\n\nab cd"
    pieces = ["# A  \nab", "ab ab", "ab", "ab cd"]
    assert [(piece.start, piece.end) for piece in located(text, pieces, 2)] == [
        (0, 7),
        (5, 11),
        (9, 11),
        (17, 22),
    ]
    with pytest.raises(ValueError, match="not in the text"):
        located(text, ["absent"], 0)


def test_without_the_data_it_says_so(monkeypatch, tmp_path, capsys):
    """A machine without the questions gets a sentence, not an error."""
    monkeypatch.setenv("EASYRAG_DATA", str(tmp_path))
    assert chunk_quality.main([]) == 0
    assert "EASYRAG_DATA" in capsys.readouterr().out
