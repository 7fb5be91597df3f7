"""Small hits into the larger passage that holds them."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Container, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from easyrag_core.errors import InvalidParameterError, check_choice, check_number
from easyrag_core.plans import driven
from easyrag_core.ranking._hits import existing, pair_of
from easyrag_core.ranking._sums import total

if TYPE_CHECKING:
    from easyrag_core.types import Hit

__all__ = [
    "ChildrenOf",
    "MergePlan",
    "MergedItem",
    "ParentOf",
    "auto_merge",
    "merge_by_reading",
]

_logger = logging.getLogger(__name__)

T = TypeVar("T")
V = TypeVar("V")

ParentOf: TypeAlias = Mapping[str, str | None] | Callable[[list[str]], Mapping[str, str | None]]
"""Child id to parent id (`None`: it has none), or a function that gives this for some ids."""

ChildrenOf: TypeAlias = (
    Mapping[str, Sequence[str]] | Callable[[list[str]], Mapping[str, Sequence[str]]]
)
"""Parent id to the ids of all its children, or a function that gives this for some ids."""

MergePlan: TypeAlias = Generator[
    list[str], Mapping[str, T], tuple[list["MergedItem"], dict[str, T]]
]
"""Yields ids to read, is sent what was found by id; ends with the items and all that was read."""

_SCORES = ("best", "mean", "sum")


@dataclass(frozen=True, slots=True)
class MergedItem:
    """A hit, or a parent that stands for several.

    Attributes:
        id: Id of the hit or of the parent.
        score: The hit's own score, or the one made of the replaced children's.
        children: Ids of the direct children that a parent replaced, best place first; empty for
            a hit that stayed.
        sources: Ids of the hits as they came in that this item stands for, itself included
            where it was one.
        ratio: Replaced children divided by all children of the parent; `None` for a hit that
            stayed.
    """

    id: str
    score: float | None
    children: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    ratio: float | None = None


def auto_merge(
    hits: Sequence[tuple[str, float | None] | Hit],
    parent_of: ParentOf,
    children_of: ChildrenOf,
    *,
    merge_threshold: float = 0.5,
    score: str = "best",
    exists: Container[str] | Callable[[list[str]], Container[str]] | None = None,
) -> list[MergedItem]:
    """Replace hit children by their parent where enough of them are hit, upward until stable.

    A parent replaces its children when the distinct children that are hit, divided by all its
    children, reach the threshold. It stands at its best child's place; a parent that was hit
    itself takes its children in at the better place. Functions are called once per level with
    all ids. Where a parent is missing its children stay, with a warning.

    O(levels * hits) time beside the look-ups.

    Args:
        hits: Pairs of id and score, or `Hit`s, best first; of an id that comes twice the first
            place and the better score count.
        parent_of: Child id to parent id; ids that it does not know have no parent.
        children_of: Parent id to all its children; a parent that it does not know, or without
            children, is missing.
        merge_threshold: In (0, 1]; 1 merges only when all children are hit.
        score: `"best"`, `"mean"` or `"sum"` of the replaced children's scores (and the parent's
            own, where it was hit); scores of `None` are left out.
        exists: The ids whose content can be read, or a function that gives those among some
            parents; `None` trusts `children_of`.

    Returns:
        Items in the order of their places.

    Raises:
        InvalidParameterError: The threshold or the word for the score is not as above.

    >>> family = {"a": "P", "b": "P", "c": "P", "d": "Q"}
    >>> items = auto_merge(
    ...     [("a", 0.9), ("d", 0.8), ("b", 0.7)],
    ...     family,
    ...     {"P": ["a", "b", "c"], "Q": ["d", "e", "f"]},
    ... )
    >>> [(item.id, item.score, item.children) for item in items]
    [('P', 0.9, ('a', 'b')), ('d', 0.8, ())]
    """
    answers: dict[str, Callable[[list[str]], Any]] = {
        "parents": _asking(parent_of),
        "children": _asking(children_of),
        "readable": partial(existing, exists),
    }
    questions = _questions(hits, merge_threshold=merge_threshold, score=score)
    return driven(questions, lambda question: answers[question.about](question.ids))


def merge_by_reading(
    hits: Sequence[tuple[str, float | None] | Hit],
    parents: Mapping[str, str | None],
    *,
    family_of: Callable[[T], tuple[str | None, Sequence[str]]],
    merge_threshold: float = 0.5,
    score: str = "best",
) -> MergePlan[T]:
    """Merge as `auto_merge` does, where a parent's content tells its family: one read per level.

    A plan without a store: it yields the ids of the parents of one level, and is sent those that
    can be read. Who drives it may wait for a store or not.

    Args:
        hits: As for `auto_merge`.
        parents: Child id to parent id, for the hits.
        family_of: The id of a parent's own parent, and the ids of all its children.
        merge_threshold: As for `auto_merge`.
        score: As for `auto_merge`.

    Yields:
        Ids to read, each once; send what was found, by id.

    Returns:
        The items, and everything that was read.

    Raises:
        InvalidParameterError: As for `auto_merge`.

    >>> plan = merge_by_reading(
    ...     [("a", 0.9), ("b", 0.7)], {"a": "P", "b": "P"}, family_of=lambda kids: (None, kids)
    ... )
    >>> items, read = driven(plan, lambda ids: {"P": ["a", "b", "c"]})
    >>> [item.id for item in items], list(read)
    (['P'], ['P'])
    """
    known, children, read = dict(parents), dict[str, Sequence[str]](), dict[str, T]()
    questions = _questions(hits, merge_threshold=merge_threshold, score=score)
    told: Any = None
    while True:
        try:
            about, ids = questions.send(told)
        except StopIteration as done:
            return done.value, read
        if about == "children":
            found = yield ids
            read.update(found)
            for id_, item in found.items():
                known[id_], children[id_] = family_of(item)
        told = {"parents": known, "children": children, "readable": read}[about]


class _Question(NamedTuple):
    """What has to be known to go on: `"parents"` or `"children"` of ids, or those `"readable"`."""

    about: str
    ids: list[str]


def _questions(
    hits: Sequence[tuple[str, float | None] | Hit], *, merge_threshold: float, score: str
) -> Generator[_Question, Any, list[MergedItem]]:
    """Merge, asking whoever drives this."""
    check_choice("score", score, _SCORES)
    allowed = "give a number in (0, 1]"
    if not 0 < check_number("merge_threshold", merge_threshold, allowed=allowed) <= 1:
        raise InvalidParameterError("merge_threshold", merge_threshold, allowed)
    merge = _Merge(hits, merge_threshold, score)
    while True:
        if new := merge.orphans():
            merge.learn_parents(new, (yield _Question("parents", new)))
        families = merge.families()
        if not families:
            break
        if new := merge.unsized(families):
            merge.learn_children(new, (yield _Question("children", new)))
        sizes = merge.sizes(families)
        reached = merge.reached(families, sizes)
        if not reached:
            break
        found = yield _Question("readable", list(reached))
        for parent in reached:
            if parent in found:
                merge.replace(parent, families[parent], sizes[parent])
            else:
                merge.leave(parent, "is missing in the store")
    return merge.items()


class _Merge:
    """One run: the items by id, each with its place and the scores that made it."""

    def __init__(
        self, hits: Sequence[tuple[str, float | None] | Hit], threshold: float, score: str
    ) -> None:
        self._threshold = threshold
        self._score = score
        self._items: dict[str, MergedItem] = {}
        self._places: dict[str, int] = {}
        self._scores: dict[str, list[float]] = {}
        self._parents: dict[str, str | None] = {}
        self._children: dict[str, frozenset[str]] = {}
        # What was replaced once does not come back: links in a circle end here.
        self._closed: set[str] = set()
        for place, hit in enumerate(hits):
            self._add_hit(*pair_of(hit), place)

    def _add_hit(self, id_: str, value: float | None, place: int) -> None:
        scores = self._scores.setdefault(id_, [])
        if value is not None and not math.isnan(value):
            scores[:] = [max(value, *scores)] if scores else [value]
        self._places.setdefault(id_, place)
        self._items[id_] = MergedItem(id_, scores[0] if scores else None, sources=(id_,))

    def orphans(self) -> list[str]:
        """Give the items whose parents were not asked for yet."""
        return [id_ for id_ in self._items if id_ not in self._parents]

    def learn_parents(self, ids: Sequence[str], parents: Mapping[str, str | None]) -> None:
        """Keep the parents of items; an id that is not in the answer has none."""
        self._parents.update((id_, parents.get(id_)) for id_ in ids)

    def families(self) -> dict[str, list[str]]:
        """Give the parents that may be merged into, each with its hit children by place."""
        families: dict[str, list[str]] = {}
        for id_ in sorted(self._items, key=self._places.__getitem__):
            parent = self._parents[id_]
            if parent is not None and parent != id_ and parent not in self._closed:
                families.setdefault(parent, []).append(id_)
        return families

    def unsized(self, families: Mapping[str, Sequence[str]]) -> list[str]:
        """Give the parents whose children were not asked for yet."""
        return [parent for parent in families if parent not in self._children]

    def learn_children(self, parents: Sequence[str], children: Mapping[str, Sequence[str]]) -> None:
        """Keep the children of parents; one that is not in the answer has none."""
        self._children.update((parent, frozenset(children.get(parent, ()))) for parent in parents)

    def sizes(self, families: Mapping[str, Sequence[str]]) -> dict[str, int]:
        """Give the number of distinct children of each parent that has any in the store."""
        sizes = {}
        for parent, hit in families.items():
            if self._children[parent]:
                sizes[parent] = len(self._children[parent].union(hit, self._merged(parent)))
            else:
                self.leave(parent, "has no children in the store")
        return sizes

    def reached(self, families: Mapping[str, Sequence[str]], sizes: Mapping[str, int]) -> list[str]:
        """Give the parents to merge into now; one whose own children merge waits for them."""
        enough = {
            parent: families[parent]
            for parent, size in sizes.items()
            if len({*families[parent], *self._merged(parent)}) >= self._threshold * size
        }
        return [parent for parent, hit in enough.items() if enough.keys().isdisjoint(hit)]

    def _merged(self, parent: str) -> tuple[str, ...]:
        return self._items[parent].children if parent in self._items else ()

    def leave(self, parent: str, reason: str) -> None:
        """Give a parent up; its children stay."""
        _logger.warning("Parent %r %s: its children stay", parent, reason)
        self._closed.add(parent)

    def replace(self, parent: str, hit: Sequence[str], children: int) -> None:
        """Put a parent in the place of its children."""
        own = self._items.get(parent, MergedItem(parent, None))
        gone = [self._items.pop(id_) for id_ in hit]
        self._closed.update(hit)
        places = [self._places[id_] for id_ in (*hit, parent) if id_ in self._places]
        scores = self._scores.setdefault(parent, [])
        scores += [item.score for item in gone if item.score is not None]
        merged = (*own.children, *hit)
        sources = (*own.sources, *(source for item in gone for source in item.sources))
        self._places[parent] = min(places)
        self._items[parent] = replace(
            own,
            score=_combined(scores, self._score),
            children=merged,
            sources=sources,
            ratio=len(merged) / children,
        )

    def items(self) -> list[MergedItem]:
        """Give the items in the order of their places."""
        return [self._items[id_] for id_ in sorted(self._items, key=self._places.__getitem__)]


def _combined(scores: Sequence[float], score: str) -> float | None:
    if not scores:
        return None
    if score == "best":
        return max(scores)
    summed = total(scores)
    return summed / len(scores) if score == "mean" else summed


def _asking(
    source: Mapping[str, V] | Callable[[list[str]], Mapping[str, V]],
) -> Callable[[list[str]], Mapping[str, V]]:
    return source if callable(source) else lambda _: source
