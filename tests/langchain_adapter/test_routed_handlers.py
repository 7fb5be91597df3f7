"""`RoutedChatModel` and callback handlers: what they are told, and what happens when they raise."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.callbacks import (
    AsyncCallbackHandler,
    BaseCallbackHandler,
    get_usage_metadata_callback,
)
from langchain_core.messages import HumanMessage
from langchain_core.tracers import BaseTracer
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler

from easyrag_core import CircuitBreaker
from langchain_easyrag import RoutedChatModel
from tests.langchain_adapter.listener import Listener
from tests.langchain_adapter.test_routed_chat_model import USAGE, Scripted, dead, said


async def _collected(stream):
    return [chunk async for chunk in stream]


FORMS = {
    "invoke": lambda model, config: model.invoke("Hi", config),
    "streaming invoke": lambda model, config: model.invoke("Hi", config, stream=True),
    "stream": lambda model, config: list(model.stream("Hi", config)),
    "ainvoke": lambda model, config: asyncio.run(model.ainvoke("Hi", config)),
    "streaming ainvoke": lambda model, config: asyncio.run(
        model.ainvoke("Hi", config, stream=True)
    ),
    "astream": lambda model, config: asyncio.run(_collected(model.astream("Hi", config))),
}


@pytest.fixture(params=FORMS)
def ask(request):
    """Asks in one of six forms."""
    return lambda model, config=None: FORMS[request.param](model, config)


class Raising(BaseCallbackHandler):
    """A guard of the caller's own, who raises where it is told to, and counts how often."""

    raise_error = True

    def __init__(self, where, error=None):
        self.raised = 0
        error = error or PermissionError("budget exceeded")

        def guard(*_, **__):
            self.raised += 1
            raise error

        setattr(self, where, guard)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_usage_is_counted_once_however_deep_routers_are_nested(ask, depth):
    """Handlers from a context variable are not told of a nested router's run as of another."""
    model = said("x", name="a")
    for _ in range(depth):
        model = RoutedChatModel([model])
    with get_usage_metadata_callback() as told:
        ask(model)
    assert told.usage_metadata["a"]["output_tokens"] == USAGE["output_tokens"]


class Held(Scripted):
    """Tells whether its stream is still open."""

    open_streams: int = 0

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        self.open_streams += 1
        try:
            for chunk in self._stream(messages, stop, run_manager, **kwargs):
                yield chunk
        finally:
            self.open_streams -= 1


MESSAGES = [[HumanMessage("Hi")]]
STREAMED = {
    "invoke": lambda model, callbacks: model.invoke("Hi", {"callbacks": callbacks}, stream=True),
    "stream": lambda model, callbacks: list(model.stream("Hi", {"callbacks": callbacks})),
    "generate": lambda model, callbacks: model.generate(MESSAGES, callbacks=callbacks, stream=True),
}
ASTREAMED = {
    "ainvoke": lambda model, callbacks: model.ainvoke("Hi", {"callbacks": callbacks}, stream=True),
    "astream": lambda model, callbacks: _collected(model.astream("Hi", {"callbacks": callbacks})),
    "agenerate": lambda model, callbacks: model.agenerate(
        MESSAGES, callbacks=callbacks, stream=True
    ),
}


@pytest.mark.parametrize("form", ASTREAMED)
async def test_a_candidate_is_left_when_a_handler_raises_in_the_middle(form):
    """At once, not when its stream is collected: the permit is free, and so is the connection."""
    candidate = Held(parts=["a", "b", "c"])
    model = RoutedChatModel([candidate])
    with pytest.raises(PermissionError):
        await ASTREAMED[form](model, [Raising("on_llm_new_token")])
    assert candidate.open_streams == 0
    assert model.snapshot()["candidates"][0]["cancelled"] == 1


@pytest.mark.parametrize("form", [*STREAMED, *ASTREAMED])
async def test_whoever_reads_a_stream_inside_has_the_candidates_run(form):
    """Below our own, for a tracer; its usage is told once to who knows of no trees."""
    collector, listener = RunCollectorCallbackHandler(), Listener()
    model = RoutedChatModel([said("x", name="a")])
    if form in STREAMED:
        STREAMED[form](model, [collector, listener])
    else:
        await ASTREAMED[form](model, [collector, listener])
    [ours] = collector.traced_runs
    assert [run.run_type for run in ours.child_runs] == ["llm"]
    assert [message.usage_metadata for _, message in listener.ends] == [None, USAGE]
    assert "".join(listener.tokens) == "x"


PLACES = ["on_chat_model_start", "on_llm_end"]


@pytest.mark.parametrize("limit", [None, 30.0])
@pytest.mark.parametrize("where", PLACES)
def test_what_a_handler_raises_reaches_the_caller_as_it_is(ask, where, limit):
    """As without a router: the very error, once; nobody else is asked, and no circuit opens."""
    error = PermissionError("budget exceeded")
    model = RoutedChatModel(
        [said("one", name="a"), said("two", name="b")],
        first_token_timeout=limit,
        total_timeout=limit,
        breaker=CircuitBreaker(failure_threshold=1),
    )
    for calls in (1, 2):
        guard = Raising(where, error)
        with pytest.raises(PermissionError) as told:
            ask(model, {"callbacks": [guard]})
        assert told.value is error
        assert (guard.raised, error.__context__, error.__cause__) == (1, None, None)
        first, second = model.snapshot()["candidates"]
        assert first["cancelled"] == (calls if where == "on_llm_end" else 0)
        assert (first["failures"], first["state"], second["calls"]) == ({}, "closed", 0)
    assert ask(model) is not None


@pytest.mark.parametrize("own", ["theirs", "a tracer's", "async"])
def test_whosever_handler_raises(ask, own):
    """A candidate's own, a tracer's and one that is awaited are handlers like any other."""

    class Tracer(BaseTracer):
        raise_error = True

        def _persist_run(self, run): ...

        def _on_llm_end(self, run):
            raise PermissionError("budget exceeded")

    class Awaited(AsyncCallbackHandler):
        raise_error = True

        async def on_llm_end(self, response, **kwargs):
            raise PermissionError("budget exceeded")

    handler = {"theirs": Raising("on_llm_end"), "a tracer's": Tracer(), "async": Awaited()}[own]
    config = {"callbacks": [] if own == "theirs" else [handler]}
    candidate = said("one", name="a")
    if own == "theirs":
        candidate.callbacks = [handler]
    alone, model = said("one", name="a"), RoutedChatModel([candidate, said("two", name="b")])
    alone.callbacks = candidate.callbacks
    # LangChain only logs what an awaited handler raises where nothing is awaited.
    stock = _outcome(lambda: ask(alone, config))
    assert _outcome(lambda: ask(model, config)) == stock
    assert model.snapshot()["candidates"][1]["calls"] == 0
    assert model.snapshot()["candidates"][0]["failures"] == {}


def _outcome(ask):
    try:
        ask()
    except Exception as error:  # noqa: BLE001 - any is an outcome
        return repr(error)
    return None


def test_a_handler_that_raises_at_a_failure_is_heard(ask):
    """As without a router, where the model's own error does not reach the caller either."""
    model = RoutedChatModel([dead("a"), said("two", name="b")])
    with pytest.raises(PermissionError):
        ask(model, {"callbacks": [Raising("on_llm_error")]})
    assert model.snapshot()["candidates"][1]["calls"] == 0


def test_a_models_own_error_of_the_same_class_is_its_failure(ask):
    """What matters is where an error comes from."""
    model = RoutedChatModel([said(PermissionError("denied")), said("two", name="b")])
    ask(model, {"callbacks": [Raising("on_custom_event")]})
    assert model.snapshot()["candidates"][0]["failures"] == {"unknown": 1}


class Sloppy(BaseCallbackHandler):
    """Raises what it is told of; LangChain hears it or not."""

    def __init__(self, *, heard):
        self.raise_error = heard

    def on_llm_error(self, error, **_):
        raise error


class AsyncSloppy(AsyncCallbackHandler):
    """Its async twin."""

    def __init__(self, *, heard):
        self.raise_error = heard

    async def on_llm_error(self, error, **_):
        raise error


@pytest.mark.parametrize("kind", [Sloppy, AsyncSloppy])
@pytest.mark.parametrize("heard", [True, False])
def test_a_handler_that_raises_the_failure_again_hides_it_from_nobody(ask, kind, heard):
    """It is the model's: it counts, and the next one answers."""
    model = RoutedChatModel([dead("a"), said("x", name="b")])
    for _ in range(3):
        ask(model, {"callbacks": [kind(heard=heard)]})
    first, second = model.snapshot()["candidates"]
    assert (first["state"], first["failures"]) == ("open", {"connection": 2})
    assert second["successes"] == 3
