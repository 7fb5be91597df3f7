"""What callers of a store hand in, checked the same way in all stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from easyrag_core.errors import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["checked_ids"]


def checked_ids(ids: Iterable[str]) -> list[str]:
    """Read ids once, from whatever gives them.

    Args:
        ids: The ids; an iterator is used up.

    Returns:
        The same as a list.

    Raises:
        InvalidParameterError: A single string, or something in it that is no string.

    >>> checked_ids(id_ for id_ in "ab")
    ['a', 'b']
    """
    if isinstance(ids, str) or not hasattr(ids, "__iter__"):
        raise InvalidParameterError("ids", ids, "give several ids")
    listed = list(ids)
    for id_ in listed:
        if not isinstance(id_, str):
            raise InvalidParameterError("ids", id_, "ids are strings")
    return listed
