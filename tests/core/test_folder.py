"""The saved folder: exact, whole or not at all, and careful with what is not ours."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core.errors import IndexFormatError, InvalidParameterError
from easyrag_core.index._folder import FolderContents, pack_parts, read_folder, write_folder
from tests.strategies import nasty_texts

ARRAYS = {
    "matrix": np.arange(12, dtype=np.float32).reshape(3, 4),
    "empty": np.zeros((0, 3), np.int64),
    "scalar": np.array(2.5),
    "mask": np.array([True, False]),
    "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
}
TEXTS = {"ids": ["a", "", "b\nc\r\n", "检索", "\ud83d", "\ude00", "😀", "\x00"], "none": []}
SETTINGS = {"k1": 1.5, "name": "标准", "nested": {"list": [1, None, True]}}


def save(path, *, kind="demo", version=1, arrays=ARRAYS, settings=SETTINGS, texts=TEXTS):
    write_folder(path, kind=kind, version=version, arrays=arrays, settings=settings, texts=texts)


def load(path, **options):
    return read_folder(path, **({"kind": "demo", "version": 1} | options))


def generation(path):
    return path / json.loads((path / "manifest.json").read_text())["generation"]


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("verify", [True, False])
def test_round_trip(tmp_path, mmap, verify):
    """Arrays, settings and texts come back exactly, mapped or read, checked or not."""
    save(tmp_path / "deep" / "index")
    found = load(tmp_path / "deep" / "index", mmap=mmap, verify=verify)
    assert found.settings == SETTINGS
    assert found.texts == TEXTS
    assert found.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found.arrays[name].dtype == array.dtype
        assert found.arrays[name].shape == array.shape
        np.testing.assert_array_equal(found.arrays[name], array)


def test_text_round_trip_property(tmp_path_factory):
    """Any list of strings comes back exactly, also with neighbouring lone surrogates."""

    @given(st.lists(nasty_texts(max_fragments=5), max_size=8))
    def holds(texts):
        path = tmp_path_factory.mktemp("texts")
        save(path, arrays={}, texts={"texts": texts})
        assert load(path).texts == {"texts": texts}

    holds()


def test_no_pickle_is_written_or_read(tmp_path):
    """Object arrays are refused: a saved folder can never run code."""
    with pytest.raises(InvalidParameterError, match="numbers or bools"):
        save(tmp_path / "x", arrays={"objects": np.array([{}], dtype=object)})
    assert list((tmp_path / "x").glob("generation-*")) == []


@pytest.mark.parametrize("settings", [{"x": object()}, {"x": float("nan")}])
def test_settings_must_be_json(tmp_path, settings):
    """A setting that JSON cannot hold is refused, and nothing is left behind."""
    with pytest.raises(InvalidParameterError, match="plain JSON"):
        save(tmp_path / "x", settings=settings)
    assert {p.name for p in (tmp_path / "x").iterdir()} == {".lock"}


@pytest.mark.parametrize("name", ["../evil", "a b", "A", "", "/a", "a.b", "a/"])
def test_names_cannot_leave_the_folder(tmp_path, name):
    """A name that could be a path, or collide on some file system, is refused."""
    with pytest.raises(InvalidParameterError, match="lower-case"):
        save(tmp_path / "x", arrays={name: np.zeros(1)})


def test_parts_are_committed_together(tmp_path):
    """Several contents live in one folder and come apart again with their own names."""
    one = FolderContents({"a": np.arange(3)}, {"x": 1}, {"ids": ["p"]})
    two = FolderContents({"a": np.arange(4)}, {"x": 2}, {"ids": ["q", "r"]})
    both = pack_parts({"one": one, "two": two})
    save(tmp_path, arrays=both.arrays, settings=both.settings, texts=both.texts)
    found = load(tmp_path)
    assert found.part("one").texts == {"ids": ["p"]}
    assert found.part("two").settings == {"x": 2}
    np.testing.assert_array_equal(found.part("two").arrays["a"], np.arange(4))
    with pytest.raises(IndexFormatError, match="three"):
        found.part("three")


# Replacing


def test_reader_of_the_old_generation_goes_on(tmp_path):
    """Mapped arrays stay valid after the folder was saved anew, and the old files are gone."""
    save(tmp_path)
    old = load(tmp_path)
    save(tmp_path, arrays={"matrix": np.zeros((2, 2))}, texts={})
    np.testing.assert_array_equal(old.arrays["matrix"], ARRAYS["matrix"])
    assert load(tmp_path).arrays["matrix"].shape == (2, 2)
    assert len(list(tmp_path.glob("generation-*"))) == 1


def test_failed_save_leaves_the_old_version(tmp_path, monkeypatch):
    """When the disk refuses at the last step, the earlier save loads and no rest stays."""
    save(tmp_path)

    def refuse(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="No space"):
        save(tmp_path, settings={"new": True})
    monkeypatch.undo()
    assert load(tmp_path).settings == SETTINGS
    assert len(list(tmp_path.iterdir())) == 3


KILLED_WRITER = """
import os, signal, sys
import numpy as np
from easyrag_core.index import _folder, _folder_files
calls = 0
real = os.fsync
def fsync(fd):
    global calls
    calls += 1
    if calls == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    real(fd)
os.fsync = fsync
_folder.write_folder(
    sys.argv[1], kind="demo", version=1,
    arrays={"matrix": np.ones((2, 2))}, settings={"new": True}, texts={"ids": ["x"]},
)
print("finished")
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL is POSIX")
def test_killed_at_any_point(tmp_path):
    """A writer killed at each flush leaves the old version or the new one, and no obstacle."""
    save(tmp_path)
    outcomes = []
    for step in range(1, 20):
        done = subprocess.run(
            [sys.executable, "-c", KILLED_WRITER, str(tmp_path), str(step)],
            capture_output=True,
            check=False,
        )
        outcomes.append(load(tmp_path).settings == {"new": True})
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        save(tmp_path)
        assert len(list(tmp_path.iterdir())) == 3, "leftovers of the killed writer are removed"
    else:
        pytest.fail("the writer never finished")
    assert outcomes[0] is False
    assert outcomes[-1] is True


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL is POSIX")
def test_killed_first_save_is_no_obstacle(tmp_path):
    """After a first save that was killed there is no index yet, and the next save works."""
    subprocess.run([sys.executable, "-c", KILLED_WRITER, str(tmp_path), "2"], check=False)
    with pytest.raises(IndexFormatError, match="no manifest"):
        load(tmp_path)
    save(tmp_path)
    assert load(tmp_path).settings == SETTINGS


def test_writers_and_readers_at_once(tmp_path):
    """Four writers and two readers on one folder: a reader always gets one whole version."""
    save(tmp_path, arrays={"n": np.full(100, 0)}, settings={"n": 0}, texts={"n": ["0"] * 9})
    seen, errors = [], []

    def write(number):
        for _ in range(8):
            write_folder(
                tmp_path,
                kind="demo",
                version=1,
                arrays={"n": np.full(100, number)},
                settings={"n": number},
                texts={"n": [str(number)] * 9},
            )

    def read():
        for _ in range(40):
            try:
                found = load(tmp_path)
                seen.append({found.settings["n"], *found.arrays["n"].tolist()})
                seen.append({int(text) for text in found.texts["n"]})
            except Exception as error:  # noqa: BLE001 - reported below
                errors.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(1, 5)]
    threads += [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert all(len(numbers) == 1 for numbers in seen)


# Refusals


def test_missing_path(tmp_path):
    """A path that does not exist is a FileNotFoundError with the path."""
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load(tmp_path / "nowhere")


def _truncate(path):
    file = generation(path) / "matrix.npy"
    file.write_bytes(file.read_bytes()[:-1])


def _flip(path):
    file = generation(path) / "ids.utf8"
    data = bytearray(file.read_bytes())
    data[0] ^= 1
    file.write_bytes(data)


def _lose(path):
    (generation(path) / "matrix.npy").unlink()


def _edit_settings(path):
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["settings"]["k1"] = 2.0
    (path / "manifest.json").write_text(json.dumps(manifest))


DAMAGES = {
    "truncated array": (_truncate, "truncated"),
    "flipped bit": (_flip, "checksum"),
    "lost file": (_lose, "matrix.npy is missing"),
    "torn manifest": (lambda p: (p / "manifest.json").write_text('{"format": '), "torn"),
    "empty manifest": (lambda p: (p / "manifest.json").write_text(""), "torn"),
    "foreign manifest": (lambda p: (p / "manifest.json").write_text("{}"), "something else"),
    "not an object": (lambda p: (p / "manifest.json").write_text("[]"), "something else"),
    "binary manifest": (lambda p: (p / "manifest.json").write_bytes(b"\xff\x00"), "torn"),
    "edited settings": (_edit_settings, "changed or damaged"),
    "no manifest": (lambda p: (p / "manifest.json").unlink(), "no manifest.json"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_refused(tmp_path, damage, message):
    """Whatever happened to the folder, loading says the path, what is wrong and what to do."""
    save(tmp_path)
    damage(tmp_path)
    with pytest.raises(IndexFormatError, match=message) as caught:
        load(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "Rebuild it" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "version", "message"),
    [("other", 1, "'demo' index and 'other'"), ("demo", 0, "newer"), ("demo", 2, "too old")],
)
def test_wrong_kind_or_version(tmp_path, kind, version, message):
    """Another kind or version is named, never misread."""
    save(tmp_path)
    with pytest.raises(IndexFormatError, match=message):
        load(tmp_path, kind=kind, version=version)


def test_a_file_is_no_folder(tmp_path):
    """A file is refused for reading and for writing, and stays as it was."""
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    with pytest.raises(IndexFormatError, match="a file"):
        load(file)
    with pytest.raises(IndexFormatError, match="a file"):
        save(file)
    assert file.read_text() == "mine"


@pytest.mark.parametrize("foreign", ["notes.txt", "manifest.json"])
def test_foreign_folder_is_not_touched(tmp_path, foreign):
    """Writing into a folder of the user's is refused; its files stay, nothing is added."""
    (tmp_path / foreign).write_text('{"mine": true}')
    with pytest.raises(IndexFormatError):
        save(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == [foreign]
    assert (tmp_path / foreign).read_text() == '{"mine": true}'


def test_other_kind_is_not_overwritten(tmp_path):
    """A BM25 folder is not replaced by vectors that were sent to the wrong path."""
    save(tmp_path, kind="bm25")
    with pytest.raises(IndexFormatError, match="'bm25' index, not 'vector'"):
        save(tmp_path, kind="vector")
    assert load(tmp_path, kind="bm25").settings == SETTINGS


def test_user_files_beside_the_index_stay(tmp_path):
    """A file that a user put beside the index survives the next save."""
    save(tmp_path)
    (tmp_path / "README.md").write_text("mine")
    save(tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine"


def test_a_reader_whose_generation_is_replaced_under_it_takes_the_new_one(tmp_path, monkeypatch):
    """Another process saves between any two looks at a file: never a damaged index."""
    stat, looks = Path.stat, [0]
    for moment in range(1, 9):
        save(tmp_path / "index")
        looks[0] = 0

        def saving(path, *, moment=moment, **options):
            found = stat(path, **options)
            if path.parent.parent == tmp_path / "index":
                looks[0] += 1
                if looks[0] == moment:
                    save(tmp_path / "index", settings={"new": moment})
            return found

        monkeypatch.setattr(Path, "stat", saving)
        assert load(tmp_path / "index").settings == {"new": moment}
        monkeypatch.undo()
        assert looks[0] > moment
