"""What the tests of routed models share: real clients on loopback, and handlers that listen."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_openai import ChatOpenAI

from tests.http_clients import http_clients

__all__ = ["TOOL", "Listener", "http_clients", "openai_model", "total"]

TOOL: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def openai_model(url, http, **settings) -> Any:
    """A real client that asks once."""
    return ChatOpenAI(
        **{
            "model": "m",
            "base_url": url,
            "api_key": "key",
            "max_retries": 0,
            "stream_usage": True,
            "http_client": http.plain,
            "http_async_client": http.awaited,
            **settings,
        }
    )


def total(chunks):
    """The sum over a stream, as a consumer takes it."""
    return reduce(add, chunks)


class Listener(BaseCallbackHandler):
    """A handler that knows nothing of trees: writes down what it hears."""

    def __init__(self):
        self.starts = []
        self.tokens = []
        self.ends = []
        self.errors = []
        self.custom = []

    def on_chat_model_start(self, serialized, messages, *, run_id, parent_run_id=None, **kwargs):
        told = {"run": run_id, "parent": parent_run_id, **kwargs}
        self.starts.append(told)

    def on_llm_new_token(self, token, **kwargs):
        self.tokens.append(token)

    def on_llm_end(self, response, *, run_id, **kwargs):
        self.ends.append((run_id, response.generations[0][0].message))

    def on_llm_error(self, error, *, run_id, **kwargs):
        self.errors.append((run_id, error))

    def on_custom_event(self, name, data, *, run_id, **kwargs):
        self.custom.append((name, data, run_id))
