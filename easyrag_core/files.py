"""A folder's text files, and why the others were not read."""

from __future__ import annotations

import codecs
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from easyrag_core.errors import check_count

__all__ = ["FilesRead", "SkippedFile", "SourceFile", "decode_text", "read_files"]

_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Folders that hold what tools made or fetched, not what people wrote.
_NOT_WRITTEN_HERE: Final = frozenset(
    {"__pycache__", "node_modules", "site-packages", "dist", "build", "target", "venv"}
)
_LOOKED_AT: Final = 8192
_TEXT_CONTROLS: Final = frozenset(b"\t\n\x0b\x0c\r\x1b")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that was read.

    Attributes:
        path: Relative to the folder, with `/` between the parts.
        text: What it says; line ends and a byte order mark are kept.
        encoding: How it was decoded; anything but `"utf-8"` was a guess or had a mark.
    """

    path: str
    text: str
    encoding: str


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file or folder that was not read.

    Attributes:
        path: Relative to the folder, with `/` between the parts.
        reason: Why, in words.
    """

    path: str
    reason: str


@dataclass(slots=True)
class FilesRead:
    """What a folder holds.

    Attributes:
        files: The text files, by path.
        skipped: What was not read, by path.
    """

    files: list[SourceFile] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)


def read_files(path: str | os.PathLike[str], *, max_bytes: int = 10_000_000) -> FilesRead:
    """Read the text files of a folder and of the folders below it.

    Hidden files and folders, and folders that tools fill (`node_modules`, `__pycache__`,
    `build`, …), are passed over. What cannot be read as text is skipped with its reason.

    Args:
        path: A folder, or a single file.
        max_bytes: Larger files are skipped.

    Returns:
        Files and skipped files, each in the order of their paths.

    Raises:
        FileNotFoundError: There is nothing at this path.
        PermissionError: The folder itself must not be read.
        InvalidParameterError: `max_bytes` is no such number.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_text("one")
    ...     print(read_files(folder).files)
    [SourceFile(path='a.txt', text='one', encoding='utf-8')]
    """
    check_count("max_bytes", max_bytes, minimum=1)
    root = Path(path)
    if not root.exists():
        raise FileNotFoundError(2, "There is no such file or folder; check the path", str(path))
    found = FilesRead()
    if root.is_file():
        _read_one(root, root.name, max_bytes, found)
        return found
    next(root.iterdir(), None)  # a folder that must not be read is an error, not an empty one
    for file_path, name in _walk(root, found):
        _read_one(file_path, name, max_bytes, found)
    found.skipped.sort(key=lambda skipped: skipped.path)
    return found


def decode_text(data: bytes) -> tuple[str, str] | None:
    """Decode a file's bytes, naming the encoding.

    UTF-8 first, or what a byte order mark says. Bytes that are no UTF-8 are taken for GB 18030
    when that gives Chinese, else for Windows-1252 or Latin-1.

    Args:
        data: The bytes.

    Returns:
        Text and encoding, or `None` for what is no text.

    >>> decode_text("检索".encode("gb18030"))
    ('检索', 'gb18030')
    >>> decode_text(bytes(range(16))) is None
    True
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _decoded(data, encoding)
    if _is_binary(data[:_LOOKED_AT]):
        return None
    if (text := _decoded(data, "utf-8")) is not None:
        return text
    chinese = _decoded(data, "gb18030")
    if chinese is not None and _is_mostly_chinese(chinese[0]):
        return chinese
    return _decoded(data, "windows-1252") or _decoded(data, "latin-1")


def _walk(root: Path, found: FilesRead) -> list[tuple[Path, str]]:
    def unreadable(error: OSError) -> None:
        name = Path(error.filename).relative_to(root).as_posix()
        found.skipped.append(SkippedFile(name, f"cannot be opened ({error.strerror})"))

    files = []
    for folder, subfolders, names in os.walk(root, onerror=unreadable):
        wanted = [name for name in subfolders if name[0] != "." and name not in _NOT_WRITTEN_HERE]
        subfolders[:] = sorted(wanted)
        for name in wanted:
            # A link to a folder may lead in a circle, or out of what was asked for.
            if (link := Path(folder, name)).is_symlink():
                place = link.relative_to(root).as_posix()
                found.skipped.append(SkippedFile(place, "is a link to a folder"))
        for name in sorted(names):
            if name[0] != ".":
                file_path = Path(folder, name)
                files.append((file_path, file_path.relative_to(root).as_posix()))
    return sorted(files, key=lambda pair: pair[1])


def _read_one(file_path: Path, name: str, max_bytes: int, found: FilesRead) -> None:
    try:
        size = file_path.stat().st_size
        if not file_path.is_file():
            found.skipped.append(SkippedFile(name, "is no regular file"))
            return
        if size > max_bytes:
            found.skipped.append(SkippedFile(name, f"has {size} bytes, more than {max_bytes}"))
            return
        decoded = decode_text(file_path.read_bytes())
    except OSError as error:
        found.skipped.append(SkippedFile(name, f"cannot be opened ({error.strerror})"))
        return
    if decoded is None:
        found.skipped.append(SkippedFile(name, "is binary"))
    else:
        found.files.append(SourceFile(name, *decoded))


def _decoded(data: bytes, encoding: str) -> tuple[str, str] | None:
    try:
        return data.decode(encoding), encoding
    except UnicodeDecodeError:
        return None


def _is_binary(start: bytes) -> bool:
    controls = sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in start)
    return b"\0" in start or controls * 20 > len(start)


def _is_mostly_chinese(text: str) -> bool:
    beyond = [char for char in text if char > "\x7f"]
    chinese = sum("\u3000" <= char <= "\u303f" or "\u4e00" <= char <= "\u9fff" for char in beyond)
    return chinese * 10 > len(beyond) * 7
