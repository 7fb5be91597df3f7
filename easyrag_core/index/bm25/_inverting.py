"""From the terms of each document to the documents of each term."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from easyrag_core.index.bm25._segment import Segment, narrowed, run_starts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from easyrag_core.index.bm25._vocabulary import Vocabulary

__all__ = ["build_segment"]


def build_segment(
    ids: Sequence[str],
    orders: Sequence[int],
    analyzed: Sequence[Sequence[str]],
    vocabulary: Vocabulary,
) -> Segment:
    """Invert analysed documents.

    Args:
        ids: (n,) distinct ids.
        orders: (n,) places in the order of insertion.
        analyzed: (n,) terms of each document.
        vocabulary: Gives a number to a new term by itself.

    Returns:
        The segment. O(p log p) time for p terms in all.
    """
    lengths = np.fromiter(map(len, analyzed), np.int32, len(ids))
    total = int(lengths.sum(dtype=np.int64))
    numbers = map(vocabulary.__getitem__, chain.from_iterable(analyzed))
    keys = np.fromiter(numbers, np.int64, total) << 32
    keys |= np.repeat(np.arange(len(ids)), lengths)
    keys.sort()
    starts = run_starts(keys)
    keys, frequencies = keys[starts[:-1]], np.diff(starts)
    posting_terms = keys >> 32
    term_starts = run_starts(posting_terms)
    return Segment(
        ids=list(ids),
        orders=np.array(orders, np.int64),
        lengths=lengths,
        terms=posting_terms[term_starts[:-1]].astype(np.int32),
        offsets=term_starts,
        documents=(keys & 0xFFFFFFFF).astype(np.int32),
        frequencies=narrowed(frequencies),
    )
