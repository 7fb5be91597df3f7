"""Vectors without a model: hashed tf-idf, for diversity among keyword results."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from easyrag_core.errors import check_count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

__all__ = ["lexical_vectors"]


def lexical_vectors(
    texts: Sequence[str],
    analyzer: Callable[[str], Sequence[str]],
    *,
    dimensions: int = 4096,
) -> NDArray[np.float32]:
    """Turn texts into unit rows whose cosine says how many rare terms they share.

    A term's weight is `(1 + ln tf) * (1 + ln((1 + n) / (1 + df)))` over the n texts given. Terms
    share columns by CRC-32, so rows are the same in every process and never point against each
    other. O(total terms + n * dimensions) time.

    Weinberger et al., "Feature hashing for large scale multitask learning", ICML 2009.

    Args:
        texts: n texts.
        analyzer: Text to terms.
        dimensions: Columns, at least 1; fewer means that more terms share one.

    Returns:
        Shape (n, dimensions), float32, rows of length 1; a text without terms gives zeros.

    Raises:
        InvalidParameterError: `dimensions` is not a number of at least 1.

    >>> rows = lexical_vectors(["red apple", "red apple", "blue sky"], str.split)
    >>> (rows @ rows[0]).round(3).tolist()
    [1.0, 1.0, 0.0]
    """
    check_count("dimensions", dimensions, minimum=1)
    counts = [Counter(analyzer(text)) for text in texts]
    found_in = Counter(term for count in counts for term in count)
    total = 1 + len(counts)
    columns = {term: _column(term, dimensions) for term in found_in}
    rarity = {term: 1 + math.log(total / (1 + df)) for term, df in found_in.items()}
    rows = np.zeros((len(counts), dimensions))
    for row, count in zip(rows, counts, strict=True):
        weights = [(1 + math.log(tf)) * rarity[term] for term, tf in count.items()]
        np.add.at(row, [columns[term] for term in count], weights)
    lengths = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    np.divide(rows, lengths, out=rows, where=lengths > 0)
    return rows.astype(np.float32)


def _column(term: str, dimensions: int) -> int:
    return zlib.crc32(term.encode("utf-8", "surrogatepass")) % dimensions
