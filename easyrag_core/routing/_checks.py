"""Refuses what a router could only trip over later."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from easyrag_core.errors import InvalidParameterError
from easyrag_core.routing.failures import FAILURE_KINDS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from easyrag_core.routing.candidates import ModelCandidate

__all__ = ["checked_candidates", "checked_kinds", "checked_words"]

M = TypeVar("M")


def checked_words(name: str, words: Collection[str]) -> frozenset[str]:
    """Take a collection of words; one string would be read as its letters."""
    if isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise InvalidParameterError(name, words, "give a collection of strings")
    return frozenset(words)


def checked_candidates(candidates: Sequence[ModelCandidate[M]]) -> tuple[ModelCandidate[M], ...]:
    """Take candidates of which a router can tell one from the other.

    Args:
        candidates: At least one, with unique names.

    Returns:
        The same, in the order given.

    Raises:
        InvalidParameterError: None at all, or a name that comes again.
    """
    kept = tuple(candidates)
    if not kept:
        raise InvalidParameterError("candidates", kept, "give at least one candidate")
    names = Counter(candidate.name for candidate in kept)
    again = [name for name, count in names.items() if count > 1]
    if again:
        raise InvalidParameterError("candidates", again, "give each candidate a name of its own")
    return kept


def checked_kinds(name: str, kinds: Collection[str]) -> frozenset[str]:
    """Take classes of failure that there are."""
    words = checked_words(name, kinds)
    unknown = sorted(words - set(FAILURE_KINDS))
    if unknown:
        raise InvalidParameterError(name, unknown, "choose among " + ", ".join(FAILURE_KINDS))
    return words
