"""How parts are joined, so that they stay few and a write stays cheap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from easyrag_core.index.bm25._merging import in_order_of_insertion, merge_segments
from easyrag_core.index.bm25._part import Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from easyrag_core.index.bm25._segment import Segment

__all__ = ["gathered", "reordered", "settled"]

_MOST_DOCUMENTS: Final = 1 << 17  # their scores, 512 KB, stay in a core's own cache
_SMALL: Final = 2048  # to join parts of this size costs as much as to look at one more


def settled(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return few parts with little dead weight.

    A part is rewritten when half of it is dead. Neighbours are joined until each part is at
    least twice as large as all that follow, or has no room for more. Over many writes that is
    O(log n) per posting, and after them there are O(log n + n / 131,072) parts.

    Args:
        parts: The parts of an index.

    Returns:
        Parts with the same live documents in the same sequence.
    """
    light = [_lightened(part) for part in parts if part.live]
    groups: list[list[Part]] = []
    after = documents = 0
    for part in reversed(light):
        fits = documents + part.live <= _MOST_DOCUMENTS
        if groups and fits and part.size < 2 * max(after, _SMALL):
            groups[-1].append(part)
            documents += part.live
        else:
            groups.append([part])
            documents = part.live
        after += part.size
    return tuple(_joined(group[::-1]) for group in reversed(groups))


def gathered(segments: Iterable[Segment]) -> list[Part]:
    """Return segments that came in one write, joined to full parts."""
    groups: list[list[Part]] = []
    documents = 0
    for segment in segments:
        documents += len(segment)
        if groups and documents <= _MOST_DOCUMENTS:
            groups[-1].append(Part.of(segment))
        else:
            groups.append([Part.of(segment)])
            documents = len(segment)
    return list(map(_joined, groups))


def _lightened(part: Part) -> Part:
    return _rewritten([part]) if 2 * part.live < len(part.segment) else part


def _joined(parts: Sequence[Part]) -> Part:
    return parts[0] if len(parts) == 1 else _rewritten(parts)


def _rewritten(parts: Sequence[Part]) -> Part:
    return Part.of(merge_segments([(part.segment, part.alive) for part in parts]))


def reordered(parts: Sequence[Part]) -> list[Part]:
    """Return full parts of live documents alone, in the order of insertion.

    What is as it should be already is left as it is.

    Args:
        parts: The parts of an index.

    Returns:
        The new parts. O(p) time for p postings, as long as most documents stand in order.
    """
    bases = np.cumsum([0, *(len(part.segment) for part in parts)])
    orders = np.concatenate([part.segment.orders for part in parts])
    live = np.flatnonzero(np.concatenate([part.alive for part in parts]))
    positions = live[np.argsort(orders[live], kind="stable")]
    return [
        _taken(parts, bases, np.sort(positions[start : start + _MOST_DOCUMENTS]))
        for start in range(0, positions.size, _MOST_DOCUMENTS)
    ]


def _taken(parts: Sequence[Part], bases: np.ndarray, positions: np.ndarray) -> Part:
    """Return the documents at ascending positions as one part in the order of insertion."""
    chosen = []
    for part, base, end in zip(parts, bases[:-1], bases[1:], strict=True):
        first, last = positions.searchsorted([base, end])
        numbers = positions[first:last] - base
        if numbers.size == len(part.segment) == positions.size and part.segment.in_order:
            return Part.of(part.segment)
        if numbers.size:
            mask = np.zeros(len(part.segment), np.bool_)
            mask[numbers] = True
            chosen.append((part.segment, mask))
    return Part.of(in_order_of_insertion(merge_segments(chosen)))
