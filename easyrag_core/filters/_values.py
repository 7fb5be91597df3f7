"""How a metadata value and a condition's value compare."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from typing import Any, Final

__all__ = ["ISO_DATE", "compared", "is_scalar", "plain", "same"]

ISO_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}.*)?")


def plain(value: Any) -> Any:
    """Write dates as ISO strings; all else stays."""
    return value.isoformat() if isinstance(value, date) else value


def is_scalar(value: Any) -> bool:
    """Whether it is text, a boolean, a date or a number that is one."""
    if isinstance(value, float):
        return not math.isnan(value)
    return isinstance(value, str | bool | int | date)


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal: a boolean equals no number, 1 equals 1.0."""
    left, right = plain(left), plain(right)
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    known = (str, int, float)
    return isinstance(left, known) and isinstance(right, known) and bool(left == right)


def compared(left: Any, right: Any) -> int | None:
    """Return -1, 0 or 1 as `left` stands to `right`; `None` when they have no order.

    Numbers compare as numbers. Two ISO dates compare as moments (UTC where no zone is said), or
    as days when `right` is a day. Other texts compare by code points.
    """
    left, right = plain(left), plain(right)
    if isinstance(left, bool) or isinstance(right, bool):
        return None
    if isinstance(left, str) and isinstance(right, str):
        left, right = _moments(left, right)
    elif not (isinstance(left, int | float) and isinstance(right, int | float)):
        return None
    if left < right:
        return -1
    if left > right:
        return 1
    return 0 if left == right else None


def _moments(left: str, right: str) -> tuple[Any, Any]:
    moments = _moment(left), _moment(right)
    if None in moments:
        return left, right
    if len(right) == len("2024-01-31"):
        # The last day of a range belongs to it whole, on the calendar that the value uses.
        return left[:10], right
    return moments


def _moment(text: str) -> datetime | None:
    if not ISO_DATE.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
