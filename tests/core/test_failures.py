"""What errors mean: by class name, status and body, without one client being imported."""

from __future__ import annotations

import json
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core import (
    COUNTED_KINDS,
    FAILURE_KINDS,
    MOVING_KINDS,
    CircuitOpenError,
    Failure,
    FirstTokenTimeoutError,
    InvalidParameterError,
    ModelUnavailableError,
    classify_failure,
)
from easyrag_core.routing import retry_after_of

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def error(*names, **attributes):
    """An error with such classes, from the particular to the general."""
    made = Exception
    for name in reversed(names):
        made = type(name, (made,), {})
    told = made("told")
    vars(told).update(attributes)
    return told


def response(status=None, **headers):
    return SimpleNamespace(
        status_code=status, headers={name.replace("_", "-"): v for name, v in headers.items()}
    )


def kind(told):
    return classify_failure(told).kind


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, "invalid_request"),
        (401, "authentication"),
        (402, "permission"),
        (403, "permission"),
        (404, "not_found"),
        (405, "invalid_request"),
        (408, "timeout"),
        (409, "server"),
        (413, "context_overflow"),
        (422, "invalid_request"),
        (425, "server"),
        (429, "rate_limit"),
        (500, "server"),
        (501, "unsupported"),
        (502, "server"),
        (503, "server"),
        (504, "server"),
        (529, "server"),
    ],
)
def test_by_status_wherever_a_client_keeps_it(status, expected):
    """On the error, on its response, under other names, in botocore's mapping."""
    for told in (
        error("APIStatusError", status_code=status),
        error("HTTPStatusError", response=response(status)),
        error("ClientResponseError", status=status),
        error("APIError", http_status=status),
        error("GoogleAPICallError", code=status),
        error("ClientError", response={"ResponseMetadata": {"HTTPStatusCode": status}}),
    ):
        assert kind(told) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["OpenAITimeoutError", "APITimeoutError", "APIConnectionError"], "timeout"),
        (["APIConnectionError", "APIError"], "connection"),
        (["ReadTimeout", "TimeoutException", "TransportError"], "timeout"),
        (["ConnectTimeout", "ConnectionError", "Timeout"], "timeout"),
        (["ConnectError", "NetworkError", "TransportError"], "connection"),
        (["RemoteProtocolError", "ProtocolError", "TransportError"], "connection"),
        (["ServerDisconnectedError", "ClientConnectionError"], "connection"),
        (["ModelRateLimitError", "ModelError"], "rate_limit"),
        (["ModelAPIError", "ModelError"], "server"),
        (["ModelTimeoutError", "ModelError"], "timeout"),
        (["ModelConnectionError", "ModelError"], "connection"),
        (["ModelAuthenticationError", "ModelError"], "authentication"),
        (["ModelPermissionDeniedError", "ModelError"], "permission"),
        (["ModelNotFoundError", "ModelError"], "not_found"),
        (["ModelInvalidRequestError", "ModelError"], "invalid_request"),
        (["ModelRefusalError", "ModelError"], "refusal"),
        (
            ["TooLongError", "BadRequestError", "ContextOverflowError"],
            "context_overflow",
        ),
        (["ContentFilterFinishReasonError", "OpenAIError"], "refusal"),
        (["LengthFinishReasonError", "OpenAIError"], "truncated"),
        (["APIResponseValidationError", "APIError"], "malformed"),
        (["OverloadedError", "InternalServerError"], "server"),
        (["ResourceExhausted", "TooManyRequests"], "rate_limit"),
    ],
)
def test_by_the_names_of_its_classes(names, expected):
    """The surest of its names tells; none of the clients need be there."""
    assert kind(error(*names)) == expected


def test_builtins():
    """What Python itself raises on the way to a model."""
    assert kind(TimeoutError()) == "timeout"
    assert kind(ConnectionRefusedError()) == "connection"
    assert kind(ConnectionResetError()) == "connection"
    assert kind(socket.gaierror()) == "connection"
    assert kind(NotImplementedError()) == "unsupported"
    with pytest.raises(json.JSONDecodeError) as bad:
        json.loads("{")
    assert kind(bad.value) == "malformed"
    for unknown in (ValueError("x"), RuntimeError("x"), PermissionError("x")):
        assert kind(unknown) == "unknown"


class OwnError(TypeError):
    """A client's own."""


@pytest.mark.parametrize(
    "mistake",
    [
        TypeError("f() got an unexpected keyword argument 'nonsense'"),
        TypeError("create() got an unexpected keyword argument 'choices'"),
        AttributeError("'str' object has no attribute 'metadata'"),
        KeyError("topic"),
        IndexError("pop from empty list"),
        NameError("x"),
        AssertionError(),
        UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
        ZeroDivisionError(),
        RecursionError(),
        ModuleNotFoundError("x"),
        UserWarning("x"),
        InvalidParameterError("wants", "x", "y"),
    ],
    ids=repr,
)
def test_a_programs_mistake_is_no_outage(mistake):
    """What Python raises for a wrong program or wrong input may be one caller's alone."""
    wrapped = ValueError("bad input")
    wrapped.__cause__ = mistake
    routed = ModelUnavailableError({"inner": mistake})
    routed.__cause__ = mistake
    for told in (mistake, wrapped, routed):
        assert kind(told) == "programming"


def test_what_json_cannot_write_is_the_callers():
    """A date, a circle and a number that JSON does not have, in a tool's arguments."""
    circle = []
    circle.append(circle)
    for value in (datetime.now(UTC), circle, float("nan")):
        with pytest.raises((TypeError, ValueError)) as bad:
            json.dumps(value, allow_nan=False)
        assert kind(bad.value) == "programming"


def test_what_could_not_even_be_sent_is_no_failed_connection():
    """A client calls all that happens while it sends a connection error, a wrong value too."""
    failed = error("OwnConnectionError", "APIConnectionError")
    failed.__cause__ = error("APIConnectionError")
    failed.__cause__.__cause__ = TypeError("'str' object cannot be interpreted as a number")
    assert kind(failed) == "programming"
    failed.__cause__.__cause__ = OSError("unreachable")
    assert kind(failed) == "connection"


def test_a_mistake_over_an_answer_is_the_answers():
    """A null answer that a client trips over, where it can be told from a program's mistake."""
    for told in (
        TypeError("Received response with null value for 'choices'. This can happen"),
        KeyError("Response missing 'choices' key: dict_keys(['id'])"),
        KeyError("choices"),
        AttributeError("'NoneType' object has no attribute 'choices'"),
        ValueError("Unexpected response type from OpenAI-compatible endpoint."),
        TypeError("'NoneType' object is not subscriptable"),
        TypeError("object of type 'NoneType' has no len()"),
        IndexError("list index out of range"),
        TypeError("string indices must be integers, not 'str'"),
        AttributeError("'str' object has no attribute 'message'"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    ):
        assert kind(told) == "malformed"
    for attributes in ({"response": response(200)}, {"body": {}}, {"status_code": 200}):
        told = TypeError("'NoneType' object is not subscriptable")
        vars(told).update(attributes)
        assert kind(told) == "malformed"
        wrapper = RuntimeError()
        wrapper.__cause__ = told
        assert kind(wrapper) == "malformed"


def test_a_mistake_within_a_clients_error_is_the_clients():
    """A status of any cause tells; without one a class of the client's own may be an outage."""
    told = TypeError("x")
    told.__cause__ = error("APIStatusError", status_code=503)
    assert kind(told) == "server"
    told.__cause__ = error("OddError")
    assert kind(told) == "unknown"
    wrapper = error("OddError")
    wrapper.__cause__ = TypeError("x")
    assert kind(wrapper) == kind(OwnError("x")) == "unknown"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (error("E", status_code=400, code="context_length_exceeded"), "context_overflow"),
        (error("E", status_code=400, code="content_filter"), "refusal"),
        (error("E", status_code=400, body={"code": "content_filter"}), "refusal"),
        (error("E", status_code=404, code="model_not_found"), "not_found"),
        (error("E", status_code=401, type="invalid_request_error"), "authentication"),
        (error("E", status_code=429, code="insufficient_quota"), "rate_limit"),
        (error("E", code="server_error"), "server"),
        (error("E", status_code=200, body={"error": {"type": "overloaded_error"}}), "server"),
        (error("E", body={"error": {"type": "rate_limit_error"}}), "rate_limit"),
        (error("E", response={"Error": {"Code": "ThrottlingException"}}), "rate_limit"),
    ],
)
def test_by_what_the_body_says(told, expected):
    """A code is surer than a status, a status is surer than a type; a 200 is no status."""
    assert kind(told) == expected


def test_by_its_cause():
    """An error that wraps another means what that one means; circles end."""
    wrapper = RuntimeError("model failed")
    wrapper.__cause__ = ValueError("x")
    wrapper.__cause__.__cause__ = error("RateLimitError", response=response(429, retry_after="4"))
    assert classify_failure(wrapper) == Failure("rate_limit", 4.0)
    circle = RuntimeError()
    circle.__cause__ = ValueError()
    circle.__cause__.__cause__ = circle
    assert kind(circle) == "unknown"


def test_ours():
    """A router within a router is a model whose circuit is open, or that is late."""
    assert classify_failure(CircuitOpenError(12.0)) == Failure("server", 12.0)
    assert kind(FirstTokenTimeoutError()) == "timeout"


def test_a_retryable_model_error_without_a_name_of_its_own():
    """langchain-core's flag is believed when nothing else is known."""
    assert kind(error("NewError", "ModelError", is_retryable=True)) == "server"
    assert kind(error("NewError", "ModelError", is_retryable=False)) == "unknown"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry_After": "7"}, 7.0),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after": "-3"}, 0.0),
        ({"retry_after_ms": "1500", "retry_after": "9"}, 1.5),
        ({"retry_after_ms": "soon", "retry_after": "9"}, 9.0),
        ({"retry_after": format_datetime(NOON + timedelta(seconds=90), usegmt=True)}, 90.0),
        ({"retry_after": "Tue, 01 Jan 2030 12:01:30 -0000"}, 90.0),
        ({"retry_after": format_datetime(NOON - timedelta(days=1), usegmt=True)}, 0.0),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "nan"}, None),
        ({"retry_after": "inf"}, None),
        ({"retry_after": ""}, None),
        ({}, None),
    ],
    ids=str,
)
def test_retry_after(headers, seconds):
    """Seconds, milliseconds, a date of the past or the future, or nothing that can be read."""
    told = error("RateLimitError", response=response(429, **headers))
    assert retry_after_of(told, now=NOON.timestamp) == seconds
    assert classify_failure(told, now=NOON.timestamp).retry_after == seconds


def test_retry_after_on_the_error_itself():
    """Some clients keep the headers there."""
    assert retry_after_of(error("ClientResponseError", headers={"Retry-After": "3"})) == 3.0


@given(st.text())
def test_no_header_breaks_the_reading(told):
    """Whatever a server sends, it is seconds of at least 0 or nothing."""
    read = retry_after_of(error("E", headers={"retry-after": told}))
    assert read is None or read >= 0


def test_what_counts_and_what_moves_on():
    """What may be one caller's alone is no outage; bad requests and refusals stop."""
    kinds = frozenset(FAILURE_KINDS)
    assert kinds - MOVING_KINDS == {"invalid_request", "refusal"}
    assert kinds - COUNTED_KINDS == {
        "authentication",
        "permission",
        "not_found",
        "unsupported",
        "context_overflow",
        "invalid_request",
        "refusal",
        "truncated",
        "programming",
    }


def test_an_unknown_kind_is_refused():
    """All that there are is said."""
    with pytest.raises(InvalidParameterError, match="'timeout', 'connection'"):
        Failure("slow")


@pytest.mark.parametrize("seconds", ["7", -1, float("nan"), True, 10**400], ids=str)
def test_seconds_that_are_none_are_refused(seconds):
    """They would break the circuit that has to wait for them."""
    with pytest.raises(InvalidParameterError, match="seconds of at least 0"):
        Failure("rate_limit", seconds)


@pytest.mark.parametrize("seconds", [0, 7, 0.5, np.float32(2), np.int64(3)], ids=repr)
def test_any_number_of_seconds_is_welcome(seconds):
    """Also one of numpy's; it is kept as a float."""
    kept = Failure("rate_limit", seconds).retry_after
    assert (kept, type(kept)) == (seconds, float)
