"""Sums of scores that stay within what a float can hold."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["finite", "total"]

# So many of the largest floats can be added after division by it.
_ROOM: Final = 2.0**64


def total(values: Sequence[float]) -> float:
    """Add without rounding in between, in any order.

    Args:
        values: The numbers.

    Returns:
        Their sum, at most the largest float.

    >>> total([1e308, 1e308, -1e308]) == 1e308
    True
    """
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # also where a part of the sum alone is too large
        return finite(math.fsum(finite(value) / _ROOM for value in values) * _ROOM)


def finite(value: float) -> float:
    """Put the largest float in the place of an infinite one."""
    return min(max(value, -sys.float_info.max), sys.float_info.max)
