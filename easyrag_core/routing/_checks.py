"""Refuses what a router could only trip over later."""

from __future__ import annotations

from collections.abc import Iterable

from easyrag_core.errors import InvalidParameterError
from easyrag_core.routing.failures import FAILURE_KINDS

__all__ = ["check_callable", "check_hook", "checked_kinds", "checked_words"]


def checked_words(name: str, words: object) -> frozenset[str]:
    """Take words, each looked at once; one string would be read as its letters."""
    allowed = "give a collection of strings"
    if isinstance(words, str) or not isinstance(words, Iterable):
        raise InvalidParameterError(name, words, allowed)
    listed = list(words)
    if not all(isinstance(word, str) for word in listed):
        raise InvalidParameterError(name, listed, allowed)
    return frozenset(listed)


def check_callable(name: str, value: object) -> None:
    """Refuse what cannot be called."""
    if not callable(value):
        raise InvalidParameterError(name, value, "give a function")


def check_hook(name: str, value: object) -> None:
    """Refuse what is neither a function nor `None`."""
    if value is not None and not callable(value):
        raise InvalidParameterError(name, value, "give a function, or None")


def checked_kinds(name: str, kinds: object) -> frozenset[str]:
    """Take classes of failure that there are."""
    words = checked_words(name, kinds)
    unknown = sorted(words - set(FAILURE_KINDS))
    if unknown:
        raise InvalidParameterError(name, unknown, "choose among " + ", ".join(FAILURE_KINDS))
    return words
