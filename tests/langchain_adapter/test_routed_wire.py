"""`RoutedChatModel` over the real client and a server that fails by script, in every form."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from easyrag_core import CircuitBreaker, ModelCandidate, StreamInterruptedError
from langchain_easyrag import RoutedChatModel
from tests.langchain_adapter.listener import total
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

pytest.importorskip("langchain_openai")
pytest.importorskip("httpx")

from tests.langchain_adapter.routed import TOOL, http_clients, openai_model

SHORT = 0.15
TOKENS = [f"t{number} " for number in range(20)]
REFUSED = "refused"

# What fails, as it is classified; streams alone can be late before their first content.
FAILING = {
    "connection refused": (REFUSED, "connection"),
    "401": (Status(401), "authentication"),
    "429": (Status(429, headers={"Retry-After": "7"}), "rate_limit"),
    "500": (Status(500), "server"),
    "blank": (Reply(""), "blank"),
    "white space": (Stream([" ", "\n\n"]), "blank"),
}
FAILING_STREAMS = {
    "slow first token": (Hang(), "timeout"),
    "keep-alive only": (Stream([KEEP_ALIVE] * 3 + [HANG], role=False), "timeout"),
    "role only": (Stream([HANG]), "timeout"),
    "malformed": (Stream([MALFORMED], role=False), "malformed"),
    "cut at once": (Stream([CUT]), "connection"),
}
WHOLE_FORMS = ["invoke", "ainvoke", "batch", "abatch"]
STREAM_FORMS = ["stream", "astream"]
CASES = [
    *((form, name) for name in FAILING for form in [*WHOLE_FORMS, *STREAM_FORMS]),
    *((form, name) for name in FAILING_STREAMS for form in STREAM_FORMS),
]


@pytest.fixture
def http():
    """What the clients speak through; when it is closed, no thread of a router is left."""
    with http_clients() as http:
        yield http
    for thread in threading.enumerate():
        if thread.name.startswith("model "):
            thread.join(30)
            assert not thread.is_alive()


@pytest.fixture
def ask(http):
    """Asks a model in a form and gives its whole answer; `seen` gets the chunks of a stream."""

    async def astream(model, seen):
        async for chunk in model.astream("Hi"):
            seen.append(chunk)
        return total(seen)

    def stream(model, seen):
        seen.extend(model.stream("Hi"))
        return total(seen)

    forms = {
        "invoke": lambda model, _: model.invoke("Hi"),
        "batch": lambda model, _: model.batch(["Hi"])[0],
        "stream": stream,
        "ainvoke": lambda model, _: http.runner.run(model.ainvoke("Hi")),
        "abatch": lambda model, _: http.runner.run(model.abatch(["Hi"]))[0],
        "astream": lambda model, seen: http.runner.run(astream(model, seen)),
    }
    return lambda form, model, seen=None: forms[form](model, [] if seen is None else seen)


@pytest.fixture
def routed(http):
    """Makes a routed model; its first candidate has limits, which are short only to be reached."""

    def make(*urls, limits=(), **settings):
        return RoutedChatModel(
            candidates=[
                ModelCandidate(name, openai_model(url, http), **(limits if name == "a" else {}))
                for name, url in zip("ab", urls, strict=True)
            ],
            **settings,
        )

    return lambda *urls, limits=None, **settings: make(*urls, limits=limits or {}, **settings)


def told(model):
    return model.snapshot()["candidates"][0]


@pytest.mark.parametrize(("form", "name"), CASES)
def test_a_failure_is_answered_by_the_second(routed, ask, form, name):
    """The answer is whole and says whose it is; the failure has its class."""
    action, kind = {**FAILING, **FAILING_STREAMS}[name]
    limits = {"first_token_timeout": SHORT} if kind == "timeout" else {}
    with (
        refused_url() as refused,
        OpenAIServer(Status(500) if action is REFUSED else action) as bad,
        OpenAIServer(Stream(["two", " ", "\n", "!"])) as good,
    ):
        url = refused if action is REFUSED else bad.base_url
        model = routed(url, good.base_url, limits=limits)
        answer = ask(form, model)
        assert answer.text == "two \n!"
        assert answer.response_metadata["easyrag"] == {"candidate": "b", "asked": ["a", "b"]}
        assert answer.usage_metadata["total_tokens"] == 10
        assert told(model)["failures"] == {kind: 1}
        assert told(model)["retry_after"] == 0.0


@pytest.mark.parametrize("form", [*WHOLE_FORMS, *STREAM_FORMS])
def test_a_bad_request_reaches_the_caller(routed, ask, form):
    """With the client's own error, and nobody else is bothered."""
    with OpenAIServer(Status(400)) as bad, OpenAIServer([]) as good:
        model = routed(bad.base_url, good.base_url)
        with pytest.raises(Exception, match="scripted 400"):
            ask(form, model)
        assert good.requests == []


@pytest.mark.parametrize("form", [*WHOLE_FORMS, *STREAM_FORMS])
def test_a_retry_after_is_obeyed(routed, ask, form):
    """The model is left alone for as long as it asked."""
    busy = Status(429, headers={"Retry-After": "77"})
    with OpenAIServer(busy) as bad, OpenAIServer(Reply("two")) as good:
        breaker = CircuitBreaker(failure_threshold=1, clock=lambda: 0.0)
        model = routed(bad.base_url, good.base_url, breaker=breaker)
        ask(form, model)
        assert told(model)["retry_after"] == 77.0
        assert ask(form, model).response_metadata["easyrag"]["asked"] == ["b"]


@pytest.mark.parametrize("form", STREAM_FORMS)
@pytest.mark.parametrize("end", [HANG, CUT, MALFORMED], ids=["stall", "cut", "malformed"])
def test_what_breaks_after_twenty_tokens(routed, ask, form, end):
    """Is told with the text, or begun anew such that the sum is the second answer alone."""
    limits = {"stall_timeout": SHORT} if end is HANG else {}
    with OpenAIServer(Stream([*TOKENS, end])) as bad, OpenAIServer(Reply("two")) as good:
        seen = []
        with pytest.raises(StreamInterruptedError) as error:
            ask(form, routed(bad.base_url, good.base_url, limits=limits), seen)
        assert total(seen).text == error.value.partial == "".join(TOKENS)
        assert good.requests == []
        model = routed(bad.base_url, good.base_url, limits=limits, mid_stream="restart")
        seen.clear()
        assert ask(form, model, seen).text == "two"
        [reset] = [each for each in seen if "easyrag_reset" in each.response_metadata]
        assert reset.response_metadata["easyrag_reset"]["partial"] == "".join(TOKENS)


@pytest.mark.parametrize("form", STREAM_FORMS)
def test_a_cut_answer_is_continued(routed, ask, form):
    """The second is sent what is there as the last message, and goes on from it."""
    with OpenAIServer(Stream(["Hel", CUT])) as bad, OpenAIServer(Reply("lo")) as good:
        model = routed(bad.base_url, good.base_url, mid_stream="continue")
        assert ask(form, model).text == "Hello"
        assert good.requests[0].json["messages"][-1] == {"role": "assistant", "content": "Hel"}


@pytest.mark.parametrize("form", [*WHOLE_FORMS, *STREAM_FORMS])
def test_tool_calls_are_an_answer(routed, ask, form):
    """Whole, and in deltas of which none has text."""
    calls = ToolCalls(ToolCall("weather", {"city": "Oslo"}), letters=4)
    with OpenAIServer(Reply("")) as bad, OpenAIServer(calls) as good:
        answer = ask(form, routed(bad.base_url, good.base_url).bind_tools([TOOL]))
        assert [call["args"] for call in answer.tool_calls] == [{"city": "Oslo"}]
        assert answer.response_metadata["easyrag"]["candidate"] == "b"
        assert all(request.json["tools"] for request in bad.requests + good.requests)


def test_an_answer_that_is_left_is_closed_on_the_wire(routed, http):
    """Whoever stops reading frees the connection at once, and says nothing about the model."""

    async def leave(model, server):
        stream = model.astream("Hi")
        await anext(stream)
        await stream.aclose()
        await asyncio.to_thread(server.wait_until, lambda: server.disconnects == 1)
        return len(asyncio.all_tasks())

    with OpenAIServer(Stream(["one", HANG])) as server, OpenAIServer([]) as other:
        model = routed(server.base_url, other.base_url)
        assert http.runner.run(leave(model, server)) == 1
        assert told(model)["cancelled"] == 1
        assert told(model)["failures"] == {}


def _failing(seed, count):
    """Three of ten questions fail, in one of three ways."""
    random = Random(seed)
    ways = [lambda _: Status(503), lambda _: Stream([CUT]), lambda _: Reply("")]
    chosen = {str(n): random.choice(ways) for n in random.sample(range(count), count * 3 // 10)}

    def answer(request):
        name = request.json["messages"][-1]["content"]
        return chosen.get(name, _whole)(name)

    return answer


def _whole(name):
    return Stream([name, " is", " whole"])


def _echo(request):
    return _whole(request.json["messages"][-1]["content"])


def test_two_hundred_streams_over_a_failing_first_model(http, routed):
    """Every answer is whole, none is mixed, nothing is left: no task, no connection."""

    async def one(model, name):
        return "".join([chunk.text async for chunk in model.astream(name)])

    async def run(model):
        said = await asyncio.gather(*(one(model, str(n)) for n in range(200)))
        # The client drops generators of its own, which the loop closes in its next rounds.
        for _ in range(1000):
            await asyncio.sleep(0)
        return said, len(asyncio.all_tasks())

    with OpenAIServer(_failing(7, 200)) as bad, OpenAIServer(_echo) as good:
        breaker = CircuitBreaker(failure_threshold=1000)
        model = routed(bad.base_url, good.base_url, breaker=breaker)
        said, tasks = http.runner.run(run(model))
        assert said == [f"{n} is whole" for n in range(200)]
        assert tasks == 1
        assert sum(told(model)["failures"].values()) == 60
        assert told(model)["successes"] == 140
        http.runner.run(http.awaited.aclose())
        for server in (bad, good):
            server.wait_until(lambda server=server: server.open_connections == 0)


def test_forty_streams_in_threads_over_a_failing_first_model(http, routed):
    """The same from eight threads, with a thread of the router behind each."""

    def one(name):
        return "".join(chunk.text for chunk in model.stream(name))

    with OpenAIServer(_failing(8, 40)) as bad, OpenAIServer(_echo) as good:
        breaker = CircuitBreaker(failure_threshold=1000)
        model = routed(bad.base_url, good.base_url, breaker=breaker)
        with ThreadPoolExecutor(8) as pool:
            said = list(pool.map(one, map(str, range(40))))
        assert said == [f"{n} is whole" for n in range(40)]
        assert sum(told(model)["failures"].values()) == 12
        http.plain.close()
        for server in (bad, good):
            server.wait_until(lambda server=server: server.open_connections == 0)
