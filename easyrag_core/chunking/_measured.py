"""Lengths that a caller's function gives, looked at before they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from easyrag_core.errors import InvalidParameterError

if TYPE_CHECKING:
    from easyrag_core.types import LengthFunction

__all__ = ["measured"]


def measured(length_function: LengthFunction, text: str, *, start: int, end: int) -> int:
    """Return the length of a text that is made from `source[start:end]`.

    Args:
        length_function: The caller's measure.
        text: What is measured.
        start: Where the piece of the source begins.
        end: One past its end.

    Returns:
        What the function gives.

    Raises:
        InvalidParameterError: The function raises, or gives something else than a whole number
            of at least 0.
    """
    try:
        length = length_function(text)
    except Exception as error:
        told = (
            f"it raised {error!r} for source[{start}:{end}]; give a function that measures any text"
        )
        raise InvalidParameterError("length_function", length_function, told) from error
    if type(length) is int and length >= 0:
        return length
    if isinstance(length, bool) or not hasattr(length, "__index__") or length < 0:
        told = f"it gave {length!r} for source[{start}:{end}]; give whole numbers of at least 0"
        raise InvalidParameterError("length_function", length_function, told)
    return length
