"""Real clients as candidates of a router: how each opens a stream, and what its chunks carry."""

from __future__ import annotations

from typing import Any

import openai
from langchain_openai import ChatOpenAI
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike

from easyrag_core import DeltaReader
from tests.http_clients import http_clients

__all__ = ["CLIENTS", "http_clients"]

QUESTION = "Hi"
ASKED: Any = [{"role": "user", "content": QUESTION}]
TOOL = {"name": "weather", "description": "The weather.", "parameters": {"type": "object"}}
TOOLS: Any = [{"type": "function", "function": TOOL}]


def _reader(text_of, more):
    return DeltaReader(lambda chunk: bool(text_of(chunk).strip() or more(chunk)), text_of)


class OpenAIClient:
    """The plain client; its streams are objects with `close`."""

    name = "openai"

    def __init__(self, url, http):
        settings: Any = {"base_url": url, "api_key": "key", "max_retries": 0}
        self.client = openai.OpenAI(**settings, http_client=http.plain)
        self.awaited = openai.AsyncOpenAI(**settings, http_client=http.awaited)

    def ask(self):
        answer = self.client.chat.completions.create(model="m", messages=ASKED)
        return answer.choices[0].message.content or ""

    def open(self):
        return self.client.chat.completions.create(
            model="m", messages=ASKED, stream=True, tools=TOOLS
        )

    def aopen(self):
        return self.awaited.chat.completions.create(
            model="m", messages=ASKED, stream=True, tools=TOOLS
        )

    @staticmethod
    def text_of(chunk):
        return (chunk.choices[0].delta.content if chunk.choices else "") or ""

    @staticmethod
    def more(chunk):
        return bool(chunk.choices and chunk.choices[0].delta.tool_calls)

    reader = _reader(text_of, more)


class LangChainClient:
    """LangChain's model, as its users stream from it."""

    name = "langchain"

    def __init__(self, url, http):
        self.plain: Any = ChatOpenAI(
            model="m",
            base_url=url,
            api_key="key",
            max_retries=0,
            http_client=http.plain,
            http_async_client=http.awaited,
        )
        self.model = self.plain.bind_tools(TOOLS)

    def ask(self):
        return self.model.invoke(QUESTION).text

    def open(self):
        return self.model.stream(QUESTION)

    def aopen(self):
        return self.model.astream(QUESTION)

    @staticmethod
    def text_of(chunk):
        return chunk.text

    @staticmethod
    def more(chunk):
        return bool(chunk.tool_call_chunks)

    reader = _reader(text_of, more)


class LlamaIndexClient:
    """LlamaIndex's model; its async streams come from a coroutine."""

    name = "llamaindex"

    def __init__(self, url, http):
        self.model = OpenAILike(
            model="m",
            api_base=url,
            api_key="key",
            max_retries=0,
            is_chat_model=True,
            is_function_calling_model=True,
            http_client=http.plain,
            async_http_client=http.awaited,
        )
        self.asked = [ChatMessage(role="user", content=QUESTION)]

    def ask(self):
        return self.model.chat(self.asked).message.content or ""

    def open(self):
        return self.model.stream_chat(self.asked, tools=TOOLS)

    def aopen(self):
        return self.model.astream_chat(self.asked, tools=TOOLS)

    @staticmethod
    def text_of(chunk):
        return chunk.delta or ""

    @staticmethod
    def more(chunk):
        return any(block.block_type == "tool_call" for block in chunk.message.blocks)

    reader = _reader(text_of, more)


CLIENTS = [OpenAIClient, LangChainClient, LlamaIndexClient]
