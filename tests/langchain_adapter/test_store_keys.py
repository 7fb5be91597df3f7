"""`DocstoreChunkStore` over bytes: every id has a key that every store takes."""

from __future__ import annotations

import pytest
from langchain_classic.storage import LocalFileStore
from langchain_core.stores import InMemoryByteStore

from easyrag_core import Chunk
from langchain_easyrag import DocstoreChunkStore

pytestmark = pytest.mark.filterwarnings(
    "ignore:`langchain-community` is being sunset:DeprecationWarning"
)

STORES = {"files": LocalFileStore, "memory": lambda _: InMemoryByteStore()}
LENGTHS = (1, 2, 3, 84, 85, 126, 127, 128, 253, 254, 255, 256, 257, 510, 999, 1000)
LETTERS = {"plain": "a", "slash": "/", "two bytes": "é", "Chinese": "文", "four bytes": "😀"}


def ids():
    """Ids of one letter each, as many bytes long as that letter allows, and some like keys."""
    texts = [letter * (n // len(letter.encode())) for letter in LETTERS.values() for n in LENGTHS]
    lookalikes = ["x-", "x-61", "x-sha256-", "x-sha256-" + "0" * 64, "\ud800" * 200]
    return list(dict.fromkeys(filter(None, [*texts, *lookalikes])))


def chunk(id_):
    return Chunk(id_, "doc", 0, f"Text of {id_[:3]!r}, {len(id_)} long.", 0, 9)


@pytest.fixture(params=STORES.values(), ids=STORES)
def inner(request, tmp_path):
    return request.param(tmp_path / "files")


def test_every_id_can_be_kept(inner):
    """Ids of 1 to 1000 bytes in any script are written, read, listed, and removed."""
    store, chunks = DocstoreChunkStore(inner), [chunk(id_) for id_ in ids()]
    store.put_many(chunks)
    assert store.get_many(ids()) == chunks
    assert sorted(store.ids()) == sorted(ids())
    assert {chunk.id for chunk in DocstoreChunkStore(inner).get_many(ids())} == set(ids())
    assert store.delete_document("doc")
    assert store.ids() == list(inner.yield_keys()) == []


def test_long_ids_that_begin_alike_are_told_apart(inner):
    """A key of fixed length is made of the whole id."""
    store = DocstoreChunkStore(inner)
    pair = ["文" * 300 + end for end in "ab"]
    store.put_many(map(chunk, pair))
    assert store.delete_many(pair[:1]) == 1
    assert store.get_many(pair) == [None, chunk(pair[1])]
    assert store.ids() == pair[1:]


@pytest.mark.parametrize(
    ("id_", "key"),
    [
        ("doc-1_a", "doc-1_a"),
        ("a" * 255, "a" * 255),
        ("a/b", "x-612f62"),
        ("x-61", "x-782d3631"),
        ("文" * 42, "x-" + "e69687" * 42),
    ],
)
def test_keys_that_fit_stay_as_they_are(id_, key):
    """What was kept before is found again."""
    inner = InMemoryByteStore()
    DocstoreChunkStore(inner).put_many([chunk(id_)])
    assert list(inner.yield_keys()) == [key]
