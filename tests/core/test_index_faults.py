"""Indexes under misuse: copies are independent, and what cannot work is refused when it comes."""

from __future__ import annotations

import copy
import time

import numpy as np
import pytest

from easyrag_core.errors import (
    EasyRAGError,
    IndexFormatError,
    InvalidParameterError,
    check_number,
)
from easyrag_core.index.analyzer import StandardAnalyzer, as_analyzer
from easyrag_core.index.bm25 import BM25Index
from easyrag_core.index.hybrid import HybridConfig, HybridIndex
from easyrag_core.index.store import CachedChunkStore, InMemoryChunkStore, SQLiteChunkStore
from easyrag_core.index.vector import VectorIndex
from easyrag_core.types import Chunk


def chunk(id_, text="some text", **fields):
    return Chunk(id_, "doc", 0, text, 0, len(text), **fields)


# Copies


def test_vector_index_copies_are_independent():
    """Writes to a copy and to the original do not meet, also when both grow in the same place."""
    index = VectorIndex(2)
    index.add(["a", "b"], [[1, 0], [0, 1]])
    other = copy.copy(index)
    index.add(["mine"], [[1, 1]])
    other.add(["a", "theirs"], [[0, 2], [-1, 0]])
    other.remove(["b"])
    assert (index.ids, other.ids) == (["a", "b", "mine"], ["a", "theirs"])
    assert [row.tolist() for row in index.get(["a", "b", "mine"])] == [[1, 0], [0, 1], [1, 1]]
    assert [row.tolist() for row in other.get(["a", "theirs"])] == [[0, 2], [-1, 0]]
    assert [hit.id for hit in index.search([1, 0], 1)] == ["a"]
    assert [hit.id for hit in other.search([0, 1], 1)] == ["a"]


def test_bm25_index_copies_are_independent():
    """New words and documents of a copy stay its own."""
    index = BM25Index()
    index.add(["a"], ["shared 检索"])
    other = copy.copy(index)
    index.add(["mine"], ["alpha shared"])
    other.add(["theirs"], ["omega shared"])
    assert [hit.id for hit in index.search("omega alpha")] == ["mine"]
    assert [hit.id for hit in other.search("omega alpha")] == ["theirs"]
    assert {hit.id for hit in other.search("检索")} == {"a"}
    assert index._snapshot.vocabulary.keys().isdisjoint({"omega"})


@pytest.mark.parametrize("cached", [False, True], ids=["memory", "cached"])
def test_store_copies_are_independent(cached):
    """A copy of a store in memory has its own content."""
    store = CachedChunkStore(InMemoryChunkStore()) if cached else InMemoryChunkStore()
    store.put_many([chunk("a", parent_id="p"), chunk("b")])
    other = copy.copy(store)
    other.put_many([chunk("c", parent_id="p"), chunk("a", "new", parent_id="q")])
    store.delete_many(["b"])
    assert (store.ids(), other.ids()) == (["a"], ["a", "b", "c"])
    assert (store.children_of("p"), other.children_of("p")) == (["a"], ["c"])
    assert store.get_many(["a"])[0].text == "some text"
    assert other.delete_document("doc") == ["a", "b", "c"]
    assert store.ids() == ["a"]


def test_hybrid_index_copies_are_independent():
    """All parts of a copy are its own."""
    index = HybridIndex()
    index.add([chunk("a", "alpha")], [[1.0, 0.0]])
    other = copy.copy(index)
    other.add([chunk("b", "beta")], [[0.0, 1.0]])
    index.remove(["a"])
    assert (len(index), len(other)) == (0, 2)
    assert index.get_many(["a", "b"]) == [None, None]
    assert [hit.id for hit in other.search("beta", [0.0, 1.0])] == ["b", "a"]
    assert index.search("alpha beta", [0.0, 1.0]) == []
    assert other.chunks_of("doc") == ["a", "b"]


def test_hybrid_index_copy_shares_a_file(tmp_path):
    """Content in a file is the same for both."""
    with SQLiteChunkStore(tmp_path / "c.db") as store:
        index = HybridIndex(store=store)
        assert copy.copy(index).store is store


# Chunks and analyzers


WRONG = [("text", None), ("kind", None), ("embedding_text", 5), ("id", 3), ("document_id", None)]


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_hybrid_refuses_what_it_could_not_save(tmp_path, field, value):
    """A chunk with a field of another kind is refused at once; what is here stays and is saved."""
    index = HybridIndex()
    index.add([chunk("a", "alpha")])
    bad = chunk("bad")
    setattr(bad, field, value)
    with pytest.raises(InvalidParameterError) as caught:
        index.add([chunk("good"), bad])
    assert caught.value.name == field
    with pytest.raises(InvalidParameterError):
        index.update_document(bad.document_id, [bad])
    assert index.store.ids() == ["a"]
    index.save(tmp_path / "index")
    assert HybridIndex.load(tmp_path / "index").bm25.ids == ["a"]


def test_hybrid_reads_iterators_once():
    """Chunks may come from a generator: nothing of them is lost, and no document with them."""
    index = HybridIndex()
    index.add(chunk(id_, "alpha") for id_ in "ab")
    assert len(index) == 2
    index.update_document("doc", (chunk(id_, "beta") for id_ in "bc"), iter([[1.0], [2.0]]))
    assert index.chunks_of("doc") == ["b", "c"]
    assert index.vectors.ids == ["b", "c"]


@pytest.mark.parametrize("chunks", [None, chunk("a"), "ab", [None], 5])
def test_hybrid_refuses_what_are_no_chunks(chunks):
    """One chunk in place of several, or something else, is refused by name."""
    index = HybridIndex()
    with pytest.raises(InvalidParameterError, match="chunks"):
        index.add(chunks)
    with pytest.raises(InvalidParameterError, match="chunks"):
        index.update_document("doc", chunks)


class Shouting:
    name = "shouting"

    def __init__(self, result):
        self.result = result

    def __call__(self, text):
        return self.result

    def analyze_many(self, texts, *, processes=None):
        return [self.result for _ in texts]

    def settings(self):
        return {"name": self.name}


RESULTS = [[1, 2], "term", [b"term"], None, 7, [["term"]], ["good", None]]


@pytest.mark.parametrize("result", RESULTS, ids=map(repr, RESULTS))
@pytest.mark.parametrize("make", [Shouting, lambda result: lambda text: result], ids="of")
def test_analyzers_that_give_no_strings_are_refused(make, result):
    """Terms that are no strings are refused when documents come, and no document is there."""
    index = BM25Index(analyzer=make(result))
    with pytest.raises(InvalidParameterError, match="analyzer"):
        index.add(["a"], ["text"])
    assert (len(index), len(index._snapshot.vocabulary)) == (0, 0)
    with pytest.raises(InvalidParameterError, match="analyzer"):
        index.search("text")
    hybrid = HybridIndex(bm25=index)
    with pytest.raises(InvalidParameterError, match="analyzer"):
        hybrid.add([chunk("a")])
    assert (len(hybrid), hybrid.store.ids()) == (0, [])


def test_analyzers_that_lose_texts_are_refused():
    """An analyzer must answer for every text."""
    analyzer = Shouting(["term"])
    analyzer.analyze_many = lambda texts: [["term"]]
    with pytest.raises(InvalidParameterError, match="each of 2 texts"):
        BM25Index(analyzer=analyzer).add(["a", "b"], ["x", "y"])


@pytest.mark.parametrize("wrong", [StandardAnalyzer, Shouting, 5, "english"])
def test_what_is_no_analyzer_is_refused(wrong):
    """A class in place of an analyzer, or what cannot be called, is refused at once."""
    with pytest.raises(InvalidParameterError, match="analyzer"):
        BM25Index(analyzer=wrong)
    with pytest.raises(InvalidParameterError, match="analyzer"):
        as_analyzer(wrong)


# Searching


@pytest.mark.parametrize("accept", ["nothing", "the leaf"])
def test_merging_over_a_deep_chain(accept):
    """Three thousand parents above each other are merged under a filter, in little time."""
    levels = 3000
    index = HybridIndex()
    chain = [chunk("0", "needle", parent_id="1")]
    chain += [
        chunk(str(level), "above", kind="parent", parent_id=str(level + 1))
        for level in range(1, levels)
    ]
    index.add([*chain, chunk("hay", "needle hay"), chunk(str(levels), "top", kind="parent")])
    allowed = {"hay"} if accept == "nothing" else {"0"}
    started = time.perf_counter()
    hits = index.search("needle", filter=allowed, merge=True)
    assert time.perf_counter() - started < 30
    assert [hit.id for hit in hits] == (["hay"] if accept == "nothing" else [str(levels)])


def test_merging_over_a_circle():
    """Parents in a circle that no filter accepts end the search; the child stays."""
    index = HybridIndex()
    index.add(
        [
            chunk("a", "needle", parent_id="p"),
            chunk("b", "straw", parent_id="p"),
            chunk("p", "up", kind="parent", parent_id="q"),
            chunk("q", "round", kind="parent", parent_id="p"),
        ]
    )
    assert [hit.id for hit in index.search("needle", filter={"a"}, merge=True)] == ["a"]


@pytest.mark.parametrize("query", [None, 5, b"bytes", ["list"]])
def test_hybrid_query_must_be_text(query):
    """A question that is no text is refused by name."""
    index = HybridIndex()
    index.add([chunk("a")])
    with pytest.raises(InvalidParameterError, match="query"):
        index.search(query)


def test_bad_vectors_are_named_and_shown():
    """The message shows the vector that was given and says whose it is."""
    index = VectorIndex(2)
    with pytest.raises(InvalidParameterError, match="vector of id 'x'") as caught:
        index.add(["ok", "x"], [[1.0, 2.0], [float("nan"), 1.0]])
    assert np.isnan(caught.value.value[0])
    assert str(caught.value).startswith("vectors=[nan, 1.0] is not allowed")
    with pytest.raises(InvalidParameterError) as caught:
        index.search([float("inf"), 1.0])
    assert str(caught.value).startswith("vector=[inf, 1.0] is not allowed")


@pytest.mark.parametrize(
    ("ids", "vectors"),
    [
        (["a"], None),
        (["a"], 5),
        (["a"], "v"),
        (["a"], [5]),
        (None, [[1.0, 2.0]]),
        (3, [[1.0, 2.0]]),
    ],
)
def test_what_is_no_list_of_vectors_is_refused(ids, vectors):
    """Ids or vectors that are no lists are refused in our words."""
    with pytest.raises(InvalidParameterError, match=r"ids|vectors"):
        VectorIndex(2).add(ids, vectors)


# Disk


def test_manifest_that_is_a_folder(tmp_path):
    """A folder where the manifest should be is a format error, on reading and on writing."""
    index = VectorIndex(2)
    (tmp_path / "manifest.json").mkdir()
    with pytest.raises(IndexFormatError, match=r"manifest\.json is a folder"):
        VectorIndex.load(tmp_path)
    with pytest.raises(IndexFormatError, match=r"manifest\.json is a folder"):
        index.save(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["manifest.json"]


def test_part_that_is_a_folder(tmp_path):
    """A folder in place of one of the saved files is a format error."""
    VectorIndex(2).save(tmp_path)
    (saved,) = tmp_path.glob("generation-*/vectors.npy")
    saved.unlink()
    saved.mkdir()
    with pytest.raises(IndexFormatError, match=r"vectors\.npy is no file"):
        VectorIndex.load(tmp_path)


def test_save_to_a_dangling_link(tmp_path):
    """A link to nothing is refused in words, and nothing is made."""
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    with pytest.raises(IndexFormatError, match="link to something that is not there"):
        VectorIndex(2).save(tmp_path / "link")
    assert not (tmp_path / "nothing").exists()


# Numbers


@pytest.mark.parametrize("value", ["1", None, True, float("nan"), 10**400, [1], 1j])
def test_check_number_refuses(value):
    """What is no number is refused in our words."""
    with pytest.raises(InvalidParameterError, match="x="):
        check_number("x", value)


def test_a_value_that_cannot_be_shown():
    """A refusal is told even of a value whose repr fails."""

    class Broken:
        def __repr__(self):
            raise RuntimeError

    nested = []
    for _ in range(100_000):
        nested = [nested]
    for value, shown in ((Broken(), "<Broken>"), (nested, "<list>")):
        assert str(InvalidParameterError("x", value, "no")) == f"x={shown} is not allowed: no."


@pytest.mark.parametrize("name", ["merge_threshold", "rank_constant"])
@pytest.mark.parametrize("value", ["0.5", None, float("nan"), True])
def test_hybrid_config_numbers(name, value):
    """Settings that are no numbers are refused by name."""
    with pytest.raises(EasyRAGError, match=name):
        HybridConfig(**{name: value})
