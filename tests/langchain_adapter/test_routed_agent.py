"""`RoutedChatModel` as the model of an agent, with middleware, over real clients on loopback."""

from __future__ import annotations

import threading

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from pydantic import BaseModel

pytest.importorskip("langchain_openai")
agents = pytest.importorskip("langchain.agents")

from langchain.agents.middleware import wrap_model_call  # noqa: E402 - only where LangChain is
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy  # noqa: E402
from langgraph.graph import MessagesState, StateGraph  # noqa: E402

from easyrag_core import ModelCandidate  # noqa: E402
from langchain_easyrag import RoutedChatModel  # noqa: E402
from tests.langchain_adapter.listener import Listener  # noqa: E402
from tests.langchain_adapter.routed import http_clients, openai_model  # noqa: E402
from tests.openai_server import (  # noqa: E402
    PATIENT,
    OpenAIServer,
    Reply,
    Status,
    Stream,
    ToolCall,
    ToolCalls,
    json_reply,
)

QUESTION = {"messages": [("user", "How is the weather in Oslo?")]}


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


class Report(BaseModel):
    """A report of the weather."""

    city: str
    sunny: bool


@pytest.fixture
def http():
    """What the clients speak through."""
    with http_clients() as http:
        yield http


def routed(bad, good, http):
    members = [openai_model(bad.base_url, http, model="a"), openai_model(good.base_url, http)]
    return RoutedChatModel(members)


def calling(request):
    """Call the tool first, then answer from what it said."""
    last = request.json["messages"][-1]
    if last["role"] == "tool":
        return Stream(["It is ", last["content"]])
    return ToolCalls(ToolCall("weather", {"city": "Oslo"}), letters=5)


@pytest.mark.parametrize("form", ["sync", "async"])
def test_an_agent_works_over_a_dead_first_model(http, form):
    """Tools are called, middleware sees a chat model, the second failure opens the circuit."""
    seen = []

    @wrap_model_call
    def watched(request, handler):
        seen.append(type(request.model))
        return handler(request)

    @wrap_model_call
    async def awatched(request, handler):
        seen.append(type(request.model))
        return await handler(request)

    with OpenAIServer(Status(500)) as bad, OpenAIServer(calling) as good:
        model, listener = routed(bad, good, http), Listener()
        agent = agents.create_agent(
            model, [weather], middleware=[watched if form == "sync" else awatched]
        )
        config = {"callbacks": [listener]}
        if form == "sync":
            state = agent.invoke(QUESTION, config)
        else:
            state = http.runner.run(agent.ainvoke(QUESTION, config))
        assert state["messages"][-1].text == "It is sunny in Oslo"
        assert seen == [RoutedChatModel] * 2
        assert len(bad.requests) == 2
        assert all(request.json["tools"] for request in good.requests)
        assert model.snapshot()["candidates"][0]["state"] == "open"
        ours = [each for each in listener.starts if "easyrag_candidate" not in each["metadata"]]
        theirs = [each for each in listener.starts if each not in ours]
        assert [each["parent"] for each in theirs] == [each["run"] for each in ours for _ in "ab"]


def test_an_agent_streams_each_token_once(http):
    """Messages of a graph are those of one run, and come whole."""
    with OpenAIServer(Status(500)) as bad, OpenAIServer(calling) as good:
        agent = agents.create_agent(routed(bad, good, http), [weather])
        parts = [
            message.text
            for message, _ in agent.stream(QUESTION, stream_mode="messages")
            if message.type == "AIMessageChunk"
        ]
        assert "".join(parts) == "It is sunny in Oslo"


class SlowEars(BaseCallbackHandler):
    """Hears a token of the model's own run only when a candidate has come to its end."""

    run_inline = True

    def __init__(self):
        self.over = threading.Event()

    def on_chat_model_start(self, serialized, messages, *, metadata, **kwargs):
        self.over.clear()

    def on_llm_new_token(self, token, **kwargs):
        assert self.over.wait(PATIENT)

    def on_llm_end(self, response, **kwargs):
        self.over.set()


def test_an_agent_streams_each_token_once_however_far_a_candidate_is_ahead(http):
    """The candidate's run has ended, with the whole answer, before a token of ours is heard."""
    with OpenAIServer(Status(500)) as bad, OpenAIServer(calling) as good:
        agent = agents.create_agent(routed(bad, good, http), [weather])
        stream = agent.stream(QUESTION, {"callbacks": [SlowEars()]}, stream_mode="messages")
        parts = [message.text for message, _ in stream if message.type == "AIMessageChunk"]
        assert "".join(parts) == "It is sunny in Oslo"


@pytest.mark.parametrize("means", ["tool", "provider"])
def test_an_agent_gives_an_object(http, means):
    """By a tool call, or by the provider's own schema."""
    fields = {"city": "Oslo", "sunny": True}
    answer = ToolCalls(ToolCall("Report", fields)) if means == "tool" else json_reply(fields)
    with OpenAIServer(Status(500)) as bad, OpenAIServer(answer) as good:
        asked = ToolStrategy(Report) if means == "tool" else ProviderStrategy(Report)
        agent = agents.create_agent(routed(bad, good, http), [], response_format=asked)
        assert agent.invoke(QUESTION)["structured_response"] == Report(city="Oslo", sunny=True)


def test_middleware_may_choose_whom_to_ask_first(http):
    """By the settings of the model that it gives on."""

    @wrap_model_call
    def chosen(request, handler):
        return handler(request.override(model_settings={"model": "second"}))

    with OpenAIServer([]) as first, OpenAIServer(Reply("two")) as second:
        model = RoutedChatModel(
            candidates=[
                ModelCandidate("first", openai_model(first.base_url, http)),
                ModelCandidate("second", openai_model(second.base_url, http)),
            ]
        )
        state = agents.create_agent(model, [], middleware=[chosen]).invoke(QUESTION)
        assert state["messages"][-1].response_metadata["easyrag"]["asked"] == ["second"]


@pytest.mark.parametrize("mid_stream", ["raise", "restart"])
def test_a_node_that_returns_a_chunk_leaves_a_message_in_the_state(http, mid_stream):
    """A graph makes a message of it, whatever the chunk may be followed by."""
    with OpenAIServer(Stream(["sunny"])) as server:
        model = RoutedChatModel([openai_model(server.base_url, http)], mid_stream=mid_stream)

        def answer(state):
            [chunk] = [chunk for chunk in model.stream(state["messages"]) if chunk.text]
            return {"messages": [chunk]}

        graph = StateGraph(MessagesState).add_node(answer).set_entry_point("answer").compile()
        last = graph.invoke(QUESTION)["messages"][-1]
    assert type(last) is AIMessage
    assert last.text == "sunny"
