"""A saved BM25Index: exact, there at once, whole after a kill, and refused when it is damaged."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from easyrag_core.errors import IndexFormatError
from easyrag_core.index.bm25 import BM25Index
from easyrag_core.index.bm25._strings import StringTable
from tests.strategies import nasty_texts


def saved(path, documents=40):
    """Save an index of some documents; return it."""
    index = BM25Index(analyzer=str.split)
    texts = [f"all w{number % 7} own{number}" for number in range(documents)]
    index.add([f"id{number}" for number in range(documents)], texts)
    index.save(path)
    return index


def files_of(path):
    """Return the files of the saved generation."""
    manifest = json.loads((path / "manifest.json").read_text())
    return sorted((path / manifest["generation"]).iterdir())


@given(st.lists(nasty_texts(max_fragments=4), unique=True, max_size=20), nasty_texts())
def test_strings_are_found_by_hash(strings, other):
    """A table gives each string by its number and each number by its string, and no others."""
    table = StringTable.of(strings)
    assert list(table) == table[:] == strings
    assert [table[number] for number in range(len(table))] == strings
    assert [table.find(string) for string in strings] == list(range(len(strings)))
    assert other in strings or table.find(other) is None
    assert table.fits()


def test_strings_with_one_hash_are_told_apart():
    """Two strings with the same CRC-32 are two strings."""
    table = StringTable.of(["plumless", "x", "buckeroo"])
    assert table.codes[table.numbers == 0] == table.codes[table.numbers == 2]
    assert [table.find(string) for string in ("plumless", "x", "buckeroo")] == [0, 1, 2]


def test_loading_reads_neither_terms_nor_ids(tmp_path, monkeypatch):
    """What is mapped is not walked through: a million documents are there at once."""
    index = saved(tmp_path / "index")

    def refuse(self):
        raise AssertionError("all strings are read")

    monkeypatch.setattr(StringTable, "__iter__", refuse)
    loaded = BM25Index.load(tmp_path / "index", analyzer=str.split)
    for query in ("own3", "w1 own9", "nope", "all"):
        assert loaded.search(query, 50) == index.search(query, 50)
    loaded.add(["id3", "new"], ["fresh own9", "all"])
    loaded.remove(["id4"])
    assert "id4" not in loaded
    assert [hit.id for hit in loaded.search("own9")] == ["id3", "id9"]
    assert loaded.search("own3") == []


@pytest.mark.parametrize("most", [1, 3, 16])
def test_many_parts_are_saved(tmp_path, monkeypatch, most):
    """An index of several parts comes back as it was, its offsets and ids part by part."""
    monkeypatch.setattr("easyrag_core.index.bm25._settling._MOST_DOCUMENTS", most)
    index = saved(tmp_path / "index")
    assert len(index._snapshot.compacted().parts) == -(-40 // most)
    for mmap in (True, False):
        loaded = BM25Index.load(tmp_path / "index", mmap=mmap, analyzer=str.split)
        assert loaded.ids == index.ids
        assert loaded.search("all w2 own9", 99) == index.search("all w2 own9", 99)
        assert loaded.explain("w2 own9", "id9") == index.explain("w2 own9", "id9")


def test_earlier_format_is_named(tmp_path):
    """An index of the first format is refused with a word on what to do."""
    contents = BM25Index().contents()
    del contents.settings["format"]
    with pytest.raises(IndexFormatError, match="format 1, this easyrag-core reads 2: rebuild"):
        BM25Index.from_contents(contents)


# Damage


def _cut(data):
    return data[:-1]


def _grown(data):
    return data + b"\x00"


def _foreign(data):
    return (b"something else " * len(data))[: len(data)]


def _empty(data):
    return b""


@pytest.mark.parametrize("damage", [_cut, _grown, _foreign, _empty])
@pytest.mark.parametrize("mmap", [True, False])
def test_torn_truncated_and_foreign_files(tmp_path, damage, mmap):
    """Whichever file is not what was saved, nothing is loaded."""
    saved(tmp_path / "index")
    for file in files_of(tmp_path / "index"):
        whole = file.read_bytes()
        file.write_bytes(damage(whole))
        with pytest.raises(IndexFormatError, match="Rebuild it"):
            BM25Index.load(tmp_path / "index", mmap=mmap, analyzer=str.split)
        file.write_bytes(whole)
    assert len(BM25Index.load(tmp_path / "index", mmap=mmap, analyzer=str.split)) == 40


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A saved index that is damaged and mended again."""
    path = tmp_path_factory.mktemp("whole") / "index"
    saved(path)
    return path


@settings(max_examples=150, deadline=None)
@given(which=st.integers(0, 12), place=st.floats(0, 1), bit=st.integers(0, 7))
def test_a_flipped_bit(whole, which, place, bit):
    """With `verify` a flipped bit is always seen; without it, it never crashes a search."""
    file = files_of(whole)[which]
    data = file.read_bytes()
    at = min(int(place * len(data)), len(data) - 1)
    damaged = bytearray(data)
    damaged[at] ^= 1 << bit
    try:
        file.write_bytes(damaged)
        with pytest.raises(IndexFormatError, match="checksum"):
            BM25Index.load(whole, verify=True, analyzer=str.split)
        try:
            index = BM25Index.load(whole, analyzer=str.split)
            for query in ("all", "w3 own17", "own39 own1"):
                index.search(query)
                index.search(query, filter=["id17", "id3"])
            assert len(index.ids) == 40
        except IndexFormatError:
            pass
    finally:
        file.write_bytes(data)


@pytest.mark.parametrize("what", ["zeros", "descending", "beyond"])
def test_postings_that_cannot_be(tmp_path, what):
    """Postings that do not ascend within their part are refused when a search meets them."""
    index = saved(tmp_path / "index")
    contents = index.contents()
    documents = contents.arrays["documents"]
    contents.arrays["documents"] = {
        "zeros": np.zeros_like(documents),
        "descending": documents[::-1].copy(),
        "beyond": documents + np.int32(10**6),
    }[what]
    loaded = BM25Index.from_contents(contents, analyzer=str.split)
    with pytest.raises(IndexFormatError, match="damaged"):
        loaded.search("all")


# Kills

KILLED_WRITER = """
import os, select, signal, sys, time, random, warnings
warnings.simplefilter("ignore")
from easyrag_core.index import _folder_files
from easyrag_core.index.bm25 import BM25Index

path, mode = sys.argv[1:]
old, new = BM25Index(analyzer=str.split), BM25Index(analyzer=str.split)
old.add(["a", "b"], ["old words", "old"])
new.add(["a", "b", "c"], ["new words", "new", "new"])

def answer_of(index):
    return index.ids, index.search("old new words")

answers = {"old": answer_of(old), "new": answer_of(new)}

def state():
    answer = answer_of(BM25Index.load(path, verify=True, analyzer=str.split))
    [name] = [name for name, known in answers.items() if known == answer]
    return name

def die_at(step):
    left = [step]
    def count(*_):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    def hook(event, arguments):
        if event == "open" or event.startswith(("os.", "shutil.", "fcntl.")):
            count()
    write = _folder_files._Checked.write
    def half_written(self, data):
        count()
        half = len(data) // 2
        self._file.write(data[:half])
        self._file.flush()
        count()
        self._file.seek(-half, 1)
        return write(self, data)
    _folder_files._Checked.write, os.fsync = half_written, count
    sys.addaudithook(hook)

def in_child(work):
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(7)
    return child

def check(status):
    assert status == 0 or os.WTERMSIG(status) == signal.SIGKILL, status
    print(state(), "finished" if status == 0 else "killed", flush=True)

if mode == "steps":
    os.fsync = lambda descriptor: None  # a killed process leaves what it wrote to the system
    for step in range(1, 2000):
        old.save(path)
        def work(step=step):
            die_at(step)
            new.save(path)
        status = os.waitpid(in_child(work), 0)[1]
        check(status)
        if status == 0:
            break
else:
    draw = random.Random(5)
    for turn in range(12):
        old.save(path)
        def work():
            while True:
                new.save(path)
                old.save(path)
        child = in_child(work)
        select.select([], [], [], draw.random() * 0.03)
        os.kill(child, signal.SIGKILL)
        check(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="SIGKILL and fork are POSIX")
@pytest.mark.parametrize("mode", ["steps", "kills"])
def test_killed_writers_leave_the_old_or_the_new(tmp_path, mode):
    """Killed at each file operation, or at any time, a save has happened or it has not."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED_WRITER, str(tmp_path / "index"), mode],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    outcomes = done.stdout.splitlines()
    if mode == "kills":
        assert len(outcomes) == 12
        return
    assert outcomes[0] == "old killed"
    assert outcomes[-1] == "new finished"
    assert outcomes == sorted(outcomes, key=["old killed", "new killed", "new finished"].index)
    assert outcomes.count("old killed") > 60


@pytest.mark.parametrize("name", ["terms", "terms_codes"])
def test_damaged_terms_are_never_saved_again(tmp_path, name):
    """What a mapped file no longer tells is refused when it is rewritten, not made up."""
    saved(tmp_path / "index")
    [file] = [one for one in files_of(tmp_path / "index") if one.name == f"{name}.npy"]
    array = np.load(file)
    array[-1 if name == "terms" else slice(None)] = 2**31 - 1
    np.save(file, array)
    index = BM25Index.load(tmp_path / "index", analyzer=str.split, verify=False)
    index.add(["new", "newer"], ["all w1", "all w2"])
    with pytest.raises(IndexFormatError, match="damaged"):
        index.save(tmp_path / "other")
