"""Early checks of what retrievers and compressors are given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from easyrag_core.errors import (
    InvalidParameterError,
    check_choice,
    check_count,
    check_names,
    check_timeout,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["check_lambda", "check_settings", "check_votes"]

_CHOICES = {
    "fusion": ("rrf", "score"),
    "relevance": ("query", "score"),
    "missing_vectors": ("drop", "append", "keep"),
}
_COUNTS = ("k", "child_k", "fetch_k", "cache_size", "max_tokens")


def check_settings(
    given: Mapping[str, Any],
    *,
    known: Collection[str],
    taken: Collection[str] = (),
    internal: Collection[str] = (),
    channels: int | None = None,
) -> None:
    """Refuse settings that could only fail later, when data flow.

    Args:
        given: The constructor's keyword arguments.
        known: The names that it takes; pydantic as LangChain sets it ignores all others, and
            with them every slip of the pen.
        taken: The names of further arguments that it has taken already, for the message.
        internal: Those of `known` that are no settings of the user's.
        channels: How many weights there may be, where that is known.

    Raises:
        InvalidParameterError: A name is unknown, a number is out of range, or a word is none of
            those allowed.
    """
    check_names(given, known, shown={*known, *taken}.difference(internal))
    for name in _COUNTS:
        if given.get(name) is not None:
            check_count(name, given[name])
    for name in _CHOICES.keys() & given.keys():
        check_choice(name, given[name], _CHOICES[name])
    check_lambda(given.get("lambda_mult", 0.5))
    check_timeout(given.get("channel_timeout"), name="channel_timeout")
    weights = given.get("weights")
    check_votes(weights, given.get("rank_constant", 60))
    if weights is not None:
        _check_say(weights, channels)


def check_lambda(value: Any) -> None:
    """Refuse a `lambda_mult` outside [0, 1].

    Args:
        value: What was given.

    Raises:
        InvalidParameterError: It is NaN, no number, or out of range.
    """
    if not (_is_number(value) and 0 <= value <= 1):
        raise InvalidParameterError("lambda_mult", value, "give a number from 0 to 1")


def check_votes(weights: Any, rank_constant: Any) -> None:
    """Refuse weights and a rank constant that no ranking can be fused with.

    Args:
        weights: What was given; `None` for none.
        rank_constant: What was given.

    Raises:
        InvalidParameterError: One of them is no number, or out of range.
    """
    if not _is_amount(rank_constant):
        allowed = "give a finite number of at least 0"
        raise InvalidParameterError("rank_constant", rank_constant, allowed)
    if weights is None:
        return
    if not (_is_row(weights) and all(map(_is_amount, weights))):
        allowed = "give a list of finite numbers of at least 0"
        raise InvalidParameterError("weights", weights, allowed)


def _check_say(weights: Sequence[float], channels: int | None) -> None:
    if channels is not None and len(weights) != channels:
        allowed = f"give one per retriever, there are {channels}, not {len(weights)}"
        raise InvalidParameterError("weights", weights, allowed)
    if not any(weights):
        raise InvalidParameterError("weights", weights, "not all of them may be 0")


def _is_row(value: Any) -> bool:
    # An array is as good as a list here, and is no Sequence.
    return getattr(value, "ndim", None) == 1 or (
        isinstance(value, Sequence) and not isinstance(value, str | bytes)
    )


def _is_amount(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value) and value >= 0


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
