"""An index whose texts are read as numbers, here or by worker processes."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core import (
    BM25Index,
    FunctionAnalyzer,
    InvalidParameterError,
    JiebaAnalyzer,
    StandardAnalyzer,
)
from easyrag_core.index.analyzer import _workers
from easyrag_core.index.analyzer._numbering import numbered_lists
from tests.strategies import FRAGMENTS, nasty_texts

TEXTS = [f"{FRAGMENTS[n % len(FRAGMENTS)]} 数据库 getUserName {n % 13}" for n in range(200)]
TEXTS += ["", "\ud83d"]
IDS = [f"id{n % 190}" for n in range(len(TEXTS))]
TITLES = [f"title{n % 7} 标题" for n in range(len(TEXTS))]
ARRAYS = ("orders", "lengths", "terms", "offsets", "documents", "frequencies")


@pytest.fixture
def started(monkeypatch):
    """The processes that were started; workers serve any amount of text, in small batches."""
    processes = []
    real = _workers.Popen
    monkeypatch.setattr(
        _workers, "Popen", lambda *a, **k: processes.append(real(*a, **k)) or processes[-1]
    )
    for kind in (StandardAnalyzer, JiebaAnalyzer):
        monkeypatch.setattr(kind, "_pool_from", 0)
    monkeypatch.setattr("easyrag_core.index.bm25._documents._BATCH_DOCUMENTS", 17)
    return processes


def built(analyzer, **how):
    """An index in two writes, the second of which replaces."""
    index = BM25Index(analyzer=analyzer, field_weights={"title": 2})
    index.add(IDS, TEXTS, fields={"title": TITLES}, **how)
    index.add(IDS[:50], TEXTS[50:100], **how)
    return index


def assert_same(index, other):
    """The same numbers in the same places, not only the same answers."""
    mine, its = index._snapshot, other._snapshot
    assert mine.vocabulary.terms() == its.vocabulary.terms()
    assert (mine.total_length, mine.ids) == (its.total_length, its.ids)
    for part, twin in zip(mine.parts, its.parts, strict=True):
        for name in ARRAYS:
            array, expected = getattr(part.segment, name), getattr(twin.segment, name)
            assert array.dtype == expected.dtype
            np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("kind", [StandardAnalyzer, JiebaAnalyzer])
def test_workers_build_the_same_index(kind, started):
    """To the last number, with fields, replaced ids and lone surrogates; none is left behind."""
    if kind is JiebaAnalyzer:
        pytest.importorskip("jieba")
    analyzer = kind(stop_words=["a", "的"])
    here = built(analyzer)
    assert started == []
    assert_same(built(analyzer, processes=2), here)
    assert len(started) == 4
    assert all(process.poll() is not None for process in started)
    # Any other analyzer goes by lists of terms: the numbers must not tell.
    assert_same(built(FunctionAnalyzer(analyzer)), here)


def test_little_text_starts_no_worker(started, monkeypatch):
    """Below the amount that pays for it all is read here."""
    monkeypatch.setattr(StandardAnalyzer, "_pool_from", 10**9)
    built(StandardAnalyzer(), processes=2)
    BM25Index(analyzer=str.split).add(["a"], ["x"], processes=2)
    assert started == []


def test_a_broken_worker_changes_nothing(started, monkeypatch, caplog):
    """What it should read is read here, with a warning."""
    monkeypatch.setattr(_workers, "_COMMAND", "raise SystemExit(3)")
    assert_same(built(StandardAnalyzer(), processes=2), built(StandardAnalyzer()))
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_a_failed_write_ends_its_workers(started, monkeypatch):
    """Also when it fails in the middle; the index is as it was."""

    def fail(*arguments):
        raise ZeroDivisionError

    index = BM25Index()
    index.add(["a"], ["x"])
    monkeypatch.setattr("easyrag_core.index.bm25._writing.build_segment", fail)
    with pytest.raises(ZeroDivisionError):
        index.add(IDS, TEXTS, processes=2)
    assert len(started) == 2
    assert all(process.poll() is not None for process in started)
    assert index.ids == ["a"]


@pytest.mark.parametrize("processes", [0, -1, 1.5, "2", True])
def test_no_number_of_processes_is_refused(processes):
    """Also when there is nothing to add."""
    with pytest.raises(InvalidParameterError, match="processes"):
        BM25Index().add([], [], processes=processes)


def test_an_analyzer_of_ones_own_gets_the_number():
    """It is told how many processes it may use, and only where someone said so."""
    asked = []

    class Own(FunctionAnalyzer):
        def analyze_many(self, texts, **how):
            asked.append(how)
            return super().analyze_many(texts, **how)

    index = BM25Index(analyzer=Own(str.split))
    index.add(["a"], ["x"])
    index.add(["b"], ["x y"], processes=3)
    assert asked == [{}, {"processes": 3}]
    assert [hit.id for hit in index.search("y")] == ["b"]


@given(
    st.lists(nasty_texts(max_fragments=8), max_size=6),
    st.sampled_from([{}, {"stop_words": "english"}, {"cjk": "bigram", "identifiers": False}]),
)
def test_numbers_stand_for_the_terms(texts, options):
    """Numbered token by token or term by term, they are the terms of single calls."""
    analyzer = StandardAnalyzer(**options)
    expected = [analyzer(text) for text in texts]
    numbered, plain = analyzer.numbered(texts), numbered_lists(expected)
    assert numbered.lists() == plain.lists() == expected
    assert numbered.terms == plain.terms
    np.testing.assert_array_equal(numbered.numbers, plain.numbers)
    np.testing.assert_array_equal(numbered.lengths, plain.lengths)


def test_long_texts_are_read_in_small_batches(monkeypatch):
    """A batch holds so many characters at most, or a single text."""
    monkeypatch.setattr("easyrag_core.index.bm25._documents._BATCH_CHARACTERS", 10)
    read = []

    class Own(FunctionAnalyzer):
        def analyze_many(self, texts, **how):
            read.append(list(texts))
            return super().analyze_many(texts, **how)

    texts = ["a b", "c" * 40, "d", "e f g h i j"]
    BM25Index(analyzer=Own(str.split)).add(list("wxyz"), texts)
    assert read == [texts[:2], texts[2:]]
