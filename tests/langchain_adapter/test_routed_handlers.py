"""`RoutedChatModel` and callback handlers: what they are told, and what happens when they raise."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.callbacks import get_usage_metadata_callback

from langchain_easyrag import RoutedChatModel
from tests.langchain_adapter.test_routed_chat_model import USAGE, said


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


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_usage_is_counted_once_however_deep_routers_are_nested(ask, depth):
    """Handlers from a context variable are not told of a nested router's run as of another."""
    model = said("x", name="a")
    for _ in range(depth):
        model = RoutedChatModel([model])
    with get_usage_metadata_callback() as told:
        ask(model)
    assert told.usage_metadata["a"]["output_tokens"] == USAGE["output_tokens"]
