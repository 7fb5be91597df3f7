"""RoutedLLM and callback handlers that raise: what they say is for the caller."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest
from llama_index.core.callbacks import CallbackManager, EventPayload
from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import PromptTemplate
from pydantic import BaseModel

from easyrag_core import CircuitBreaker
from llamaindex_easyrag import RoutedLLM
from tests.llamaindex_adapter._scripted import scripted

ASKED = [ChatMessage(content="Hi")]
WHERE = ["on_event_start", "on_event_end"]


class City(BaseModel):
    """A city."""

    name: str


class Raising(BaseCallbackHandler):
    """A guard of the caller's own, who raises where it is told to, and counts how often."""

    def __init__(self, where="", error=None):
        super().__init__([], [])
        self.where, self.error, self.raised = where, error, 0

    def _come_to(self, place):
        if place == self.where:
            self.raised += 1
            raise self.error or PermissionError("budget exceeded")

    def on_event_start(self, *_, **__):
        self._come_to("on_event_start")
        return ""

    def on_event_end(self, *_, **__):
        self._come_to("on_event_end")

    def start_trace(self, trace_id=None):
        self._come_to("start_trace")

    def end_trace(self, trace_id=None, trace_map=None):
        self._come_to("end_trace")


async def _collected(opened):
    return [chunk async for chunk in await opened]


PROMPT = PromptTemplate("Which?")
FORMS = {
    "chat": lambda llm: llm.chat(ASKED),
    "achat": lambda llm: asyncio.run(llm.achat(ASKED)),
    "stream_chat": lambda llm: list(llm.stream_chat(ASKED)),
    "astream_chat": lambda llm: asyncio.run(_collected(llm.astream_chat(ASKED))),
    "complete": lambda llm: llm.complete("Hi"),
    "stream_complete": lambda llm: list(llm.stream_complete("Hi")),
    "structured": lambda llm: llm.structured_predict(City, PROMPT),
    "stream_structured": lambda llm: list(llm.stream_structured_predict(City, PROMPT)),
}
OSLO = json.dumps({"name": "Oslo"})


@pytest.fixture(params=FORMS)
def ask(request):
    """Asks in one of the forms."""
    return FORMS[request.param]


def _routed(*models, limit=None, **settings):
    return RoutedLLM(
        models,
        first_token_timeout=limit,
        total_timeout=limit,
        breaker=CircuitBreaker(failure_threshold=1),
        **settings,
    )


@pytest.mark.parametrize("limit", [None, 30.0])
@pytest.mark.parametrize("where", WHERE)
def test_what_a_handler_raises_reaches_the_caller_as_it_is(ask, where, limit):
    """The very error, once; nobody else is asked, no circuit opens, and the place is free."""
    error = PermissionError("budget exceeded")
    guard = Raising(where, error)
    llm = _routed(
        scripted("a", OSLO),
        scripted("b", OSLO),
        limit=limit,
        callback_manager=CallbackManager([guard]),
    )
    with pytest.raises(PermissionError) as told:
        ask(llm)
    assert told.value is error
    first, second = llm.snapshot()["candidates"]
    assert (first["cancelled"], first["failures"], first["state"]) == (1, {}, "closed")
    assert second["calls"] == 0
    guard.where = ""
    assert ask(llm) is not None


@pytest.mark.parametrize("where", WHERE)
def test_a_candidates_own_handler_is_one_like_any_other(ask, where):
    """It reaches the caller as it does from the candidate alone."""
    own = CallbackManager([Raising(where)])
    llm = _routed(scripted("a", OSLO, callback_manager=own), scripted("b", OSLO))
    with pytest.raises(PermissionError):
        ask(llm)
    first, second = llm.snapshot()["candidates"]
    assert (first["failures"], second["calls"]) == ({}, 0)


class Sloppy(BaseCallbackHandler):
    """Reads the response of every call, also of one that failed and has none; or raises again."""

    def __init__(self, how):
        super().__init__([], [])
        self.how = how

    def on_event_start(self, *_, **__):
        return ""

    def on_event_end(self, event_type, payload=None, **_):
        if self.how == "again" and EventPayload.EXCEPTION in payload:
            raise payload[EventPayload.EXCEPTION]
        if self.how == "trips":
            payload.get(EventPayload.RESPONSE) or payload[EventPayload.COMPLETION]

    def start_trace(self, trace_id=None): ...

    def end_trace(self, trace_id=None, trace_map=None): ...


@pytest.mark.parametrize("how", ["again", "trips"])
@pytest.mark.parametrize("own", [True, False])
def test_a_handler_that_trips_over_a_failure_hides_it_from_nobody(how, own):
    """It is the model's: it counts, and the next one answers."""
    told = {"callback_manager": CallbackManager([Sloppy(how)])}
    theirs, ours = (told, {}) if own else ({}, told)
    first = scripted("a", ConnectionError("refused"), **theirs)
    llm = _routed(first, scripted("b", "two", **theirs), **ours)
    for _ in range(3):
        assert llm.chat(ASKED).message.content == "two"
        assert llm.complete("Hi").text == "two"
    first, second = llm.snapshot()["candidates"]
    assert (first["state"], first["failures"]) == ("open", {"connection": 1})
    assert second["successes"] == 6


@pytest.mark.parametrize("limit", [None, 30.0])
def test_nobody_waits_for_a_handler_once_a_stream_is_left(limit, caplog):
    """What it raises then is logged, in whatever thread."""
    guard = Raising("on_event_end")
    llm = _routed(
        scripted("a", *"abcdefgh" * 4), limit=limit, callback_manager=CallbackManager([guard])
    )
    stream = llm.stream_chat(ASKED)
    next(stream)
    stream.close()
    for thread in threading.enumerate():
        if thread.name.startswith("model "):
            thread.join(30)
    assert guard.raised == 1
    assert "failed to close" in caplog.text
    assert llm.snapshot()["candidates"][0]["cancelled"] == 1
