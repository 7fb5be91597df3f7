"""A hybrid index changes in one step: all parts, or none."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest

from easyrag_core import (
    BM25Index,
    DimensionMismatchError,
    HybridIndex,
    InMemoryChunkStore,
    InvalidParameterError,
    VectorIndex,
)
from tests.core.hybrid_samples import (
    PLAIN,
    PLAIN_VECTORS,
    BrokenStore,
    answers,
    family,
    piece,
    plain_index,
)

NEW = [piece("n1", "a new fox", "new"), piece("n2", "新的检索", "new", 1), piece("a", "changed")]
ROWS = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 1.0]]


# One step to all parts


def test_add_reaches_all_three_parts():
    """What is added once is found by words, by vector, and by id."""
    index = plain_index()
    ids = [chunk.id for chunk in PLAIN]
    assert index.bm25.ids == index.vectors.ids == index.store.ids() == ids
    assert index.get_many(["c", "missing", "a"]) == [PLAIN[2], None, PLAIN[0]]
    assert len(index) == 5
    assert "a" in index
    assert "missing" not in index
    assert index.document_ids == ["one", "two", "three"]


def test_what_is_indexed_is_the_embedding_text():
    """Words that stand only in the embedding text are found; the text read stays as it is."""
    index = HybridIndex()
    index.add([piece("a", "body", embedding_text="[指南 > Install]\n\nbody")])
    for word in ("install", "指南", "body"):
        assert [hit.id for hit in index.search(word)] == ["a"]
    assert index.get_many(["a"])[0].text == "body"


def test_of_an_id_that_comes_twice_the_last_counts():
    """Text, vector and content are those of the last chunk with the id, in all parts."""
    index = HybridIndex()
    index.add([piece("a", "first"), piece("a", "second")], [[1.0, 0.0], [0.0, 1.0]])
    assert index.search("first") == []
    assert index.search("second")[0].id == "a"
    assert index.vectors.get(["a"])[0].tolist() == [0.0, 1.0]
    assert len(index) == len(index.bm25) == len(index.vectors) == 1


def test_what_was_given_is_neither_kept_nor_changed():
    """The caller may change chunks and vectors afterwards: the index does not see it."""
    chunk, rows = piece("a", "fox", metadata={"tags": ["x"]}), np.ones((1, 2), np.float32)
    index = HybridIndex()
    index.add([chunk], rows)
    chunk.text, rows[0, 0] = "dog", -9
    chunk.metadata["tags"].append("y")
    assert index.get_many(["a"])[0].text == "fox"
    assert index.get_many(["a"])[0].metadata == {"tags": ["x"]}
    assert index.vectors.get(["a"])[0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("vectors", [None, [], np.empty((0, 3))], ids=["none", "list", "array"])
def test_nothing_to_add_changes_nothing(vectors):
    """Adding no chunks is allowed and leaves every answer as it was."""
    index = plain_index()
    before = answers(index)
    index.add([], vectors)
    assert answers(index) == before


# All or nothing


def _bad_store(parts):
    parts["store"].failing = ("put",)
    return ROWS, OSError, "the disk is full"


def _half_store(parts):
    parts["store"]._half = True
    return _bad_store(parts)


def _bad_words(parts):
    parts["refused"].add("新的检索")
    return ROWS, RuntimeError, "no words"


def _nan(parts):
    return [ROWS[0], [0.0, float("nan"), 1.0], ROWS[2]], InvalidParameterError, "n2"


def _infinite(parts):
    return [ROWS[0], ROWS[1], [0.0, float("inf"), 1.0]], InvalidParameterError, "'a'"


def _wrong_dimension(parts):
    return [ROWS[0], [1.0, 2.0], ROWS[2]], DimensionMismatchError, "n2.*2 dim.*3 are expected"


def _all_wrong_dimension(parts):
    return [[1.0], [1.0], [1.0]], DimensionMismatchError, "3 are expected"


def _empty_row(parts):
    return [ROWS[0], [], ROWS[2]], InvalidParameterError, "n2"


def _too_few(parts):
    return ROWS[:2], InvalidParameterError, "one row per chunk, here 3"


def _no_rows(parts):
    return [1.0, 2.0, 3.0], InvalidParameterError, "row of numbers"


FAULTS = {
    "store": _bad_store,
    "store, half done": _half_store,
    "words": _bad_words,
    "nan in the middle": _nan,
    "infinity": _infinite,
    "wrong dimension": _wrong_dimension,
    "all of a wrong dimension": _all_wrong_dimension,
    "empty row": _empty_row,
    "too few rows": _too_few,
    "numbers for rows": _no_rows,
}


def _fragile_index():
    refused = set()

    def words(text):
        if text in refused:
            raise RuntimeError("no words")
        return text.split()

    parts = {"store": BrokenStore(), "refused": refused}
    return plain_index(bm25=BM25Index(analyzer=words), store=parts["store"]), parts


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("how", ["add", "update"])
def test_a_refused_write_leaves_the_old_answers(fault, how):
    """Whatever part refuses: no part holds any of it, and every answer is the old one."""
    index, parts = _fragile_index()
    before = answers(index)
    rows, error, message = fault(parts)
    new = NEW if how == "add" else [replace(chunk, document_id="one") for chunk in NEW]
    with pytest.raises(error, match=message):
        index.add(new, rows) if how == "add" else index.update_document("one", new, rows)
    assert answers(index) == before
    parts["store"].failing, parts["refused"] = (), parts["refused"].clear()
    assert index.without_vector(PLAIN) == []
    index.add(NEW, ROWS)
    assert index.search("new")[0].id == "n1"


@pytest.mark.parametrize("fault", [_nan, _wrong_dimension, _empty_row, _bad_words])
def test_a_refused_first_write_fixes_no_dimension(fault):
    """After a first write that failed the index is as empty as before, open to any vectors."""
    refused = set()

    def words(text):
        if text in refused:
            raise RuntimeError("no words")
        return text.split()

    index = HybridIndex(bm25=BM25Index(analyzer=words))
    rows, error, _ = fault({"refused": refused})
    with pytest.raises(error):
        index.add(NEW, rows)
    assert index.vectors is None
    assert (len(index), len(index.bm25), len(index.store)) == (0, 0, 0)
    refused.clear()
    index.add(NEW, [[1.0, 0.0]] * 3)
    assert index.vectors.dim == 2


def test_an_update_that_cannot_delete_takes_back_what_it_put():
    """New texts and vectors of an update are gone again when the old ones cannot be deleted."""
    store = BrokenStore()
    index = HybridIndex(store=store)
    index.add(PLAIN, [None, *PLAIN_VECTORS[1:]])
    before = answers(index)
    changed = replace(PLAIN[0], text="hen", embedding_text="hen")
    fresh = piece("fresh", "a fox that is new", "one")
    for chunk in (PLAIN[0], changed, replace(changed, kind="parent"), fresh):
        store.failing = ("next delete",)
        with pytest.raises(OSError, match="gone"):
            index.update_document("one", [chunk], PLAIN_VECTORS[:1])
        assert answers(index) == before
    assert index.vectors.get(["a", "b"])[0] is None
    assert index.without_vector(PLAIN) == [PLAIN[0]]


def test_a_store_that_refuses_to_delete_takes_nothing_away():
    """A document is deleted everywhere or nowhere: scores, ties and content stay."""
    store = BrokenStore()
    index = plain_index(store=store)
    before = answers(index)
    store.failing = ("delete",)
    for write in (lambda: index.delete_document("one"), lambda: index.remove(["a"])):
        with pytest.raises(OSError, match="gone"):
            write()
        assert answers(index) == before
    store.failing = ()
    assert index.delete_document("one") == ["a", "b"]


def test_a_failed_way_back_is_logged_and_hides_nothing(caplog):
    """Where the store refuses the way back too, the first error is raised, the second logged."""
    store = BrokenStore()
    index = plain_index(store=store)
    store.failing = ("put", "delete")
    with caplog.at_level(logging.ERROR), pytest.raises(OSError, match="the disk is full"):
        index.add(NEW, ROWS)
    assert "could not be taken back" in caplog.text


# Documents


def test_update_document_leaves_nothing_stale():
    """What is not among the new chunks is gone from words, vectors and content."""
    index = plain_index()
    new = [replace(PLAIN[0], text="red hen", embedding_text="red hen"), piece("z", "hen", "one", 1)]
    index.update_document("one", new, [[0, 1, 0], [0, 0, 1]])
    assert index.search("quick lazy brown dog") == []
    assert {hit.id for hit in index.search("hen")} == {"a", "z"}
    assert "b" not in index.bm25
    assert "b" not in index.vectors
    assert index.get_many(["b"]) == [None]
    assert [hit.id for hit in index.search("", [1, 0, 0], 1)] == ["e"]
    assert index.chunks_of("one") == ["a", "z"]


def test_update_with_no_chunks_removes_the_document():
    """An update to nothing is a deletion."""
    index = plain_index()
    index.update_document("one", [])
    assert index.document_ids == ["two", "three"]
    assert index.get_many(["a", "b"]) == [None, None]


def test_update_refuses_a_chunk_of_another_document():
    """A chunk of another document is refused before anything changes."""
    index = plain_index()
    before = answers(index)
    with pytest.raises(InvalidParameterError, match="all belong to document 'one'"):
        index.update_document("one", [PLAIN[0], PLAIN[2]])
    assert answers(index) == before


def test_delete_document_leaves_nothing_stale():
    """No part knows a deleted document; the answer names what went."""
    index = plain_index()
    assert index.delete_document("one") == ["a", "b"]
    assert index.delete_document("one") == []
    assert index.delete_document("unknown") == []
    assert index.bm25.ids == index.vectors.ids == index.store.ids() == ["c", "d", "e"]
    assert {hit.id for hit in index.search("quick fox", [1, 0, 0], 20)} == {"c", "d", "e"}
    assert index.document_ids == ["two", "three"]


def test_a_chunk_that_moves_to_another_document_is_not_deleted_with_the_first():
    """An id belongs to the document that brought it last."""
    index = plain_index()
    index.add([replace(PLAIN[1], document_id="two")], [PLAIN_VECTORS[1]])
    assert index.delete_document("one") == ["a"]
    assert index.get_many(["b"])[0].document_id == "two"
    assert index.delete_document("two") == ["c", "d", "b"]


def test_remove_counts_what_was_there():
    """Unknown and repeated ids are ignored; a single string is refused."""
    index = plain_index()
    assert index.remove(["a", "a", "nobody", "c"]) == 2
    assert index.remove([]) == 0
    assert index.bm25.ids == index.vectors.ids == index.store.ids() == ["b", "d", "e"]
    with pytest.raises(InvalidParameterError, match="give a list of ids"):
        index.remove("b")


# Vectors


def test_without_vector_names_what_has_to_be_embedded():
    """New and changed texts, and those without a vector; never parents, never unchanged texts."""
    index = HybridIndex()
    assert index.without_vector(PLAIN) == PLAIN
    index.add(PLAIN, [*PLAIN_VECTORS[:4], None])
    changed = replace(PLAIN[0], text="other", embedding_text="other")
    moved = replace(PLAIN[1], index=7, start=90, end=110, metadata={"x": 1})
    parent = piece("p", "the whole", kind="parent")
    asked = [changed, moved, *PLAIN[2:], piece("new"), parent]
    assert index.without_vector(asked) == [changed, PLAIN[4], asked[5]]


def test_without_vectors_an_unchanged_text_keeps_its_own():
    """`vectors=None`, for all or for one, keeps the vector of the same text, and its content."""
    index = plain_index()
    moved = [replace(chunk, start=chunk.start + 9, end=chunk.end + 9) for chunk in PLAIN]
    index.add(moved)
    assert [row.tolist() for row in index.vectors.get(["a", "b"])] == PLAIN_VECTORS[:2].tolist()
    assert index.get_many(["a"])[0].start == 9
    index.update_document("one", moved[:2], [None, [0.0, 0.0, 1.0]])
    assert index.vectors.get(["a", "b"])[0].tolist() == [1, 0, 0]
    assert index.vectors.get(["b"])[0].tolist() == [0, 0, 1]


def test_without_a_vector_a_changed_text_loses_the_old_one():
    """A vector of another text is dropped, not kept: it would find what is no longer there."""
    index = plain_index()
    index.add([replace(PLAIN[0], text="hen", embedding_text="hen")])
    assert "a" not in index.vectors
    assert index.search("", [1, 0, 0], 1)[0].id == "e"
    assert index.search("hen")[0].id == "a"


# Parents


def test_parents_are_only_looked_up():
    """A parent is in the store and in no channel, also when it comes with a vector."""
    index = HybridIndex()
    chunks = family(1)
    index.add(chunks, np.eye(len(chunks)))
    assert index.bm25.ids == index.vectors.ids == ["p0c0", "p0c1", "p0c2", "p0c3"]
    assert index.get_many(["p0"]) == [chunks[0]]
    assert "p0" not in [hit.id for hit in index.search("fox p0", np.eye(5)[0], 20)]
    assert len(index) == 5
    assert index.without_vector(chunks) == []
    assert index.delete_document("p0") == [chunk.id for chunk in chunks]


def test_a_chunk_that_becomes_a_parent_leaves_the_channels():
    """The same id as a parent is no longer found, by words or by vector; and back."""
    index = plain_index()
    index.add([replace(PLAIN[0], kind="parent")])
    assert "a" not in index.bm25
    assert "a" not in index.vectors
    assert "a" in index
    index.add(PLAIN[:1], PLAIN_VECTORS[:1])
    assert "a" in index.bm25
    assert "a" in index.vectors


# Parts that hold something already


def test_parts_that_hold_chunks_already_can_be_put_together():
    """An index over filled parts knows their chunks: they are counted, updated and deleted."""
    bm25, vectors, store = BM25Index(), VectorIndex(3), InMemoryChunkStore()
    parent, foreign = piece("p", "whole", kind="parent"), piece("x", "not indexed")
    store.put_many([*PLAIN, parent, foreign])
    bm25.add([c.id for c in PLAIN], [c.text for c in PLAIN])
    vectors.add([c.id for c in PLAIN[:4]], PLAIN_VECTORS[:4])
    index = HybridIndex(bm25=bm25, vectors=vectors, store=store)
    assert len(index) == 6
    assert index.without_vector(PLAIN) == [PLAIN[4]]
    assert index.delete_document("one") == ["a", "b"]
    assert bm25.ids == store.ids()[:3] == ["c", "d", "e"]
    assert "x" not in index


def test_parts_of_another_kind_are_refused():
    """A config that is none is refused where it is given."""
    with pytest.raises(InvalidParameterError, match="give a HybridConfig or None"):
        HybridIndex({"bm25_k": 5})
