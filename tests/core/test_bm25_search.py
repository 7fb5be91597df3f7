"""The fast ways to the best documents against the formula itself, hit for hit."""

from __future__ import annotations

import math
import random
from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from easyrag_core.index.bm25 import BM25Index, BM25Params, _impacts
from easyrag_core.index.bm25._ranking import lower_bound

WORDS = [f"w{number}" for number in range(12)]
PACKAGE = "easyrag_core.index.bm25."

ROUGHLY = {"_impacts._SMALL_PART": 0, "_impacts._SMALL_INDEX": 0}

# What is done to large parts, made to happen in small ones.
WAYS = {
    "as it is": {},
    "common terms roughly": {"_impacts._SMALL_PART": 0, "_ranking._ROWS": 2},
    "roughly": {**ROUGHLY, "_ranking._ROWS": 2},
    "roughly, in many parts": {
        **ROUGHLY,
        "_settling._MOST_DOCUMENTS": 7,
        "_ranking._ROWS": 2,
        "_candidates._RARE": 1,
    },
    "in parts of both kinds": {
        "_impacts._SMALL_PART": 5,
        "_impacts._SMALL_INDEX": 0,
        "_settling._MOST_DOCUMENTS": 9,
    },
    "all rows are dense": {**ROUGHLY, "_impacts._DENSE": 10**6},
    "no row is dense": {**ROUGHLY, "_impacts._DENSE": 0},
    "exhaustively": {**ROUGHLY, "_search._MOST_CHOSEN": 0},
    "nothing is remembered": {
        "_impacts._LEAST_BYTES": 0,
        "_impacts._BYTES_PER_POSTING": 0,
        "_impacts._SMALL_PART": 3,
    },
    "looked up": {"_search._WORTH_LOOKING_UP": 0},
    "never looked up": {"_search._WORTH_LOOKING_UP": 10**9, **ROUGHLY},
}


@contextmanager
def way(constants):
    """Set the constants that choose a way."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in constants.items():
            patch.setattr(PACKAGE + name, value)
        yield


def oracle(texts_by_id, query, params=None, accepted=None):
    """Score every document by the formula, in the order in which they were added."""
    params = params or BM25Params()
    counts = {id_: Counter(text.split()) for id_, text in texts_by_id.items()}
    average = sum(found.total() for found in counts.values()) / max(1, len(counts))
    scores = []
    for id_, found in counts.items():
        score = 0.0
        for term, repeats in Counter(query.split()).items():
            holding = sum(term in other for other in counts.values())
            idf = math.log(1 + (len(counts) - holding + 0.5) / (holding + 0.5))
            if tf := found[term]:
                norm = params.k1 * (1 - params.b + params.b * (found.total() / average))
                score += repeats * (idf * (tf * (params.k1 + 1) / (tf + norm)))
        if score and (accepted is None or id_ in accepted):
            scores.append((id_, score))
    return sorted(scores, key=lambda pair: -pair[1])


def pairs(hits):
    """Return ids and scores."""
    return [(hit.id, hit.score) for hit in hits]


TEXTS = st.lists(
    st.lists(st.sampled_from(WORDS + ["w0", "w1"] * 6), max_size=9).map(" ".join), max_size=40
)
QUERY = st.lists(st.sampled_from([*WORDS, "nope"]), min_size=1, max_size=12).map(" ".join)
PARAMS = st.one_of(
    st.none(), st.builds(BM25Params, st.sampled_from([0, 0.4, 3]), st.sampled_from([0, 0.6, 1]))
)


@pytest.mark.parametrize("constants", WAYS.values(), ids=WAYS)
def test_every_way_equals_the_formula(constants):
    """Ids, order and scores are those of the formula, to the last bit, after updates as well."""

    @settings(max_examples=60, deadline=None)
    @given(
        texts=TEXTS,
        again=st.lists(st.integers(0, 39), max_size=12),
        gone=st.sets(st.integers(0, 39), max_size=12),
        query=QUERY,
        params=PARAMS,
        k=st.integers(1, 45),
        share=st.integers(1, 5),
    )
    def holds(texts, again, gone, query, params, k, share):
        live = {str(number): text for number, text in enumerate(texts)}
        index = BM25Index(analyzer=str.split)
        index.add(list(live), texts)
        for number in again:
            if str(number) in live:
                live[str(number)] += " w3 w1"
                index.add([str(number)], [live[str(number)]])
        index.remove([str(number) for number in gone])
        for number in gone:
            live.pop(str(number), None)
        expected = oracle(live, query, params)
        for _ in range(2):
            assert pairs(index.search(query, k, params=params)) == expected[:k]
        accepted = {id_ for id_ in live if int(id_) % share == 0}
        mask = np.array([id_ in accepted for id_ in index.ids], bool)
        chosen = [pair for pair in expected if pair[0] in accepted][:k]
        for given_ in (accepted, mask, accepted.__contains__):
            assert pairs(index.search(query, k, filter=given_, params=params)) == chosen

    with way(constants):
        holds()


@pytest.mark.parametrize("constants", [WAYS["as it is"], WAYS["roughly, in many parts"]])
def test_a_larger_corpus(constants):
    """With frequencies as in a language, thousands of documents and any k the same holds."""
    draw = random.Random(3)
    weights = [1 / (rank + 1) for rank in range(300)]
    names = [f"t{rank}" for rank in range(300)]
    texts = {
        str(number): " ".join(draw.choices(names, weights, k=draw.randint(3, 40)))
        for number in range(600)
    }
    scaled = {**constants, "_settling._MOST_DOCUMENTS": 250} if constants else {}
    with way(scaled):
        index = BM25Index(analyzer=str.split)
        index.add(list(texts), list(texts.values()))
        for words in (1, 5, 40):
            query = " ".join(draw.choices(names, k=words))
            expected = oracle(texts, query)
            for k in (1, 10, 100, 5000):
                assert pairs(index.search(query, k)) == expected[:k]


def test_scores_that_single_precision_cannot_tell_apart():
    """Documents whose scores differ in the tenth digit come in the right order."""
    params = BM25Params(1.5, 1e-6)
    texts = {str(n): "rare " + "filler " * (100 + n) for n in reversed(range(40))}
    with way(WAYS["roughly"]):
        index = BM25Index(params, analyzer=str.split)
        index.add(list(texts), list(texts.values()))
        found = pairs(index.search("rare", 5))
    assert found == oracle(texts, "rare", params)[:5]
    assert np.unique(np.float32([score for _, score in found])).size < 5


@given(st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.0, 2.5]), max_size=400), st.integers(1, 10))
def test_a_lower_bound_is_reached(scores, k):
    """At least k scores reach the bound, unless it is 0."""
    bound = lower_bound(np.array(scores), k)
    assert bound == 0 or sum(score >= bound for score in scores) >= k


def test_a_predicate_is_asked_no_more_than_needed():
    """Ids are asked for from the best down, each once, until enough are accepted."""
    texts = {str(n): "word " * (n % 50 + 1) for n in range(1000)}
    index = BM25Index(analyzer=str.split)
    index.add(list(texts), list(texts.values()))
    asked = []

    def accepts(id_):
        asked.append(id_)
        return int(id_) % 3 == 0

    found = [hit.id for hit in index.search("word", 3, filter=accepts)]
    assert found == [id_ for id_, _ in oracle(texts, "word") if int(id_) % 3 == 0][:3]
    assert len(asked) == len(set(asked)) <= 12


def test_what_is_remembered_is_bounded():
    """Impacts are forgotten when they take more than their share, and nothing changes by it."""
    texts = {str(n): f"a{n % 100} b{n % 90} c{n % 80}" for n in range(2000)}
    queries = [f"a{n} b{n % 90} c{n % 80}" for n in range(100)]
    index = BM25Index(analyzer=str.split)
    index.add(list(texts), list(texts.values()))
    expected = index.search_batch(queries)
    with way({"_impacts._LEAST_BYTES": 0, "_impacts._BYTES_PER_POSTING": 2}):
        bounded = BM25Index(analyzer=str.split)
        bounded.add(list(texts), list(texts.values()))
        for _ in range(2):
            for query, hits in zip(queries, expected, strict=True):
                assert bounded.search(query) == hits
                [searcher] = bounded._snapshot.remembered.values()
                impacts = searcher._impacts
                held = [row for term in impacts._terms.values() if term for row in term.rows]
                assert sum(row.nbytes for row in held if row) <= 2 * 6000 + _impacts._BYTES_PER_ROW


def test_four_choices_of_params_are_remembered():
    """A search under a fifth choice of params forgets the others; answers stay the same."""
    index = BM25Index()
    index.add(["a", "b"], ["x y", "x x z"])
    choices = [BM25Params(k1 / 2, 0.5) for k1 in range(12)]
    first = [index.search("x z", params=params) for params in choices]
    assert [index.search("x z", params=params) for params in choices] == first
    assert len(index._snapshot.remembered) <= 4
