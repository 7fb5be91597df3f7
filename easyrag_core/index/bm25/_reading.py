"""Documents, read batch by batch."""

from __future__ import annotations

from itertools import islice, tee
from typing import TYPE_CHECKING, NamedTuple

from easyrag_core.index.analyzer._reading import reading_lists, workers_worth

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from easyrag_core.index.analyzer import Analyzer
    from easyrag_core.index.analyzer._numbering import Numbered
    from easyrag_core.index.bm25._documents import Documents

__all__ = ["ReadBatch", "read_batches"]


class ReadBatch(NamedTuple):
    """Some documents with their terms.

    Attributes:
        ids: (n,) their ids.
        columns: The terms of their texts, then those of each field, with what each counts.
    """

    ids: list[str]
    columns: list[tuple[Numbered, int]]


def read_batches(
    analyzer: Analyzer,
    documents: Documents,
    weights: Mapping[str, int],
    *,
    processes: int | None,
) -> Generator[ReadBatch]:
    """Read documents; close the generator to be sure that no process is left behind.

    Args:
        analyzer: Turns texts into terms.
        documents: The documents.
        weights: Field to weight.
        processes: Number of worker processes at most; `None` means none.

    Yields:
        Batch after batch, in order.

    Raises:
        InvalidParameterError: For an analyzer that gives no lists of strings.
    """
    counts = [1, *(weights[name] for name in documents.fields)]
    workers = 0 if processes is None else workers_worth(analyzer, processes, documents.characters)
    batches, again = tee(documents.batches(workers=workers))
    lists = (texts for batch in again for texts in (batch.texts, *batch.fields.values()))
    with reading_lists(analyzer, workers=workers, processes=processes) as read:
        found = read(lists)
        for batch in batches:
            columns = zip(islice(found, len(counts)), counts, strict=True)
            yield ReadBatch(list(batch.rows), list(columns))
