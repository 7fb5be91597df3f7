"""Many texts through an embedding model, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from easyrag_core._progress import with_progress
from easyrag_core.errors import DimensionMismatchError, InvalidParameterError, check_count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from easyrag_core.types import Chunk

__all__ = ["Embed", "embed_in_batches", "one_row_each"]

Embed: TypeAlias = Callable[[list[str]], Sequence[Sequence[float]]]
"""Texts to vectors, one per text: an embedding model's batch call."""


def embed_in_batches(
    embed: Embed,
    texts: Sequence[str],
    *,
    batch_size: int = 64,
    show_progress: bool = False,
) -> NDArray[np.float32]:
    """Embed many texts, a batch at a time.

    Args:
        embed: Texts to vectors.
        texts: The texts.
        batch_size: Texts per call, at least 1.
        show_progress: Show a tqdm bar.

    Returns:
        Shape `(len(texts), d)`; `(0, 0)` for no texts.

    Raises:
        InvalidParameterError: The batch size is no such number, a single string is given, or the
            model gave another number of vectors than texts, or no rows of numbers.
        DimensionMismatchError: Batches differ in the length of their vectors.
        MissingDependencyError: A progress bar is wanted and tqdm is not installed.

    >>> embed_in_batches(lambda texts: [[1.0, float(len(t))] for t in texts], ["a", "bc"]).shape
    (2, 2)
    """
    size = check_count("batch_size", batch_size, minimum=1)
    if isinstance(texts, str):
        raise InvalidParameterError("texts", texts, "give a list of texts")
    starts = with_progress(range(0, len(texts), size), what="Embedding", show=show_progress)
    batches: list[NDArray[np.float32]] = []
    for start in starts:
        batch = list(texts[start : start + size])
        vectors = _matrix(embed(batch))
        if vectors.ndim != 2 or len(vectors) != len(batch):
            raise InvalidParameterError(
                "embed", vectors.shape, f"it must give one vector for each of {len(batch)} texts"
            )
        if batches and vectors.shape[1] != batches[0].shape[1]:
            raise DimensionMismatchError(
                batches[0].shape[1], vectors.shape[1], f"The batch at text {start}"
            )
        batches.append(vectors)
    return np.concatenate(batches) if batches else np.empty((0, 0), np.float32)


def _matrix(vectors: Any) -> NDArray[np.float32]:
    try:
        return np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        allowed = "it must give rows of numbers, all of one length"
        raise InvalidParameterError("embed", vectors, allowed) from error


def one_row_each(chunks: Sequence[Chunk], vectors: Any) -> list[Any]:
    """Return the vector of each chunk, `None` where none is given."""
    if vectors is None:
        return [None] * len(chunks)
    each = f"give one row per chunk, here {len(chunks)}"
    if isinstance(vectors, str | bytes) or not isinstance(vectors, Iterable):
        raise InvalidParameterError("vectors", vectors, each)
    rows = list(vectors)
    if len(rows) != len(chunks):
        raise InvalidParameterError("vectors", len(rows), each)
    for row in rows:
        if row is not None and not hasattr(row, "__len__"):
            raise InvalidParameterError("vectors", row, "give one row of numbers per chunk")
    return rows
