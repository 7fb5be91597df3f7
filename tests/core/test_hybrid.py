"""Searching a hybrid index: what is fused, filtered, merged, and what is refused."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core import (
    ChannelScore,
    DimensionMismatchError,
    Hit,
    HybridConfig,
    HybridIndex,
    InvalidParameterError,
    fuse_hits,
)
from tests.core.hybrid_samples import (
    PLAIN,
    PLAIN_VECTORS,
    SCORED,
    family,
    hashed_vector,
    piece,
    plain_index,
    with_vectors,
)

WORDS = ["fox", "dog", "hen", "red", "lazy", "检索", "排序"]


def naive_rrf(channels, constant, weights):
    """Sum of weight / (constant + rank), in plain arithmetic."""
    scores = {}
    for name, hits in channels.items():
        for hit in hits:
            vote = weights.get(name, 1.0) / (constant + hit.rank)
            scores[hit.id] = scores.get(hit.id, 0.0) + vote
    return scores


def naive_min_max(channels, _, weights):
    """Sum of weight * (score - lowest) / (highest - lowest), 1 for all where all are equal."""
    scores = {}
    for name, hits in channels.items():
        values = [hit.score for hit in hits]
        for hit in hits:
            low, high = min(values), max(values)
            value = 1.0 if low == high else (hit.score - low) / (high - low)
            scores[hit.id] = scores.get(hit.id, 0.0) + weights.get(name, 1.0) * value
    return scores


NAIVE = {"rrf": naive_rrf, "score": naive_min_max}

texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)


# Fusion


@given(
    st.lists(texts, max_size=12),
    texts,
    st.sampled_from(["rrf", "score"]),
    st.fixed_dictionaries({}, optional={"bm25": st.sampled_from([0, 0.5]), "vector": st.just(2)}),
    st.sampled_from([0, 1, 60]),
    st.integers(0, 15),
)
def test_search_fuses_the_channels_own_answers(contents, query, fusion, weights, constant, k):
    """Scores, ranks and reasons are those of a naive fusion of what each channel says alone."""
    config = HybridConfig(5, 7, fusion, constant, weights=weights)
    index = HybridIndex(config)
    chunks = [piece(f"c{number}", text) for number, text in enumerate(contents)]
    index.add(chunks, with_vectors(chunks))
    vector = hashed_vector(query)
    channels = {"bm25": index.bm25.search(query, max(5, k))}
    if chunks:
        channels["vector"] = index.vectors.search(vector, max(7, k))
    voting = {name: hits for name, hits in channels.items() if weights.get(name, 1)}
    expected = NAIVE[fusion](voting, constant, weights)

    hits = index.search(query, vector, k)
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    assert len(hits) == min(k, len(expected))
    best = sorted(expected.values(), reverse=True)[: len(hits)]
    assert [hit.score for hit in hits] == pytest.approx(best)
    for hit in hits:
        assert hit.score == pytest.approx(expected[hit.id])
        assert dict(hit.channels) == {
            name: ChannelScore(own.rank, own.score)
            for name, answer in voting.items()
            for own in answer
            if own.id == hit.id
        }
        assert len(hit.reasons) == len(hit.channels)


def test_the_worked_example_of_rank_fusion():
    """Ranks (1, 2) and (2, 1) give 0.032522 each, (3, 5) 0.031258, (10, none) 0.014286."""
    words = [Hit(id_, 9.0 - n, n + 1) for n, id_ in enumerate(["a", "b", "c", *"0123456", "d"])]
    words = [words[0], words[1], words[2], *words[3:9], Hit("d", 0.1, 10)]
    meaning = [Hit(id_, 1.0 - n / 9, n + 1) for n, id_ in enumerate(["b", "a", "x", "y", "c"])]
    fused = {
        hit.id: hit.score
        for hit in fuse_hits({"bm25": words, "vector": meaning}, config=HybridConfig())
    }
    assert round(fused["a"], 6) == round(fused["b"], 6) == 0.032522
    assert round(fused["c"], 6) == 0.031258
    assert round(fused["d"], 6) == 0.014286


def test_hits_explain_themselves():
    """A hit says rank and raw score per channel, in data and in words."""
    hit = plain_index().search("quick", [1, 0, 0])[0]
    assert hit.id == "a"
    assert set(hit.channels) == {"bm25", "vector"}
    assert hit.channels["vector"] == ChannelScore(1, 1.0)
    assert hit.reasons[0].startswith("bm25: rank 1, score ")
    assert hit.reasons[1] == "vector: rank 1, score 1"


def test_equal_votes_stay_in_the_order_of_the_channels():
    """Of two hits with mirrored ranks the one that the words put first stands first."""
    index = HybridIndex()
    index.add([piece("v", "dog"), piece("w", "fox")], [[1.0, 0.0], [0.0, 1.0]])
    hits = index.search("fox", [1.0, 0.0])
    assert [hit.id for hit in hits] == ["w", "v"]


# Numbers wanted


@pytest.mark.parametrize("config", [None, SCORED], ids=["rrf", "score"])
@pytest.mark.parametrize("merge", [False, True])
def test_k_may_be_anything_from_nothing_to_more_than_there_is(config, merge):
    """`k=0` gives none, `k > n` what there is, and a larger k keeps the smaller one's hits."""
    index = plain_index(config)
    assert index.search("fox", [1, 1, 1], 0, merge=merge) == []
    assert len(index.search("fox", [1, 1, 1], 99, merge=merge)) == 5
    for k in range(1, 6):
        assert len(index.search("fox", [1, 1, 1], k, merge=merge)) == k


@pytest.mark.parametrize("first", ["bm25", "vector"])
def test_candidates_go_deeper_than_what_is_wanted(first):
    """One hit is wanted, and still its third place in the other channel counts."""
    index = HybridIndex(HybridConfig(bm25_k=3, vector_k=3, weights={first: 9}))
    texts = ["fox fox fox", "fox fox and", "fox and hen"]
    chunks = [piece(f"c{n}", text) for n, text in enumerate(texts)]
    index.add(chunks, [[0.0, 1.0], [0.1, 0.9], [1.0, 0.0]])
    [hit] = index.search("fox", [1.0, 0.0], 1)
    ranks = {name: place.rank for name, place in hit.channels.items()}
    assert ranks == {"bm25": 3, "vector": 3} | {first: 1}


def test_more_than_the_candidates_can_be_wanted():
    """A k above `bm25_k` and `vector_k` reaches as deep as it must."""
    index = HybridIndex(HybridConfig(bm25_k=1, vector_k=1))
    chunks = [piece(f"c{n}", f"fox {n}") for n in range(30)]
    index.add(chunks, np.eye(30))
    assert len(index.search("fox", k=30)) == 30
    assert len(index.search("nothing", np.ones(30), k=30)) == 30


@pytest.mark.parametrize("merge", [False, True])
def test_an_empty_index_answers_nothing(merge):
    """Without chunks, before and after there were some: no hits and no error."""
    index = HybridIndex()
    assert index.search("fox", [1, 2, 3], merge=merge) == []
    index.add(PLAIN, PLAIN_VECTORS)
    index.remove([chunk.id for chunk in PLAIN])
    assert index.search("fox", [1, 2, 3], merge=merge) == []


def test_without_a_vector_the_words_are_asked_alone():
    """No query vector, or no vectors in the index: BM25's own order, and only its channel."""
    index, bare = plain_index(), HybridIndex()
    bare.add(PLAIN)
    alone = [hit.id for hit in index.bm25.search("fox")]
    for hits in (index.search("fox"), bare.search("fox"), bare.search("fox", [1, 0, 0])):
        assert [hit.id for hit in hits] == alone
        assert all(set(hit.channels) == {"bm25"} for hit in hits)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("fox", [1, 0]), DimensionMismatchError),
        (("fox", [1, 0, float("nan")]), InvalidParameterError),
        (("fox", [[1, 0, 0]]), InvalidParameterError),
        (("fox", None, -1), InvalidParameterError),
        (("fox", None, 1.0), InvalidParameterError),
        (("fox", None, True), InvalidParameterError),
        ((7, None), InvalidParameterError),
        ((None, [1, 0, 0]), InvalidParameterError),
    ],
    ids=repr,
)
def test_a_bad_question_is_refused(arguments, error):
    """A typed error for a query, vector or k of another kind."""
    with pytest.raises(error):
        plain_index().search(*arguments)


# Filters


def _accepting(ids):
    return lambda id_: id_ in ids


@pytest.mark.parametrize(
    "shape",
    [set, frozenset, list, tuple, iter, _accepting, dict.fromkeys],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("allowed", [[], ["b"], ["e", "c"], ["a", "b", "nobody"]], ids=repr)
def test_a_filter_of_any_kind_never_leaks(shape, allowed):
    """Both channels return what is accepted and nothing else; an iterator serves both."""
    index = plain_index()
    hits = index.search("fox 检索 nothing", [1, 1, 1], 10, filter=shape(allowed))
    assert {hit.id for hit in hits} == set(allowed) - {"nobody"}
    assert all("vector" in hit.channels for hit in hits)


def test_a_filter_comes_before_the_ranking():
    """The one accepted chunk is found although a hundred others rank above it."""
    index = HybridIndex(HybridConfig(bm25_k=1, vector_k=1))
    chunks = [piece(f"c{n}", "fox " * (n < 100) + "fox and a hen") for n in range(101)]
    index.add(chunks, np.stack([[1.0, n / 100] for n in range(101)]))
    hits = index.search("fox", [1.0, 0.0], 1, filter={"c100"})
    assert [(hit.id, set(hit.channels)) for hit in hits] == [("c100", {"bm25", "vector"})]


@pytest.mark.parametrize("bad", ["a", 7, [7], np.ones(5, bool), np.ones(4, bool)], ids=repr)
def test_a_filter_of_another_kind_is_refused(bad):
    """A string, a number, ids that are none, and masks, whose rows would differ by channel."""
    with pytest.raises(InvalidParameterError, match="filter"):
        plain_index().search("fox", [1, 0, 0], filter=bad)


# Merging


def family_index(*arguments, threshold=0.5, **settings):
    index = HybridIndex(HybridConfig(merge_threshold=threshold))
    chunks = family(*arguments, **settings)
    index.add(chunks, with_vectors(chunks))
    return index


def test_children_are_replaced_by_their_parent():
    """All leaves of a parent hit: the parent once, at the best leaf's place and score."""
    index = family_index(1)
    plain, merged = index.search("fox"), index.search("fox", merge=True)
    assert [hit.id for hit in plain] == ["p0c0", "p0c1", "p0c2", "p0c3"]
    assert [hit.id for hit in merged] == ["p0"]
    assert merged[0].score == plain[0].score
    assert merged[0].reasons[-1] == "stands for 4 children (100%)"
    assert merged[0].channels == plain[0].channels


def test_too_few_children_stay():
    """Below the threshold leaves are left alone; at the threshold they merge."""
    index = family_index(2, threshold=0.5)
    assert [hit.id for hit in index.search("beta", merge=True)] == ["p0c1", "p1c1"]
    assert [hit.id for hit in index.search("beta delta", merge=True)] == ["p0", "p1"]


@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize("leaves", [4, 40])
def test_merging_gives_k_items_when_they_exist(k, leaves):
    """Large families all merge, and still there are k hits: it is looked deeper before the cut."""
    index = family_index(5, leaves)
    hits = index.search("fox", k=k, merge=True)
    assert len(hits) == k
    assert [hit.rank for hit in hits] == list(range(1, k + 1))
    assert len({hit.id for hit in hits}) == k


def test_looking_deeper_ends_where_there_is_no_more():
    """Fewer items than wanted: what there is, once each."""
    hits = family_index(3, 10).search("fox", hashed_vector("fox"), k=50, merge=True)
    assert sorted(hit.id for hit in hits) == ["p0", "p1", "p2"]


def test_children_of_a_missing_parent_stay(caplog):
    """A parent that the store does not hold: its leaves are returned, with a warning."""
    index = family_index(2, 2, missing=("p0",))
    with caplog.at_level(logging.WARNING):
        hits = index.search("fox", merge=True)
    assert {hit.id for hit in hits} == {"p0c0", "p0c1", "p1"}
    assert "'p0' is missing in the store" in caplog.text
    assert all(index.get_many([hit.id]) != [None] for hit in hits)


def test_merging_goes_up_until_it_is_stable():
    """Grandchildren merge into children and these into the root, by links, not by ids."""
    index = HybridIndex()
    chunks = [piece("root_0", kind="parent")]
    for middle in ("doc_001_3", "rust_doc_0"):
        chunks.append(piece(middle, kind="parent", parent_id="root_0"))
        chunks += [piece(f"{middle}_{n}", f"fox {n}", parent_id=middle) for n in range(2)]
    index.add(chunks)
    hits = index.search("fox", merge=True)
    assert [hit.id for hit in hits] == ["root_0"]
    assert hits[0].channels["bm25"].rank == 1


LEAVES = ["p0c0", "p0c1", "p0c2", "p0c3"]


@pytest.mark.parametrize(
    ("allowed", "found"),
    [
        (LEAVES[:3], LEAVES[:3]),
        (LEAVES, ["p0"]),
        ([*LEAVES[:3], "p0"], ["p0"]),
        (["p0"], []),
    ],
    ids=["some leaves", "every leaf", "some leaves and the parent", "the parent alone"],
)
@pytest.mark.parametrize("shape", [set, iter, _accepting])
def test_a_parent_does_not_leak_what_the_filter_excludes(allowed, found, shape):
    """A parent shows all its leaves: it comes only if it, or each of them, is accepted."""
    hits = family_index(1).search("fox", filter=shape(allowed), merge=True)
    assert [hit.id for hit in hits] == found
