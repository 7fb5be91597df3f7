"""Checks of single values, each with an error that names the parameter."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import TYPE_CHECKING, NoReturn

from easyrag_core.errors._tree import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

__all__ = [
    "check_choice",
    "check_count",
    "check_names",
    "check_number",
    "check_text",
    "check_texts",
    "check_timeout",
]


def check_count(name: str, value: object, *, minimum: int = 0) -> int:
    """Return `value` if it is an int (not a bool) of at least `minimum`.

    Args:
        name: The parameter's name, for the message.
        value: What the caller gave.
        minimum: The smallest value allowed.

    Returns:
        The same value, now known to be an int.

    Raises:
        InvalidParameterError: For a bool, a float, a string, or a number too small.

    >>> check_count("k", 3)
    3
    """
    # numpy integers are welcome wherever an int is; bools are ints only by accident.
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        _refuse_count(name, value, minimum)
    try:
        number = value.__index__()
    except TypeError:  # an array has the method, and no number
        _refuse_count(name, value, minimum)
    if number < minimum:
        _refuse_count(name, value, minimum)
    return int(number)


def _refuse_count(name: str, value: object, minimum: int) -> NoReturn:
    raise InvalidParameterError(name, value, f"give a whole number of at least {minimum}")


def check_choice(name: str, value: object, choices: Sequence[str]) -> str:
    """Return `value` if it is one of `choices`.

    Args:
        name: The parameter's name, for the message.
        value: What the caller gave.
        choices: The words that are allowed.

    Returns:
        The same value, now known to be one of the words.

    Raises:
        InvalidParameterError: For anything else.

    >>> check_choice("fusion", "rrf", ("rrf", "score"))
    'rrf'
    """
    if not isinstance(value, str) or value not in choices:
        raise InvalidParameterError(name, value, "choose one of " + ", ".join(map(repr, choices)))
    return value


def check_number(name: str, value: object, *, allowed: str = "give a number") -> float:
    """Return `value` as a float if it is a number, not a bool, not NaN.

    Args:
        name: The parameter's name, for the message.
        value: What the caller gave.
        allowed: What is allowed, for the message.

    Returns:
        The number; it may be infinite.

    Raises:
        InvalidParameterError: For a bool, a string, NaN, or an int beyond every float.

    >>> check_number("lambda_mult", 1)
    1.0
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidParameterError(name, value, allowed)
    try:
        number = float(value)
    except OverflowError as error:
        raise InvalidParameterError(name, value, allowed) from error
    if math.isnan(number):
        raise InvalidParameterError(name, value, allowed)
    return number


def check_text(name: str, value: object) -> str:
    """Return `value` if it is a string.

    Args:
        name: The parameter's name, for the message.
        value: What the caller gave.

    Returns:
        The same text.

    Raises:
        InvalidParameterError: For anything else.

    >>> check_text("query", "order 66")
    'order 66'
    """
    if not isinstance(value, str):
        raise InvalidParameterError(name, value, "give a text")
    return value


def check_texts(name: str, values: object) -> list[str]:
    """Return texts as a list of its own.

    Args:
        name: The parameter's name, for the message.
        values: What the caller gave.

    Returns:
        The same texts.

    Raises:
        InvalidParameterError: For one string, which would be read as its letters, for nothing to
            iterate over, or for what is no string.

    >>> check_texts("texts", ("a", "b"))
    ['a', 'b']
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidParameterError(name, values, "give a list of texts")
    listed = list(values)
    for number, value in enumerate(listed):
        if not isinstance(value, str):
            check_text(f"{name}[{number}]", value)
    return listed


def check_names(
    given: Mapping[str, object], known: Collection[str], *, shown: Iterable[str] | None = None
) -> None:
    """Refuse settings that there are not, where a framework would leave them out without a word.

    Args:
        given: The arguments by name.
        known: The names that there are.
        shown: Those that the message lists; all of `known`, if not given.

    Raises:
        InvalidParameterError: For the first name that is unknown.

    >>> check_names({"k": 3}, {"k", "weights"})
    """
    for name, value in given.items():
        if name not in known:
            listed = ", ".join(sorted(known if shown is None else shown))
            allowed = f"there is no such setting, only {listed}"
            raise InvalidParameterError(name, value, allowed)


def check_timeout(timeout: float | None, *, name: str = "timeout") -> float | None:
    """Return a timeout as a float if it is a positive number of seconds.

    Args:
        timeout: Seconds, or `None` for no limit.
        name: The parameter's name, for the message.

    Returns:
        The seconds; they may be infinite.

    Raises:
        InvalidParameterError: For zero, a negative number, NaN, another type, or an int beyond
            every float.

    >>> check_timeout(1.5), check_timeout(None)
    (1.5, None)
    """
    if timeout is None:
        return None
    allowed = "give seconds above 0, or None for no limit"
    seconds = check_number(name, timeout, allowed=allowed)
    if seconds <= 0:
        raise InvalidParameterError(name, timeout, allowed)
    return seconds
