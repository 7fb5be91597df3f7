"""What is not a model's fault opens no circuit, in both frameworks and all forms of a request."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import PromptTemplate
from pydantic import BaseModel

pytest.importorskip("langchain_openai")
pytest.importorskip("llama_index.llms.openai_like")

from langchain_openai import ChatOpenAI
from llama_index.llms.openai_like import OpenAILike

from easyrag_core import ModelUnavailableError, StreamInterruptedError
from langchain_easyrag import RoutedChatModel
from llamaindex_easyrag import RoutedLLM
from tests.http_clients import http_clients
from tests.openai_server import (
    CUT,
    OpenAIServer,
    Reply,
    Status,
    Stream,
    ToolCall,
    ToolCalls,
    ToolDelta,
)

QUESTION = [ChatMessage(content="Hi")]
FORMS = ["plain", "async", "stream", "async stream"]


@pytest.fixture(scope="module")
def http():
    with http_clients() as http:
        yield http


class LangChain:
    """A routed chat model of two."""

    def __init__(self, url, http, **settings):
        self.run = http.runner.run
        self.model = RoutedChatModel(
            [
                ChatOpenAI(
                    model=name,
                    base_url=url,
                    api_key="key",
                    max_retries=0,
                    http_client=http.plain,
                    http_async_client=http.awaited,
                )
                for name in "ab"
            ],
            **settings,
        )

    def ask(self, form, asked="Hi", **given) -> Any:
        """The last message, which for a stream is the sum."""
        if form == "plain":
            return self.model.invoke(asked, **given)
        if form == "async":
            return self.run(self.model.ainvoke(asked, **given))
        chunks = list(self.model.stream(asked, **given)) if form == "stream" else []
        if form == "async stream":
            self.run(_collect(self.model.astream(asked, **given), chunks))
        total = chunks[0]
        for chunk in chunks[1:]:
            total += chunk
        return total

    @staticmethod
    def reason(answer):
        return answer.response_metadata["finish_reason"]

    @staticmethod
    def text(answer):
        return answer.text


class LlamaIndex:
    """A routed LLM of two."""

    def __init__(self, url, http, **settings):
        self.run = http.runner.run
        self.model = RoutedLLM(
            [
                OpenAILike(
                    model=name,
                    api_base=url,
                    api_key="key",
                    max_retries=0,
                    is_chat_model=True,
                    is_function_calling_model=True,
                    http_client=http.plain,
                    async_http_client=http.awaited,
                )
                for name in "ab"
            ],
            **settings,
        )

    def ask(self, form, asked=QUESTION, **given) -> Any:
        """The last response."""
        if form == "plain":
            return self.model.chat(asked, **given)
        if form == "async":
            return self.run(self.model.achat(asked, **given))
        if form == "stream":
            return list(self.model.stream_chat(asked, **given))[-1]
        chunks: list[Any] = []

        async def read():
            await _collect(await self.model.astream_chat(asked, **given), chunks)

        self.run(read())
        return chunks[-1]

    @staticmethod
    def reason(answer):
        return answer.raw.choices[0].finish_reason

    @staticmethod
    def text(answer):
        return answer.message.content or ""


async def _collect(stream, chunks):
    async for chunk in stream:
        chunks.append(chunk)


FRAMEWORKS = [LangChain, LlamaIndex]
frameworks = pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda each: each.__name__)
forms = pytest.mark.parametrize("form", FORMS)


def states(model, what="state"):
    return [each[what] for each in model.snapshot()["candidates"]]


@frameworks
@forms
def test_a_setting_that_a_client_does_not_know(framework, form, http):
    """The client refuses it before there is a request; others are still answered."""
    with OpenAIServer(Reply("Hello")) as server:
        routed = framework(server.base_url, http)
        for _ in range(3):
            with pytest.raises(ModelUnavailableError, match="nonsense") as error:
                routed.ask(form, nonsense=1)
            assert isinstance(error.value.__cause__, TypeError)
        assert states(routed.model, "failures") == [{"programming": 3}] * 2
        assert routed.text(routed.ask(form)) == "Hello"
        assert states(routed.model) == ["closed", "closed"]


def test_a_history_that_json_cannot_write(http):
    """A date among a tool's arguments, an object for a tool."""
    call: Any = {"name": "t", "args": {"d": datetime.now(UTC)}, "id": "1"}
    history = [
        HumanMessage("Hi"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("x", tool_call_id="1"),
    ]
    with OpenAIServer(Reply("Hello")) as server:
        routed = LangChain(server.base_url, http)
        for asked, given in ((history, {}), ("Hi", {"tools": [object()]})):
            for _ in range(2):
                with pytest.raises(ModelUnavailableError):
                    routed.ask("plain", asked, **given)
        assert states(routed.model) == ["closed", "closed"]
        assert server.requests == []


def test_tools_and_classes_that_are_none(http):
    """LlamaIndex finds out while it asks a model."""
    dictionary: Any = dict
    with OpenAIServer(Reply("Hello")) as server:
        llm = LlamaIndex(server.base_url, http).model
        for wrong in (
            lambda: llm.chat_with_tools(["x"], "Hi"),
            lambda: llm.structured_predict(dictionary, PromptTemplate("Hi")),
        ):
            for _ in range(2):
                with pytest.raises(ModelUnavailableError):
                    wrong()
        assert states(llm) == ["closed", "closed"]


@frameworks
@pytest.mark.parametrize("form", FORMS[:2])
@pytest.mark.parametrize("choices", [None, [], [None], ["down"], "down", [{"index": 0}]], ids=repr)
def test_a_gateway_that_answers_with_something_else_is_down(framework, form, choices, http):
    """With 200 and nothing in it: the next model is asked, and its circuit opens."""
    down = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices}
    answers = lambda asked: Status(200, down) if asked.model == "a" else Reply("Hello")  # noqa: E731 - a script
    with OpenAIServer(answers) as server:
        routed = framework(server.base_url, http)
        for _ in range(3):
            assert routed.text(routed.ask(form)) == "Hello"
        assert states(routed.model) == ["open", "closed"]


@frameworks
@forms
def test_what_a_filter_ended_is_handed_on(framework, form, http):
    """As the framework's own client does, with the reason; circuits stay closed."""
    with OpenAIServer(Reply("", finish="content_filter")) as server:
        routed = framework(server.base_url, http)
        for _ in range(3):
            answer = routed.ask(form)
            assert routed.text(answer) == ""
        if form in FORMS[:2]:
            assert routed.reason(answer) == "content_filter"
        assert states(routed.model, "successes") == [3, 0]
        assert states(routed.model) == ["closed", "closed"]


@frameworks
@forms
def test_too_small_a_limit_opens_nothing(framework, form, http):
    """The next model is asked; when all end by their length, the error says so."""
    script = lambda asked: Reply("", finish="length") if asked.model == "a" else Reply("Hello")  # noqa: E731
    with OpenAIServer(script) as server, OpenAIServer(Reply("", finish="length")) as short:
        routed = framework(server.base_url, http)
        assert [routed.text(routed.ask(form)) for _ in range(3)] == ["Hello"] * 3
        assert states(routed.model, "failures") == [{"truncated": 3}, {}]
        routed = framework(short.base_url, http)
        for _ in range(2):
            with pytest.raises(ModelUnavailableError, match="length limit"):
                routed.ask(form)
        assert states(routed.model) == ["closed", "closed"]


class Named(BaseModel):
    """An object that may be without all that it could have."""

    name: str | None = None


def test_an_object_without_values_is_an_object(http):
    """LlamaIndex streams it as its own model does, and no circuit opens."""
    with OpenAIServer(ToolCalls(ToolCall("Named", {"name": None}))) as server:
        llm = LlamaIndex(server.base_url, http).model
        stock, prompt = llm.router.candidates[0].model, PromptTemplate("Hi")

        async def read(model):
            return [each async for each in await model.astream_structured_predict(Named, prompt)]

        expected = list(stock.stream_structured_predict(Named, prompt))
        for _ in range(3):
            assert list(llm.stream_structured_predict(Named, prompt)) == expected
            assert http.runner.run(read(llm)) == http.runner.run(read(stock))
        assert expected[-1].name is None
        assert states(llm, "successes") == [6, 0]


# Half an answer

TOOL: Any = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
HALF_A_CALL = ToolDelta('{"ci', 0, "1", "weather")


@frameworks
@pytest.mark.parametrize("form", FORMS[2:])
@pytest.mark.parametrize(
    "begun",
    [
        ["Let me see", HALF_A_CALL],
        [HALF_A_CALL, "Let me see"],
        [
            {
                "content": "Let me see",
                "tool_calls": [
                    {
                        "index": 0,
                        "id": "1",
                        "type": "function",
                        "function": {"name": "weather", "arguments": "{"},
                    }
                ],
            }
        ],
    ],
    ids=["after text", "before text", "with text"],
)
def test_half_a_call_is_not_continued(framework, form, begun, http):
    """Nobody could go on from it: what there is of it would be part of the next model's answer."""
    script = lambda asked: Stream([*begun, CUT]) if asked.model == "a" else Reply("Sunny")  # noqa: E731
    with OpenAIServer(script) as server:
        routed = framework(server.base_url, http, mid_stream="continue")
        with pytest.raises(StreamInterruptedError) as error:
            routed.ask(form, tools=[TOOL])
        assert error.value.partial == "Let me see"
        assert [asked.model for asked in server.requests] == ["a"]
