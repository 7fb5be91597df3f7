"""Fields that count more than the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core.errors import IndexFormatError, InvalidParameterError
from easyrag_core.index.bm25 import BM25Index, field_texts

WORDS = st.lists(st.sampled_from(["a", "a", "b", "c", "检索"]), max_size=5).map(" ".join)
ROWS = st.lists(st.tuples(st.sampled_from("uvwxyz"), WORDS, WORDS, WORDS), max_size=12)
QUERIES = ("a b", "c 检 a", "检索")


def answers(index):
    """Return hits and explanations."""
    found = [index.search(query, 20) for query in QUERIES]
    return index.ids, found, [index.explain(query, id_) for query in QUERIES for id_ in index.ids]


@given(ROWS, st.integers(1, 4), st.lists(st.sampled_from("uvwxyz"), max_size=3))
def test_a_weight_repeats_the_field(rows, weight, gone):
    """A field of weight w is worth its text w times, also after updates, removals and a load."""
    index = BM25Index(field_weights={"title": weight, "path": 1})
    plain = BM25Index()
    for id_, text, title, path in rows:
        index.add([id_], [text], fields={"path": [path], "title": [title]})
        plain.add([id_], [" 。 ".join([text, *[title] * weight, path])])
    index.remove(gone)
    plain.remove(gone)
    assert answers(index) == answers(plain)
    loaded = BM25Index.from_contents(index.contents())
    assert loaded.field_weights == index.field_weights == {"title": weight, "path": 1}
    assert answers(loaded) == answers(plain)


def test_a_title_lifts_a_document():
    """What has the word in its title comes before what has it in its text."""
    index = BM25Index(field_weights={"title": 3})
    fields = {"title": ["cooking rice", "engines"]}
    index.add(["a", "b"], ["boil water", "engines cooking"], fields=fields)
    assert [hit.id for hit in index.search("cooking")] == ["a", "b"]
    assert index.explain("cooking", "a").terms[0].tf == 3
    assert index.explain("cooking", "a").length == 8


def test_fields_may_be_left_out():
    """A document without a field is its text alone; the last of equal ids counts with all."""
    index = BM25Index(field_weights={"title": 2})
    index.add(["a", "b", "a"], ["x", "y", "z"], fields={"title": ["old", "", "new"]})
    index.add(["c"], ["w"])
    assert index.search("old") == index.search("x") == []
    assert [hit.id for hit in index.search("new")] == ["a"]
    assert index.explain("w", "c").length == 1


@pytest.mark.parametrize(
    "weights",
    [
        {"title": 0},
        {"title": 101},
        {"title": 1.5},
        {"title": True},
        {"title": None},
        {1: 2},
        "title",
        [2],
    ],
)
def test_bad_weights_are_refused(weights):
    """Weights are whole numbers from 1 to 100, by name."""
    with pytest.raises(InvalidParameterError, match="field_weights"):
        BM25Index(field_weights=weights)


@pytest.mark.parametrize(
    "fields", [{"titel": ["x"]}, {"title": []}, {"title": "x"}, {"title": [None]}]
)
def test_bad_fields_are_refused(fields):
    """An unknown field, or one that does not pair with the ids, changes nothing."""
    index = BM25Index(field_weights={"title": 2})
    with pytest.raises(InvalidParameterError, match=r"tit(le|el)"):
        index.add(["a"], ["x"], fields=fields)
    with pytest.raises(InvalidParameterError, match="no fields"):
        BM25Index().add(["a"], ["x"], fields={"title": ["x"]})
    assert len(index) == 0


def test_lost_weights_are_refused():
    """An index that was saved without its weights is damaged."""
    contents = BM25Index(field_weights={"title": 2}).contents()
    contents.settings["field_weights"] = {"title": -1}
    with pytest.raises(IndexFormatError, match="weights"):
        BM25Index.from_contents(contents)


def test_fields_are_taken_from_metadata():
    """Texts, numbers and lists of them; whatever else stands there is no text."""
    metadatas = [
        {"t": "x", "n": 2026},
        {"t": ["a", ["b", 3], None, "", True], "n": 1.5},
        {"t": ("甲", "乙"), "n": False},
        {"t": {"a": "b"}, 5: "x"},
        {"t": None, "n": b"x"},
    ]
    assert field_texts(metadatas, {"t": 2, "n": 1}) == {
        "t": ["x", "a\nb\n3", "甲\n乙", "", ""],
        "n": ["2026", "1.5", "", "", ""],
    }
    assert field_texts([], ["t"]) == {"t": []}
    assert field_texts(metadatas, []) == {}
