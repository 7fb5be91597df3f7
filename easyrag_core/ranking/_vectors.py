"""Rows of numbers in any form to one float32 matrix."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from easyrag_core.errors import DimensionMismatchError, InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

__all__ = [
    "Matrix",
    "Vectors",
    "exact_dots",
    "name_rows",
    "product_error",
    "to_matrix",
    "unit_scale",
]

Matrix: TypeAlias = "NDArray[np.float32]"
Vectors: TypeAlias = "NDArray[Any] | Sequence[Sequence[float] | NDArray[Any] | None]"

_SHOWN = 5
_ROWS_AT_ONCE = 1024
# Squares of float32 leave its range above and below these norms.
_SMALLEST_SQUARE, _LARGEST_SQUARE = 1e-30, 1e30


def to_matrix(
    vectors: Vectors,
    *,
    name: Callable[[list[int]], str],
    dimensions: int | None = None,
) -> tuple[Matrix, NDArray[np.bool_]]:
    """Convert vectors to a C-contiguous float32 matrix of the usable rows.

    Args:
        vectors: A 2-D array, or a sequence of rows; `None` and empty rows are absent.
        name: Names rows in a message, given their numbers.
        dimensions: The length expected; `None` takes the first row's.

    Returns:
        The matrix of the rows that are present and finite, and a mask over all rows given that
        says which those are. O(n d) time.

    Raises:
        DimensionMismatchError: Some rows have another length.
        InvalidParameterError: The rows are not sequences of numbers.
    """
    if isinstance(vectors, np.ndarray) and vectors.dtype.kind in "biuf":
        present = np.ones(len(vectors) if vectors.ndim else 0, np.bool_)
        matrix = _from_array(vectors, name, dimensions)
    else:
        given: object = vectors
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise InvalidParameterError("vectors", vectors, "give one row of numbers per item")
        rows = list(vectors)
        for number, row in enumerate(rows):
            if row is not None and not hasattr(row, "__len__"):
                allowed = f"{name([number])} is not one row of numbers"
                raise InvalidParameterError("vectors", row, allowed)
        present = np.array([row is not None and len(row) > 0 for row in rows], np.bool_)
        matrix = _from_rows(rows, name, dimensions)
    # A sum is finite only if all its parts are; an overflow of the sum is looked at again.
    finite = np.isfinite(matrix.sum(axis=1, dtype=np.float64))
    if not finite.all():
        present[present] = finite
        matrix = matrix[finite]
    return matrix, present


def unit_scale(matrix: Matrix) -> tuple[Matrix, NDArray[np.float64]]:
    """Give for each row the factor that brings it to length 1, and 0 for a zero row.

    Args:
        matrix: Finite rows.

    Returns:
        The matrix (rows that are out of the range of float32 squares rescaled, in a copy) and
        the factors.
    """
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->i", matrix, matrix).astype(np.float64)
    odd = np.flatnonzero((squares < _SMALLEST_SQUARE) | ~(squares <= _LARGEST_SQUARE))
    if odd.size:
        peaks = np.abs(matrix[odd]).max(axis=1, initial=0.0)
        odd, peaks = odd[peaks > 0], peaks[peaks > 0]
        matrix = matrix.copy()
        matrix[odd] = matrix[odd].astype(np.float64) / peaks[:, None]
        squares[odd] = np.square(matrix[odd], dtype=np.float64).sum(axis=1)
    norms = np.sqrt(squares)
    return matrix, np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)


def exact_dots(matrix: Matrix, rows: NDArray[np.intp], vector: Matrix) -> NDArray[np.float64]:
    """Multiply some rows with one vector in float64, so that equal rows give equal results.

    A BLAS product may round equal rows differently, by where they stand in the matrix.

    Args:
        matrix: Rows to choose from.
        rows: Row numbers.
        vector: One vector of the same length.

    Returns:
        One dot product per row number. O(len(rows) d) time, in blocks of bounded memory.
    """
    wide = vector.astype(np.float64)
    dots = np.empty(len(rows))
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        block = matrix[rows[start : start + _ROWS_AT_ONCE]]
        dots[start : start + _ROWS_AT_ONCE] = (block * wide).sum(axis=1)
    return dots


def product_error(dimensions: int) -> float:
    """Bound how far a float32 product of two unit vectors may be off.

    Vector units keep at least eight partial sums, so that roundings do not pile up over all
    `dimensions`.
    """
    return (dimensions / 8 + 8) * 2.0**-24


def _from_array(
    array: NDArray[Any], name: Callable[[list[int]], str], dimensions: int | None
) -> Matrix:
    if array.ndim != 2:
        raise InvalidParameterError("vectors", array.shape, "give a 2-D array, one row per item")
    if dimensions is not None and array.shape[1] != dimensions and len(array):
        raise DimensionMismatchError(dimensions, array.shape[1], name(list(range(len(array)))))
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)


def _from_rows(rows: list[Any], name: Callable[[list[int]], str], dimensions: int | None) -> Matrix:
    numbers = [i for i, row in enumerate(rows) if row is not None and len(row) > 0]
    if not numbers:
        return np.zeros((0, dimensions or 0), np.float32)
    expected = dimensions if dimensions is not None else len(rows[numbers[0]])
    wrong = [i for i in numbers if len(rows[i]) != expected]
    if wrong:
        raise DimensionMismatchError(expected, len(rows[wrong[0]]), name(wrong))
    # Packing is three times as fast as numpy's own reading of Python lists.
    pack = struct.Struct(f"{expected}f").pack
    blob = b"".join([_row_bytes(rows[i], pack, name, i) for i in numbers])
    return np.frombuffer(blob, np.float32).reshape(len(numbers), expected)


def _row_bytes(
    row: Any, pack: Callable[..., bytes], name: Callable[[list[int]], str], number: int
) -> bytes:
    if isinstance(row, list | tuple):
        try:
            return pack(*row)
        except (struct.error, OverflowError, TypeError):
            pass  # a None inside, or a number beyond float32: numpy makes it NaN or infinite
    try:
        with np.errstate(over="ignore"):
            array = np.asarray(row, dtype=np.float64).astype(np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidParameterError("vectors", row, f"{name([number])} has no numbers") from error
    if array.ndim != 1:
        raise InvalidParameterError("vectors", array.shape, f"{name([number])} is not one row")
    return array.tobytes()


def name_rows(numbers: list[int]) -> str:
    """Name rows by their numbers, the first few of them.

    >>> name_rows([3, 7])
    'vectors rows 3, 7'
    """
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    return f"vectors row{'s' if len(numbers) > 1 else ''} {shown}{more}"
