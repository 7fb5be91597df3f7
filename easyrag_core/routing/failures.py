"""What an error says about a model, told by class names and statuses without importing clients."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal, TypeAlias, get_args

from easyrag_core.errors import check_choice

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
    "unknown",
]
"""The classes of failure. A health page counts by them, a router decides by them."""

FAILURE_KINDS: Final[tuple[FailureKind, ...]] = get_args(FailureKind)
"""All classes, in the order in which they are told."""

COUNTED_KINDS: Final[frozenset[FailureKind]] = frozenset(
    {"timeout", "connection", "rate_limit", "server", "malformed", "blank", "unknown"}
)
"""What speaks of an outage and opens a circuit. A wrong key or a bad request does not: it may be
one caller's alone, and must not take the model from the others."""

MOVING_KINDS: Final = frozenset(FAILURE_KINDS) - {"invalid_request", "refusal"}
"""After what the next candidate is asked. A bad request is as bad elsewhere, and a refusal is an
answer."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed call, classified.

    Attributes:
        kind: The class of failure.
        retry_after: Seconds for which the model asked to be left alone, if it did.

    Raises:
        InvalidParameterError: The kind is none of `FAILURE_KINDS`.
    """

    kind: FailureKind
    retry_after: float | None = None

    def __post_init__(self) -> None:
        """Refuse a kind that no policy knows."""
        check_choice("kind", self.kind, FAILURE_KINDS)


Classifier: TypeAlias = Callable[[Exception], Failure | None]
"""A user's own classification; `None` leaves an error to ours."""

# What a body says is surer than its status: a prompt too long comes as 400, and a model that is
# overloaded in mid-stream as an event after a 200.
_CODES: Final[Mapping[str, FailureKind]] = {
    "context_length_exceeded": "context_overflow",
    "request_too_large": "context_overflow",
    "string_above_max_length": "context_overflow",
    "content_filter": "refusal",
    "content_policy_violation": "refusal",
    "responsibleaipolicyviolation": "refusal",
    "model_not_found": "not_found",
    "deploymentnotfound": "not_found",
    "unsupported_parameter": "unsupported",
}
_TYPES: Final[Mapping[str, FailureKind]] = {
    "overloaded_error": "server",
    "api_error": "server",
    "server_error": "server",
    "internal_server_error": "server",
    "service_unavailable": "server",
    "timeout_error": "timeout",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "insufficient_quota": "rate_limit",
    "throttlingexception": "rate_limit",
    "authentication_error": "authentication",
    "invalid_api_key": "authentication",
    "permission_error": "permission",
    "not_found_error": "not_found",
    "invalid_request_error": "invalid_request",
}
_STATUSES: Final[Mapping[int, FailureKind]] = {
    401: "authentication",
    402: "permission",
    403: "permission",
    404: "not_found",
    408: "timeout",
    409: "server",
    410: "not_found",
    413: "context_overflow",
    425: "server",
    429: "rate_limit",
    501: "unsupported",
}
# From what is surest to what is vaguest: an error is often several of these at once.
_NAMES: Final[tuple[tuple[FailureKind, frozenset[str]], ...]] = (
    ("context_overflow", frozenset({"ContextOverflowError", "RequestTooLargeError"})),
    ("refusal", frozenset({"ModelRefusalError", "ContentFilterFinishReasonError"})),
    (
        "timeout",
        frozenset(
            {
                "APITimeoutError",
                "ConnectTimeoutError",
                "DeadlineExceeded",
                "DeadlineExceededError",
                "ModelTimeoutError",
                "ReadTimeoutError",
                "Timeout",
                "TimeoutError",
                "TimeoutException",
            }
        ),
    ),
    ("rate_limit", frozenset({"ModelRateLimitError", "RateLimitError", "ResourceExhausted"})),
    ("authentication", frozenset({"AuthenticationError", "ModelAuthenticationError"})),
    ("permission", frozenset({"ModelPermissionDeniedError", "PermissionDeniedError"})),
    ("not_found", frozenset({"ModelNotFoundError", "NotFoundError"})),
    (
        "connection",
        frozenset(
            {
                "APIConnectionError",
                "ChunkedEncodingError",
                "ClientConnectionError",
                "ClientPayloadError",
                "ConnectionError",
                "HTTPClientError",
                "HTTPException",
                "IncompleteReadError",
                "ModelConnectionError",
                "NetworkError",
                "ProtocolError",
                "SSLError",
                "TransportError",
                "gaierror",
            }
        ),
    ),
    (
        "malformed",
        frozenset({"APIResponseValidationError", "DecodingError", "JSONDecodeError"}),
    ),
    (
        "server",
        frozenset(
            {
                "CircuitOpenError",
                "InternalServerError",
                "ModelAPIError",
                "OverloadedError",
                "ServiceUnavailable",
                "ServiceUnavailableError",
            }
        ),
    ),
    (
        "invalid_request",
        frozenset({"BadRequestError", "ModelInvalidRequestError", "UnprocessableEntityError"}),
    ),
    ("unsupported", frozenset({"NotImplementedError"})),
)


def classify_failure(error: BaseException, *, now: Callable[[], float] = time.time) -> Failure:
    """Say what an error means.

    Looked at, in this order: the code in the error's body, the HTTP status, the names of its
    classes (those of OpenAI's and Anthropic's clients, httpx, requests, aiohttp, botocore,
    langchain-core's typed errors, the builtins), the type in the body; then the same for the
    error that caused it.

    Args:
        error: What a call of a model raised.
        now: Seconds since 1970, to read a `Retry-After` that is a date.

    Returns:
        The class of failure, "unknown" for what nobody knows, and the `Retry-After`.

    >>> classify_failure(TimeoutError()), classify_failure(KeyError("x"))
    (Failure(kind='timeout', retry_after=None), Failure(kind='unknown', retry_after=None))
    """
    for cause in _causes(error):
        kind = _kind(cause)
        if kind is not None:
            return Failure(kind, retry_after_of(cause, now=now))
    return Failure("unknown", retry_after_of(error, now=now))


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
        _first(_CODES, words)
        or _by_status(_status(error))
        or next((kind for kind, known in _NAMES if names & known), None)
        or _first(_TYPES, words)
        # langchain-core's own word on errors that have no name of their own.
        or ("server" if getattr(error, "is_retryable", None) is True else None)
    )


def _first(known: Mapping[str, FailureKind], words: list[str]) -> FailureKind | None:
    return next((known[word] for word in words if word in known), None)


def _by_status(status: int | None) -> FailureKind | None:
    # A stream that fails after its beginning still has the 200 with which it began.
    if status is None or status < 400:
        return None
    return _STATUSES.get(status, "server" if status >= 500 else "invalid_request")


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
