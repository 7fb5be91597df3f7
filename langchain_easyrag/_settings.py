"""Early checks of what retrievers and compressors are given."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, Any

from easyrag_core.errors import InvalidParameterError, check_choice, check_count, check_timeout

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

__all__ = ["check_lambda", "check_settings"]

_CHOICES = {
    "fusion": ("rrf", "score"),
    "relevance": ("query", "score"),
    "missing_vectors": ("drop", "append", "keep"),
}
_COUNTS = ("k", "child_k", "fetch_k", "cache_size")


def check_settings(
    given: Mapping[str, Any], *, known: Collection[str], channels: int | None = None
) -> None:
    """Refuse settings that could only fail later, when data flow.

    Args:
        given: The constructor's keyword arguments.
        known: The names that it takes; pydantic as LangChain sets it ignores all others, and
            with them every slip of the pen.
        channels: How many weights there may be, where that is known.

    Raises:
        InvalidParameterError: A name is unknown, a number is out of range, or a word is none of
            those allowed.
    """
    for name in given.keys() - set(known):
        allowed = "there is no such setting, only " + ", ".join(sorted(known))
        raise InvalidParameterError(name, given[name], allowed)
    for name in _COUNTS:
        if given.get(name) is not None:
            check_count(name, given[name])
    for name in _CHOICES.keys() & given.keys():
        check_choice(name, given[name], _CHOICES[name])
    check_lambda(given.get("lambda_mult", 0.5))
    check_timeout(given.get("channel_timeout"), name="channel_timeout")
    _check_constant("rank_constant", given.get("rank_constant", 60))
    if given.get("weights") is not None:
        _check_weights(given["weights"], channels)


def check_lambda(value: Any) -> None:
    """Refuse a `lambda_mult` outside [0, 1].

    Args:
        value: What was given.

    Raises:
        InvalidParameterError: It is NaN, no number, or out of range.
    """
    if not (_is_number(value) and 0 <= value <= 1):
        raise InvalidParameterError("lambda_mult", value, "give a number from 0 to 1")


def _check_constant(name: str, value: Any) -> None:
    if not _is_number(value) or not math.isfinite(value) or value < 0:
        raise InvalidParameterError(name, value, "give a finite number of at least 0")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _check_weights(weights: Sequence[float], channels: int | None) -> None:
    if channels is not None and len(weights) != channels:
        raise InvalidParameterError(
            "weights", weights, f"give one per retriever, there are {channels}, not {len(weights)}"
        )
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights) or not any(weights):
        raise InvalidParameterError(
            "weights", weights, "give finite numbers of at least 0, not all of them 0"
        )
