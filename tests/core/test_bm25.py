"""What BM25Index promises to one who searches."""

from __future__ import annotations

import math
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core.errors import ChunkNotFoundError, InvalidParameterError, MissingDependencyError
from easyrag_core.index.analyzer import FunctionAnalyzer, StandardAnalyzer
from easyrag_core.index.bm25 import BM25Index, BM25Params
from easyrag_core.index.bm25._ranking import best_positions
from easyrag_core.types import ChannelScore
from tests.strategies import nasty_texts


def index_of(*texts, **options):
    """Index texts under the ids "0", "1", …."""
    index = BM25Index(**options)
    index.add([str(number) for number in range(len(texts))], texts)
    return index


def ids_of(hits):
    """Return the hits' ids."""
    return [hit.id for hit in hits]


POEM = ("床前明月光", "疑是地上霜", "举头望明月", "低头思故乡")
CHINESE = ("深度学习是机器学习的一种方法。", "今天天气很好", "苹果是水果", "x", "y")

CASES = {
    "langchain-B1": (CHINESE, "机器学习", ["0"]),
    "langchain-B2": (("Hello, world", "Hello there", "x"), "hello world", ["0", "1"]),
    "langchain-B3-one": (("apple",), "apple", ["0"]),
    "langchain-B3-two": (("apple", "pear"), "apple", ["0"]),
    "llamaindex-55": (POEM, "故乡", ["3"]),
    "llamaindex-58-no-match": (POEM, "giraffe", []),
    "llamaindex-58-empty-query": (POEM, "", []),
    "llamaindex-58-blank-query": (POEM, " 。\n", []),
    "llamaindex-58-empty-corpus": ((), "a", []),
    "llamaindex-58-all-empty-corpus": (("", " "), "a", []),
    "llamaindex-58-more-than-there-are": (("a", "b a"), "a", ["0", "1"]),
    "peers-35-empty-corpus": ((), "cat", []),
    "peers-35-empty-documents": (("", "", ""), "cat", []),
    "peers-37": (("检索增强生成 RAG，C++ 和 C# 与 a1", "生成"), "检索", ["0"]),
    "peers-37-c++": (("ansi c", "modern C++ for C programmers"), "c++", ["1", "0"]),
    "peers-39-unknown-word": (("a", "b", "c", "d", "e"), "zebra", []),
    "peers-40-common-word": (("cat", "cat", "cat dog"), "cat", ["0", "1", "2"]),
    "systems-scripts": (("x", "café Москва こんにちは 한국어"), "москва", ["1"]),
    "systems-or-of-terms": (("how to file a claim", "pets"), "where do I claim it?", ["0"]),
    "systems-redis": (("x", "Redis介绍"), "介绍", ["1"]),
}


@pytest.mark.parametrize(("texts", "query", "ids"), CASES.values(), ids=CASES)
def test_cases(texts, query, ids):
    """Seen elsewhere to go wrong: here each query finds exactly these documents."""
    hits = index_of(*texts).search(query)
    assert ids_of(hits) == ids
    assert all(hit.score > 0 for hit in hits)


def test_peers_33_two_documents():
    """With one term in each of two documents the score is ln 2, not 0."""
    [hit] = index_of("cat", "dog").search("cat")
    assert hit.score == pytest.approx(math.log(2))


def test_systems_corpus_of_one():
    """A corpus of one document gives a positive idf."""
    explanation = index_of("apple").explain("apple", "0")
    assert explanation.terms[0].idf == pytest.approx(0.2877, abs=5e-5)


def test_peers_39_k_above_n():
    """Asking for ten of five gives five."""
    assert len(index_of(*["same"] * 5).search("same", 10)) == 5


def test_stop_words_alone_find_nothing():
    """A query of stop words alone gives no hits, and so does a corpus of them."""
    index = index_of("the of and", "fox", analyzer=StandardAnalyzer(stop_words="english"))
    assert index.search("the of") == []
    assert ids_of(index.search("the fox")) == ["1"]


def test_hits_carry_rank_and_raw_score():
    """A hit says its rank and score, for the search and for the channel."""
    hits = index_of("a", "a b", "c").search("a b")
    assert [(hit.id, hit.rank) for hit in hits] == [("1", 1), ("0", 2)]
    for hit in hits:
        assert hit.channels == {"bm25": ChannelScore(hit.rank, hit.score)}
        assert type(hit.score) is float


def test_ties_come_by_insertion_order():
    """Equal scores come in the order in which the documents were added, whatever k."""
    index = index_of(*["same words"] * 200)
    expected = [str(number) for number in range(200)]
    for k in (1, 2, 3, 64, 200):
        assert ids_of(index.search("words", k)) == expected[:k]


def test_formula():
    """The score is the formula of the documentation, term by term."""
    index = index_of("a a b", "b c", "c c c c", params=BM25Params(1.2, 0.5))
    norm = 1.2 * (1 - 0.5 + 0.5 * 3 / 3)
    expected = math.log(1 + 2.5 / 1.5) * 2 * 2.2 / (2 + norm)
    expected += math.log(1 + 1.5 / 2.5) * 1 * 2.2 / (1 + norm)
    assert index.search("a b")[0].score == pytest.approx(expected, rel=1e-12)


def test_repeated_query_term_counts_again():
    """A term that the query repeats counts as often."""
    index = index_of("a b", "b c", "c d")
    once, twice = index.search("a")[0].score, index.search("a a")[0].score
    assert twice == pytest.approx(2 * once)


def test_params_per_query():
    """`k1` and `b` of one search are those of an index that has them from the start."""
    texts = ("a a a b", "a b b b b b b", "a")
    other = BM25Params.long_text()
    index = index_of(*texts)
    assert index.search("a b", params=other) == index_of(*texts, params=other).search("a b")
    assert index.search("a b", params=other) != index.search("a b")
    assert index.params == BM25Params()


def test_k1_zero_counts_presence():
    """With `k1=0` a matching term counts once, however often it occurs."""
    hits = index_of("a", "a a a", "b", params=BM25Params(0, 0)).search("a")
    assert [hit.score for hit in hits] == [pytest.approx(math.log(1 + 1.5 / 2.5))] * 2


FILTERS = {
    "set": {"1", "3"},
    "frozenset": frozenset({"3", "1"}),
    "list": ["3", "1", "3"],
    "mask": np.array([False, True, False, True]),
    "predicate": lambda id_: id_ in ("1", "3"),
    "unknown-ids-ignored": {"1", "3", "nope"},
    "generator": None,
}


@pytest.mark.parametrize("kind", FILTERS)
def test_filters(kind):
    """Every kind of filter is applied before ranking: the best of the accepted are found."""
    index = index_of("a a a", "a b", "a a", "a b b")
    accepted = (id_ for id_ in ("1", "3")) if kind == "generator" else FILTERS[kind]
    hits = index.search("a", 1, filter=accepted)
    assert ids_of(hits) == ["1"]
    [unfiltered] = [hit for hit in index.search("a") if hit.id == "1"]
    assert hits[0].score == unfiltered.score


@pytest.mark.parametrize("accepted", [set(), [], ["nope"], np.zeros(2, bool), lambda _: False])
def test_llamaindex_63_nothing_accepted(accepted):
    """A filter that accepts nothing gives nothing, never everything."""
    assert index_of("a", "a b").search("a", filter=accepted) == []


def test_llamaindex_56_peers_36_filter_is_not_relaxed():
    """With two accepted documents and k=4 only those that match come back."""
    index = index_of("apple pie", "apple car", "apple tree", "car", "pie")
    assert ids_of(index.search("apple", 4, filter={"0", "4"})) == ["0"]


@pytest.mark.parametrize(
    "accepted",
    ["0", b"0", 7, [0], [True, False], np.array([True]), np.array([0, 1]), np.ones((2, 1), bool)],
)
def test_bad_filters_are_refused(accepted):
    """A filter of another kind or length is refused instead of being guessed at."""
    with pytest.raises(InvalidParameterError, match="filter"):
        index_of("a", "a").search("a", filter=accepted)


def test_a_mask_follows_ids():
    """A mask is aligned with `ids`, also after updates and removals."""
    index = index_of("a", "a", "a", "a")
    index.remove(["1"])
    index.add(["0", "9"], ["a", "a"])
    mask = np.array([id_ in ("0", "9") for id_ in index.ids])
    assert ids_of(index.search("a", filter=mask)) == ["0", "9"]


@pytest.mark.parametrize("k", [-1, 1.5, True, None, "3"])
def test_bad_k_is_refused(k):
    """The number of hits is a whole number of at least 0."""
    with pytest.raises(InvalidParameterError, match="k="):
        index_of("a").search("a", k)


def test_k_zero():
    """Asking for none gives nothing."""
    assert index_of("a").search("a", 0) == []
    assert len(index_of("a").search("a", np.int64(1))) == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda index: index.search(None),
        lambda index: index.search(["a"]),
        lambda index: index.search_batch("a"),
        lambda index: index.search("a", params=(1.5, 0.75)),
        lambda index: index.explain(3, "0"),
        lambda _: BM25Index(BM25Params),
        lambda _: BM25Index(analyzer="standard"),
    ],
)
def test_misuse_is_refused(call):
    """A wrong kind of query, params or analyzer is refused by a typed error."""
    with pytest.raises(InvalidParameterError):
        call(index_of("a"))


@pytest.mark.parametrize(
    ("k1", "b"),
    [(-0.1, 0.5), (math.nan, 0.5), (math.inf, 0.5), (1e308, 0.5), ("1", 0.5), (1, -0.1), (1, 1.1)],
)
def test_bad_params_are_refused(k1, b):
    """Params outside their range are refused at construction."""
    with pytest.raises(InvalidParameterError):
        BM25Params(k1, b)


def test_presets():
    """The presets are 1.2/0.5 for short and 2.0/0.85 for long texts; the default 1.5/0.75."""
    assert BM25Params() == BM25Params(1.5, 0.75)
    assert BM25Params.short_text() == BM25Params(1.2, 0.5)
    assert BM25Params.long_text() == BM25Params(2.0, 0.85)


def test_batch_equals_single_searches():
    """A batch gives what single searches give."""
    index = index_of(*CHINESE)
    queries = ["机器", "", "苹果 x", "机器"]
    accepted = {"0", "3"}
    assert index.search_batch(queries, 2, filter=accepted) == [
        index.search(query, 2, filter=accepted) for query in queries
    ]
    assert index.search_batch([]) == []


@given(st.lists(nasty_texts(max_fragments=6), max_size=12), nasty_texts(max_fragments=6))
def test_explanations_add_up(texts, query):
    """For any texts the contributions sum to the score that the search gave, bit for bit."""
    index = index_of(*texts)
    for hit in index.search(query, len(texts)):
        explanation = index.explain(query, hit.id)
        assert explanation.score == hit.score
        assert sum(term.contribution for term in explanation.terms) == explanation.score


def test_explanation():
    """An explanation has tf, document frequency, idf, length norm and contribution per term."""
    index = index_of("a a b", "b c c", "c")
    explanation = index.explain("a b a zebra", "0")
    assert (explanation.length, explanation.average_length) == (3, pytest.approx(7 / 3))
    facts = [(t.term, t.tf, t.document_frequency, t.query_count) for t in explanation.terms]
    assert facts == [("a", 2, 1, 2), ("b", 1, 2, 1), ("zebra", 0, 0, 1)]
    first, second, third = explanation.terms
    assert first.length_norm == pytest.approx(1.5 * (0.25 + 0.75 * 3 / (7 / 3)))
    assert second.contribution == pytest.approx(second.idf * 2.5 / (1 + second.length_norm))
    assert first.contribution == pytest.approx(2 * first.idf * 5 / (2 + first.length_norm))
    assert third.contribution == 0


def test_explaining_what_is_not_there():
    """An unknown or removed id is named; an empty document explains to 0."""
    index = index_of("a", "")
    assert index.explain("a", "1").score == 0
    index.remove(["0"])
    with pytest.raises(ChunkNotFoundError, match="'0'"):
        index.explain("a", "0")
    assert index.explain("a", "1").average_length == 0


def test_lone_surrogates_are_searched():
    """Half a surrogate pair in an id, a text or a query is no reason to fail."""
    index = BM25Index()
    index.add(["\ud83d", "b"], ["half \ud83d moon", "\udc00"])
    assert ids_of(index.search("moon \ud83d")) == ["\ud83d"]


def test_a_term_thousands_of_times():
    """Term frequencies beyond a byte and beyond two are counted exactly."""
    index = index_of("a " * 70_000 + "b", "a " * 300, "a b")
    assert index.explain("a", "0").terms[0].tf == 70_000
    assert index.explain("a", "1").terms[0].tf == 300


def test_a_function_is_an_analyzer():
    """Any function from text to terms serves."""
    index = index_of("to be", "or not", analyzer=str.split)
    assert index.analyzer == FunctionAnalyzer(str.split)
    assert ids_of(index.search("not")) == ["1"]


def test_progress_bar(capsys):
    """`show_progress` shows a bar on stderr, and nothing is shown without it."""
    index = BM25Index()
    index.add(["a"], ["x"])
    assert capsys.readouterr() == ("", "")
    index.add(["b", "c"], ["x", "y"], show_progress=True)
    assert "2/2" in capsys.readouterr().err
    assert len(index) == 3


def test_progress_bar_missing(monkeypatch):
    """Without tqdm the error says what to install, and nothing was added."""
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    index = BM25Index()
    with pytest.raises(MissingDependencyError, match=r"easyrag-core\[progress\]"):
        index.add(["a"], ["x"], show_progress=True)
    assert len(index) == 0


@given(
    st.lists(st.sampled_from([0.0, 0.0, 0.0, 1.0, 2.0, 2.5]), max_size=400),
    st.integers(0, 400),
    st.randoms(use_true_random=False),
)
def test_best_positions(scores, k, random):
    """The k best are those of a full sort, for any k and any ties."""
    orders = list(range(len(scores)))
    random.shuffle(orders)
    matching = [position for position, score in enumerate(scores) if score > 0]
    expected = sorted(matching, key=lambda position: (-scores[position], orders[position]))[:k]
    found = best_positions(np.array(scores), np.array(orders, np.int64), k)
    assert found.tolist() == expected


def test_readers_see_whole_writes():
    """While one thread writes, every search sees the index before or after a write."""
    index = BM25Index(analyzer=str.split)
    batch = [f"d{number}" for number in range(40)]
    index.add(batch, ["red"] * 40)
    wrong, done = [], threading.Event()

    def read():
        while not done.is_set():
            red, blue = index.search_batch(["red", "blue"], 100)
            scores = {hit.score for hit in red + blue}
            if {len(red), len(blue)} != {0, 40} or len(scores) != 1:
                wrong.append((len(red), len(blue), scores))

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for turn in range(120):
        index.add(batch, [("blue", "red")[turn % 2]] * 40)
        if turn % 25 == 0:
            index.compact()
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []
