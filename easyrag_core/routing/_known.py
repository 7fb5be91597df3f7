"""What providers, clients and Python call their failures, and what is meant by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from easyrag_core.routing.failures import FailureKind

__all__ = ["CODES", "NAMES", "PROGRAMMING", "SENTENCES", "STATUSES", "TYPES"]

# What a body says is surer than its status: a prompt too long comes as 400, and a model that is
# overloaded in mid-stream as an event after a 200.
CODES: Final[Mapping[str, FailureKind]] = {
    "context_length_exceeded": "context_overflow",
    "request_too_large": "context_overflow",
    "string_above_max_length": "context_overflow",
    "content_filter": "refusal",
    "content_policy_violation": "refusal",
    "data_inspection_failed": "refusal",
    "length": "truncated",
    "responsibleaipolicyviolation": "refusal",
    "model_not_found": "not_found",
    "deploymentnotfound": "not_found",
    "unsupported_parameter": "unsupported",
}
TYPES: Final[Mapping[str, FailureKind]] = {
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
STATUSES: Final[Mapping[int, FailureKind]] = {
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
NAMES: Final[tuple[tuple[FailureKind, frozenset[str]], ...]] = (
    ("context_overflow", frozenset({"ContextOverflowError", "RequestTooLargeError"})),
    ("refusal", frozenset({"ModelRefusalError", "ContentFilterFinishReasonError"})),
    ("truncated", frozenset({"LengthFinishReasonError"})),
    ("blank", frozenset({"BlankAnswerError"})),
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
    ("programming", frozenset({"InvalidParameterError", "MissingDependencyError"})),
)
# What Python itself raises for a wrong program or wrong input.
PROGRAMMING: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    RecursionError,
    SyntaxError,
    TypeError,
    UnicodeError,
    Warning,
)
# What errors of Python's own classes say: over an answer without the list that OpenAI's form has,
# in the words of Python and langchain-openai, and over what `json` cannot write for a caller.
SENTENCES: Final[Mapping[str, FailureKind]] = {
    "unexpected keyword argument": "programming",
    # A gateway that is down often answers 200 with something else: `null`, an empty list, a text.
    "'NoneType' object": "malformed",
    "of type 'NoneType'": "malformed",
    "list index out of range": "malformed",
    "string indices must be": "malformed",
    "codec can't decode": "malformed",
    "has no attribute 'choices'": "malformed",
    "has no attribute 'delta'": "malformed",
    "has no attribute 'get'": "malformed",
    "has no attribute 'message'": "malformed",
    "has no attribute 'model_dump'": "malformed",
    "'choices'": "malformed",
    "'delta'": "malformed",
    "'message'": "malformed",
    "Unexpected response type": "malformed",
    "Circular reference detected": "programming",
    "not JSON compliant": "programming",
}
