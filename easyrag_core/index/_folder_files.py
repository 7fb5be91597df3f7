"""The single files of a saved folder: arrays, lists of strings, locks, flushing."""

from __future__ import annotations

import contextlib
import os
import zlib
from itertools import islice, pairwise
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast

import numpy as np

from easyrag_core.errors import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = [
    "checksum_of",
    "flush",
    "flush_folder",
    "locked",
    "read_array",
    "read_texts",
    "write_array",
    "write_texts",
]

_BLOCK_BYTES = 1 << 20
_BLOCK_TEXTS = 1 << 16
# What numpy raises for a header with flipped bits, and for the sizes that it may name.
_FLIPPED = (SyntaxError, TypeError, OverflowError, MemoryError, TokenError)


class _Checked:
    """A file to write to that counts and sums what passes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = 0
        self.checksum = 0

    def write(self, data: bytes) -> int:
        self.size += len(data)
        self.checksum = zlib.crc32(data, self.checksum)
        return self._file.write(data)


def write_array(file_path: Path, array: NDArray[Any]) -> list[int]:
    """Write one `.npy` file and return its size and checksum."""
    if array.dtype.kind not in "biuf":
        raise InvalidParameterError(file_path.name, array.dtype, "give numbers or bools")
    with file_path.open("wb") as file:
        checked = _Checked(file)
        ordered = np.asarray(array, order="C")
        np.lib.format.write_array(cast("BinaryIO", checked), ordered, allow_pickle=False)
        flush(file)
    return [checked.size, checked.checksum]


def read_array(file_path: Path, *, mmap: bool) -> NDArray[Any]:
    """Read or map one `.npy` file; raise `ValueError` or `EOFError` for a damaged one."""
    mode: Literal["r"] | None = "r" if mmap else None
    try:
        array: NDArray[Any] = np.load(file_path, mmap_mode=mode, allow_pickle=False)
    except _FLIPPED as error:
        raise ValueError(f"{file_path.name}: {error}") from error
    # A plain ndarray over the same mapping: numpy's memmap subclass slows every slice down.
    return array.view(np.ndarray)


def write_texts(file_path: Path, strings: Iterable[str]) -> tuple[list[int], NDArray[np.int64]]:
    """Write strings end to end; return size and checksum, and where each begins, in bytes."""
    lengths = [np.zeros(1, np.int64)]
    left = iter(strings)
    with file_path.open("wb") as file:
        checked = _Checked(file)
        while block := [s.encode("utf-8", "surrogatepass") for s in islice(left, _BLOCK_TEXTS)]:
            lengths.append(np.fromiter(map(len, block), np.int64, len(block)))
            checked.write(b"".join(block))
        flush(file)
    return [checked.size, checked.checksum], np.cumsum(np.concatenate(lengths))


def read_texts(file_path: Path, offsets: NDArray[np.int64]) -> list[str]:
    """Read back what `write_texts` wrote."""
    blob = file_path.read_bytes()
    places = offsets.tolist()
    if blob.isascii():
        # One byte per character: slices of one string are twice as fast as decoding each.
        text = blob.decode("ascii")
        return [text[start:end] for start, end in pairwise(places)]
    return [blob[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(places)]


def checksum_of(file_path: Path) -> int:
    """Sum a file block by block."""
    checksum = 0
    with file_path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            checksum = zlib.crc32(block, checksum)
    return checksum


def flush(file: BinaryIO) -> None:
    """Bring a file's bytes to the disk, past the system's cache."""
    file.flush()
    os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Make renames and new files in a folder durable, where a system can."""
    if os.name == "nt":
        return
    with contextlib.suppress(PermissionError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def locked(file_path: Path) -> Iterator[None]:
    """Let one holder at a time in, among threads and processes; the lock dies with its holder."""
    try:
        import fcntl  # noqa: PLC0415 - POSIX alone has it
    except ImportError:
        yield
        return
    with file_path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
