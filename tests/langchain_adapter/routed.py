"""What the tests of routed models share: real clients on loopback."""

from __future__ import annotations

from typing import Any

from langchain_openai import ChatOpenAI

from tests.http_clients import http_clients

__all__ = ["TOOL", "http_clients", "openai_model"]

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
