"""What a caller hands in to be indexed, checked and cut into batches."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from easyrag_core._progress import with_progress
from easyrag_core.errors import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["batches", "paired"]

_BATCH_DOCUMENTS: Final = 4096


def paired(ids: Sequence[str], texts: Sequence[str]) -> dict[str, str]:
    """Pair ids with texts.

    Args:
        ids: One id per text.
        texts: The texts.

    Returns:
        Id to text; an id that comes twice keeps its first place and its last text.

    Raises:
        InvalidParameterError: For different lengths, or values that are no strings.
    """
    for name, given_values in (("ids", ids), ("texts", texts)):
        if isinstance(given_values, str):
            raise InvalidParameterError(name, given_values, "give a list of strings")
    ids, texts = list(ids), list(texts)
    if len(ids) != len(texts):
        given = f"{len(ids)} ids and {len(texts)} texts"
        raise InvalidParameterError("texts", given, "give one text per id")
    for name, values in (("ids", ids), ("texts", texts)):
        for value in values:
            if not isinstance(value, str):
                raise InvalidParameterError(name, value, "give strings")
    return dict(zip(ids, texts, strict=True))


def batches(texts_by_id: dict[str, str], *, show_progress: bool) -> Iterator[dict[str, str]]:
    """Cut documents into batches that are inverted at once.

    Args:
        texts_by_id: The documents.
        show_progress: Show a tqdm bar that moves as the batches are taken.

    Yields:
        A part of the documents.

    Raises:
        MissingDependencyError: For a bar without tqdm.
    """
    pairs = iter(with_progress(texts_by_id.items(), what="Indexing", show=show_progress))
    while batch := dict(islice(pairs, _BATCH_DOCUMENTS)):
        yield batch
