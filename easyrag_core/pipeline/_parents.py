"""Hits of small chunks replaced by the larger ones that hold them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from easyrag_core.errors import check_count
from easyrag_core.plans import driven
from easyrag_core.ranking.expansion import expand_to_parents
from easyrag_core.ranking.merging import auto_merge, merge_by_reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from easyrag_core.pipeline._stage import PipelineContext
    from easyrag_core.types import Chunk, Hit

__all__ = ["AutoMerge", "FamilyStore", "ParentExpansion"]


class FamilyStore(Protocol):
    """What of a `ChunkStore` is asked here."""

    def get_many(self, ids: Sequence[str]) -> list[Chunk | None]:
        """Look chunks up; `None` where there is none."""
        ...

    def children_of(self, parent_id: str) -> list[str]:
        """Give the ids of the chunks whose parent this is."""
        ...

    def parents_of(self, ids: Sequence[str]) -> dict[str, str | None]:
        """Give child id to parent id."""
        ...


class AutoMerge:
    """Replaces hits by their parent where enough of its children are hit, upward until stable.

    The store is read once per level, and once for the parents of the hits; a parent that does
    not list its children in `metadata["child_ids"]` is asked for them one by one.

    >>> from easyrag_core import InMemoryChunkStore
    >>> AutoMerge(InMemoryChunkStore(), merge_threshold=0.6).merge_threshold
    0.6
    """

    def __init__(
        self,
        store: FamilyStore,
        *,
        merge_threshold: float = 0.5,
        score: str = "best",
        name: str = "auto merge",
    ) -> None:
        """Check the settings.

        Args:
            store: A `ChunkStore` that holds the parents.
            merge_threshold: Share of a parent's children that must be hit, in (0, 1].
            score: `"best"`, `"mean"` or `"sum"` of the replaced children's scores.
            name: The stage's name.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        auto_merge([], {}, {}, merge_threshold=merge_threshold, score=score)
        self.store = store
        self.merge_threshold = merge_threshold
        self.score = score
        self.name = name

    def process(self, hits: Sequence[Hit], context: PipelineContext[Hit]) -> list[Hit]:
        """Merge hits into their parents."""
        by_id = {hit.id: hit for hit in reversed(hits)}
        plan = merge_by_reading(
            [(hit.id, context.items.score_of(hit)) for hit in hits],
            self.store.parents_of(list(by_id)) if hits else {},
            family_of=self._family,
            merge_threshold=self.merge_threshold,
            score=self.score,
        )
        items, _ = driven(plan, self._read)
        merged = []
        for rank, item in enumerate(items, start=1):
            best = by_id[item.sources[0]]
            score = best.score if item.score is None else item.score
            merged.append(replace(best, id=item.id, rank=rank, score=score))
            if item.ratio is not None:
                context.notes[item.id] = (
                    f"stands for {len(item.children)} children ({item.ratio:.0%})"
                )
                told = {id_: f"merged into {item.id}" for id_ in item.sources if id_ != item.id}
                context.notes.update(told)
        return merged

    def _read(self, ids: list[str]) -> dict[str, Chunk]:
        chunks = zip(ids, self.store.get_many(ids), strict=True)
        return {id_: chunk for id_, chunk in chunks if chunk is not None}

    def _family(self, chunk: Chunk) -> tuple[str | None, Sequence[str]]:
        listed = chunk.metadata.get("child_ids")
        children = listed if isinstance(listed, list) else self.store.children_of(chunk.id)
        return chunk.parent_id, children


class ParentExpansion:
    """Replaces each hit by its parent, each parent once, at its best child's place.

    >>> from easyrag_core import InMemoryChunkStore
    >>> ParentExpansion(InMemoryChunkStore(), limit=5).limit
    5
    """

    def __init__(
        self, store: FamilyStore, *, limit: int | None = None, name: str = "parent expansion"
    ) -> None:
        """Check the settings.

        Args:
            store: A `ChunkStore` that holds the parents.
            limit: How many hits come out at most; `None` for all.
            name: The stage's name.

        Raises:
            InvalidParameterError: The limit is no number of at least 1.
        """
        self.store = store
        self.limit: int | None = limit if limit is None else check_count("limit", limit, minimum=1)
        self.name = name

    def process(self, hits: Sequence[Hit], context: PipelineContext[Hit]) -> list[Hit]:
        """Put parents in the place of their children."""
        by_id = {hit.id: hit for hit in reversed(hits)}
        items = expand_to_parents(
            [(hit.id, context.items.score_of(hit)) for hit in hits],
            self.store.parents_of(list(by_id)) if hits else {},
            k=self.limit,
            exists=self._readable,
        )
        expanded = []
        for rank, item in enumerate(items, start=1):
            best = hits[item.rank - 1]
            score = best.score if item.score is None else item.score
            expanded.append(replace(best, id=item.id, rank=rank, score=score))
            if item.children:
                context.notes[item.id] = f"stands for {len(item.children)} children"
        return expanded

    def _readable(self, ids: list[str]) -> set[str]:
        return {chunk.id for chunk in self.store.get_many(ids) if chunk is not None}
