"""An index is searched with the analyzer that it was built with, or not at all."""

from __future__ import annotations

import json
import re
from itertools import pairwise, permutations

import pytest

from easyrag_core import (
    BM25Index,
    FunctionAnalyzer,
    HybridIndex,
    IndexFormatError,
    JiebaAnalyzer,
    StandardAnalyzer,
)

pytest.importorskip("jieba")
pytest.importorskip("Stemmer")


class Pairs:
    """An analyzer of a user's own: the terms are pairs of characters."""

    name = "pairs"

    def __init__(self, joint=""):
        self.joint = joint

    def __call__(self, text):
        return [a + self.joint + b for a, b in pairwise(text)]

    def analyze_many(self, texts, *, processes=None):
        return [self(text) for text in texts]

    def settings(self):
        return {"name": self.name, "joint": self.joint}


def upper_words(text):
    """A function from text to terms."""
    return text.upper().split()


OURS = {
    "default": StandardAnalyzer(),
    "stemmed": StandardAnalyzer(stemmer="english", stop_words="english"),
    "bigrams": StandardAnalyzer(cjk="bigram"),
    "jieba": JiebaAnalyzer(),
    "jieba with words": JiebaAnalyzer(words=["布隆过滤器"]),
}
FOREIGN = {
    "function": FunctionAnalyzer(upper_words),
    "another function": FunctionAnalyzer(str.split),
    "own": Pairs(),
    "own with another setting": Pairs("-"),
}
ALL = {**OURS, **FOREIGN}


def saved(folder, analyzer):
    """Save an index of two texts and return its folder and what it finds."""
    index = BM25Index(analyzer=analyzer)
    index.add(["a", "b"], ["running with 布隆过滤器", "the rest"])
    index.save(folder)
    return index.search("running 布隆过滤器")


@pytest.mark.parametrize("analyzer", OURS.values(), ids=OURS)
def test_ours_need_not_be_given(tmp_path, analyzer):
    """The settings on disk are enough: the index finds what it found, with equal scores."""
    found = saved(tmp_path / "i", analyzer)
    loaded = BM25Index.load(tmp_path / "i")
    assert loaded.analyzer == analyzer
    assert loaded.search("running 布隆过滤器") == found
    assert BM25Index.load(tmp_path / "i", analyzer=analyzer).search("running 布隆过滤器") == found


@pytest.mark.parametrize("analyzer", FOREIGN.values(), ids=FOREIGN)
def test_what_is_not_ours_must_be_given(tmp_path, analyzer):
    """No code is kept on disk, so that the index asks for the analyzer, and takes the same."""
    found = saved(tmp_path / "i", analyzer)
    with pytest.raises(IndexFormatError, match="analyzer="):
        BM25Index.load(tmp_path / "i")
    assert BM25Index.load(tmp_path / "i", analyzer=analyzer).search("running 布隆过滤器") == found


@pytest.mark.parametrize(("built", "given"), list(permutations(ALL, 2)))
def test_another_analyzer_is_refused(tmp_path, built, given):
    """Whatever the index was built with, a different one raises before any search."""
    saved(tmp_path / "i", ALL[built])
    with pytest.raises(IndexFormatError, match="same analyzer"):
        BM25Index.load(tmp_path / "i", analyzer=ALL[given])


@pytest.mark.parametrize("analyzer", ALL.values(), ids=ALL)
def test_settings_are_json(analyzer):
    """Settings survive JSON unchanged, so that what was saved equals what is compared."""
    assert json.loads(json.dumps(analyzer.settings())) == analyzer.settings()


def test_an_index_of_another_dictionary_is_refused(tmp_path):
    """Jieba's version is part of the settings: another dictionary cuts other words."""
    older = JiebaAnalyzer()
    older._segmenter.version = "0.1"
    saved(tmp_path / "i", older)
    with pytest.raises(IndexFormatError, match="another version"):
        BM25Index.load(tmp_path / "i")


def test_nothing_on_disk_is_a_pickle(tmp_path):
    """Each file of a saved index is JSON, text or an array without objects."""
    saved(tmp_path / "i", JiebaAnalyzer(words=["布隆过滤器"]))
    for path in (tmp_path / "i").rglob("*"):
        if path.is_file():
            start = path.read_bytes()[:128]
            assert not start.startswith(b"\x80")
            assert not re.search(rb"'descr': '\|?O", start)


def test_a_hybrid_index_asks_for_it_too(tmp_path):
    """The rule holds for the index inside another one."""
    HybridIndex(bm25=BM25Index(analyzer=upper_words)).save(tmp_path / "i")
    with pytest.raises(IndexFormatError, match="analyzer="):
        HybridIndex.load(tmp_path / "i")
    loaded = HybridIndex.load(tmp_path / "i", analyzer=upper_words)
    assert loaded.bm25.analyzer == FunctionAnalyzer(upper_words)
