"""What JiebaAnalyzer promises: words beside the n-grams, nothing hidden, nothing said."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core import (
    BM25Index,
    IndexFormatError,
    InvalidParameterError,
    JiebaAnalyzer,
    MissingDependencyError,
    StandardAnalyzer,
    analyzer_from_settings,
)
from easyrag_core.index.analyzer import Analyzer
from easyrag_core.index.analyzer._characters import CJK
from tests.strategies import nasty_texts

pytest.importorskip("jieba")

STANDARD, ANALYZER = StandardAnalyzer(), JiebaAnalyzer()

WORDS = {
    "word": ("计算机", [*"计算机", "计算", "算机", "计算机"]),
    "search-mode": (
        "布隆过滤器",
        [*"布隆过滤器", "布隆", "隆过", "过滤", "滤器", "过滤器"],
    ),
    "short-words-are-n-grams": ("上海天气", STANDARD("上海天气")),
    "borders": ("2010年的Redis数据库", [*STANDARD("2010年的Redis数据库"), "数据库"]),
    "full-width": ("２０１０，人工智能", ["2010", *STANDARD("人工智能"), "人工智能"]),
    "traditional": ("資料庫", STANDARD("資料庫")),
    "kana": ("コンピュータ", STANDARD("コンピュータ")),
    "empty": ("", []),
}


@pytest.mark.parametrize(("text", "terms"), WORDS.values(), ids=WORDS)
def test_words(text, terms):
    """The n-grams of each run, then its words of three characters and more."""
    assert ANALYZER(text) == terms


@given(
    nasty_texts(max_fragments=10)
    | st.text(st.sampled_from("南京市长江大桥的 Ab1,。タ"), max_size=40)
)
def test_nothing_is_hidden_by_a_segmentation(text):
    """Each term of the default analyzer is a term here, as often: words only come on top."""
    ours = ANALYZER(text)
    for term in STANDARD(text):
        ours.remove(term)
    assert all(len(term) > 2 and CJK.fullmatch(term) for term in ours)


@pytest.mark.parametrize("query", ["市长", "长江", "大桥", "桥", "南京市", "京市长", "江大"])
def test_a_part_across_words_is_found(query):
    """南京市/长江大桥: a query that ends inside a word, or lies across two, finds the text."""
    index = BM25Index(analyzer=ANALYZER)
    index.add(["bridge", "other"], ["南京市长江大桥", "上海天气"])
    assert [hit.id for hit in index.search(query)] == ["bridge"]


def test_a_word_ranks_above_its_scattered_characters():
    """The word adds a term of its own to the document that holds it."""
    scattered, word = "数据要入库，据库", "数据库要入，据库"
    index = BM25Index(analyzer=ANALYZER)
    index.add(["scattered", "word"], [scattered, word])
    first, second = index.search("数据库")
    assert first.id == "word"
    assert first.score > second.score


@given(st.text(st.sampled_from("abc C++ v2.3 école книга हिन्दी ไป"), max_size=40))
def test_what_is_not_chinese_goes_the_default_way(text):
    """Identifiers, other scripts and single letters give what StandardAnalyzer gives."""
    assert ANALYZER(text) == STANDARD(text)


def test_options_are_those_of_the_default():
    """Stop words, stemmer, case and identifiers mean the same; words can be stopped, too."""
    pytest.importorskip("Stemmer")
    options = {"stop_words": "english", "stemmer": "english", "lowercase": False}
    text = "The Running tests of getUserName"
    assert JiebaAnalyzer(**options)(text) == StandardAnalyzer(**options)(text)
    assert "数据库" not in JiebaAnalyzer(stop_words=["数据库"])("数据库")
    assert "v2.3" not in JiebaAnalyzer(identifiers=False)("v2.3")


# The caller's words


@pytest.mark.parametrize("written", ["布隆过滤器", "ＪＶＭ布隆过滤器", "布隆过滤器 2.0"])
def test_own_words_are_cut(written):
    """A word of the caller's is cut; of a word with other signs, its Chinese part."""
    assert "布隆过滤器" not in ANALYZER("用布隆过滤器")
    assert "布隆过滤器" in JiebaAnalyzer(words=[written, "卡拉OK"])("用布隆过滤器")


def test_own_words_stay_with_their_analyzer():
    """Neither another analyzer nor jieba's own cutter learns a word."""
    import jieba

    known = JiebaAnalyzer(words=["量子鸡汤学"])
    assert "量子鸡汤学" in known("量子鸡汤学")
    assert "量子鸡汤学" not in JiebaAnalyzer()("量子鸡汤学")
    assert "量子鸡汤学" not in JiebaAnalyzer(words=["鸡汤"])("量子鸡汤学")
    assert jieba.dt.FREQ.get("量子鸡汤学") is None


def test_the_order_of_words_does_not_count():
    """The same words in another order make an equal analyzer that cuts alike."""
    one, two = (
        JiebaAnalyzer(words=["云原生", "服务网格"]),
        JiebaAnalyzer(words=("服务网格", "云原生") * 2),
    )
    assert one == two
    assert hash(one) == hash(two)
    assert one("云原生服务网格") == two("云原生服务网格")


@pytest.mark.parametrize("words", ["云原生", b"x", [1], 5, None])
def test_what_is_no_list_of_words_is_refused(words):
    """A single string would be read as its characters."""
    with pytest.raises(InvalidParameterError, match="words"):
        JiebaAnalyzer(words=words)


# Settings


@pytest.mark.parametrize("options", [{}, {"words": ["云原生"], "stop_words": "chinese"}])
def test_settings_and_pickle_round_trip(options):
    """Settings survive JSON and pickle, and the copy analyses alike."""
    analyzer = JiebaAnalyzer(**options)
    stored = json.loads(json.dumps(analyzer.settings()))
    assert (stored["name"], isinstance(analyzer, Analyzer)) == ("jieba", True)
    for copy in (analyzer_from_settings(stored), pickle.loads(pickle.dumps(analyzer))):
        assert copy == analyzer
        assert copy.settings() == stored
        assert copy("云原生数据库") == analyzer("云原生数据库")


def test_it_is_another_analyzer_than_the_default():
    """Equal settings of another kind are not equal."""
    assert JiebaAnalyzer() != StandardAnalyzer()


def test_a_saved_index_comes_back_with_its_words(tmp_path):
    """The index builds its analyzer from the settings and refuses every other one."""
    analyzer = JiebaAnalyzer(words=["布隆过滤器"])
    index = BM25Index(analyzer=analyzer)
    index.add(["a", "b"], ["用布隆过滤器", "过滤"])
    index.save(tmp_path / "index")
    loaded = BM25Index.load(tmp_path / "index")
    assert loaded.analyzer == analyzer
    assert loaded.search("布隆过滤器") == index.search("布隆过滤器")
    for other in (StandardAnalyzer(), JiebaAnalyzer(), str.split):
        with pytest.raises(IndexFormatError, match="same analyzer"):
            BM25Index.load(tmp_path / "index", analyzer=other)


# Behaviour


def test_jieba_missing(monkeypatch):
    """Without jieba the error says what to install, before any text comes."""
    monkeypatch.setitem(sys.modules, "jieba", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'easyrag-core\[zh\]'"):
        JiebaAnalyzer()
    with pytest.raises(MissingDependencyError):
        analyzer_from_settings({"name": "jieba"})


def test_it_is_silent_and_leaves_nothing_behind(tmp_path):
    """In a fresh process, all warnings errors: no output, no file, no logger touched."""
    code = """
        import logging
        from easyrag_core import JiebaAnalyzer
        JiebaAnalyzer(words=["云原生"])("云原生数据库")
        assert logging.getLogger().handlers == []
        import jieba
        assert not jieba.dt.initialized
    """
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=True,
    )
    assert (ran.stdout, ran.stderr) == (b"", b"")
    assert list(tmp_path.iterdir()) == []


def test_threads_share_an_analyzer():
    """Eight threads that start with an unloaded dictionary agree."""
    texts = [f"用布隆过滤器和数据库{n % 7}" for n in range(400)]
    analyzer = JiebaAnalyzer(words=["布隆过滤器"])
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(analyzer, texts)) == [analyzer(text) for text in texts]


@pytest.mark.parametrize("run", ["龘", "数据库", "一"])
def test_long_runs_take_linear_time(run):
    """Two hundred thousand characters without a mark are read in a moment."""
    started = time.perf_counter()
    terms = ANALYZER(run * (200_000 // len(run)))
    assert time.perf_counter() - started < 15
    assert len(terms) >= 399_000
