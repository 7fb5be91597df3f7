"""A hybrid index through any history: equal to a rebuild, on disk, in copies, under threads."""

from __future__ import annotations

import copy
import json
import pickle
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from easyrag_core import (
    BM25Index,
    BM25Params,
    CachedChunkStore,
    HybridConfig,
    HybridIndex,
    IndexFormatError,
    InMemoryChunkStore,
    InvalidParameterError,
    SQLiteChunkStore,
    VectorIndex,
)
from tests.core.hybrid_samples import (
    PLAIN,
    answers,
    family,
    piece,
    plain_index,
    with_vectors,
)
from tests.strategies import nasty_texts

# Any history equals a rebuild


DOCUMENTS = st.sampled_from(["one", "two", "三"])
TEXTS = st.one_of(
    st.lists(st.sampled_from(["fox", "hen", "检索", "red"]), max_size=4).map(" ".join),
    nasty_texts(max_fragments=3),
)
ROWS = st.one_of(st.none(), st.lists(st.integers(-1, 1), min_size=2, max_size=2))
PIECES = st.lists(st.tuples(st.integers(0, 3), TEXTS, ROWS, st.booleans()), max_size=4)
HISTORIES = st.lists(
    st.one_of(
        st.tuples(st.just("add"), DOCUMENTS, PIECES),
        st.tuples(st.just("update"), DOCUMENTS, PIECES),
        st.tuples(st.just("delete"), DOCUMENTS, st.just([])),
        st.tuples(st.just("remove"), DOCUMENTS, PIECES),
        st.tuples(st.just("refused"), DOCUMENTS, PIECES),
        st.tuples(st.just("reload"), DOCUMENTS, st.booleans()),
    ),
    max_size=10,
)


class Model:
    """What an index should hold, in plain dicts in the order in which things came."""

    def __init__(self):
        self.chunks, self.words, self.rows = {}, {}, {}

    def add(self, chunks, rows):
        for chunk, row in {c.id: (c, r) for c, r in zip(chunks, rows, strict=True)}.values():
            known = self.chunks.get(chunk.id)
            self.chunks[chunk.id] = chunk
            if chunk.kind == "parent":
                self.words.pop(chunk.id, None)
                self.rows.pop(chunk.id, None)
                continue
            self.words[chunk.id] = chunk.embedding_text
            if row is not None:
                self.rows[chunk.id] = row
            elif known is None or known.embedding_text != chunk.embedding_text:
                self.rows.pop(chunk.id, None)

    def remove(self, ids):
        for id_ in ids:
            for part in (self.chunks, self.words, self.rows):
                part.pop(id_, None)

    def of(self, document):
        return [id_ for id_, chunk in self.chunks.items() if chunk.document_id == document]

    def rebuilt(self):
        bm25, vectors, store = BM25Index(), VectorIndex(2), InMemoryChunkStore()
        bm25.add(list(self.words), list(self.words.values()))
        vectors.add(list(self.rows), list(self.rows.values()))
        store.put_many(self.chunks.values())
        return HybridIndex(bm25=bm25, vectors=vectors, store=store)


def _pieces(document, told):
    chunks = [
        piece(f"{document}{n}", text, document, n, kind="parent" if parent else "text")
        for n, text, _, parent in told
    ]
    return chunks, [row for _, _, row, _ in told]


def _reloaded(index, mmap):
    with tempfile.TemporaryDirectory() as folder:
        index.save(Path(folder) / "index")
        return HybridIndex.load(Path(folder) / "index", mmap=mmap)


def _apply(index, model, step):
    kind, document, told = step
    if kind == "reload":
        return _reloaded(index, told)
    chunks, rows = _pieces(document, told)
    if kind == "add":
        index.add(chunks, rows)
        model.add(chunks, rows)
    elif kind == "update":
        index.update_document(document, chunks, rows)
        # What is gone goes first: it could not come back in the same step.
        model.remove(set(model.of(document)) - {chunk.id for chunk in chunks})
        model.add(chunks, rows)
    elif kind == "delete":
        assert sorted(index.delete_document(document)) == sorted(model.of(document))
        model.remove(model.of(document))
    elif kind == "remove":
        known = {chunk.id for chunk in chunks} & model.chunks.keys()
        assert index.remove([chunk.id for chunk in chunks]) == len(known)
        model.remove(known)
    else:
        with pytest.raises(InvalidParameterError):
            index.add([*chunks, piece("bad", "fox")], [*rows, [float("nan"), 1]])
    return index


@given(HISTORIES)
@settings(deadline=None)
def test_any_history_equals_a_rebuild(history):
    """After adds, updates, deletions, refusals and reloads every answer is a new index's."""
    index, model = HybridIndex(), Model()
    for step in history:
        index = _apply(index, model, step)
    rebuilt = model.rebuilt()
    assert len(index) == len(model.chunks)
    assert index.bm25.ids == list(model.words)
    assert (index.vectors.ids if index.vectors else []) == list(model.rows)
    assert index.get_many(list(model.chunks)) == list(model.chunks.values())
    for query in ("fox", "fox red 检索", "検索 🇩🇪 C++"):
        for vector in (None, [1, 0], [-1, 1]):
            assert index.search(query, vector, 20) == rebuilt.search(query, vector, 20)


# Disk


CONFIG = HybridConfig(7, 8, "score", 5, 0.9, {"vector": 3.0}, None)


@pytest.mark.parametrize("mmap", [True, False])
def test_a_saved_index_comes_back_whole(tmp_path, mmap):
    """Config, parameters, vectors, content, documents: every answer is the one before."""
    index = plain_index(CONFIG, bm25=BM25Index(BM25Params(0.7, 0.3)))
    index.add(family(2), with_vectors_of_three(family(2)))
    index.save(tmp_path / "index")
    loaded = HybridIndex.load(tmp_path / "index", mmap=mmap)
    assert answers(loaded) == answers(index)
    assert loaded.config == CONFIG
    assert loaded.bm25.params == BM25Params(0.7, 0.3)
    assert loaded.chunks_of("p0") == index.chunks_of("p0")
    assert loaded.search("fox", merge=True) == index.search("fox", merge=True)
    assert loaded.without_vector(PLAIN) == []
    loaded.update_document("one", [])
    assert loaded.search("quick") == []
    assert HybridIndex.load(tmp_path / "index").search("quick")[0].id == "a"


def with_vectors_of_three(chunks):
    return [row[:3] for row in with_vectors(chunks)]


@pytest.mark.parametrize("chunks", [[], PLAIN], ids=["empty", "without vectors"])
def test_an_index_without_vectors_comes_back(tmp_path, chunks):
    """No chunks, or none with a vector: saved and loaded like any other, then any length goes."""
    index = HybridIndex()
    index.add(chunks)
    index.save(tmp_path)
    loaded = HybridIndex.load(tmp_path)
    assert loaded.vectors is None
    assert answers(loaded, [])[1:] == answers(index, [])[1:]
    loaded.add([piece("v", "fox")], [[1.0] * 5])
    assert loaded.vectors.dim == 5


def test_another_config_can_be_given(tmp_path):
    """`config=` replaces the saved one."""
    plain_index(CONFIG).save(tmp_path)
    assert HybridIndex.load(tmp_path, config=HybridConfig(3)).config.bm25_k == 3


def test_content_of_another_store_is_given_again(tmp_path):
    """A store that keeps its own content is not copied: without it loading is refused."""
    with SQLiteChunkStore(tmp_path / "chunks.db") as store:
        index = plain_index(store=CachedChunkStore(store))
        before = answers(index)
        index.save(tmp_path / "index")
    with pytest.raises(IndexFormatError, match="give `store` again"):
        HybridIndex.load(tmp_path / "index")
    with SQLiteChunkStore(tmp_path / "chunks.db") as store:
        loaded = HybridIndex.load(tmp_path / "index", store=store)
        assert answers(loaded) == before
        assert loaded.delete_document("one") == ["a", "b"]
        assert store.ids() == ["c", "d", "e"]


def test_an_analyzer_of_the_callers_is_given_again(tmp_path):
    """An index built with a plain function needs it again, and then answers as before."""
    index = plain_index(bm25=BM25Index(analyzer=str.split))
    index.save(tmp_path)
    with pytest.raises(IndexFormatError):
        HybridIndex.load(tmp_path)
    assert answers(HybridIndex.load(tmp_path, analyzer=str.split)) == answers(index)


def test_a_path_that_does_not_exist(tmp_path):
    """The builtin that a caller expects."""
    with pytest.raises(FileNotFoundError):
        HybridIndex.load(tmp_path / "nowhere")


def _truncated(folder):
    biggest = max(folder.rglob("*.npy"), key=lambda path: path.stat().st_size)
    biggest.write_bytes(biggest.read_bytes()[:-7])


def _without_a_file(folder):
    next(iter(sorted(folder.rglob("*.npy")))).unlink()


def _without_manifest(folder):
    for path in folder.rglob("*.json"):
        path.unlink()


def _no_json(folder):
    for path in folder.rglob("*.json"):
        path.write_text("{", encoding="utf-8")


@pytest.mark.parametrize("damage", [_truncated, _without_a_file, _without_manifest, _no_json])
def test_a_torn_folder_is_refused(tmp_path, damage):
    """Whatever is missing or cut off is said, and never answered from."""
    plain_index().save(tmp_path)
    damage(tmp_path)
    with pytest.raises(IndexFormatError):
        HybridIndex.load(tmp_path, mmap=False)


@pytest.mark.parametrize("foreign", ["bm25", "vectors", "else"])
def test_a_foreign_folder_is_refused(tmp_path, foreign):
    """A folder of one part, or of someone else, is neither loaded nor written over."""
    index = plain_index()
    if foreign == "else":
        (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    else:
        getattr(index, foreign).save(tmp_path)
    held = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(IndexFormatError):
        HybridIndex.load(tmp_path)
    with pytest.raises(IndexFormatError):
        index.save(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == held


def test_metadata_that_are_no_json_are_refused_by_name(tmp_path):
    """The chunk is named, and nothing is written."""
    index = HybridIndex()
    index.add([piece("a", metadata={"when": object()})])
    with pytest.raises(InvalidParameterError, match="chunk 'a' must be plain JSON"):
        index.save(tmp_path / "index")
    assert not (tmp_path / "index").exists()


def test_a_later_save_replaces_the_earlier_one(tmp_path):
    """One folder, the last state, also when the index was loaded from that folder."""
    plain_index().save(tmp_path)
    loaded = HybridIndex.load(tmp_path)
    loaded.remove(["a", "b"])
    loaded.save(tmp_path)
    assert HybridIndex.load(tmp_path).store.ids() == ["c", "d", "e"]
    json.dumps(loaded.get_many(["c"])[0].metadata)


# Copies


@pytest.mark.parametrize("how", [copy.deepcopy, lambda index: pickle.loads(pickle.dumps(index))])
def test_a_copy_answers_the_same_and_goes_its_own_way(how):
    """Pickled and deep copies share nothing that can change."""
    index = plain_index(CONFIG)
    before = answers(index)
    other = how(index)
    assert answers(other) == before
    other.delete_document("one")
    other.add([piece("z", "fox")], [[1, 1, 1]])
    assert answers(index) == before
