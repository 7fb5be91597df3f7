"""Hits of children to hits of their parents, as far as a filter allows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from easyrag_core.errors import InvalidParameterError
from easyrag_core.ranking.merging import auto_merge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from easyrag_core.index.bm25 import IdFilter
    from easyrag_core.index.store import ChunkStore
    from easyrag_core.types import Hit

__all__ = ["merged_hits", "reusable"]


def reusable(accepted: IdFilter | None) -> IdFilter | None:
    """Return a filter that several channels can read, one after the other.

    Args:
        accepted: Ids, or a function that accepts an id.

    Returns:
        The same, an iterator as a tuple.

    Raises:
        InvalidParameterError: For a mask: the channels differ in what their rows are.
    """
    if isinstance(accepted, np.ndarray):
        shown = f"<{accepted.dtype} array of shape {accepted.shape}>"
        raise InvalidParameterError("filter", shown, "give ids or a function that accepts an id")
    if callable(accepted) or isinstance(accepted, Collection) or not isinstance(accepted, Iterable):
        return accepted
    return tuple(accepted)


def merged_hits(
    hits: Sequence[Hit],
    store: ChunkStore,
    *,
    merge_threshold: float,
    accepted: IdFilter | None,
) -> list[Hit]:
    """Replace children by their parent where enough of them are hit.

    A parent shows the text of all its children. Under a filter it takes their place only if the
    filter accepts it, or each of its children.

    Args:
        hits: Best first.
        store: Knows parents and children.
        merge_threshold: In (0, 1].
        accepted: The filter of the search.

    Returns:
        Hits with new ranks.
    """
    by_id = {hit.id: hit for hit in hits}
    items = auto_merge(
        hits,
        store.parents_of if accepted is None else _accepted_parents(store, _accepts(accepted)),
        lambda parents: {parent: store.children_of(parent) for parent in parents},
        merge_threshold=merge_threshold,
        exists=lambda ids: {chunk.id for chunk in store.get_many(ids) if chunk is not None},
    )
    merged = []
    for rank, item in enumerate(items, start=1):
        best = by_id[item.sources[0]]
        reasons = best.reasons
        if item.ratio is not None:
            reasons = (*reasons, f"stands for {len(item.children)} children ({item.ratio:.0%})")
        merged.append(replace(best, id=item.id, rank=rank, reasons=reasons))
    return merged


def _accepts(accepted: IdFilter) -> Callable[[str], bool]:
    return accepted if callable(accepted) else frozenset(accepted).__contains__


def _accepted_parents(
    store: ChunkStore, accepts: Callable[[str], bool]
) -> Callable[[list[str]], Mapping[str, str | None]]:
    passed = set[str]()

    def passes(parent: str) -> bool:
        """Whether the parent, or all below it that stands in for what is refused, is accepted."""
        seen, left = set[str](), [parent]
        while left:
            id_ = left.pop()
            if id_ in passed or accepts(id_):
                continue
            children = () if id_ in seen else store.children_of(id_)
            if not children:
                return False
            seen.add(id_)
            left += children
        # Parents come from the lowest up: what is above need not look below again.
        passed.add(parent)
        return True

    def parents_of(ids: list[str]) -> dict[str, str | None]:
        parents = store.parents_of(ids)
        wanted = {parent for parent in parents.values() if parent is not None}
        shown = {parent for parent in wanted if passes(parent)}
        return {id_: parent for id_, parent in parents.items() if parent in shown}

    return parents_of
