"""Many strings in four arrays: read one by one, found by hash, mapped from disk as they are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, overload
from zlib import crc32

import numpy as np

from easyrag_core.errors import IndexFormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

__all__ = ["StringTable"]


class StringTable(Sequence[str]):
    """Distinct strings that never change.

    Nothing is read when a table is made: a million strings on disk are there at once. Finding
    one is a binary search in the sorted hashes; what has the same hash is compared.
    """

    def __init__(
        self,
        blob: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        codes: NDArray[np.uint32],
        numbers: NDArray[np.int32],
    ) -> None:
        """Take the arrays; `of` makes them.

        Args:
            blob: The strings end to end, in UTF-8 with lone surrogates passed.
            offsets: (n + 1,) where each begins in the blob, and where the last one ends.
            codes: (n,) CRC-32 of each string, ascending.
            numbers: (n,) the number of the string that has this code.
        """
        self.blob = blob
        self.offsets = offsets
        self.codes = codes
        self.numbers = numbers

    @classmethod
    def of(cls, strings: Iterable[str]) -> StringTable:
        """Make a table. O(n log n) time."""
        encoded = [_encoded(string) for string in strings]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
        codes = np.fromiter(map(crc32, encoded), np.uint32, len(encoded))
        numbers = np.argsort(codes, kind="stable").astype(np.int32)
        blob = np.frombuffer(b"".join(encoded), np.uint8)
        return cls(blob, offsets, codes[numbers], numbers)

    def fits(self) -> bool:
        """Whether the arrays have the types and lengths of one table."""
        arrays = (self.blob, self.offsets, self.codes, self.numbers)
        kinds = [array.dtype.str[1:] for array in arrays]
        size = len(self)
        return (
            kinds == ["u1", "i8", "u4", "i4"]
            and all(array.ndim == 1 for array in arrays)
            and self.codes.size == self.numbers.size == size
            and (int(self.offsets[0]), int(self.offsets[-1])) == (0, self.blob.size)
        )

    def __len__(self) -> int:
        """Count the strings."""
        return int(self.offsets.size) - 1

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        """Return a string, or several as a list."""
        if isinstance(number, slice):
            return [self[at] for at in range(*number.indices(len(self)))]
        if not 0 <= number < len(self):
            raise IndexError(number)
        try:
            return self._bytes(number).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise _damaged() from error

    def __iter__(self) -> Iterator[str]:
        """Yield the strings by number, several times as fast as one by one."""
        blob, places = self.blob.tobytes(), self.offsets.tolist()
        try:
            if blob.isascii():
                text = blob.decode("ascii")
                yield from (text[start:end] for start, end in pairwise(places))
            else:
                for start, end in pairwise(places):
                    yield blob[start:end].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise _damaged() from error

    def find(self, string: str) -> int | None:
        """Return the number of a string, or `None` if it is not here. O(log n) time."""
        encoded = _encoded(string)
        code = np.uint32(crc32(encoded))
        for place in range(int(self.codes.searchsorted(code)), self.codes.size):
            if self.codes[place] != code:
                return None
            number = int(self.numbers[place])
            if not 0 <= number < len(self):
                raise _damaged()
            if self._bytes(number) == encoded:
                return number
        return None

    def _bytes(self, number: int) -> bytes:
        start, end = int(self.offsets[number]), int(self.offsets[number + 1])
        if not 0 <= start <= end <= self.blob.size:
            raise _damaged()
        return self.blob[start:end].tobytes()


def _encoded(string: str) -> bytes:
    return string.encode("utf-8", "surrogatepass")


def _damaged() -> IndexFormatError:
    return IndexFormatError("The strings of the saved index are damaged: rebuild it.")
