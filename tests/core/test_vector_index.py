"""Exact cosine search: equal to the naive form through any changes, on disk and in threads."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from easyrag_core.errors import DimensionMismatchError, IndexFormatError, InvalidParameterError
from easyrag_core.index._folder import pack_parts, read_folder, write_folder
from easyrag_core.index.vector import VectorIndex
from easyrag_core.types import ChannelScore

IDS = st.sampled_from(["a", "b", "c", "d", "文档", "e", "f"])
ROW = st.lists(st.integers(-2, 2), min_size=3, max_size=3)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(st.tuples(IDS, ROW), max_size=5)),
        st.tuples(st.just("remove"), st.lists(IDS, max_size=4)),
    ),
    max_size=12,
)


def naive(vectors, query, k):
    """Rank a dict of vectors in float64, ties in the dict's order."""

    def cosine(row):
        norm = np.linalg.norm(row) * np.linalg.norm(query)
        return float(np.dot(row, query) / norm) if norm else 0.0

    scored = [(id_, cosine(np.array(row, np.float64))) for id_, row in vectors.items()]
    return sorted(scored, key=lambda pair: -round(pair[1], 9))[:k]


def filled(count=50, dim=8, seed=0):
    rng = np.random.default_rng(seed)
    index = VectorIndex(dim)
    index.add([f"v{n}" for n in range(count)], rng.normal(size=(count, dim)))
    return index


@given(CHANGES, ROW, st.integers(0, 9))
@settings(deadline=None)
def test_any_changes_equal_a_rebuild(changes, query, k):
    """After adds, updates and removals: the naive answer, and that of a new index, exactly."""
    index, model = VectorIndex(3), {}
    for kind, values in changes:
        if kind == "add":
            index.add([id_ for id_, _ in values], [row for _, row in values])
            model.update(values)
        else:
            known = {id_ for id_ in values if id_ in model}
            assert index.remove(values) == len(known)
            model = {id_: row for id_, row in model.items() if id_ not in known}
    assert index.ids == list(model)
    assert len(index) == len(model)
    hits = index.search(query, k)
    expected = naive(model, np.array(query, np.float64), k)
    assert [hit.id for hit in hits] == [id_ for id_, _ in expected]
    assert [hit.score for hit in hits] == pytest.approx([score for _, score in expected], abs=1e-6)
    rebuilt = VectorIndex(3)
    rebuilt.add(list(model), list(model.values()))
    assert rebuilt.search(query, k) == hits


def test_hits_say_where_they_come_from():
    """Ranks count from 1; the channel keeps rank and raw score."""
    index = VectorIndex(2)
    index.add(["a", "b"], [[1, 0], [0, 1]])
    first = index.search([1, 0], k=1)[0]
    assert (first.id, first.score, first.rank) == ("a", 1.0, 1)
    assert first.channels == {"vector": ChannelScore(1, 1.0)}


def test_ties_by_insertion_order_at_any_place():
    """Equal rows in a matrix of odd size tie exactly, also across updates."""
    row = np.random.default_rng(1).normal(size=131)
    index = VectorIndex(131)
    names = [f"{n:03}" for n in range(203)]
    index.add(names, [row] * 203)
    index.add(["100"], [row])
    assert [hit.id for hit in index.search(row, k=203)] == names


def test_zero_vectors_score_zero():
    """A vector of length 0 scores 0, as document and as query."""
    index = VectorIndex(2)
    index.add(["zero", "away"], [[0, 0], [-1, 0]])
    assert [(h.id, h.score) for h in index.search([1, 0])] == [("zero", 0.0), ("away", -1.0)]
    assert [(h.id, h.score) for h in index.search([0, 0])] == [("zero", 0.0), ("away", 0.0)]


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_very_long_and_short_vectors(size):
    """Lengths whose squares leave float32 still give true cosines."""
    index = VectorIndex(2)
    index.add(["a", "b"], [[size, 0], [size, size]])
    scores = [hit.score for hit in index.search([size, 0])]
    assert scores == pytest.approx([1.0, 0.5**0.5], abs=1e-6)


def test_counts():
    """`k=0`, an empty index and a `k` above n give what there is."""
    index = VectorIndex(2)
    assert index.search([1, 0]) == []
    assert index.search_batch([[1, 0], [0, 1]]) == [[], []]
    index.add([], [])
    index.add(["a"], [[1, 0]])
    assert index.search([1, 0], k=0) == []
    assert len(index.search([1, 0], k=99)) == 1
    assert index.search_batch([]) == []


FILTERS = {
    "set": ({"v3", "v4", "unknown"}, ["v3", "v4"]),
    "list": (["v3", "v4"], ["v3", "v4"]),
    "predicate": (lambda id_: id_ in {"v3", "v4"}, ["v3", "v4"]),
    "nothing": (set(), []),
    "most": ({f"v{n}" for n in range(40)}, [f"v{n}" for n in range(40)]),
    "mask": ("mask", ["v0", "v2"]),
}


@pytest.mark.parametrize(("accepted", "expected"), FILTERS.values(), ids=FILTERS)
def test_filter_before_ranking(accepted, expected):
    """A filter is applied before ranking and never relaxed, also after changes."""
    index = filled()
    index.add(["v2"], [[1] * 8])
    index.remove(["v1"])
    if isinstance(accepted, str):
        accepted = np.zeros(49, np.bool_)
        accepted[:2] = True
    hits = index.search([1] * 8, k=99, filter=accepted)
    assert sorted(hit.id for hit in hits) == sorted(set(expected) - {"v1"})
    everything = [hit.id for hit in index.search([1] * 8, k=99)]
    assert [hit.id for hit in hits] == [id_ for id_ in everything if id_ in expected]
    assert index.search([1] * 8, k=1, filter=accepted) == hits[:1]


def test_batch_equals_single(monkeypatch):
    """Several queries at once give the answers of each alone, in blocks of any size."""
    monkeypatch.setattr("easyrag_core.index.vector._index._SCORES_AT_ONCE", 120)
    index = filled()
    queries = np.random.default_rng(2).normal(size=(7, 8))
    assert index.search_batch(queries, 5) == [index.search(query, 5) for query in queries]


def test_get_gives_copies():
    """Vectors come back in the order of the ids; to change one does not change the index."""
    index = VectorIndex(2)
    index.add(["a", "b"], [[1, 0], [0.25, 2]])
    found = index.get(["b", "none", "a", "b"])
    assert found[1] is None
    np.testing.assert_array_equal(found[0], np.array([0.25, 2], np.float32))
    found[0][:] = 9
    np.testing.assert_array_equal(index.get(["b"])[0], [0.25, 2])


def test_the_callers_array_is_copied():
    """To change an array after it was added does not change the index."""
    rows = np.eye(2, dtype=np.float32)
    index = VectorIndex(2)
    index.add(["a", "b"], rows)
    rows[:] = 0
    assert index.search([1, 0], k=1)[0].score == 1.0


def test_single_adds_are_amortised(monkeypatch):
    """A thousand single adds and removals copy the rows a few times, not a thousand times."""
    from easyrag_core.index.vector import _rows

    copies = []
    real = _rows._grown
    monkeypatch.setattr(_rows, "_grown", lambda c, size: copies.append(size) or real(c, size))
    index = VectorIndex(4)
    for n in range(1000):
        index.add([str(n)], [[n, 1, 1, 1]])
    assert len(copies) <= 4 * 8
    assert index.remove(map(str, range(999))) == 999
    assert index.ids == ["999"]
    assert len(index._rows.matrix) == 1, "what was removed does not stay in memory"


BAD_ADDS = {
    "NaN": (["x", "bad"], [[1, 2], [np.nan, 1]], InvalidParameterError, "id 'bad'"),
    "infinity": (["bad", "x"], [[np.inf, 1], [1, 2]], InvalidParameterError, "id 'bad'"),
    "None": (["x", "bad"], [[1, 2], None], InvalidParameterError, "id 'bad'"),
    "dimension": (["x", "bad"], [[1, 2], [1]], DimensionMismatchError, "id 'bad' has 1 dim.* 2 "),
    "array": (["x"], np.ones((1, 3)), DimensionMismatchError, "id 'x' has 3 dim"),
    "too few ids": (["x"], [[1, 2], [3, 4]], InvalidParameterError, "one id per vector"),
    "a string": ("ab", [[1, 2], [3, 4]], InvalidParameterError, "one id per vector"),
    "id is no string": ([1], [[1, 2]], InvalidParameterError, "ids are strings"),
}


@pytest.mark.parametrize(("ids", "rows", "error", "message"), BAD_ADDS.values(), ids=BAD_ADDS)
def test_bad_adds_change_nothing(ids, rows, error, message):
    """One bad vector refuses the batch, by id, and the index stays as it was."""
    index = VectorIndex(2)
    index.add(["kept"], [[1, 0]])
    with pytest.raises(error, match=message):
        index.add(ids, rows)
    assert index.ids == ["kept"]


BAD_QUERIES = {
    "dimension": ([1, 2, 3], {}, DimensionMismatchError),
    "NaN": ([np.nan, 1], {}, InvalidParameterError),
    "two rows": ([[1, 2], [3, 4]], {}, InvalidParameterError),
    "negative k": ([1, 2], {"k": -1}, InvalidParameterError),
    "filter is a string": ([1, 2], {"filter": "kept"}, InvalidParameterError),
    "mask too long": ([1, 2], {"filter": np.ones(2, np.bool_)}, InvalidParameterError),
    "mask of numbers": ([1, 2], {"filter": np.ones(1)}, InvalidParameterError),
    "filter is a number": ([1, 2], {"filter": 3}, InvalidParameterError),
}


@pytest.mark.parametrize(("query", "options", "error"), BAD_QUERIES.values(), ids=BAD_QUERIES)
def test_bad_queries(query, options, error):
    """A query that cannot be answered is refused."""
    index = VectorIndex(2)
    index.add(["kept"], [[1, 0]])
    with pytest.raises(error):
        index.search(query, **options)


def test_bad_construction_and_removal():
    """A dimension below 1 and a single string to remove are refused."""
    with pytest.raises(InvalidParameterError, match="dim"):
        VectorIndex(0)
    with pytest.raises(InvalidParameterError, match="list of ids"):
        VectorIndex(1).remove("abc")


# Disk


@pytest.mark.parametrize("mmap", [True, False])
def test_save_and_load(tmp_path, mmap):
    """What comes back answers the same, and can be changed without changing the file."""
    index = filled()
    index.add(["v9", "新"], [[1] * 8, [2] * 8])
    index.remove(["v0"])
    index.save(tmp_path / "vectors")
    loaded = VectorIndex.load(tmp_path / "vectors", mmap=mmap)
    assert loaded.ids == index.ids
    assert loaded.search([1] * 8, k=99) == index.search([1] * 8, k=99)
    loaded.add(["v9", "later"], [[3] * 8, [0] * 8])
    loaded.remove(["v1"])
    assert VectorIndex.load(tmp_path / "vectors").ids == index.ids
    loaded.save(tmp_path / "vectors")
    assert VectorIndex.load(tmp_path / "vectors").ids == loaded.ids


def test_empty_index_on_disk(tmp_path):
    """An empty index can be saved, loaded and filled."""
    VectorIndex(3).save(tmp_path)
    loaded = VectorIndex.load(tmp_path)
    assert (loaded.dim, loaded.ids, loaded.search([1, 0, 0])) == (3, [], [])
    loaded.add(["a"], [[1, 0, 0]])
    assert loaded.search([1, 0, 0])[0].id == "a"


def test_as_a_part_of_a_larger_folder(tmp_path):
    """Contents can be committed with others in one step."""
    packed = pack_parts({"vectors": filled().contents()})
    write_folder(
        tmp_path,
        kind="demo",
        version=1,
        arrays=packed.arrays,
        settings=packed.settings,
        texts=packed.texts,
    )
    part = read_folder(tmp_path, kind="demo", version=1).part("vectors")
    assert VectorIndex.from_contents(part).ids == filled().ids


@pytest.mark.parametrize("missing", ["ids", "vectors", "dim"])
def test_contents_that_do_not_fit(tmp_path, missing):
    """Parts that do not belong together are refused."""
    arrays = {"vectors": np.zeros((2, 3), np.float32)}
    texts, settings_ = {"ids": ["a"]}, {"dim": 3}
    for part in (arrays, texts, settings_):
        if missing in part:
            del part[missing]
    write_folder(tmp_path, kind="vector", version=1, arrays=arrays, settings=settings_, texts=texts)
    with pytest.raises(IndexFormatError):
        VectorIndex.load(tmp_path)


def test_pickle():
    """A pickled index answers the same."""
    index = filled()
    again = pickle.loads(pickle.dumps(index))
    assert again.search([1] * 8) == index.search([1] * 8)
    again.add(["new"], [[1] * 8])
    assert "new" not in index


def test_threads():
    """Searches beside adds, updates and removals always see whole rows and known ids."""
    index = VectorIndex(4)
    index.add(["fixed"], [[1, 0, 0, 0]])
    errors = []

    def change(number):
        for step in range(150):
            index.add([f"{number}-{step % 7}"], [[0, number + 1, step, 1]])
            if step % 5 == 0:
                index.remove([f"{number}-{step % 7}"])

    def search():
        for _ in range(150):
            hits = index.search([1, 0, 0, 0], k=99)
            if hits[0].id != "fixed" or any(hit.score != 0 for hit in hits[1:]):
                errors.append(hits)
            if len({hit.id for hit in hits}) != len(hits):
                errors.append(hits)

    threads = [threading.Thread(target=change, args=(n,)) for n in range(3)]
    threads += [threading.Thread(target=search) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
