"""Hits whose documents may be deleted before they are read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from easyrag_core import fuse_hits
from langchain_easyrag._convert import documents_of_hits, stored_documents

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_core.documents import Document

    from easyrag_core import Hit, HybridConfig, HybridIndex

__all__ = ["NO_HITS", "OwnHits", "fused_documents", "refilled"]


@dataclass(frozen=True, slots=True)
class OwnHits:
    """What one side of our own index found, and how to look deeper.

    Attributes:
        hits: Best first.
        search: Gives the best so many hits, without embedding the query again.
    """

    hits: Sequence[Hit]
    search: Callable[[int], Sequence[Hit]]

    @classmethod
    def of(cls, search: Callable[[int], Sequence[Hit]], k: int) -> OwnHits:
        """Search for the best `k`."""
        return cls(search(k), search)

    def documents(self, index: HybridIndex, k: int) -> list[Document]:
        """Return the documents of the best `k` hits; see `refilled`."""
        return refilled(self.hits, self.search, partial(_read, index), k)


NO_HITS = OwnHits((), lambda _: ())
"""Stands for a side that failed."""


def fused_documents(
    sides: Mapping[str, OwnHits], *, index: HybridIndex, config: HybridConfig, k: int
) -> list[Document]:
    """Fuse what the sides of an index found, and read the best documents.

    Args:
        sides: The sides by name, `"bm25"` and `"vector"`.
        index: Where the documents are.
        config: How the sides are fused, and how deep each is searched at least.
        k: How many documents are wanted.

    Returns:
        Documents with their facts, best first; see `refilled`.
    """
    least = {"bm25": config.bm25_k, "vector": config.vector_k}

    def deeper(reach: int) -> Sequence[Hit]:
        found = {name: side.search(max(least[name], reach)) for name, side in sides.items()}
        return fuse_hits(found, config=config, k=reach)

    first = fuse_hits({name: side.hits for name, side in sides.items()}, config=config, k=k)
    return refilled(first, deeper, partial(_read, index), k)


def refilled(
    hits: Sequence[Hit],
    search: Callable[[int], Sequence[Hit]],
    read: Callable[[Sequence[Hit]], list[Document]],
    k: int,
) -> list[Document]:
    """Return the documents of the best hits that still have one.

    A document that was deleted between the search and the reading leaves a gap; the next best
    fill it.

    Args:
        hits: The best `k`.
        search: Gives the best so many hits.
        read: Gives the documents of hits, those that are there.
        k: How many documents are wanted.

    Returns:
        At most `k` documents; fewer only where no more match.
    """
    reach = k
    while True:
        found = read(hits)
        if len(found) >= k or len(hits) < reach:
            return found[:k]
        reach *= 2
        hits = search(reach)


def _read(index: HybridIndex, hits: Sequence[Hit]) -> list[Document]:
    return documents_of_hits(hits, stored_documents(index, [hit.id for hit in hits]))
