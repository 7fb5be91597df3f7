"""Stores under damage and misuse: a clear error or the right answer, never a silent loss."""

from __future__ import annotations

import os
import sqlite3

import pytest

from easyrag_core.errors import EasyRAGError, IndexFormatError, InvalidParameterError
from easyrag_core.index.store import CachedChunkStore, InMemoryChunkStore, SQLiteChunkStore
from easyrag_core.types import Chunk


def chunk(id_, text="text", **fields):
    return Chunk(id_, "doc", 0, text, 0, len(text), **fields)


def deep(levels):
    nested = {}
    for _ in range(levels):
        nested = {"in": nested}
    return nested


def holding_itself():
    metadata = {}
    metadata["me"] = metadata
    return metadata


CALLS = {
    "get_many": lambda store: store.get_many(["a"]),
    "put_many": lambda store: store.put_many([chunk("b")]),
    "delete_many": lambda store: store.delete_many(["a"]),
    "children_of": lambda store: store.children_of("p"),
    "parents_of": lambda store: store.parents_of(["a"]),
    "delete_document": lambda store: store.delete_document("doc"),
    "ids": lambda store: store.ids(),
    "len": len,
    "contains": lambda store: "a" in store,
}


@pytest.fixture
def kept(tmp_path):
    with SQLiteChunkStore(tmp_path / "c.db") as store:
        store.put_many([chunk("a", parent_id="p")])
        yield store


@pytest.fixture(params=["memory", "sqlite", "cached"])
def store(request, tmp_path):
    if request.param == "sqlite":
        with SQLiteChunkStore(tmp_path / "c.db") as opened:
            yield opened
    else:
        inner = InMemoryChunkStore()
        yield CachedChunkStore(inner) if request.param == "cached" else inner


# The file


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_sqlite_file_deleted(kept, tmp_path, call, closed):
    """After the file is deleted every call says so, and none makes an empty one."""
    if closed:
        kept.close()
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(IndexFormatError, match="gone"):
        call(kept)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_sqlite_file_emptied(kept, tmp_path, call, closed):
    """A file cut to nothing is refused by every call, and by a new store."""
    if closed:
        kept.close()
    os.truncate(tmp_path / "c.db", 0)
    with pytest.raises(IndexFormatError, match="empty"):
        call(kept)
    with pytest.raises(IndexFormatError, match="empty"):
        SQLiteChunkStore(tmp_path / "c.db")
    assert (tmp_path / "c.db").stat().st_size == 0


def test_sqlite_file_replaced(kept, tmp_path):
    """What takes the file's place is read and written, not the file that has no name any more."""
    with SQLiteChunkStore(tmp_path / "other.db") as other:
        other.put_many([chunk("other")])
    kept.close()
    kept.put_many([chunk("late")])
    (tmp_path / "other.db").replace(tmp_path / "c.db")
    for beside in ("c.db-wal", "c.db-shm"):
        (tmp_path / beside).unlink(missing_ok=True)
    assert kept.ids() == ["other"]
    kept.put_many([chunk("new")])
    with SQLiteChunkStore(tmp_path / "c.db") as again:
        assert again.ids() == ["other", "new"]


def test_sqlite_file_replaced_by_something_else(kept, tmp_path):
    """A file of another program in our file's place is refused and stays as it is."""
    kept.close()
    (tmp_path / "c.db").unlink()
    other = sqlite3.connect(tmp_path / "c.db")
    other.execute("CREATE TABLE users (name)")
    other.close()
    before = (tmp_path / "c.db").read_bytes()
    with pytest.raises(IndexFormatError, match="another program"):
        kept.ids()
    assert (tmp_path / "c.db").read_bytes() == before


def test_sqlite_table_missing(kept, tmp_path):
    """A store whose table someone dropped is refused in our words."""
    other = sqlite3.connect(tmp_path / "c.db")
    other.execute("DROP TABLE chunks")
    other.close()
    with pytest.raises(IndexFormatError, match="no such table"):
        kept.ids()


def test_sqlite_pages_damaged(tmp_path):
    """Wherever a page is overwritten, a read gives chunks or our error, never another."""
    path = tmp_path / "c.db"
    with SQLiteChunkStore(path) as store:
        store.put_many(chunk(f"{n:04}", "text " * 100) for n in range(60))
    whole = path.read_bytes()
    ids = [f"{n:04}" for n in range(60)]
    refused = 0
    for start in range(4096, len(whole), 4096):
        path.write_bytes(whole[:start] + b"\xff" * 4096 + whole[start + 4096 :])
        try:
            with SQLiteChunkStore(path) as store:
                store.get_many(ids)
                store.parents_of(ids)
                store.ids()
        except IndexFormatError:
            refused += 1
    assert refused > 2


@pytest.mark.parametrize("facts", [b"\xff\xfe", b"[1, 2]", b"7", b"{}"])
def test_sqlite_chunk_damaged(kept, tmp_path, facts):
    """A chunk whose facts cannot be read is refused in our words."""
    other = sqlite3.connect(tmp_path / "c.db")
    other.execute("UPDATE chunks SET facts = ?", (facts,))
    other.commit()
    other.close()
    with pytest.raises(IndexFormatError, match="damaged"):
        kept.get_many(["a"])


def test_sqlite_locked_file_is_not_called_damaged(tmp_path):
    """A file that stays locked keeps SQLite's own error: it can be tried again."""
    with SQLiteChunkStore(tmp_path / "c.db", timeout=0) as store:
        other = sqlite3.connect(tmp_path / "c.db", isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            store.put_many([chunk("a")])
        other.close()
        store.put_many([chunk("a")])
        assert store.ids() == ["a"]


def test_sqlite_through_a_dangling_link(tmp_path):
    """A link to a file that is not there yet makes that file, and stays a link."""
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    with SQLiteChunkStore(tmp_path / "link.db") as store:
        store.put_many([chunk("a")])
    assert (tmp_path / "link.db").is_symlink()
    with SQLiteChunkStore(tmp_path / "real.db") as store:
        assert store.ids() == ["a"]


def test_sqlite_leaves_nothing_beside(tmp_path):
    """After closing there is the file alone."""
    SQLiteChunkStore(tmp_path / "c.db").close()
    assert [file.name for file in tmp_path.iterdir()] == ["c.db"]


# The caller


def test_iterators_are_read_once(store):
    """Ids may come from a generator, in every store and method alike."""
    store.put_many(chunk(id_, parent_id="p") for id_ in "abc")
    found = store.get_many(id_ for id_ in ["b", "x", "a"])
    assert [each and each.id for each in found] == ["b", None, "a"]
    assert store.parents_of(id_ for id_ in "ab") == {"a": "p", "b": "p"}
    assert store.delete_many(id_ for id_ in "ab") == 2
    assert store.ids() == ["c"]


@pytest.mark.parametrize("ids", ["abc", None, 7, [None], [b"a"], ["a", 1]])
@pytest.mark.parametrize("method", ["get_many", "parents_of", "delete_many"])
def test_bad_ids_are_refused(store, method, ids):
    """One string in place of several, no ids, or ids that are no strings are refused."""
    with pytest.raises(InvalidParameterError, match="ids"):
        getattr(store, method)(ids)


@pytest.mark.parametrize("metadata", [deep(5000), holding_itself()], ids=["deep", "circle"])
def test_bottomless_metadata_is_refused(store, metadata):
    """Metadata nested beyond use, or in a circle, are refused, and nothing is put."""
    with pytest.raises(InvalidParameterError, match="metadata"):
        store.put_many([chunk("good"), chunk("bad", metadata=metadata)])
    assert store.ids() == []


WRONG = [
    ("id", 7),
    ("document_id", None),
    ("text", None),
    ("text", b"bytes"),
    ("embedding_text", 5),
    ("kind", None),
    ("language", None),
    ("index", None),
    ("index", "3"),
    ("start", 1.5),
    ("end", 2**70),
    ("start_line", None),
    ("parent_id", 4),
    ("heading_path", "title"),
    ("heading_path", None),
    ("heading_path", (1,)),
    ("metadata", None),
    ("metadata", [1]),
]


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_fields_of_another_kind_are_refused(store, field, value):
    """A chunk that could not be kept or saved is refused when it comes, with its field."""
    bad = chunk("bad")
    setattr(bad, field, value)
    with pytest.raises(InvalidParameterError) as caught:
        store.put_many([chunk("good"), bad])
    assert caught.value.name == field
    assert store.ids() == []


@pytest.mark.parametrize("given", [None, "a", {"id": "a"}])
def test_what_is_no_chunk_is_refused(store, given):
    """Only chunks can be put."""
    with pytest.raises(InvalidParameterError, match="Chunks"):
        store.put_many([given])


@pytest.mark.parametrize("ttl", ["5", [1], True, float("nan"), 0, -1])
def test_bad_ttl(ttl):
    """A lifetime that is no number above 0 is refused."""
    with pytest.raises(InvalidParameterError, match="ttl"):
        CachedChunkStore(InMemoryChunkStore(), ttl=ttl)


@pytest.mark.parametrize("timeout", ["5", None, float("nan"), -1])
def test_bad_timeout(tmp_path, timeout):
    """A waiting time that is no number of at least 0 is refused, and no file is made."""
    with pytest.raises(EasyRAGError, match="timeout"):
        SQLiteChunkStore(tmp_path / "c.db", timeout=timeout)
    assert list(tmp_path.iterdir()) == []
