"""Reading a folder: every text file, and a reason for every other one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core.errors import InvalidParameterError
from easyrag_core.files import decode_text, read_files
from tests.strategies import nasty_texts

NOBODY = 65534


def _write(root: Path, name: str, data: bytes) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def test_texts_are_read_and_the_rest_is_listed(tmp_path: Path) -> None:
    """Text of any kind comes back by path; binary and oversized files are named with a reason."""
    _write(tmp_path, "b.md", "# 标题\r\n正文".encode())
    _write(tmp_path, "a/x.txt", b"one\n")
    _write(tmp_path, "a/picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    _write(tmp_path, "large.txt", b"x" * 101)
    _write(tmp_path, ".git/config", b"hidden")
    _write(tmp_path, "node_modules/p/index.js", b"fetched")
    _write(tmp_path, ".hidden.txt", b"hidden")
    read = read_files(tmp_path, max_bytes=100)
    assert [(f.path, f.text, f.encoding) for f in read.files] == [
        ("a/x.txt", "one\n", "utf-8"),
        ("b.md", "# 标题\r\n正文", "utf-8"),
    ]
    assert [(s.path, s.reason) for s in read.skipped] == [
        ("a/picture.png", "is binary"),
        ("large.txt", "has 101 bytes, more than 100"),
    ]


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"plain", "plain", "utf-8"),
        (b"", "", "utf-8"),
        (b"\xef\xbb\xbfmarked", "\ufeffmarked", "utf-8"),
        ("маркер".encode("utf-16"), "маркер", "utf-16"),
        ("检索增强生成，很有用。".encode("gb18030"), "检索增强生成，很有用。", "gb18030"),
        ("Grüße, café – “quoted”".encode("windows-1252"), "Grüße, café – “quoted”", "windows-1252"),
        (b"caf\xe9 \x81", "caf\xe9 \x81", "latin-1"),
    ],
)
def test_the_encoding_is_named(data: bytes, text: str, encoding: str) -> None:
    """UTF-8 first, then what fits best, and always with its name."""
    assert decode_text(data) == (text, encoding)


@pytest.mark.parametrize(
    "data", [b"a\0b", bytes(range(32)), b"\x7fELF\x02\x01\x01\0", b"\x01" * 50]
)
def test_binary_is_no_text(data: bytes) -> None:
    """A zero byte, or many control characters, are no text in any encoding."""
    assert decode_text(data) is None


@given(nasty_texts())
def test_utf8_comes_back_as_it_was(text: str) -> None:
    """What can be written as UTF-8 is read back character by character, or is binary."""
    data = text.encode("utf-8", "ignore")
    decoded = decode_text(data)
    assert decoded is None or decoded == (data.decode(), "utf-8") or decoded[1] == "utf-16"


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """No bytes raise an error."""
    decoded = decode_text(data)
    assert decoded is None or isinstance(decoded[0], str)


def test_one_file_is_enough(tmp_path: Path) -> None:
    """A path may be a single file, hidden or not."""
    _write(tmp_path, "one.txt", b"one")
    assert [f.path for f in read_files(tmp_path / "one.txt").files] == ["one.txt"]


def test_an_empty_folder_holds_nothing(tmp_path: Path) -> None:
    """No files, no error."""
    read = read_files(tmp_path)
    assert (read.files, read.skipped) == ([], [])


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    """The error names the path and says what to do."""
    with pytest.raises(FileNotFoundError, match=r"check the path.*nowhere"):
        read_files(tmp_path / "nowhere")


def test_a_limit_is_a_number(tmp_path: Path) -> None:
    """A size of nothing is refused."""
    with pytest.raises(InvalidParameterError, match="max_bytes"):
        read_files(tmp_path, max_bytes=0)


def test_links_that_lead_nowhere_are_listed(tmp_path: Path) -> None:
    """A broken link is no text file, and it is said."""
    (tmp_path / "broken.txt").symlink_to(tmp_path / "gone.txt")
    assert [s.path for s in read_files(tmp_path).skipped] == ["broken.txt"]


def test_links_to_folders_are_listed_and_not_followed(tmp_path: Path) -> None:
    """A link may lead in a circle: what lies behind it is not read, and it is said."""
    _write(tmp_path, "a/x.txt", b"one")
    (tmp_path / "a" / "again").symlink_to(tmp_path)
    read = read_files(tmp_path)
    assert [f.path for f in read.files] == ["a/x.txt"]
    assert [(s.path, s.reason) for s in read.skipped] == [("a/again", "is a link to a folder")]


def test_pipes_are_not_waited_for(tmp_path: Path) -> None:
    """A named pipe has no end to read to."""
    os.mkfifo(tmp_path / "pipe")
    read = read_files(tmp_path)
    assert [(s.path, s.reason) for s in read.skipped] == [("pipe", "is no regular file")]


def _as_nobody(work) -> bytes:
    """Run `work` in a child process without rights, and return what it wrote."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            os.write(writing, work().encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as answer:
        return answer.read()


def test_a_folder_without_permission(tmp_path: Path) -> None:
    """The folder itself: an error. One below it, or a file: listed, and the rest is read."""
    _write(tmp_path, "open.txt", b"open")
    _write(tmp_path, "closed/inner.txt", b"closed")
    _write(tmp_path, "secret.txt", b"secret")
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.getuid() and parent != Path("/tmp"):
            parent.chmod(0o755)
    (tmp_path / "closed").chmod(0)
    (tmp_path / "secret.txt").chmod(0)

    def whole() -> str:
        read = read_files(tmp_path)
        return repr(([f.path for f in read.files], [s.path for s in read.skipped]))

    def closed() -> str:
        try:
            return repr(read_files(tmp_path / "closed"))
        except PermissionError as error:
            return f"refused {error.filename}"

    try:
        assert _as_nobody(whole).decode() == "(['open.txt'], ['closed', 'secret.txt'])"
        assert _as_nobody(closed).decode() == f"refused {tmp_path / 'closed'}"
    finally:
        (tmp_path / "closed").chmod(0o755)
