"""Errors of the caller's own code inside a candidate's call: they go past the router."""

from __future__ import annotations

import asyncio
import threading

import pytest

from easyrag_core import CircuitBreaker, ModelUnavailableError
from easyrag_core.routing.aside import given_back, set_aside
from tests.core.routing_forms import PATIENT, READER, routed

PLACES = {(__name__, "_handle"): lambda names, error: names["told"]}


class Caller:
    """The caller's own code, with an error that came of another one."""

    def __init__(self):
        self.error = PermissionError("budget exceeded")

    def raises(self):
        try:
            _ = {}["why"]
        except KeyError:
            raise self.error from None


def _handle(code, told=None):
    """Where a framework calls the caller's code, and tells it of a failure, if there is one."""
    code()


def _call(router, code):
    def run(_):
        with set_aside(PLACES):
            code()

    with given_back():
        router.call(run)


def _acall(router, code):
    async def run(_):
        with set_aside(PLACES):
            code()

    async def asked():
        with given_back():
            await router.acall(run)

    asyncio.run(asked())


def _stream(router, code):
    def opened(*_):
        with set_aside(PLACES):
            yield "x"
            code()

    with given_back():
        list(router.stream(opened, READER))


def _astream(router, code):
    async def opened(*_):
        with set_aside(PLACES):
            yield "x"
            code()

    async def asked():
        with given_back():
            [_ async for _ in router.astream(opened, READER)]

    asyncio.run(asked())


@pytest.fixture(params=[_call, _acall, _stream, _astream])
def ask(request):
    """Asks in one of four forms."""
    return request.param


@pytest.mark.parametrize("patience", [None, PATIENT])
def test_an_error_of_the_callers_is_raised_as_it_was(ask, patience):
    """With its own context and no other; the place is free, and nobody else is asked."""
    caller, breaker = Caller(), CircuitBreaker(failure_threshold=1)
    limits = {"first_token_timeout": patience, "total_timeout": patience}
    router = routed(1, 2, breaker=breaker, mid_stream="restart", **limits)
    with pytest.raises(PermissionError) as told:
        ask(router, lambda: _handle(caller.raises))
    assert told.value is caller.error
    assert isinstance(told.value.__context__, KeyError)
    assert told.value.__cause__ is None
    first, second = router.snapshot()["candidates"]
    assert (first["cancelled"], first["failures"], first["state"]) == (1, {}, "closed")
    assert second["calls"] == 0


def test_the_same_error_from_elsewhere_is_the_models(ask):
    """What counts is where it came through."""
    caller = Caller()
    router = routed(1, mid_stream="restart")
    with pytest.raises(Exception, match="budget exceeded"):
        ask(router, caller.raises)
    assert router.snapshot()["candidates"][0]["failures"] == {"unknown": 1}


def _raise(error):
    raise error


REPORTS = {
    "raises it again": _raise,
    "trips over the report": lambda failure: {}["response"],
    "raises it again, unheard": _raise,
    "trips over the report, unheard": lambda failure: {}["response"],
}


@pytest.mark.parametrize("report", REPORTS)
def test_whoever_is_told_of_a_failure_hides_it_from_nobody(ask, report):
    """It is the model's, whatever the caller's code makes of the report, heard or swallowed."""
    refused = ConnectionError("refused")

    def failing():
        try:
            _raise(refused)
        except ConnectionError:
            try:
                _handle(lambda: REPORTS[report](refused), told=refused)
            except Exception:
                if "unheard" not in report:
                    raise
            raise

    router = routed(1, breaker=CircuitBreaker(failure_threshold=1), mid_stream="restart")
    with pytest.raises(ModelUnavailableError, match="refused"):
        ask(router, failing)
    (told,) = router.snapshot()["candidates"]
    assert (told["failures"], told["state"]) == ({"connection": 1}, "open")


def test_errors_in_a_circle_are_followed_once(ask):
    """A client may tie the contexts of its errors together."""

    def circle():
        one, other = ValueError("one"), KeyError("other")
        one.__context__, other.__context__ = other, one
        _handle(lambda: _raise(one), told=one)

    router = routed(1, mid_stream="restart")
    with pytest.raises(ModelUnavailableError, match="one"):
        ask(router, circle)


@pytest.mark.parametrize("patience", [None, PATIENT])
def test_nobody_waits_for_an_error_once_a_stream_is_left(patience, caplog):
    """It is logged where the stream is closed, be that another thread."""
    caller, over = Caller(), threading.Event()

    def opened(*_):
        try:
            with set_aside(PLACES):
                try:
                    while True:
                        yield "x"
                finally:
                    _handle(caller.raises)
        finally:
            over.set()

    with given_back():
        stream = routed(1, first_token_timeout=patience).stream(opened, READER)
        next(stream)
        stream.close()
    assert over.wait(PATIENT)
    for thread in threading.enumerate():
        if thread.name.startswith("model "):
            thread.join(PATIENT)
    assert "failed to close" in caplog.text
