"""A hybrid index that many threads read and write at once."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from easyrag_core import HybridIndex
from tests.core.hybrid_samples import PLAIN, PLAIN_VECTORS, family, piece, with_vectors


def _raising(errors, work):
    def run():
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - told in the main thread
            errors.append(error)

    return run


@pytest.mark.parametrize("merge", [False, True])
def test_readers_never_see_a_hit_without_content(merge):
    """While chunks are added and rewritten, every hit's content is there, in one of its states."""
    index, errors, done = HybridIndex(), [], threading.Event()
    families = family(12)
    rewritten = [
        replace(chunk, text=f"hen {chunk.text}", embedding_text=f"hen {chunk.text}")
        for chunk in families
    ]
    texts = {
        chunk.id: {chunk.text, new.text} for chunk, new in zip(families, rewritten, strict=True)
    }
    started = threading.Barrier(5)

    def write():
        started.wait(timeout=20)
        for chunks in (families, rewritten, families):
            for start in range(0, len(chunks), 5):
                batch = chunks[start : start + 5]
                index.add(batch, with_vectors(batch))

    def read():
        started.wait(timeout=20)
        last = False
        while not last:
            last = done.is_set()
            hits = index.search("fox hen", with_vectors(families[1:2])[0], 30, merge=merge)
            assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
            for hit, chunk in zip(hits, index.get_many([hit.id for hit in hits]), strict=True):
                assert chunk is not None
                assert chunk.text in texts[hit.id]
        assert hits

    readers = [threading.Thread(target=_raising(errors, read)) for _ in range(4)]
    writer = threading.Thread(target=_raising(errors, write))
    for thread in (*readers, writer):
        thread.start()
    writer.join(timeout=60)
    done.set()
    for thread in readers:
        thread.join(timeout=60)
    assert errors == []
    assert len(index) == len(families)


def test_writers_wait_for_each_other():
    """Documents written from many threads are all there, each in all parts."""
    index, errors = HybridIndex(), []
    started = threading.Barrier(6)

    def write(number):
        started.wait(timeout=20)
        for turn in range(8):
            chunks = [piece(f"{number}-{n}", f"fox {turn}", f"d{number}", n) for n in range(3)]
            index.update_document(f"d{number}", chunks, np.full((3, 2), turn + 1.0))
        index.delete_document(f"d{number}") if number % 2 else None

    threads = [threading.Thread(target=_raising(errors, lambda n=n: write(n))) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert errors == []
    expected = {f"{number}-{n}" for number in (0, 2, 4) for n in range(3)}
    assert set(index.bm25.ids) == set(index.vectors.ids) == set(index.store.ids()) == expected
    assert len(index) == 9


def test_a_save_holds_one_state(tmp_path):
    """What is saved while another thread writes is a state before or after a write."""
    index, errors, started = HybridIndex(), [], threading.Barrier(2)
    index.add(PLAIN, PLAIN_VECTORS)

    def write():
        started.wait(timeout=20)
        for turn in range(20):
            fresh = [replace(chunk, id=f"{chunk.id}{turn}") for chunk in PLAIN[:2]]
            index.update_document("one", fresh, PLAIN_VECTORS[:2])

    writer = threading.Thread(target=_raising(errors, write))
    writer.start()
    started.wait(timeout=20)
    for number in range(5):
        index.save(tmp_path / str(number))
        loaded = HybridIndex.load(tmp_path / str(number))
        assert len(loaded) == len(loaded.chunks_of("one")) + 3 == 5
        assert set(loaded.bm25.ids) == set(loaded.vectors.ids) == set(loaded.store.ids())
    writer.join(timeout=60)
    assert errors == []
