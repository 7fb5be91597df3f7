"""How a pipeline reads and writes what it carries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from easyrag_core.errors import InvalidParameterError
from easyrag_core.ranking.hit_fusion import fused_hits, known_score
from easyrag_core.types import Hit

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from easyrag_core.types import ChannelScore

__all__ = ["HitItems", "Items"]

T = TypeVar("T")


class Items(Protocol[T]):
    """How a pipeline reads and writes what it carries: hits, or what a framework calls them.

    Nothing that is handed in is changed: what is written is written to copies.
    """

    def checked(self, answer: Any) -> list[T]:
        """Return what a channel or a postprocessor gave, as a list.

        Raises:
            InvalidParameterError: It is something else.
        """
        ...

    def id_of(self, item: T) -> str:
        """Return what tells an item from all others."""
        ...

    def score_of(self, item: T) -> float | None:
        """Return an item's score, higher is better; `None` where it has none."""
        ...

    def content_of(self, item: T) -> Hashable:
        """Return what is equal for items that say the same."""
        ...

    def fused(
        self,
        rankings: Mapping[str, Sequence[T]],
        *,
        fusion: str,
        weights: Sequence[float],
        rank_constant: float,
        k: int,
    ) -> list[T]:
        """Fuse rankings, best first, given by the names of their channels."""
        ...

    def scored(self, item: T, score: float | None) -> T:
        """Return a copy with another score."""
        ...

    def joined(self, kept: T, others: Sequence[T]) -> T:
        """Return a copy that also tells which channels found the others."""
        ...

    def finished(self, items: Sequence[T], reasons: Mapping[str, Sequence[str]]) -> list[T]:
        """Return copies with their final ranks and, by id, what happened to them on the way."""
        ...


class HitItems:
    """Hits of the core: content is looked up by id, so what is equal is the id."""

    def checked(self, answer: Any) -> list[Hit]:
        """Return hits as a list; refuse anything else."""
        listing = isinstance(answer, Iterable) and not isinstance(answer, str | bytes | Mapping)
        hits = list(answer) if listing else [answer]
        if not listing or not all(isinstance(hit, Hit) for hit in hits):
            raise InvalidParameterError("answer", answer, "a list of Hits is expected")
        return hits

    def id_of(self, item: Hit) -> str:
        """Return the id."""
        return item.id

    def score_of(self, item: Hit) -> float | None:
        """Return the score; NaN is none."""
        return known_score(item.score)

    def content_of(self, item: Hit) -> str:
        """Return the id."""
        return item.id

    def fused(
        self,
        rankings: Mapping[str, Sequence[Hit]],
        *,
        fusion: str,
        weights: Sequence[float],
        rank_constant: float,
        k: int,
    ) -> list[Hit]:
        """Fuse rankings; see `fused_hits`."""
        return fused_hits(
            rankings, fusion=fusion, weights=weights, rank_constant=rank_constant, k=k
        )

    def scored(self, item: Hit, score: float | None) -> Hit:
        """Return a copy with another score; none is NaN."""
        return replace(item, score=float("nan") if score is None else score)

    def joined(self, kept: Hit, others: Sequence[Hit]) -> Hit:
        """Return a copy with the channels of all, each at its best rank."""
        channels: dict[str, ChannelScore] = dict(kept.channels)
        for other in others:
            for name, place in other.channels.items():
                known = channels.get(name)
                if known is None or place.rank < known.rank:
                    channels[name] = place
        return replace(kept, channels=channels)

    def finished(self, items: Sequence[Hit], reasons: Mapping[str, Sequence[str]]) -> list[Hit]:
        """Return copies with their final ranks and all reasons."""
        return [
            replace(hit, rank=rank, reasons=(*hit.reasons, *reasons.get(hit.id, ())))
            for rank, hit in enumerate(items, start=1)
        ]
