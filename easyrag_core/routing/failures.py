"""What an error says about a model, told by class names and statuses without importing clients."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal, TypeAlias, get_args

from easyrag_core.errors import (
    InvalidParameterError,
    ModelUnavailableError,
    check_choice,
    check_number,
)
from easyrag_core.routing._known import CODES, NAMES, PROGRAMMING, SENTENCES, STATUSES, TYPES

__all__ = [
    "COUNTED_KINDS",
    "FAILURE_KINDS",
    "MOVING_KINDS",
    "Classifier",
    "Failure",
    "FailureKind",
    "classify_failure",
    "retry_after_of",
]

FailureKind: TypeAlias = Literal[
    "timeout",
    "connection",
    "rate_limit",
    "server",
    "malformed",
    "blank",
    "authentication",
    "permission",
    "not_found",
    "unsupported",
    "context_overflow",
    "invalid_request",
    "refusal",
    "truncated",
    "programming",
    "unknown",
]
"""The classes of failure. A health page counts by them, a router decides by them."""

FAILURE_KINDS: Final[tuple[FailureKind, ...]] = get_args(FailureKind)
"""All classes, in the order in which they are told."""

COUNTED_KINDS: Final[frozenset[FailureKind]] = frozenset(
    {"timeout", "connection", "rate_limit", "server", "malformed", "blank", "unknown"}
)
"""What speaks of an outage and opens a circuit. A wrong key, a bad request, too small a limit or
a program's mistake does not: it may be one caller's alone, and must not take the model from the
others."""

MOVING_KINDS: Final = frozenset(FAILURE_KINDS) - {"invalid_request", "refusal"}
"""After what the next candidate is asked. A bad request is as bad elsewhere, and a refusal is an
answer. A program's mistake may be as bad elsewhere, too, but often it is a client that trips over
what its model sent."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed call, classified.

    Attributes:
        kind: The class of failure.
        retry_after: Seconds for which the model asked to be left alone, if it did.

    Raises:
        InvalidParameterError: The kind is none of `FAILURE_KINDS`, or the seconds are no number
            of at least 0.
    """

    kind: FailureKind
    retry_after: float | None = None

    def __post_init__(self) -> None:
        """Refuse a kind that no policy knows, and seconds that no circuit can wait."""
        check_choice("kind", self.kind, FAILURE_KINDS)
        if self.retry_after is None:
            return
        allowed = "give seconds of at least 0, or None"
        seconds = check_number("retry_after", self.retry_after, allowed=allowed)
        if seconds < 0:
            raise InvalidParameterError("retry_after", self.retry_after, allowed)
        object.__setattr__(self, "retry_after", seconds)


Classifier: TypeAlias = Callable[[Exception], Failure | None]
"""A user's own classification; `None` leaves an error to ours."""


def classify_failure(error: BaseException, *, now: Callable[[], float] = time.time) -> Failure:
    """Say what an error means.

    Looked at, in this order: the code in the error's body, the HTTP status, the names of its
    classes (those of OpenAI's and Anthropic's clients, httpx, requests, aiohttp, botocore,
    langchain-core's typed errors, the builtins), the type in the body; then the same for the
    error that caused it. What is left and was raised by Python itself for a wrong program or wrong
    input (`TypeError`, `KeyError`, `UnicodeError`, …) is "programming", or "malformed" where an
    answer is on the error.

    Args:
        error: What a call of a model raised.
        now: Seconds since 1970, to read a `Retry-After` that is a date.

    Returns:
        The class of failure, "unknown" for what nobody knows, and the `Retry-After`.

    >>> classify_failure(TimeoutError()), classify_failure(KeyError("x"))
    (Failure(kind='timeout', retry_after=None), Failure(kind='programming', retry_after=None))
    """
    causes = list(_causes(error))
    for cause in causes:
        kind = _kind(cause)
        if kind == "connection" and any(type(each) is TypeError for each in causes):
            # A client failed to send a value of a wrong type.
            kind = "programming"
        if kind is not None:
            return Failure(kind, retry_after_of(cause, now=now))
    return Failure(_kind_of_untold(causes), retry_after_of(error, now=now))


def retry_after_of(error: BaseException, *, now: Callable[[], float] = time.time) -> float | None:
    """Read how long a model asks to be left alone.

    Args:
        error: An error with `headers`, or with a `response` that has them.
        now: Seconds since 1970, to read a date.

    Returns:
        Seconds of at least 0 from `retry-after-ms` or `Retry-After` (a number or an HTTP date,
        RFC 9110, 10.2.3), or from the error's own `retry_after`; `None` when there is none or it
        cannot be read.

    >>> error = ConnectionError("busy")
    >>> error.headers = {"Retry-After": "7"}
    >>> retry_after_of(error)
    7.0
    """
    headers = _headers(error)
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    told = headers.get("retry-after", str(getattr(error, "retry_after", "")))
    seconds = _number(told)
    return seconds if seconds is not None else _until(told, now)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__


def _kind(error: BaseException) -> FailureKind | None:
    words = _words(error)
    names = {cls.__name__ for cls in type(error).__mro__}
    return (
        _first(CODES, words)
        or _by_status(_status(error))
        or next((kind for kind, known in NAMES if names & known), None)
        or _first(TYPES, words)
        # langchain-core's own word on errors that have no name of their own.
        or ("server" if getattr(error, "is_retryable", None) is True else None)
        or _by_sentence(error)
    )


def _by_sentence(error: BaseException) -> FailureKind | None:
    if not _is_pythons_own(error):
        return None
    told = str(error)
    return next((kind for words, kind in SENTENCES.items() if words in told), None)


def _kind_of_untold(causes: Sequence[BaseException]) -> FailureKind:
    """Tell a program's mistake from what may be an outage, where no client has said a word."""
    if not any(isinstance(cause, PROGRAMMING) and _is_pythons_own(cause) for cause in causes):
        return "unknown"
    if any(_has_answer(cause) for cause in causes):
        return "malformed"
    # A client that wraps what it trips over in a class of its own has something to say.
    passing = all(_is_pythons_own(c) or isinstance(c, ModelUnavailableError) for c in causes)
    return "programming" if passing else "unknown"


def _is_pythons_own(error: BaseException) -> bool:
    return type(error).__module__ == "builtins"


def _has_answer(error: BaseException) -> bool:
    told = (_status(error), getattr(error, "body", None), getattr(error, "response", None))
    return any(each is not None for each in told)


def _first(known: Mapping[str, FailureKind], words: list[str]) -> FailureKind | None:
    return next((known[word] for word in words if word in known), None)


def _by_status(status: int | None) -> FailureKind | None:
    # A stream that fails after its beginning still has the 200 with which it began.
    if status is None or status < 400:
        return None
    return STATUSES.get(status, "server" if status >= 500 else "invalid_request")


def _status(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        response = response.get("ResponseMetadata")
    found = (
        getattr(error, "status_code", None),
        getattr(error, "status", None),
        getattr(error, "http_status", None),
        getattr(response, "status_code", None),
        getattr(response, "status", None),
        response.get("HTTPStatusCode") if isinstance(response, Mapping) else None,
        getattr(error, "code", None),
    )
    return next((status for status in found if _is_status(status)), None)


def _is_status(status: object) -> bool:
    return isinstance(status, int) and not isinstance(status, bool) and 100 <= status < 600


def _words(error: BaseException) -> list[str]:
    """The words by which a provider names its error, codes before types."""
    bodies = [getattr(error, "body", None), getattr(error, "response", None)]
    for body in list(bodies):
        if isinstance(body, Mapping):
            bodies += [body.get("error"), body.get("Error")]
    places: list[Any] = [error, *bodies]
    found = [_field(place, name) for name in ("code", "Code", "type") for place in places]
    return [word.lower() for word in found if isinstance(word, str)]


def _field(place: object, name: str) -> object:
    return place.get(name) if isinstance(place, Mapping) else getattr(place, name, None)


def _headers(error: BaseException) -> dict[str, str]:
    for owner in (getattr(error, "response", None), error):
        items = getattr(getattr(owner, "headers", None), "items", None)
        if callable(items):
            return {str(name).lower(): str(value) for name, value in items()}
    return {}


def _number(told: str | None) -> float | None:
    try:
        seconds = float(told or "")
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _until(told: str | None, now: Callable[[], float]) -> float | None:
    try:
        moment = parsedate_to_datetime(told or "")
        # An HTTP date is always in GMT, also where it fails to say so.
        seconds = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return max(0.0, seconds)
