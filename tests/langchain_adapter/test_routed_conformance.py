"""LangChain's own suites for chat models, over `RoutedChatModel` with a dead first member."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("langchain_tests")
pytest.importorskip("langchain_openai")

from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from langchain_easyrag import RoutedChatModel
from tests.openai_server import (
    OpenAIServer,
    Reply,
    Status,
    ToolCall,
    ToolCalls,
)

SETTINGS: Any = {"api_key": "key", "max_retries": 0, "stream_usage": True}


class _Facts:
    """What both suites are told of the model."""

    @property
    def chat_model_class(self):
        return RoutedChatModel

    @property
    def standard_chat_model_params(self):
        # Keys, retries and the client's own timeout are the members', and refused here.
        return {"temperature": 0, "max_tokens": 100, "stop": []}

    @property
    def model_override_value(self):
        return "b"

    # No images: those tests fetch theirs from the internet.

    @pytest.fixture
    def benchmark(self):
        """Run once: a measurement is no test."""
        return lambda run: run()


class TestUnit(_Facts, ChatModelUnitTests):
    """Nobody is asked; the serialisation snapshot and the benchmark skip themselves."""

    @property
    def chat_model_params(self):
        return {"models": [ChatOpenAI(model=name, **SETTINGS) for name in "ab"]}


def _answer(request):
    """Do what a question of the suite asks for, as far as a test can see it."""
    asked = request.json
    tools = {tool["function"]["name"]: tool["function"] for tool in asked.get("tools") or ()}
    form = asked.get("response_format")
    if form is not None:
        schema = (form.get("json_schema") or {}).get("schema") or {}
        return Reply(json.dumps(_filled(schema) or {"setup": "a", "punchline": "b"}))
    last = asked["messages"][-1]
    if tools and last["role"] == "user":
        name, tool = next(iter(tools.items()))
        return ToolCalls(ToolCall(name, _filled(tool["parameters"])), letters=6)
    return Reply("Hello, 6.")


def _filled(schema):
    values = {"integer": 3, "number": 3.0, "boolean": True, "array": [], "object": {}}
    return {
        name: field.get("enum", [values.get(field.get("type"), "你好 こんにちは")])[0]
        for name, field in schema.get("properties", {}).items()
    }


# Both are the client's own.
@pytest.mark.filterwarnings("ignore:Received a Pydantic BaseModel V1 schema")
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
class TestIntegration(_Facts, ChatModelIntegrationTests):
    """Asked of two real clients, of which the first finds its server broken.

    Not where the suite counts the runs that begin for an object: each try is one.
    """

    @pytest.fixture(autouse=True)
    def servers(self, request):
        first = _answer if "structured" in request.node.name else Status(500)
        with OpenAIServer(first) as bad, OpenAIServer(_answer) as good:
            urls = {"a": bad.base_url, "b": good.base_url}
            self.models = [ChatOpenAI(model=n, base_url=url, **SETTINGS) for n, url in urls.items()]
            yield

    @property
    def chat_model_params(self):
        return {"models": self.models}
