"""New documents become segments."""

from __future__ import annotations

from collections import deque
from contextlib import closing
from typing import TYPE_CHECKING

from easyrag_core._progress import with_progress
from easyrag_core.index.bm25._inverting import build_segment
from easyrag_core.index.bm25._reading import read_batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from easyrag_core.index.analyzer import Analyzer
    from easyrag_core.index.bm25._documents import Documents
    from easyrag_core.index.bm25._reading import ReadBatch
    from easyrag_core.index.bm25._segment import Segment
    from easyrag_core.index.bm25._snapshot import Snapshot

__all__ = ["with_documents"]


def with_documents(
    snapshot: Snapshot,
    documents: Documents,
    analyzer: Analyzer,
    weights: Mapping[str, int],
    *,
    processes: int | None,
    show_progress: bool,
) -> Snapshot:
    """Return a snapshot with documents added, and those replaced whose ids it has.

    Args:
        snapshot: The documents that are here; its vocabulary grows.
        documents: The new ones.
        analyzer: Turns texts into terms.
        weights: Field to weight.
        processes: Number of worker processes at most; `None` means none.
        show_progress: Show a tqdm bar that moves as the batches are done.

    Returns:
        The new snapshot.

    Raises:
        InvalidParameterError: For an analyzer that gives no lists of strings.
        MissingDependencyError: For a bar without tqdm.
    """
    segments: list[Segment] = []
    orders, next_order = snapshot.orders_of(documents.rows)

    def done(batches: Iterable[ReadBatch]) -> Iterator[str]:
        first = 0
        for batch in batches:
            last = first + len(batch.ids)
            segments.append(build_segment(batch, orders[first:last], snapshot.vocabulary))
            first = last
            yield from batch.ids

    with closing(read_batches(analyzer, documents, weights, processes=processes)) as batches:
        total = len(documents.rows)
        ids = with_progress(done(batches), what="Indexing", show=show_progress, total=total)
        deque(ids, maxlen=0)
    kept = snapshot.without(filter(None, map(snapshot.find, documents.rows)))
    return kept.with_segments(segments, next_order=next_order).settled()
