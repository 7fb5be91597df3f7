"""The scripted server, asked by the real clients: each reads from it what the script says."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager

import pytest

from tests.openai_server import (
    CUT,
    HANG,
    KEEP_ALIVE,
    MALFORMED,
    Gate,
    Hang,
    OpenAIServer,
    Reasoning,
    Reply,
    Status,
    Stream,
    ToolCall,
    ToolCalls,
    Vectors,
    Wait,
    json_reply,
    refused_url,
)

httpx = pytest.importorskip("httpx")
openai = pytest.importorskip("openai")
pytest.importorskip("langchain_openai")
pytest.importorskip("llama_index.llms.openai_like")

from tests.peers.routed_clients import (  # noqa: E402 - only where the clients are
    LangChainClient,
    LlamaIndexClient,
    http_clients,
)

ASKED = [{"role": "user", "content": "Hi"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


@contextmanager
def openai_client(url, **settings):
    with openai.OpenAI(base_url=url, api_key="key", **{"max_retries": 0, **settings}) as client:
        yield client


@contextmanager
def asked(script, **settings):
    """The server with a client and a function that streams one answer from it."""
    with OpenAIServer(script) as server, openai_client(server.base_url, **settings) as client:

        def stream(**more):
            return client.chat.completions.create(model="m", messages=ASKED, stream=True, **more)

        def ask(**more):
            return client.chat.completions.create(model="m", messages=ASKED, **more)

        yield server, ask, stream


def texts(chunks):
    return [c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content]


def test_one_piece_or_a_stream_by_one_script():
    """The same action answers both kinds of request, with its usage where it is asked for."""
    with asked(Stream(["Hel", "lo", "\n\n"], usage=(11, 5))) as (server, ask, stream):
        whole = ask()
        assert whole.choices[0].message.content == "Hello\n\n"
        assert whole.usage.total_tokens == 16
        chunks = list(stream(stream_options={"include_usage": True}))
        assert texts(chunks) == ["Hel", "lo", "\n\n"]
        assert chunks[0].choices[0].delta.role == "assistant"
        assert chunks[-1].usage.completion_tokens == 5
        assert [request.streams for request in server.requests] == [False, True]
        assert server.requests[0].path == "/chat/completions"
        assert server.requests[0].headers["authorization"] == "Bearer key"


def test_chunks_arrive_as_they_are_sent():
    """A stream that waits has already handed over what came before."""
    with Gate() as gate, asked(Stream(["a", Wait(gate), "b"])) as (server, _, stream):
        chunks = iter(stream())
        seen = [next(chunks), next(chunks)]
        assert texts(seen) == ["a"]
        assert server.in_flight == 1
        gate.open()
        assert texts(chunks) == ["b"]
        server.wait_idle()
        assert server.disconnects == 0


def test_a_list_is_one_action_per_request_and_a_function_sees_the_request():
    """Lists are used up in order; functions choose by what is asked."""
    with asked([Status(503), Reply("ok")]) as (_, ask, _):
        with pytest.raises(openai.InternalServerError):
            ask()
        assert ask().choices[0].message.content == "ok"
    with asked(lambda request: Reply(request.model + request.json["user"])) as (_, ask, _):
        assert ask(user="me").choices[0].message.content == "mme"


@pytest.mark.parametrize(
    ("script", "error", "told"),
    [
        ([], "InternalServerError", "no action is left"),
        (lambda _: 1 // 0, "APIConnectionError", "ZeroDivisionError"),
    ],
    ids=["too short", "broken"],
)
def test_a_script_that_has_no_answer_fails_the_test(script, error, told):
    """Who asks more often than a list says, or fails in a function, hears of it at the end."""

    def use_the_server():
        with asked(script) as (server, ask, _):
            with pytest.raises(getattr(openai, error)):
                ask()
            server.wait_idle()

    with pytest.raises(AssertionError, match=told):
        use_the_server()


@pytest.mark.parametrize("letters", [None, 3])
def test_tool_calls_whole_and_as_deltas(letters):
    """Joined by index the arguments are those of the script, in both forms."""
    calls = [ToolCall("weather", {"city": "北京"}), ToolCall("weather", "{}", id="call_2")]
    with asked(ToolCalls(*calls, letters=letters)) as (_, ask, stream):
        told = ask(tools=[WEATHER]).choices[0]
        assert told.finish_reason == "tool_calls"
        assert [c.function.arguments for c in told.message.tool_calls] == ['{"city": "北京"}', "{}"]
        joined = {0: "", 1: ""}
        deltas = [
            call
            for chunk in stream(tools=[WEATHER])
            for call in chunk.choices[0].delta.tool_calls or ()
        ]
        for call in deltas:
            joined[call.index] += call.function.arguments
        assert joined == {0: '{"city": "北京"}', 1: "{}"}
        assert [call.id for call in deltas if call.id] == ["call_1", "call_2"]
        assert len(deltas) == 2 if letters is None else len(deltas) > 4


def test_json_mode_and_reasoning():
    """The format that was asked for is recorded; reasoning comes beside the content."""
    script = [json_reply({"a": "甲"}), Stream([Reasoning("hm"), "yes"])]
    with asked(script) as (server, ask, stream):
        said = ask(response_format={"type": "json_object"}).choices[0].message.content
        assert said == '{"a": "甲"}'
        assert server.requests[0].json["response_format"] == {"type": "json_object"}
        chunks = list(stream())
        assert chunks[1].choices[0].delta.reasoning_content == "hm"
        assert texts(chunks) == ["yes"]


@pytest.mark.parametrize("encoding", [{}, {"encoding_format": "float"}], ids=["base64", "float"])
def test_embeddings(encoding):
    """One vector per text, in order, in the encoding that the client asks for."""
    with (
        OpenAIServer(Vectors(lambda text: [len(text), 0.5])) as server,
        openai_client(server.base_url) as client,
    ):
        answer = client.embeddings.create(model="e", input=["a", "bcd"], **encoding)
        assert [item.embedding for item in answer.data] == [[1.0, 0.5], [3.0, 0.5]]


def test_errors_with_headers():
    """Status, headers and body reach the client's error."""
    with asked(Status(429, headers={"Retry-After": "7"})) as (_, ask, _):
        with pytest.raises(openai.RateLimitError) as error:
            ask()
        assert error.value.response.headers["retry-after"] == "7"


@pytest.mark.parametrize("action", [Hang(), Stream([HANG]), Stream([KEEP_ALIVE, KEEP_ALIVE, HANG])])
def test_silence_ends_by_the_clients_leaving(action):
    """A client that loses patience is counted as one that left, and no answer is in flight."""
    with asked(action, timeout=0.1) as (server, _, stream):
        with pytest.raises((openai.APITimeoutError, httpx.ReadTimeout), match="timed out"):
            list(stream())
        server.wait_until(lambda: server.disconnects == 1)
        assert server.in_flight == 0


def test_a_closed_stream_is_noticed():
    """Closing a stream half-way reaches the server though it is waiting."""
    with asked(Stream(["a", HANG])) as (server, _, stream):
        chunks = stream()
        next(iter(chunks))
        chunks.close()
        server.wait_until(lambda: server.disconnects == 1)
        server.wait_until(lambda: server.open_connections == 0)


def test_a_hang_can_be_let_go():
    """Behind the gate stands another action."""
    with Gate() as gate, asked(Hang(gate, Reply("late"))) as (_, ask, _):
        gate.open()
        assert ask().choices[0].message.content == "late"


@pytest.mark.parametrize(("bad", "told"), [(CUT, "peer closed"), (MALFORMED, "Expecting")])
def test_a_cut_and_a_malformed_line_are_errors_after_what_came_before(bad, told):
    """What was sent before is read, then the client fails."""
    with asked(Stream(["a", bad, "b"])) as (_, _, stream):
        chunks = stream()
        assert texts([next(chunks), next(chunks)]) == ["a"]
        with pytest.raises(Exception, match=told):
            next(chunks)
        chunks.close()


def test_nobody_listens():
    """A refused connection is the client's connection error."""
    with (
        refused_url() as url,
        openai_client(url) as client,
        pytest.raises(openai.APIConnectionError),
    ):
        client.chat.completions.create(model="m", messages=ASKED)


def test_leaving_the_block_lets_all_go():
    """A test that fails while the server hangs does not hang itself."""
    with asked(Stream(["a", HANG])) as (server, _, stream):
        chunks = stream()
        next(iter(chunks))
        assert server.in_flight == 1
    assert server.open_connections == 0
    chunks.close()


def test_asynchronous_clients():
    """The async client reads the same, in one piece, as a stream, and many at once."""

    async def run(server):
        async with openai.AsyncOpenAI(
            base_url=server.base_url, api_key="key", max_retries=0
        ) as client:

            async def one(number):
                stream = await client.chat.completions.create(
                    model=f"m{number}", messages=ASKED, stream=True
                )
                return "".join(texts([chunk async for chunk in stream]))

            whole = await client.chat.completions.create(model="w", messages=ASKED)
            assert whole.choices[0].message.content == "w!"
            said = await asyncio.gather(*(one(number) for number in range(20)))
            assert said == [f"m{number}!" for number in range(20)]

    with OpenAIServer(lambda request: Stream([request.model, "!"])) as server:
        asyncio.run(run(server))
        server.wait_until(lambda: server.open_connections == 0)
        assert len(server.requests) == 21


def test_langchains_client():
    """Invoke, stream, their async twins, tool calls, JSON."""
    script = lambda request: (  # noqa: E731 - one line of a script
        ToolCalls(ToolCall("weather", {"city": "Oslo"}), letters=4)
        if "tools" in request.json
        else Stream(["Hel", "lo"], usage=(4, 2))
    )

    async def twins(model):
        assert (await model.ainvoke("Hi")).content == "Hello"
        return [chunk.content async for chunk in model.astream("Hi") if chunk.content]

    with http_clients() as http, OpenAIServer(script) as server:
        model = LangChainClient(server.base_url, http).plain
        answer = model.invoke("Hi")
        assert (answer.content, answer.usage_metadata["total_tokens"]) == ("Hello", 6)
        assert [chunk.content for chunk in model.stream("Hi") if chunk.content] == ["Hel", "lo"]
        assert http.runner.run(twins(model)) == ["Hel", "lo"]
        with_tools = model.bind_tools([WEATHER])
        for chunk in (with_tools.invoke("Hi"), _sum(with_tools.stream("Hi"))):
            assert [call["args"] for call in chunk.tool_calls] == [{"city": "Oslo"}]


def _sum(chunks):
    first, *rest = chunks
    for chunk in rest:
        first += chunk
    return first


def test_llamaindexs_client():
    """Chat, complete, their streams and async twins, tool calls."""
    from llama_index.core.llms import ChatMessage
    from llama_index.core.tools import FunctionTool

    asked_for = [ChatMessage(role="user", content="Hi")]

    def weather(city: str) -> str:
        """The weather."""
        return city

    async def twins(model):
        assert (await model.achat(asked_for)).message.content == "Hello"
        return [chunk.delta async for chunk in await model.astream_chat(asked_for)]

    with http_clients() as http, OpenAIServer(Stream(["Hel", "lo"])) as server:
        model = LlamaIndexClient(server.base_url, http).model
        assert model.chat(asked_for).message.content == "Hello"
        assert model.complete("Hi").text == "Hello"
        assert [c.delta for c in model.stream_chat(asked_for) if c.delta] == ["Hel", "lo"]
        assert [d for d in http.runner.run(twins(model)) if d] == ["Hel", "lo"]
    calls = ToolCalls(ToolCall("weather", {"city": "Oslo"}))
    with http_clients() as http, OpenAIServer(calls) as server:
        model = LlamaIndexClient(server.base_url, http).model
        answer = model.chat_with_tools([FunctionTool.from_defaults(weather)], "Hi")
        [call] = model.get_tool_calls_from_response(answer)
        assert call.tool_kwargs == {"city": "Oslo"}
