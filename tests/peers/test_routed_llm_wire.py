"""The routed LLM over the framework's own client and a server that fails by script."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.program import FunctionCallingProgram
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from pydantic import BaseModel

from easyrag_core import CircuitBreaker, ModelCandidate, StreamInterruptedError
from llamaindex_easyrag import RoutedLLM
from tests.openai_server import (
    CUT,
    HANG,
    KEEP_ALIVE,
    MALFORMED,
    Hang,
    OpenAIServer,
    Reply,
    Status,
    Stream,
    ToolCall,
    ToolCalls,
    refused_url,
)

pytest.importorskip("llama_index.llms.openai_like")

from llama_index.llms.openai_like import OpenAILike

from tests.peers.routed_clients import TOOLS, http_clients

SHORT = 0.15
QUESTION = [ChatMessage(content="Hi")]
TOKENS = [f"t{number} " for number in range(20)]
KINDS = ("chat", "complete")
FORMS = [f"{form}{kind}" for kind in KINDS for form in ("", "a", "stream_", "astream_")]

FAILING = {
    "401": (Status(401), "authentication"),
    "429": (Status(429, headers={"Retry-After": "7"}), "rate_limit"),
    "500": (Status(500), "server"),
    "no byte": (Hang(), "timeout"),
    "keep-alive only": (Stream([KEEP_ALIVE] * 3 + [HANG], role=False), "timeout"),
    "role only": (Stream([HANG]), "timeout"),
    "cut at once": (Stream([CUT]), "connection"),
    "malformed": (Stream([MALFORMED], role=False), "malformed"),
    "blank": (Reply(""), "blank"),
    "white space": (Stream([" ", "\n\n"]), "blank"),
}


@pytest.fixture
def http():
    """The clients' connections; when they are closed, no thread of a router is left."""
    with http_clients() as http:
        yield http
        for thread in threading.enumerate():
            if thread.name.startswith("model "):
                thread.join(30)
                assert not thread.is_alive()


@pytest.fixture
def routed(http):
    """Makes a routed LLM of models "a" and "b"; the first one has the limits."""

    def make(*urls, limits=(), **settings):
        candidates = [
            ModelCandidate(name, model(url, http), **(dict(limits) if name == "a" else {}))
            for name, url in zip("ab", urls, strict=False)
        ]
        return RoutedLLM(candidates=candidates, **settings)

    return make


@pytest.fixture
def ask(http):
    """Asks in a form; gives all chunks, of which a whole answer is the only one."""

    def run(llm, form, seen=None, **settings):
        seen = [] if seen is None else seen
        asked = QUESTION if form.endswith("chat") else "Hi"
        method = getattr(llm, form)
        if form.startswith("stream_"):
            _read(method(asked, **settings), seen)
        elif form.startswith("astream_"):
            http.runner.run(_aread(method(asked, **settings), seen))
        elif form.startswith("a"):
            seen.append(http.runner.run(method(asked, **settings)))
        else:
            seen.append(method(asked, **settings))
        return seen

    return run


def _read(stream, seen):
    for chunk in stream:
        seen.append(chunk)


async def _aread(opening, seen):
    async for chunk in await opening:
        seen.append(chunk)


def model(url, http, **settings):
    return OpenAILike(
        model="m",
        api_base=url,
        api_key="key",
        max_retries=0,
        is_chat_model=True,
        is_function_calling_model=True,
        http_client=http.plain,
        async_http_client=http.awaited,
        **settings,
    )


def text(chunk):
    return chunk.text if hasattr(chunk, "text") else chunk.message.content


def told(llm):
    return llm.snapshot()["candidates"][0]


@pytest.mark.parametrize("form", FORMS)
def test_every_failure_before_the_first_content(routed, ask, form):
    """Each has its class, and the answer is the second model's, whole and signed."""
    limit = "first_token_timeout" if "stream" in form else "total_timeout"
    for action, kind in FAILING.values():
        limits = {limit: SHORT} if kind == "timeout" else {}
        with OpenAIServer(action) as bad, OpenAIServer(Stream(["two", "\n\n", "!"])) as good:
            llm = routed(bad.base_url, good.base_url, limits=limits)
            chunks = ask(llm, form)
        # In one piece a line that makes no sense is no part of the answer.
        expected = "blank" if kind == "malformed" and "stream" not in form else kind
        assert told(llm)["failures"] == {expected: 1}
        assert text(chunks[-1]) == "two\n\n!"
        facts = {"candidate": "b", "asked": ["a", "b"]}
        assert all(chunk.additional_kwargs["easyrag"] == facts for chunk in chunks)
        if "stream" in form:
            assert "".join(chunk.delta or "" for chunk in chunks) == "two\n\n!"


@pytest.mark.parametrize("form", FORMS)
def test_nobody_listens_and_a_bad_request(routed, ask, form):
    """An outage opens the circuit; a bad request is the caller's, with the client's own error."""
    with refused_url() as refused, OpenAIServer(Reply("two")) as good:
        llm = routed(refused, good.base_url)
        assert [text(ask(llm, form)[-1]) for _ in range(3)] == ["two"] * 3
        assert told(llm)["failures"] == {"connection": 2}
        assert told(llm)["state"] == "open"
        asked = len(good.requests)
        with OpenAIServer(Status(400)) as bad, pytest.raises(Exception, match="scripted 400"):
            ask(routed(bad.base_url, good.base_url), form)
        assert len(good.requests) == asked


def test_a_retry_after_is_obeyed(routed, ask):
    """As the server said it, not as the breaker would have it."""
    answer = Status(429, headers={"Retry-After": "77"})
    with OpenAIServer(answer) as bad, OpenAIServer(Reply("two")) as good:
        breaker = CircuitBreaker(failure_threshold=1, clock=lambda: 0.0)
        llm = routed(bad.base_url, good.base_url, breaker=breaker)
        ask(llm, "chat")
        assert told(llm)["retry_after"] == 77.0


STREAMS = [form for form in FORMS if "stream" in form]


@pytest.mark.parametrize("form", STREAMS)
@pytest.mark.parametrize("end", [HANG, CUT, MALFORMED], ids=["stall", "cut", "malformed"])
def test_what_breaks_after_twenty_tokens(routed, ask, form, end):
    """It is told with its text, or begun anew behind a mark, or continued: never twice."""
    limits = {"stall_timeout": SHORT} if end is HANG else {}
    said = "".join(TOKENS)
    with OpenAIServer(Stream([*TOKENS, end])) as bad, OpenAIServer(Stream(["t20", "!"])) as good:
        urls = bad.base_url, good.base_url
        seen = []
        with pytest.raises(StreamInterruptedError) as error:
            ask(routed(*urls, limits=limits), form, seen)
        assert text(seen[-1]) == error.value.partial == said
        assert good.requests == []

        anew = ask(routed(*urls, limits=limits, mid_stream="restart"), form)
        [at] = [n for n, each in enumerate(anew) if "easyrag_reset" in each.additional_kwargs]
        reset = anew[at]
        assert (text(reset), reset.delta) == ("", "")
        assert reset.additional_kwargs["easyrag_reset"]["partial"] == text(anew[at - 1]) == said
        assert text(anew[-1]) == "".join(c.delta or "" for c in anew[at:]) == "t20!"
        assert reset.additional_kwargs["easyrag"] == anew[-1].additional_kwargs["easyrag"]

        longer = ask(routed(*urls, limits=limits, mid_stream="continue"), form)
        assert "".join(chunk.delta or "" for chunk in longer) == text(longer[-1]) == said + "t20!"
        last = good.requests[-1].json["messages"][-1]
        assert last == {"role": "assistant", "content": said}


@pytest.mark.parametrize("form", ["chat", "achat", "stream_chat", "astream_chat"])
def test_tool_calls_are_content(routed, ask, form):
    """In deltas, from the second model: the first was blank. Half a call is not continued."""
    calls = ToolCalls(ToolCall("weather", {"city": "Oslo"}), letters=4)
    with OpenAIServer(Reply("")) as bad, OpenAIServer(calls) as good:
        llm = routed(bad.base_url, good.base_url)
        last = ask(llm, form, tools=TOOLS)[-1]
        [call] = llm.get_tool_calls_from_response(last)
        assert (call.tool_name, call.tool_kwargs) == ("weather", {"city": "Oslo"})
        if "stream" in form:
            with OpenAIServer(Stream([*calls.parts[:3], CUT])) as half:
                llm = routed(half.base_url, good.base_url, mid_stream="continue")
                with pytest.raises(StreamInterruptedError):
                    ask(llm, form, tools=TOOLS)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the framework's own agent
@pytest.mark.parametrize("streaming", [False, True])
def test_an_agent_calls_a_tool_over_a_dead_model(routed, http, streaming):
    """The first model is down, the second calls a real tool, is told of it, and answers."""

    def weather(city: str) -> str:
        """Tell the weather."""
        return f"sunny in {city}"

    async def run(llm):
        tools = [FunctionTool.from_defaults(weather)]
        return await FunctionAgent(tools=tools, llm=llm, streaming=streaming).run("How is it?")

    calls = ToolCalls(ToolCall("weather", {"city": "Oslo"}), letters=4)
    answers = [calls, Stream(["It is", " sunny."])]
    with OpenAIServer(Status(500)) as bad, OpenAIServer(answers) as good:
        answer = http.runner.run(run(routed(bad.base_url, good.base_url)))
        assert str(answer) == "It is sunny."
        assert [str(call.tool_output) for call in answer.tool_calls] == ["sunny in Oslo"]
        first, second = good.requests
        assert first.json["tools"][0]["function"]["name"] == "weather"
        assert second.json["messages"][-1]["content"] == "sunny in Oslo"
        assert len(bad.requests) == 2


class City(BaseModel):
    """A city."""

    name: str


@pytest.mark.parametrize("form", ["", "a"])
def test_an_object_is_made_by_the_candidates_own_means(routed, http, form):
    """One model has structured output, another calls a function: each is asked in its way."""
    prompt, oslo = PromptTemplate("Which {what}?"), City(name="Oslo")
    call = ToolCalls(ToolCall("City", {"name": "Oslo"}))
    with OpenAIServer(Reply("I think Oslo")) as bad, OpenAIServer(call) as good:
        models = [
            model(bad.base_url, http, should_use_structured_outputs=True),
            model(good.base_url, http),
        ]
        llm = RoutedLLM(models)
        asked = getattr(llm, f"{form}structured_predict")(City, prompt, what="city")
        assert (http.runner.run(asked) if form else asked) == oslo
        assert bad.requests[0].json["response_format"]["type"] == "json_schema"
        assert good.requests[0].json["tool_choice"] == "required"
        with OpenAIServer(Status(500)) as dead:
            llm = routed(dead.base_url, good.base_url)
            program = FunctionCallingProgram.from_defaults(City, "Which {what}?", llm=llm)
            assert (http.runner.run(program.acall(what="x")) if form else program(what="x")) == oslo


def test_a_late_request_is_cancelled_on_the_wire(routed, ask):
    """The async form closes the connection at its deadline, while the server still waits."""
    with OpenAIServer(Stream([KEEP_ALIVE, HANG])) as bad, OpenAIServer(Reply("two")) as good:
        # Long enough for the request to be under way on a busy machine.
        llm = routed(bad.base_url, good.base_url, limits={"first_token_timeout": 4 * SHORT})
        assert text(ask(llm, "astream_chat")[-1]) == "two"
        assert len(bad.requests) == 1
        bad.wait_until(lambda: bad.disconnects == 1)


def test_who_leaves_leaves_the_model(routed, http):
    """A stream that is closed in the midst closes its connection and counts as cancelled."""

    async def leave(llm):
        stream = await llm.astream_chat(QUESTION)
        async for chunk in stream:
            if chunk.delta:
                break
        await stream.aclose()
        # The client leaves its own generators in a circle, also where it is used alone.
        for _ in range(100):
            await asyncio.sleep(0)
        gc.collect()
        for _ in range(100):
            await asyncio.sleep(0)

    with OpenAIServer(Stream(["one", HANG])) as server:
        llm = routed(server.base_url)
        http.runner.run(leave(llm))
        server.wait_until(lambda: server.disconnects == 1)
        assert told(llm)["cancelled"] == 1


def test_two_hundred_streams_over_a_failing_first_model():
    """Every answer is whole, none is mixed, nothing is left of them: task, stream, connection."""
    shapes = [
        lambda name: Status(503),
        lambda name: Stream([CUT]),
        lambda name: Reply(""),
        *[lambda name: Stream([name, " is", " whole"])] * 7,
    ]

    def answer(request):
        name = request.json["messages"][0]["content"]
        return shapes[int(name) * 7 % 10](name)

    async def one(llm, name):
        stream = await llm.astream_chat([ChatMessage(content=name)])
        chunks = [chunk async for chunk in stream]
        assert "".join(chunk.delta or "" for chunk in chunks) == text(chunks[-1])
        return text(chunks[-1]), chunks[-1].additional_kwargs["easyrag"]["candidate"]

    async def run(http, bad, good):
        candidates = [
            ModelCandidate("a", model(bad.base_url, http)),
            ModelCandidate("b", model(good.base_url, http)),
        ]
        breaker = CircuitBreaker(failure_threshold=1000)
        llm = RoutedLLM(candidates=candidates, breaker=breaker)
        said = await asyncio.gather(*(one(llm, str(n)) for n in range(200)))
        # The client drops generators of its own, which the loop closes in its next rounds.
        for _ in range(1000):
            await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1
        return said, told(llm)

    with (
        OpenAIServer(answer) as bad,
        OpenAIServer(lambda r: Stream([r.json["messages"][0]["content"], " is whole"])) as good,
    ):
        with http_clients() as http:
            said, first = http.runner.run(run(http, bad, good))
        assert said == [(f"{n} is whole", "b" if n * 7 % 10 < 3 else "a") for n in range(200)]
        assert first["failures"] == {"blank": 20, "connection": 20, "server": 20}
        assert first["successes"] == 140
        for server in (bad, good):
            server.wait_until(lambda server=server: server.open_connections == 0)


def test_divergence_the_framework_takes_blank_for_an_answer_and_asks_the_dead_again(http, routed):
    """LlamaIndex has no LLM that falls back; its nearest part, the client alone, goes wrong.

    A blank answer is one, a cut stream ends in an error without the text, and a dead model is
    asked every time.
    """
    import llama_index.core.llms as parts

    assert not [name for name in dir(parts) if "fallback" in name.lower() or "rout" in name.lower()]
    with OpenAIServer(Reply("")) as bad, OpenAIServer(Reply("two")) as good:
        assert model(bad.base_url, http).chat(QUESTION).message.content is None
        assert routed(bad.base_url, good.base_url).chat(QUESTION).message.content == "two"
    with OpenAIServer(Stream(["one", CUT])) as bad, OpenAIServer(Reply("two")) as good:
        with pytest.raises(Exception, match="peer closed") as error:
            list(model(bad.base_url, http).stream_chat(QUESTION))
        assert not hasattr(error.value, "partial")
        with pytest.raises(StreamInterruptedError) as ours:
            list(routed(bad.base_url, good.base_url).stream_chat(QUESTION))
        assert ours.value.partial == "one"
    with OpenAIServer(Status(500)) as bad, OpenAIServer(Reply("two")) as good:
        alone, llm = model(bad.base_url, http), routed(bad.base_url, good.base_url)
        for _ in range(5):
            with pytest.raises(Exception, match="scripted 500"):
                alone.chat(QUESTION)
        assert len(bad.requests) == 5
        assert [llm.chat(QUESTION).message.content for _ in range(5)] == ["two"] * 5
        assert len(bad.requests) == 7
