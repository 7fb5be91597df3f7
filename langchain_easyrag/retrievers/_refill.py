"""Hits whose documents may be deleted before they are read."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from easyrag_core import fuse_hits
from langchain_easyrag._convert import documents_of_hits, stored_documents

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_core.documents import Document

    from easyrag_core import Hit, HybridConfig, HybridIndex

__all__ = ["document_hits", "fused_documents", "refilled"]


def document_hits(index: HybridIndex, query: str, k: int) -> list[Document]:
    """Search the words of an index, and read the documents; see `refilled`."""
    search = partial(index.bm25.search, query)
    return refilled(search(k), search, partial(_read, index), k)


def fused_documents(
    hits: Sequence[Hit],
    sides: Mapping[str, Callable[[int], Sequence[Hit]]],
    *,
    index: HybridIndex,
    config: HybridConfig,
    k: int,
) -> list[Document]:
    """Read the documents of what the sides of an index found together.

    Args:
        hits: What they found, fused.
        sides: The sides that answered, `"bm25"` and `"vector"`: how to look deeper, without
            embedding the query again.
        index: Where the documents are.
        config: How the sides are fused, and how deep each is searched at least.
        k: How many documents are wanted.

    Returns:
        Documents with their facts, best first; see `refilled`.
    """
    least = {"bm25": config.bm25_k, "vector": config.vector_k}

    def deeper(reach: int) -> Sequence[Hit]:
        found = {name: search(max(least[name], reach)) for name, search in sides.items()}
        return fuse_hits(found, config=config, k=reach)

    return refilled(hits, deeper, partial(_read, index), k)


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
