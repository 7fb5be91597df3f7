"""Which documents a search may return."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from easyrag_core.errors import InvalidParameterError

if TYPE_CHECKING:
    from easyrag_core.index.bm25._snapshot import Snapshot

__all__ = ["IdFilter", "Restriction", "restriction"]

IdFilter: TypeAlias = Iterable[str] | NDArray[np.bool_] | Callable[[str], bool]
"""Ids, a mask over the ids in the order of insertion, or a predicate on an id."""

Restriction: TypeAlias = Callable[[NDArray[np.float64]], None]
"""Sets the scores of what may not be returned to zero, in place."""

_ALLOWED = "give a set of ids, a bool array with one entry per id, or a function of an id"


def restriction(snapshot: Snapshot, accepted: IdFilter | None) -> Restriction:
    """Turn a caller's filter into something that is applied to scores.

    Args:
        snapshot: The documents.
        accepted: The filter; `None` accepts every live document.

    Returns:
        A function that zeroes the scores of dead and refused documents.

    Raises:
        InvalidParameterError: For a filter of another kind, or a mask of another length.
    """
    if callable(accepted):
        return _predicate_restriction(snapshot, accepted)
    if accepted is not None:
        return _mask_restriction(_mask(snapshot, accepted))
    if snapshot.documents == snapshot.bases[-1]:
        return _no_restriction
    return _mask_restriction(snapshot.alive)


def _no_restriction(scores: NDArray[np.float64]) -> None:
    """Leave every score."""


def _mask_restriction(mask: NDArray[np.bool_]) -> Restriction:
    def restrict(scores: NDArray[np.float64]) -> None:
        scores *= mask

    return restrict


def _predicate_restriction(snapshot: Snapshot, accepts: Callable[[str], bool]) -> Restriction:
    def restrict(scores: NDArray[np.float64]) -> None:
        scores *= snapshot.alive
        for position in np.flatnonzero(scores).tolist():
            if not accepts(snapshot.id_at(position)):
                scores[position] = 0

    return restrict


def _mask(snapshot: Snapshot, accepted: Any) -> NDArray[np.bool_]:
    mask = np.zeros(snapshot.bases[-1], np.bool_)
    if isinstance(accepted, np.ndarray):
        mask[snapshot.positions_in_order[_checked_mask(accepted, snapshot.documents)]] = True
        return mask
    if isinstance(accepted, (str, bytes)) or not isinstance(accepted, Iterable):
        raise InvalidParameterError("filter", accepted, _ALLOWED)
    for id_ in accepted:
        if not isinstance(id_, str):
            raise InvalidParameterError("filter", id_, _ALLOWED)
        place = snapshot.find(id_)
        if place is not None:
            mask[snapshot.bases[place.part] + place.number] = True
    return mask


def _checked_mask(mask: NDArray[Any], documents: int) -> NDArray[np.bool_]:
    if mask.dtype != np.bool_ or mask.shape != (documents,):
        shown = f"<{mask.dtype} array of shape {mask.shape}>"
        raise InvalidParameterError("filter", shown, f"{_ALLOWED} ({documents} ids)")
    return mask
