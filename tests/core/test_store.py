"""Stores of chunks: one behaviour for all, and what each promises beyond it."""

from __future__ import annotations

import os
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core.errors import IndexFormatError, InvalidParameterError
from easyrag_core.index._folder import read_folder, write_folder
from easyrag_core.index.store import (
    CachedChunkStore,
    ChunkStore,
    InMemoryChunkStore,
    SQLiteChunkStore,
)
from easyrag_core.types import Chunk
from tests.strategies import nasty_texts


def chunk(id_, document="doc", index=0, text="text", parent=None, **fields):
    return Chunk(id_, document, index, text, 0, len(text), parent_id=parent, **fields)


RICH = Chunk(
    id="rich",
    document_id="文档/\udc80",
    index=7,
    text="a\r\n\x00\ud83d\ude00😀 检索",
    start=3,
    end=12,
    start_line=2,
    end_line=4,
    heading_path=("指南", "Use \ud83d"),
    embedding_text="指南 > a",
    parent_id="p\x1b\x00",
    kind="code",
    language="python",
    metadata={"tags": ["a", {"b": None}], "n": 1.5, "ok": True, "text": "\ud83d\ude00"},
)


@pytest.fixture(params=["memory", "sqlite", "cached memory", "cached sqlite"])
def store(request, tmp_path):
    inner = (
        SQLiteChunkStore(tmp_path / "chunks.db")
        if "sqlite" in request.param
        else InMemoryChunkStore()
    )
    yield CachedChunkStore(inner, maxsize=3) if "cached" in request.param else inner
    if isinstance(inner, SQLiteChunkStore):
        inner.close()


# What every store does


def test_is_a_chunk_store(store):
    """Each store has the protocol's methods."""
    assert isinstance(store, ChunkStore)


def test_chunks_come_back_as_they_went_in(store):
    """Every field survives: CRLF, NUL, lone surrogates side by side, nested metadata."""
    plain = chunk("plain")
    store.put_many([RICH, plain])
    for _ in range(2):
        assert store.get_many(["rich", "plain"]) == [RICH, plain]
    assert store.parents_of(["rich"]) == {"rich": RICH.parent_id}
    assert store.children_of(RICH.parent_id) == ["rich"]
    assert store.delete_document(RICH.document_id) == ["rich"]


@given(text=nasty_texts(max_fragments=6), id_=nasty_texts(max_fragments=2))
def test_any_text_and_id(tmp_path_factory, text, id_):
    """Any string is kept exactly, as text and as id (SQLite, which has its own rules)."""
    with SQLiteChunkStore(tmp_path_factory.getbasetemp() / "any_text.db") as store:
        written = chunk(id_, text=text, document=id_, parent=id_, metadata={"t": text})
        store.put_many([written])
        assert store.get_many([id_]) == [written]
        assert store.ids() == store.children_of(id_) == [id_]
        assert store.delete_document(id_) == [id_]


def test_order_and_missing_ids(store):
    """The answer has the order of the ids; what is missing is `None`, what repeats repeats."""
    store.put_many([chunk("a"), chunk("b")])
    for _ in range(2):
        found = store.get_many(["b", "none", "a", "b"])
        assert [c and c.id for c in found] == ["b", None, "a", "b"]
    assert store.get_many([]) == []
    assert store.parents_of(["a", "none"]) == {"a": None}


def test_upsert(store):
    """A chunk put again replaces the old one everywhere and keeps its place in `ids`."""
    store.put_many(
        [chunk("a", parent="p"), chunk("b", parent="p"), chunk("b", index=5, parent="q")]
    )
    assert [c.index for c in store.get_many(["a", "b"])] == [0, 5]
    store.put_many([chunk("a", document="other", text="new", parent="q")])
    assert store.get_many(["a"])[0].text == "new"
    assert store.ids() == ["a", "b"]
    assert store.children_of("p") == []
    assert store.children_of("q") == ["a", "b"]
    assert store.delete_document("doc") == ["b"]
    assert store.delete_document("other") == ["a"]
    assert store.ids() == []


def test_deletion(store):
    """Deleted chunks are gone from every look-up; unknown ids are ignored."""
    store.put_many(
        [chunk(f"c{n}", document=f"d{n % 2}", index=9 - n, parent="p") for n in range(6)]
    )
    store.get_many(["c0", "c1", "c2"])
    assert store.delete_many(["c0", "none", "c0"]) == 1
    assert store.delete_many([]) == 0
    assert store.get_many(["c0"]) == [None]
    assert store.children_of("p") == ["c5", "c4", "c3", "c2", "c1"]
    assert store.delete_document("d1") == ["c5", "c3", "c1"]
    assert store.delete_document("d1") == []
    assert store.get_many(["c1", "c2"])[0] is None
    assert store.ids() == ["c2", "c4"]


def test_callers_cannot_change_the_store(store):
    """Neither what was put nor what was handed out is the store's own."""
    written = chunk("a", metadata={"tags": ["x"], "deep": {"n": [1]}})
    expected = pickle.loads(pickle.dumps(written))
    store.put_many([written])
    written.metadata["tags"].append("y")
    written.text = "changed"
    for _ in range(2):
        found = store.get_many(["a", "a"])
        assert found == [expected, expected]
        found[0].metadata["deep"]["n"].append(2)
        found[0].metadata["new"] = 1
        found[0].text = "changed"


def test_many_ids_in_one_call(store):
    """Far more ids than SQLite has parameters are written, read and deleted in one call."""
    ids = [f"{n:032x}" for n in range(40_000)]
    store.put_many(chunk(id_) for id_ in ids)
    shuffled = random.Random(0).sample(ids, len(ids))
    assert [c.id for c in store.get_many(shuffled)] == shuffled
    assert len(store.parents_of(ids)) == len(ids)
    assert store.delete_many(ids) == len(ids)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["put", "delete", "document"]),
            st.sampled_from("abcdef"),
            st.sampled_from(["d1", "d2"]),
            st.sampled_from([None, "a", "p"]),
        ),
        max_size=20,
    )
)
def test_all_stores_agree(tmp_path_factory, steps):
    """After any writes, all stores give the same answers to every question."""
    with SQLiteChunkStore(tmp_path_factory.getbasetemp() / "agree.db") as sqlite:
        sqlite.delete_many(sqlite.ids())
        stores = (InMemoryChunkStore(), CachedChunkStore(InMemoryChunkStore(), maxsize=2), sqlite)
        for number, (step, id_, document, parent) in enumerate(steps):
            answers = [
                _write_and_ask(store, step, chunk(id_, document, number % 3, f"t{number}", parent))
                for store in stores
            ]
            assert answers[0] == answers[1] == answers[2]


def _write_and_ask(store, step, written):
    if step == "put":
        done = store.put_many([written])
    elif step == "delete":
        done = store.delete_many([written.id])
    else:
        done = store.delete_document(written.document_id)
    ids = list("abcdef")
    children = [store.children_of(parent) for parent in ("a", "p")]
    return done, store.get_many(ids), store.parents_of(ids), store.ids(), children


# In memory


def test_memory_contents_round_trip(tmp_path):
    """A store in memory goes to a folder and comes back the same."""
    store = InMemoryChunkStore()
    store.put_many([RICH, chunk("plain"), chunk("top", parent="")])
    found = store.contents()
    write_folder(
        tmp_path,
        kind="demo",
        version=1,
        arrays=found.arrays,
        settings=found.settings,
        texts=found.texts,
    )
    contents = read_folder(tmp_path, kind="demo", version=1)
    again = InMemoryChunkStore.from_contents(contents)
    assert again.get_many(store.ids()) == store.get_many(store.ids())
    assert again.parents_of(["top"]) == {"top": ""}
    with pytest.raises(IndexFormatError):
        InMemoryChunkStore.from_contents(replace(contents, texts={}))


def test_memory_contents_name_the_chunk_that_is_no_json():
    """Metadata that cannot be saved is refused with the chunk's id, not lost."""
    store = InMemoryChunkStore()
    store.put_many([chunk("bad", metadata={"x": {1, 2}})])
    with pytest.raises(InvalidParameterError, match="'bad'"):
        store.contents()


# SQLite


def test_sqlite_keeps_between_openings(tmp_path):
    """What was written is there when the file is opened again, or by another object at once."""
    with SQLiteChunkStore(tmp_path / "c.db") as store:
        store.put_many([RICH])
        assert SQLiteChunkStore(tmp_path / "c.db").get_many(["rich"]) == [RICH]
    with SQLiteChunkStore(tmp_path / "c.db") as store:
        assert len(store) == 1
        assert "rich" in store
        again = pickle.loads(pickle.dumps(store))
        assert again.get_many(["rich"]) == [RICH]
        again.close()


def test_sqlite_refuses_half_a_batch(tmp_path):
    """One chunk that is no JSON refuses the whole batch, by id."""
    with SQLiteChunkStore(tmp_path / "c.db") as store:
        with pytest.raises(InvalidParameterError, match="'bad'"):
            store.put_many([chunk("good"), chunk("bad", metadata={"x": object()})])
        assert store.ids() == []


def test_sqlite_rolls_back_what_fails(tmp_path):
    """An error inside the transaction leaves nothing of it, and the store goes on working."""
    with SQLiteChunkStore(tmp_path / "c.db") as store:
        other = sqlite3.connect(tmp_path / "c.db")
        other.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON chunks WHEN new.id = 'bad' "
            "BEGIN SELECT RAISE(ABORT, 'not this one'); END"
        )
        other.close()
        with pytest.raises(sqlite3.IntegrityError, match="not this one"):
            store.put_many([chunk("good"), chunk("bad")])
        assert store.ids() == []
        store.put_many([chunk("good")])
        assert store.ids() == ["good"]


def test_sqlite_foreign_files(tmp_path):
    """Files of other programs are refused and stay as they are; so is a newer version."""
    (tmp_path / "notes.txt").write_text("these are my notes, not a database " * 50)
    with pytest.raises(IndexFormatError, match="no SQLite file"):
        SQLiteChunkStore(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text().startswith("these are my notes")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE users (name)")
    other.close()
    with pytest.raises(IndexFormatError, match="another program"):
        SQLiteChunkStore(tmp_path / "other.db")
    SQLiteChunkStore(tmp_path / "newer.db").close()
    newer = sqlite3.connect(tmp_path / "newer.db")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(IndexFormatError, match="version 99"):
        SQLiteChunkStore(tmp_path / "newer.db")


def test_sqlite_bad_paths(tmp_path):
    """No path, `:memory:` and a missing folder are refused."""
    for path in ("", ":memory:"):
        with pytest.raises(InvalidParameterError, match="InMemoryChunkStore"):
            SQLiteChunkStore(path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        SQLiteChunkStore(tmp_path / "nowhere" / "c.db")


def test_sqlite_one_statement_per_look_up(tmp_path):
    """A look-up of ten thousand ids is one statement, not one per id or per thousand."""
    with SQLiteChunkStore(tmp_path / "c.db") as store:
        ids = [str(n) for n in range(10_000)]
        store.put_many(map(chunk, ids))
        statements = []
        store._idle[0][0].set_trace_callback(statements.append)
        store.get_many(ids)
        store.parents_of(ids)
        store.children_of("p")
        store.ids()
        assert len(statements) == 4
        store.delete_many(ids)
        assert len(statements) == 7, "BEGIN, DELETE, COMMIT"


def test_sqlite_threads(tmp_path):
    """Threads that write and read one store at once lose nothing and see whole batches."""
    errors = []
    with SQLiteChunkStore(tmp_path / "c.db") as store:

        def write(number):
            for step in range(15):
                store.put_many([chunk(f"{number}-{n}", text=str(step)) for n in range(5)])

        def read():
            for _ in range(40):
                for number in range(3):
                    found = store.get_many([f"{number}-{n}" for n in range(5)])
                    if len({c and c.text for c in found}) != 1:
                        errors.append(found)

        threads = [threading.Thread(target=write, args=(n,)) for n in range(3)]
        threads += [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert len(store) == 15


WRITER = """
import sys
from easyrag_core.index.store import SQLiteChunkStore
from easyrag_core.types import Chunk
with SQLiteChunkStore(sys.argv[1]) as store:
    for n in range(20):
        store.put_many([Chunk(f"{sys.argv[2]}-{n}-{m}", "doc", m, "text", 0, 4) for m in range(3)])
"""


def test_sqlite_processes(tmp_path):
    """Four processes that make and fill one new file at once lose nothing."""
    path = str(tmp_path / "c.db")
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, path, str(n)], stderr=subprocess.PIPE)
        for n in range(4)
    ]
    failures = [writer.communicate()[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 4, failures
    with SQLiteChunkStore(path) as store:
        assert len(store) == 4 * 20 * 3


KILLED_WRITER = """
import itertools, os, signal, sys
from easyrag_core.index.store import SQLiteChunkStore
from easyrag_core.types import Chunk
store = SQLiteChunkStore(sys.argv[1])
def chunks(batch):
    for n in range(2000):
        yield Chunk(f"c{n}", "doc", n, str(batch) * 500, 0, 500)
for batch in itertools.count():
    store.put_many(chunks(batch))
    print(batch, flush=True)
"""

TORN_WRITER = """
import os, signal, sys
from easyrag_core.index.store import SQLiteChunkStore
from easyrag_core.types import Chunk
store = SQLiteChunkStore(sys.argv[1])
with store._writing() as connection:
    # A tiny cache makes SQLite write pages of the open transaction to the disk.
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("UPDATE chunks SET text = x'00'")
    connection.execute("DELETE FROM chunks WHERE position % 2")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL is POSIX")
def test_sqlite_killed_between_or_inside_writes(tmp_path):
    """A writer killed at a random moment leaves whole batches: all of one, or of the next."""
    path = str(tmp_path / "c.db")
    for confirmed in (1, 2):
        writer = subprocess.Popen(
            [sys.executable, "-c", KILLED_WRITER, path], stdout=subprocess.PIPE, text=True
        )
        for _ in range(confirmed):
            last = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        with SQLiteChunkStore(path) as store:
            texts = {c.text[0] for c in store.get_many(store.ids())}
            assert len(store) == 2000
        assert len(texts) == 1, "chunks of two batches side by side"
        assert int(texts.pop()) >= last, "a confirmed write was lost"


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL is POSIX")
def test_sqlite_killed_inside_a_transaction(tmp_path):
    """A kill while half of a write is on the disk takes all of that write back."""
    path = str(tmp_path / "c.db")
    with SQLiteChunkStore(path) as store:
        store.put_many(chunk(f"c{n}", index=n, text="x" * 2000) for n in range(500))
    killed = subprocess.run([sys.executable, "-c", TORN_WRITER, path], check=False)
    assert killed.returncode == -signal.SIGKILL
    with SQLiteChunkStore(path) as store:
        found = store.get_many([f"c{n}" for n in range(500)])
        assert {c.text for c in found} == {"x" * 2000}
        store.put_many([chunk("after")])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is POSIX")
def test_sqlite_after_a_fork(tmp_path):
    """A forked child opens its own connections; both go on."""
    code = f"""
import os
from easyrag_core.index.store import SQLiteChunkStore
from easyrag_core.types import Chunk
store = SQLiteChunkStore({str(tmp_path / "c.db")!r})
pid = os.fork()
store.put_many([Chunk("child" if pid == 0 else "parent", "d", 0, "t", 0, 1)])
if pid:
    assert os.waitpid(pid, 0)[1] == 0
    assert sorted(store.ids()) == ["child", "parent"]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# Cached


class Counting(InMemoryChunkStore):
    """Notes what was asked for."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def get_many(self, ids):
        self.asked.append(list(ids))
        return super().get_many(ids)


@pytest.fixture
def counting():
    inner = Counting()
    inner.put_many([chunk(id_, parent="p") for id_ in "abcdef"])
    return inner


def test_cache_reads_once(counting):
    """What was read is not asked for again; the rest goes through in one call."""
    store = CachedChunkStore(counting)
    store.get_many(["a", "b", "a"])
    store.get_many(["b", "c", "a", "d"])
    store.get_many(["a", "d"])
    assert counting.asked == [["a", "b"], ["c", "d"]]
    assert store.parents_of(["a", "e"]) == {"a": "p", "e": "p"}


def test_cache_drops_what_was_unused_for_longest(counting):
    """A full cache lets the least recently used chunk go."""
    store = CachedChunkStore(counting, maxsize=2)
    store.get_many(["a", "b"])
    store.get_many(["a"])
    store.get_many(["c"])
    store.get_many(["a", "c"])
    store.get_many(["b"])
    assert counting.asked == [["a", "b"], ["c"], ["b"]]


def test_cache_entries_grow_old(counting):
    """After `ttl` seconds a chunk is read again."""
    now = [100.0]
    store = CachedChunkStore(counting, ttl=10, clock=lambda: now[0])
    store.get_many(["a"])
    now[0] = 109.9
    store.get_many(["a"])
    counting.put_many([chunk("a", text="new")])
    now[0] = 110.0
    assert store.get_many(["a"])[0].text == "new"
    assert counting.asked == [["a"], ["a"]]


def test_cache_sees_its_own_writes(counting):
    """Writes through the cache are seen at once."""
    store = CachedChunkStore(counting)
    store.get_many(list("abc"))
    store.put_many([chunk("a", text="new")])
    assert store.get_many(["a"])[0].text == "new"
    store.delete_many(["b"])
    assert store.get_many(["b"]) == [None]
    assert store.delete_document("doc") == list("acdef")
    assert store.get_many(["c"]) == [None]


def test_cache_does_not_keep_misses(counting):
    """A chunk that another process adds later is found."""
    store = CachedChunkStore(counting)
    assert store.get_many(["new"]) == [None]
    counting.put_many([chunk("new")])
    assert store.get_many(["new"])[0].id == "new"


def test_cache_does_not_keep_what_a_write_overtook(counting):
    """A read that began before a write and ends after it is not kept."""
    store = CachedChunkStore(counting)
    real = counting.get_many

    def slow(ids):
        found = real(ids)
        counting.get_many = real
        store.put_many([chunk("a", text="new")])
        return found

    counting.get_many = slow
    assert store.get_many(["a"])[0].text == "text"
    assert store.get_many(["a"])[0].text == "new"


def test_cache_forgets_all_after_a_failed_write(counting):
    """When a write fails half-way nothing that was cached is trusted."""
    store = CachedChunkStore(counting)
    store.get_many(["a"])

    def fail(_):
        raise OSError("disk")

    counting.put_many = fail
    with pytest.raises(OSError, match="disk"):
        store.put_many([chunk("z")])
    store.get_many(["a"])
    assert counting.asked == [["a"], ["a"]]


@pytest.mark.parametrize("options", [{"maxsize": 0}, {"ttl": 0}, {"ttl": float("nan")}])
def test_cache_refusals(options):
    """A size below 1 and a time that is not above 0 are refused by name."""
    with pytest.raises(InvalidParameterError) as caught:
        CachedChunkStore(InMemoryChunkStore(), **options)
    assert caught.value.name in options


def test_pickles():
    """Stores in memory and caches can be sent to a worker process."""
    store = CachedChunkStore(InMemoryChunkStore())
    store.put_many([RICH])
    again = pickle.loads(pickle.dumps(store))
    assert again.get_many(["rich"]) == [RICH]
    again.delete_many(["rich"])
    assert store.get_many(["rich"]) == [RICH]


def test_sqlite_is_imported_only_when_used():
    """Importing the stores does not load sqlite3."""
    code = "import sys, easyrag_core.index.store; sys.exit('sqlite3' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
