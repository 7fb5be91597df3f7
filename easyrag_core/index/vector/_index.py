"""Exact search by cosine over vectors that come, change and go."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from easyrag_core.errors import (
    IndexFormatError,
    InvalidParameterError,
    check_count,
)
from easyrag_core.index._folder import FolderContents, read_folder, write_folder
from easyrag_core.index.vector._rows import Rows
from easyrag_core.ranking._vectors import to_matrix, unit_scale

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from easyrag_core.index.bm25 import IdFilter
    from easyrag_core.ranking._vectors import Matrix, Vectors
    from easyrag_core.types import Hit

__all__ = ["VectorIndex"]

_KIND: Final = "vector"
_VERSION: Final = 1
_ALLOWED_QUERY: Final = "give one vector of finite numbers"
# So many scores (queries times rows) are held at once in a batch.
_SCORES_AT_ONCE: Final = 1 << 23
_FEW_DEAD: Final = 64


class VectorIndex:
    """Ids and their vectors, with exact cosine search.

    Rows are kept as float32 as they were given (only lengths beyond 1e15 or below 1e-15 are
    scaled). A vector of length 0 scores 0. Safe to share between threads; a search sees the
    index as it was when it began, or newer.

    >>> index = VectorIndex(2)
    >>> index.add(["a", "b"], [[1.0, 0.0], [1.0, 1.0]])
    >>> [(hit.id, round(hit.score, 3)) for hit in index.search([2.0, 0.0], k=2)]
    [('a', 1.0), ('b', 0.707)]
    """

    def __init__(self, dim: int) -> None:
        """Make an empty index.

        Args:
            dim: Length of every vector, at least 1.

        Raises:
            InvalidParameterError: It is not such a number.
        """
        self._dim = check_count("dim", dim, minimum=1)
        self._writing = threading.RLock()
        self._slots: dict[str, int] = {}
        self._next_order = 0
        self._rows = Rows.of([], np.empty((0, self._dim), np.float32), np.empty(0))

    @property
    def dim(self) -> int:
        """Length of every vector."""
        return self._dim

    @property
    def ids(self) -> list[str]:
        """The ids, in the order in which they were first added."""
        rows = self._rows
        return rows.ids_of(rows.in_order())

    def __len__(self) -> int:
        """Count the vectors."""
        return len(self._slots)

    def __contains__(self, id_: object) -> bool:
        """Whether a vector with this id is here."""
        return id_ in self._slots

    def __repr__(self) -> str:
        """Show size and dimensions."""
        return f"<VectorIndex of {len(self)} vectors, {self._dim} dimensions>"

    def __getstate__(self) -> dict[str, Any]:
        """Leave the lock behind; the rest can be copied and pickled."""
        return {key: value for key, value in self.__dict__.items() if key != "_writing"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a new lock."""
        self.__dict__.update(state)
        self._writing = threading.RLock()

    def __copy__(self) -> VectorIndex:
        """Copy the ids; the vectors that are here are shared, as they never change."""
        other = type(self).__new__(type(self))
        with self._writing:
            own = {"_slots": dict(self._slots), "_rows": self._rows.sealed()}
            other.__setstate__(self.__getstate__() | own)
        return other

    # Writing

    def add(self, ids: Sequence[str], vectors: Vectors) -> None:
        """Add vectors, and replace those whose id is already here. All or nothing.

        A replaced vector keeps its place in the order. Costs in proportion to what is added,
        averaged over many calls.

        Args:
            ids: One id per vector. Of an id that comes twice the last vector counts.
            vectors: Shape (len(ids), dim).

        Raises:
            InvalidParameterError: Lists of different lengths, an id that is no string, a vector
                that is missing or not finite (its id is named).
            DimensionMismatchError: A vector of another length (its id is named).
        """
        if not hasattr(vectors, "__len__") or isinstance(vectors, str | bytes):
            raise InvalidParameterError("vectors", vectors, "give one row of numbers per id")
        numbers = _numbers_by_id(ids, len(vectors))
        matrix, present = to_matrix(vectors, name=_naming(ids), dimensions=self._dim)
        if not present.all():
            bad = np.flatnonzero(~present).tolist()
            allowed = f"{_naming(ids)(bad)} must be finite numbers, not NaN, infinite or None"
            raise InvalidParameterError("vectors", vectors[bad[0]], allowed)
        if not numbers:
            return
        if len(numbers) < len(matrix):
            matrix = matrix[list(numbers.values())]
        with self._writing:
            self._append(list(numbers), *unit_scale(matrix))

    def _append(self, ids: list[str], matrix: Matrix, scale: NDArray[np.float64]) -> None:
        rows = self._rows
        slots = [self._slots.get(id_) for id_ in ids]
        new = iter(range(self._next_order, self._next_order + len(ids)))
        orders = [next(new) if slot is None else int(rows.orders[slot]) for slot in slots]
        replaced = [slot for slot in slots if slot is not None]
        grown = rows.with_rows(ids, matrix, scale, np.array(orders)).without(replaced)
        self._slots.update(zip(ids, range(rows.count, grown.count), strict=True))
        self._next_order += len(ids) - len(replaced)
        self._settle(grown)

    def _settle(self, rows: Rows) -> None:
        """Make a state the current one, without what it no longer needs."""
        if rows.dead > max(rows.count // 2, _FEW_DEAD):
            rows = rows.compacted()
            self._slots = {id_: slot for slot, id_ in enumerate(rows.ids)}
        self._rows = rows

    def remove(self, ids: Iterable[str]) -> int:
        """Remove vectors.

        Args:
            ids: Their ids; unknown ones are ignored.

        Returns:
            How many were removed.

        Raises:
            InvalidParameterError: For a single string instead of several ids.
        """
        if isinstance(ids, str):
            raise InvalidParameterError("ids", ids, "give a list of ids")
        with self._writing:
            slots = [self._slots.pop(id_) for id_ in dict.fromkeys(ids) if id_ in self._slots]
            if slots:
                self._settle(self._rows.without(slots))
            return len(slots)

    # Reading

    def get(self, ids: Sequence[str]) -> list[Matrix | None]:
        """Return copies of vectors, in the order of the ids; `None` where there is none.

        Args:
            ids: The ids.

        Returns:
            One float32 array of length `dim`, or `None`, per id.
        """
        with self._writing:
            matrix, slots = self._rows.matrix, [self._slots.get(id_) for id_ in ids]
        return [None if slot is None else matrix[slot].copy() for slot in slots]

    def search(
        self,
        vector: Sequence[float] | NDArray[Any],
        k: int = 10,
        *,
        filter: IdFilter | None = None,  # noqa: A002 - the word of both frameworks
    ) -> list[Hit]:
        """Return the vectors with the largest cosine to this one.

        O(n d) time. Ties stay in the order of insertion.

        Args:
            vector: Length `dim`. One of length 0 has cosine 0 to all.
            k: How many hits are wanted; fewer come when there are fewer.
            filter: Applied before ranking: ids, a bool array with one entry per id in `ids`, or
                a function that accepts an id. Ids that are not here are ignored.

        Returns:
            Hits, best first, with scores in [-1, 1] and the channel `"vector"`.

        Raises:
            DimensionMismatchError: The vector has another length.
            InvalidParameterError: The vector is not finite, k is negative, or the filter is of
                another kind.
        """
        if np.ndim(vector) != 1:
            raise InvalidParameterError("vector", vector, _ALLOWED_QUERY)
        return self.search_batch([vector], k, filter=filter)[0]

    def search_batch(
        self,
        vectors: Vectors,
        k: int = 10,
        *,
        filter: IdFilter | None = None,  # noqa: A002 - as above
    ) -> list[list[Hit]]:
        """Search for several vectors in the same state of the index.

        Args:
            vectors: Shape (queries, dim).
            k: How many hits are wanted for each.
            filter: As for `search`, the same for all.

        Returns:
            One list of hits per query.

        Raises:
            DimensionMismatchError: As for `search`.
            InvalidParameterError: As for `search`.
        """
        wanted = check_count("k", k)
        queries, present = to_matrix(vectors, name=_name_queries, dimensions=self._dim)
        if not present.all():
            bad = np.flatnonzero(~present).tolist()
            raise InvalidParameterError("vector", vectors[bad[0]], _ALLOWED_QUERY)
        queries, scale = unit_scale(queries)
        rows = self._rows
        slots = rows.accepted(filter)
        units = (queries * scale[:, None]).astype(np.float32)
        at_once = max(1, _SCORES_AT_ONCE // max(1, rows.count))
        answers: list[list[Hit]] = []
        for start in range(0, len(units), at_once):
            block = units[start : start + at_once]
            cosines = rows.cosines(slots, block)
            answers += [rows.hits(slots, *q, wanted) for q in zip(block, cosines, strict=True)]
        return answers

    # Disk

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as a folder, in one step that holds or does not happen.

        Args:
            path: An empty or new folder, or one that holds an earlier save.

        Raises:
            IndexFormatError: The path holds something else.
            OSError: The disk refuses.
        """
        contents = self.contents()
        write_folder(
            path,
            kind=_KIND,
            version=_VERSION,
            arrays=contents.arrays,
            settings=contents.settings,
            texts=contents.texts,
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mmap: bool = True) -> VectorIndex:
        """Load what `save` wrote.

        Args:
            path: The folder.
            mmap: Map the vectors instead of reading them; the first change copies them.

        Returns:
            The index.

        Raises:
            FileNotFoundError: The path does not exist.
            IndexFormatError: It is torn, damaged, foreign, or of another version.
        """
        return cls.from_contents(read_folder(path, kind=_KIND, version=_VERSION, mmap=mmap))

    def contents(self) -> FolderContents:
        """Give what goes to disk, for a folder that holds more than this index."""
        rows = self._rows
        kept = rows.in_order()
        return FolderContents(
            arrays={"vectors": rows.matrix[kept]},
            settings={"dim": self._dim},
            texts={"ids": rows.ids_of(kept)},
        )

    @classmethod
    def from_contents(cls, contents: FolderContents) -> VectorIndex:
        """Rebuild an index from its contents.

        Args:
            contents: What `contents()` gave.

        Returns:
            The index.

        Raises:
            IndexFormatError: The parts do not fit together.
        """
        try:
            index = cls(contents.settings["dim"])
            matrix, ids = contents.arrays["vectors"], contents.texts["ids"]
        except (KeyError, InvalidParameterError) as error:
            raise IndexFormatError(
                f"The saved vectors are incomplete ({error}): rebuild."
            ) from error
        if matrix.shape != (len(ids), index.dim) or matrix.dtype != np.float32:
            raise IndexFormatError("The saved vectors and ids do not fit: rebuild the index.")
        index._settle(Rows.of(ids, *unit_scale(matrix)))
        index._slots = {id_: slot for slot, id_ in enumerate(ids)}
        index._next_order = len(ids)
        return index


def _numbers_by_id(ids: Sequence[str], vectors: int) -> dict[str, int]:
    if isinstance(ids, str) or not hasattr(ids, "__len__") or len(ids) != vectors:
        raise InvalidParameterError("ids", ids, f"give one id per vector, here {vectors}")
    for id_ in ids:
        if not isinstance(id_, str):
            raise InvalidParameterError("ids", id_, "ids are strings")
    return {id_: number for number, id_ in enumerate(ids)}


def _naming(ids: Sequence[str]) -> Callable[[list[int]], str]:
    def name(numbers: list[int]) -> str:
        shown = ", ".join(repr(ids[number]) for number in numbers[:5])
        more = f" and {len(numbers) - 5} more" if len(numbers) > 5 else ""
        return f"The vector of id {shown}{more}"

    return name


def _name_queries(numbers: list[int]) -> str:
    return f"The query vector {numbers[0]}" if numbers[0] else "The query vector"
