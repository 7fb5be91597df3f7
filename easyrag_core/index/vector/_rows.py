"""Growing columns of vectors, and the search over one state of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from easyrag_core.errors import InvalidParameterError
from easyrag_core.ranking._vectors import exact_dots, product_error
from easyrag_core.types import ChannelScore, Hit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from easyrag_core.index.bm25 import IdFilter
    from easyrag_core.ranking._vectors import Matrix

__all__ = ["Rows"]

_CHANNEL: Final = "vector"
_ALLOWED_FILTER: Final = "give a set of ids, a bool array with one entry per id, or a function"
# Below this share of rows, gathering them is faster than scoring all.
_FEW: Final = 8
_LEAST_ROOM: Final = 16


@dataclass(frozen=True, slots=True)
class Rows:
    """Vectors in slots, as one search sees them.

    Later states share the arrays and write only behind `count`, so that a state never changes.

    Attributes:
        matrix: One float32 vector per slot.
        scale: What brings each to length 1; 0 for a vector of length 0.
        orders: The place of each in the order of insertion.
        alive: Which slots are not removed or replaced.
        ids: The id of each slot.
        count: How many slots are in use.
        dead: How many of them are not alive.
    """

    matrix: Matrix
    scale: NDArray[np.float64]
    orders: NDArray[np.int64]
    alive: NDArray[np.bool_]
    ids: list[str]
    count: int
    dead: int = 0

    @classmethod
    def of(cls, ids: Sequence[str], matrix: Matrix, scale: NDArray[np.float64]) -> Rows:
        """Take vectors as they are, in the order given."""
        count = len(ids)
        return cls(matrix, scale, np.arange(count), np.ones(count, np.bool_), list(ids), count)

    def in_order(self) -> NDArray[np.intp]:
        """Give the live slots in the order of insertion."""
        if not self.dead:
            return np.arange(self.count)
        slots = np.flatnonzero(self.alive[: self.count])
        return slots[np.argsort(self.orders[slots], kind="stable")]

    def ids_of(self, slots: NDArray[np.intp]) -> list[str]:
        """Give the ids of some slots."""
        return [self.ids[slot] for slot in slots.tolist()]

    def compacted(self) -> Rows:
        """Leave out what is not alive. O(n d) time."""
        kept = self.in_order()
        return Rows.of(self.ids_of(kept), self.matrix[kept], self.scale[kept])

    def without(self, slots: list[int]) -> Rows:
        """Give the next state, in which some slots are not alive."""
        if not slots:
            return self
        alive = self.alive.copy()
        alive[slots] = False
        return replace(self, alive=alive, dead=self.dead + len(slots))

    def sealed(self) -> Rows:
        """Give the same state without room to grow: what comes next is written elsewhere."""
        used = slice(self.count)
        return replace(
            self,
            matrix=self.matrix[used],
            scale=self.scale[used],
            orders=self.orders[used],
            alive=self.alive[used],
            ids=self.ids[used],
        )

    def with_rows(
        self,
        ids: list[str],
        matrix: Matrix,
        scale: NDArray[np.float64],
        orders: NDArray[np.int64],
    ) -> Rows:
        """Give the next state, in which some rows are appended. Amortised O(len(ids) d) time."""
        end = self.count + len(ids)
        full = end > len(self.matrix) or not self.matrix.flags.writeable
        room = self._with_room(end) if full else self
        added = slice(self.count, end)
        room.matrix[added], room.scale[added], room.orders[added] = matrix, scale, orders
        room.alive[added] = True
        room.ids.extend(ids)
        return replace(room, count=end)

    def _with_room(self, end: int) -> Rows:
        size = max(2 * self.count, end, _LEAST_ROOM)
        return replace(
            self,
            matrix=_grown(self.matrix, size),
            scale=_grown(self.scale, size),
            orders=_grown(self.orders, size),
            alive=_grown(self.alive, size),
            ids=list(self.ids),
        )

    def accepted(self, accepted: IdFilter | None) -> NDArray[np.intp]:
        """Give the live slots that a filter lets through, in the order of insertion.

        Args:
            accepted: Ids, a mask over the ids in order, a function of an id, or `None` for all.

        Returns:
            Slots.

        Raises:
            InvalidParameterError: For a filter of another kind, or a mask of another length.
        """
        in_order = self.in_order()
        if accepted is None:
            return in_order
        if isinstance(accepted, np.ndarray):
            if accepted.dtype != np.bool_ or accepted.shape != in_order.shape:
                shown = f"<{accepted.dtype} array of shape {accepted.shape}>"
                allowed = f"{_ALLOWED_FILTER} ({len(in_order)} ids)"
                raise InvalidParameterError("filter", shown, allowed)
            return in_order[accepted]
        if callable(accepted):
            accepts = accepted
        elif isinstance(accepted, str | bytes) or not isinstance(accepted, Iterable):
            raise InvalidParameterError("filter", accepted, _ALLOWED_FILTER)
        else:
            accepts = frozenset(accepted).__contains__
        kept = [slot for slot in in_order.tolist() if accepts(self.ids[slot])]
        return np.array(kept, dtype=np.intp)

    def cosines(self, slots: NDArray[np.intp], queries: Matrix) -> NDArray[np.float64]:
        """Give the cosines, to float32 precision, of unit queries to the rows of some slots.

        Args:
            slots: m slots.
            queries: b unit vectors.

        Returns:
            Shape (b, m).
        """
        few = len(slots) < self.count // _FEW
        used = self.matrix[slots] if few else self.matrix[: self.count]
        cosines: NDArray[np.float64] = (queries @ used.T).astype(np.float64)
        if not few and len(slots) < self.count:
            cosines = cosines[:, slots]
        cosines *= self.scale[slots]
        return cosines

    def hits(
        self, slots: NDArray[np.intp], query: Matrix, cosines: NDArray[np.float64], k: int
    ) -> list[Hit]:
        """Rank slots by what `cosines` gave for one query.

        What float32 cannot tell apart is scored again in float64, so that ties are real ties.
        """
        k = min(k, len(slots))
        if not k:
            return []
        worst = np.partition(cosines, -k)[-k]
        near = slots[cosines >= worst - 2 * product_error(len(query))]
        exact = exact_dots(self.matrix, near, query) * self.scale[near]
        best = np.argsort(-exact, kind="stable")[:k]
        ranked = zip(self.ids_of(near[best]), np.clip(exact[best], -1, 1).tolist(), strict=True)
        return [
            Hit(id_, score, rank, {_CHANNEL: ChannelScore(rank, score)})
            for rank, (id_, score) in enumerate(ranked, 1)
        ]


def _grown(column: NDArray[Any], size: int) -> NDArray[Any]:
    grown = np.empty((size, *column.shape[1:]), column.dtype)
    grown[: len(column)] = column
    return grown
