"""Small hits replaced by the larger passage that holds them."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from easyrag_core.errors import ChunkNotFoundError, check_count
from easyrag_core.ranking._hits import existing, pair_of

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from easyrag_core.ranking.merging import ParentOf
    from easyrag_core.types import Hit

__all__ = ["ExpandedItem", "expand_to_parents"]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ExpandedItem:
    """A parent that stands for the children that were hit, or a hit that has no parent.

    Attributes:
        id: Id of the parent, or of the hit that stayed.
        score: The best score among the hits that it stands for; `None` where none has one.
        rank: The best place among them in the list that was given, from 1.
        children: Ids of the children that were hit, best place first; empty for a hit that
            stayed.
    """

    id: str
    score: float | None
    rank: int
    children: tuple[str, ...] = ()


def expand_to_parents(
    hits: Sequence[tuple[str, float | None] | Hit],
    parent_of: ParentOf,
    *,
    k: int | None = None,
    exists: Container[str] | Callable[[list[str]], Container[str]] | None = None,
    strict: bool = False,
) -> list[ExpandedItem]:
    """Replace each child by its parent, each parent once, at its best child's place.

    Works on the ranking of any retriever; after fusion, never before, or the parent's several
    votes would be lost. Functions are called once, with all ids. A child whose parent cannot be
    read stays, with a warning.

    O(hits) time beside the look-ups.

    Args:
        hits: Pairs of id and score, or `Hit`s, best first.
        parent_of: Child id to parent id, or a function that gives this for some ids; ids that it
            does not know, or of which it gives `None`, have no parent and stay. A parent that is
            a hit itself takes its children in.
        k: The most items to return; `None` for all. Ask for more hits than this: several may
            share a parent.
        exists: The parents whose content can be read, or a function that gives those among some
            ids; `None` trusts `parent_of`.
        strict: Raise where a parent is missing, instead of keeping the child.

    Returns:
        Items in the order of their places.

    Raises:
        InvalidParameterError: `k` is no whole number of at least 0.
        ChunkNotFoundError: `strict`, and parents are missing.

    >>> family = {"a": "P", "b": "P", "c": "Q"}
    >>> hits = [("a", 0.9), ("c", 0.8), ("b", 0.95), ("lone", 0.1)]
    >>> [
    ...     (item.id, item.score, item.rank, item.children)
    ...     for item in expand_to_parents(hits, family)
    ... ]
    [('P', 0.95, 1, ('a', 'b')), ('Q', 0.8, 2, ('c',)), ('lone', 0.1, 4, ())]
    """
    if k is not None:
        check_count("k", k)
    pairs = [pair_of(hit) for hit in hits]
    linked = _parents(list(dict.fromkeys(id_ for id_, _ in pairs)), parent_of)
    parents = _readable(linked, exists, strict=strict)
    items: dict[str, _Item] = {}
    for rank, (id_, score) in enumerate(pairs, start=1):
        parent = parents.get(id_)
        items.setdefault(parent or id_, _Item(rank)).add(id_ if parent else None, score)
    return [
        ExpandedItem(id_, item.score, item.rank, tuple(item.children))
        for id_, item in list(items.items())[:k]
    ]


class _Item:
    """One item in the making."""

    __slots__ = ("children", "rank", "score")

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.score: float | None = None
        self.children: dict[str, None] = {}

    def add(self, child: str | None, score: float | None) -> None:
        if child is not None:
            self.children[child] = None
        if score is not None and not math.isnan(score):
            self.score = score if self.score is None else max(self.score, score)


def _parents(ids: list[str], parent_of: ParentOf) -> dict[str, str]:
    answer = (parent_of(ids) if ids else {}) if callable(parent_of) else parent_of
    found = ((id_, answer.get(id_)) for id_ in ids)
    return {id_: parent for id_, parent in found if parent is not None and parent != id_}


def _readable(
    parents: Mapping[str, str],
    exists: Container[str] | Callable[[list[str]], Container[str]] | None,
    *,
    strict: bool,
) -> Mapping[str, str]:
    """Leave out the parents that cannot be read."""
    wanted = list(dict.fromkeys(parents.values()))
    found = existing(exists, wanted)
    missing = [parent for parent in wanted if parent not in found]
    if missing and strict:
        raise ChunkNotFoundError(missing)
    for parent in missing:
        _logger.warning("Parent %r is missing in the store: its children stay", parent)
    return {id_: parent for id_, parent in parents.items() if parent in found}
