"""Inputs on which other systems lost or misplaced results, each with the right value."""

from __future__ import annotations

import logging

import pytest

from easyrag_core import (
    DocumentChunker,
    HybridConfig,
    HybridIndex,
    auto_merge,
    reciprocal_rank_fusion,
)
from easyrag_core.text import text_digest
from tests.core.hybrid_samples import hashed_vector, piece, plain_index, with_vectors

# Index


def test_document_without_id():
    """One id, derived from the content: chunks, words and content agree on it, in any run."""
    source = "Redis is fast. 介绍 Redis 的文章。" * 4
    chunks, again = (DocumentChunker(40, 0).chunk(source) for _ in range(2))
    assert [chunk.id for chunk in chunks] == [chunk.id for chunk in again]
    assert {chunk.document_id for chunk in chunks} == {text_digest(source)[:32]}
    index = HybridIndex()
    index.add(chunks, with_vectors(chunks))
    ids = {chunk.id for chunk in chunks}
    assert set(index.bm25.ids) == set(index.vectors.ids) == set(index.store.ids()) == ids
    assert {hit.id for hit in index.search("redis", k=99)} == ids


@pytest.mark.parametrize("how", ["update", "delete"])
def test_update_or_delete_leaves_no_stale_hits(how):
    """Gone from words, vectors and content at once."""
    index = plain_index()
    if how == "update":
        index.update_document("one", [piece("z", "hen", "one")], [[0, 0, 1]])
    else:
        index.delete_document("one")
    for hits in (index.search("quick brown lazy dog"), index.search("fox", [1, 1, 0], 99)):
        assert {"a", "b"}.isdisjoint(hit.id for hit in hits)
    assert index.get_many(["a", "b"]) == [None, None]


def test_three_leaves_of_one_parent_have_one_vote_per_list():
    """p1 is first in both lists, three leaves of p2 stand in one: p1 wins with 2/61."""
    parents = {"p1": "p1", "x": "p2", "y": "p2", "z": "p2"}
    lists = [["p1", "x", "y", "z"], ["p1"]]
    fused = reciprocal_rank_fusion([[parents[leaf] for leaf in ranking] for ranking in lists])
    assert [(item.key, round(item.score, 3)) for item in fused] == [("p1", 0.033), ("p2", 0.016)]


@pytest.mark.parametrize("word", ["café", "cafe\u0301", "Москва", "москва", "こんにちは", "한국어"])
def test_all_scripts_are_found(word):
    """Accents, Cyrillic, kana and Hangul beside each other: each is found by its own word."""
    index = HybridIndex()
    index.add([piece("a", "café Москва こんにちは 한국어"), piece("b", "caf tea")])
    assert [hit.id for hit in index.search(word)] == ["a"]


def test_corpus_of_one_document():
    """The idf is ln(1 + (1 - 1 + 0.5) / (1 + 0.5)) = 0.2877: positive, so it is found."""
    index = HybridIndex()
    index.add([piece("a", "fox")])
    [term] = index.bm25.explain("fox", "a").terms
    assert round(term.idf, 4) == 0.2877
    assert index.search("fox")[0].channels["bm25"].score == pytest.approx(0.2877, abs=1e-4)


@pytest.mark.parametrize(
    "question",
    ["Which animal is quick and where does it live?", "请问向量检索是怎么工作的？"],
)
def test_a_natural_question_finds_what_holds_some_of_its_words(question):
    """Not all words are required; what holds more of them stands higher."""
    index = HybridIndex()
    index.add(
        [
            piece("few", "an animal 检索"),
            piece("many", "the quick animal does live here 向量检索的工作"),
            piece("none", "zzz 乙"),
        ]
    )
    assert [hit.id for hit in index.search(question)] == ["many", "few"]


@pytest.mark.parametrize("query", ["redis", "Redis", "介绍", "REDIS介绍", "Redis 介绍"])
def test_scripts_without_a_space_between_are_two_words(query):
    """`Redis介绍` is found by each of its parts."""
    index = HybridIndex()
    index.add([piece("a", "Redis介绍"), piece("b", "MySQL 手册")])
    assert [hit.id for hit in index.search(query)] == ["a"]


@pytest.mark.parametrize(("one", "two"), [("Aa", "BB"), ("AaAa", "BBBB"), ("AaBB", "BBAa")])
def test_texts_with_one_32_bit_hash_are_distinct(one, two):
    """Equal by a 31-multiplier hash, as Java's: two digests, two ids, two hits."""
    assert _java_hash(one) == _java_hash(two)
    assert text_digest(one) != text_digest(two)
    chunks = [DocumentChunker().chunk(text)[0] for text in (one, two)]
    index = HybridIndex()
    index.add(chunks)
    assert len(index) == 2
    assert [hit.id for hit in index.search(two)] == [chunks[1].id]


def _java_hash(text):
    value = 0
    for letter in text:
        value = (31 * value + ord(letter)) % 2**32
    return value


# Parent and child


@pytest.mark.parametrize("parent", ["rust", "doc_001", "a_b_c"])
def test_the_parent_is_a_field(parent):
    """Ids with underscores are never parsed: the parent is the one that the chunk names."""
    index = HybridIndex()
    ids = [f"{parent}_doc_0", f"{parent}_3"]
    children = [piece(id_, "fox", index=n + 1, parent_id="the parent") for n, id_ in enumerate(ids)]
    index.add([piece("the parent", "fox fox", kind="parent"), *children])
    [hit] = index.search("fox", merge=True)
    assert hit.id == "the parent"
    assert index.get_many([hit.id])[0].text == "fox fox"


@pytest.mark.parametrize(("leaves", "hit", "ratio"), [(2, 2, 1.0), (40, 3, 0.075)])
def test_the_ratio_counts_the_parents_real_children(leaves, hit, ratio):
    """Hits divided by the children that the parent has, not by a constant."""
    family = {f"c{n}": "p" for n in range(leaves)}
    hits = [(f"c{n}", 1.0 - n / 100) for n in range(hit)]
    [merged] = auto_merge(hits, family, {"p": list(family)}, merge_threshold=ratio)
    assert (merged.id, merged.ratio) == ("p", ratio)
    kept = auto_merge(hits, family, {"p": list(family)}, merge_threshold=min(1.0, ratio + 0.001))
    assert [item.id for item in kept] == (["p"] if ratio == 1.0 else [id_ for id_, _ in hits])


def test_a_missing_parent_gives_its_leaves_and_a_warning(caplog):
    """No empty content: the leaves come, each with its text, and it is said."""
    index = HybridIndex()
    index.add([piece(f"c{n}", f"fox {n}", parent_id="gone") for n in range(2)])
    with caplog.at_level(logging.WARNING):
        hits = index.search("fox", merge=True)
    assert [chunk.text for chunk in index.get_many([hit.id for hit in hits])] == ["fox 0", "fox 1"]
    assert "'gone'" in caplog.text


def test_merging_comes_after_the_fusion():
    """Children are fused first: the parent has the best child's fused score, not a channel's."""
    index = HybridIndex(HybridConfig(merge_threshold=1))
    chunks = [piece("p", kind="parent")]
    chunks += [piece(f"c{n}", text, parent_id="p") for n, text in enumerate(["fox", "fox hen"])]
    chunks.append(piece("other", "hen fox fox", "other"))
    index.add(chunks, with_vectors(chunks))
    vector = hashed_vector("fox")
    fused = {hit.id: hit.score for hit in index.search("fox", vector)}
    merged = {hit.id: hit.score for hit in index.search("fox", vector, merge=True)}
    assert merged == {"p": max(fused["c0"], fused["c1"]), "other": fused["other"]}


def test_a_parent_comes_once_for_all_its_children():
    """Several children hit: the parent once, best score, best place, all children told."""
    hits = [("a", 0.9), ("x", 0.8), ("b", 0.7), ("c", 0.1)]
    family = {"a": "p", "b": "p", "c": "p"}
    merged = auto_merge(hits, family, {"p": ["a", "b", "c"]})
    assert [(item.id, item.score) for item in merged] == [("p", 0.9), ("x", 0.8)]
    assert merged[0].children == ("a", "b", "c")
