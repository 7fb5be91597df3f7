"""Which documents a search may return."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from easyrag_core.errors import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from easyrag_core.index.bm25._snapshot import Snapshot

__all__ = ["Accepted", "IdFilter", "accepted_documents", "refused_documents"]

IdFilter: TypeAlias = Iterable[str] | NDArray[np.bool_] | Callable[[str], bool]
"""Ids, a mask over the ids in the order of insertion, or a predicate on an id."""

_ALLOWED = "give a set of ids, a bool array with one entry per id, or a function of an id"


class Accepted:
    """The live documents that a filter accepts.

    Attributes:
        documents: For each part the accepted ones, ascending.
        number: How many there are in all.
    """

    def __init__(self, snapshot: Snapshot, positions: NDArray[np.intp]) -> None:
        """Part ascending positions."""
        borders = positions.searchsorted(snapshot.bases)
        self.documents = [
            positions[first:last] - base
            for first, last, base in zip(borders, borders[1:], snapshot.bases, strict=False)
        ]
        self.number = int(positions.size)
        self._sizes = [len(part.segment) for part in snapshot.parts]

    @cached_property
    def refused(self) -> Sequence[NDArray[np.intp] | None]:
        """For each part the documents that are not accepted."""
        return [
            _others(documents, size)
            for documents, size in zip(self.documents, self._sizes, strict=True)
        ]


def _others(documents: NDArray[np.intp], size: int) -> NDArray[np.intp] | None:
    if documents.size == size:
        return None
    refused = np.ones(size, np.bool_)
    refused[documents] = False
    return np.flatnonzero(refused)


def refused_documents(snapshot: Snapshot) -> Sequence[NDArray[np.intp] | None]:
    """Return for each part the dead documents."""
    return [None if part.whole else part.dead for part in snapshot.parts]


def accepted_documents(snapshot: Snapshot, accepted: Any) -> Accepted:
    """Look up what a filter of ids or a mask accepts.

    Args:
        snapshot: The documents.
        accepted: Ids, or a mask.

    Returns:
        The documents; unknown ids are left out.

    Raises:
        InvalidParameterError: For a filter of another kind, or a mask of another length.
    """
    if isinstance(accepted, np.ndarray):
        mask = _checked_mask(accepted, snapshot.documents)
        return Accepted(snapshot, np.sort(snapshot.positions_in_order[mask]))
    if isinstance(accepted, (str, bytes)) or not isinstance(accepted, Iterable):
        raise InvalidParameterError("filter", accepted, _ALLOWED)
    positions = [_position(snapshot, id_) for id_ in accepted]
    known = [position for position in positions if position is not None]
    return Accepted(snapshot, np.unique(np.array(known, np.intp)))


def _position(snapshot: Snapshot, id_: Any) -> int | None:
    if not isinstance(id_, str):
        raise InvalidParameterError("filter", id_, _ALLOWED)
    place = snapshot.find(id_)
    return None if place is None else snapshot.bases[place.part] + place.number


def _checked_mask(mask: NDArray[Any], documents: int) -> NDArray[np.bool_]:
    if mask.dtype != np.bool_ or mask.shape != (documents,):
        shown = f"<{mask.dtype} array of shape {mask.shape}>"
        raise InvalidParameterError("filter", shown, f"{_ALLOWED} ({documents} ids)")
    return mask
