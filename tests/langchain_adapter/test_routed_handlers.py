"""`RoutedChatModel` and callback handlers: what they are told, and what happens when they raise."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.callbacks import BaseCallbackHandler, get_usage_metadata_callback

from langchain_easyrag import RoutedChatModel
from tests.langchain_adapter.test_routed_chat_model import USAGE, Scripted, said


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


ASKED = {
    "streaming ainvoke": lambda model, config: model.ainvoke("Hi", config, stream=True),
    "astream": lambda model, config: _collected(model.astream("Hi", config)),
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
async def test_a_candidate_is_left_when_a_handler_raises_in_the_middle(asked):
    """At once, not when its stream is collected: the permit is free, and so is the connection."""
    candidate = Held(parts=["a", "b", "c"])
    model = RoutedChatModel([candidate])
    with pytest.raises(PermissionError):
        await asked(model, {"callbacks": [Raising("on_llm_new_token")]})
    assert candidate.open_streams == 0
    assert model.snapshot()["candidates"][0]["cancelled"] == 1
