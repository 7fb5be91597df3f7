"""The router over real clients and a server that fails by script, in both forms."""

from __future__ import annotations

import asyncio
import threading

import pytest

from easyrag_core import (
    CircuitBreaker,
    ModelCandidate,
    ModelRouter,
    ModelUnavailableError,
    StreamInterruptedError,
    StreamReset,
)
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

openai = pytest.importorskip("openai")
pytest.importorskip("langchain_openai")
pytest.importorskip("llama_index.llms.openai_like")

from tests.peers.routed_clients import CLIENTS, http_clients  # noqa: E402 - only where the clients are

SHORT = 0.15
TOKENS = [f"t{number} " for number in range(20)]

FAILING = {
    "401": (Status(401), "authentication"),
    "403": (Status(403), "permission"),
    "404": (Status(404), "not_found"),
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


OPENAI, LANGCHAIN, LLAMAINDEX = CLIENTS
PAIRS = [(OPENAI, "sync"), (OPENAI, "async"), (LANGCHAIN, "async"), (LLAMAINDEX, "sync")]


@pytest.fixture(params=PAIRS, ids=lambda pair: f"{pair[0].name}-{pair[1]}")
def pair(request):
    """A client and the form in which it is asked."""
    return request.param


@pytest.fixture
def client(pair):
    return pair[0]


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
def read(pair, http):
    """Reads a stream of a router, chunk by chunk into a list."""
    client, form = pair

    def read_sync(router, seen):
        for chunk in router.stream(lambda c, _: c.model.open(), client.reader):
            seen.append(chunk)

    async def read_async(router, seen):
        async for chunk in router.astream(lambda c, _: c.model.aopen(), client.reader):
            seen.append(chunk)

    def run(router, seen=None):
        seen = [] if seen is None else seen
        read_sync(router, seen) if form == "sync" else http.runner.run(read_async(router, seen))
        return seen

    run.form = form
    return run


@pytest.fixture
def router_of(client, http):
    """Makes a router; its first model has limits, which are short only to be reached."""

    def make(*urls, limits=(), **settings):
        candidates = [
            ModelCandidate(name, client(url, http), **(dict(limits) if name == "a" else {}))
            for name, url in zip("ab", urls, strict=False)
        ]
        return ModelRouter(candidates, **settings)

    return make


def text(client, chunks):
    return "".join(map(client.reader.text_of, chunks))


def told(router):
    return router.snapshot()["candidates"][0]


@pytest.mark.parametrize(("action", "kind"), FAILING.values(), ids=FAILING)
def test_a_failure_before_the_first_content(client, router_of, read, action, kind):
    """The failure has its class, the stream of the second is whole, no request hangs."""
    limits = {"first_token_timeout": SHORT} if kind == "timeout" else {}
    with OpenAIServer(action) as bad, OpenAIServer(Stream(["two", "\n\n", "!"])) as good:
        router = router_of(bad.base_url, good.base_url, limits=limits)
        assert text(client, read(router)) == "two\n\n!"
        assert told(router)["failures"] == {kind: 1}
        good.wait_idle()
        if kind != "timeout" or read.form == "async":
            bad.wait_idle()


def test_nobody_listens(client, router_of, read):
    """A refused connection is an outage: two of them, and it is left alone."""
    with refused_url() as refused, OpenAIServer(Reply("two")) as good:
        router = router_of(refused, good.base_url)
        for _ in range(3):
            assert text(client, read(router)) == "two"
        assert told(router)["failures"] == {"connection": 2}
        assert told(router)["state"] == "open"


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_late_request_is_cancelled_on_the_wire(client, router_of, http):
    """The async form closes the connection at its deadline, while the server still waits."""

    async def run(router):
        chunks = router.astream(lambda c, _: c.model.aopen(), client.reader)
        return [chunk async for chunk in chunks]

    with (
        OpenAIServer(Stream([KEEP_ALIVE, HANG])) as bad,
        OpenAIServer(Reply("two")) as good,
    ):
        # Long enough for the request to be under way on a busy machine.
        limits = {"first_token_timeout": 4 * SHORT}
        router = router_of(bad.base_url, good.base_url, limits=limits)
        assert text(client, http.runner.run(run(router))) == "two"
        assert len(bad.requests) == 1
        bad.wait_until(lambda: bad.disconnects == 1)
        bad.wait_until(lambda: bad.open_connections == 0)


def test_a_bad_request_reaches_the_caller(client, router_of, read):
    """With the client's own error; nobody else is bothered."""
    with OpenAIServer(Status(400)) as bad, OpenAIServer(Reply("two")) as good:
        router = router_of(bad.base_url, good.base_url)
        with pytest.raises(Exception, match="scripted 400") as error:
            read(router)
        assert not isinstance(error.value, ModelUnavailableError)
        assert good.requests == []
        assert told(router)["state"] == "closed"


def test_a_retry_after_is_obeyed(client, router_of, read):
    """As the server said it, not as the breaker would have it."""
    answer = Status(429, headers={"Retry-After": "77"})
    with OpenAIServer(answer) as bad, OpenAIServer(Reply("two")) as good:
        breaker = CircuitBreaker(failure_threshold=1, clock=lambda: 0.0)
        router = router_of(bad.base_url, good.base_url, breaker=breaker)
        read(router)
        assert told(router)["retry_after"] == 77.0


@pytest.mark.parametrize("end", [HANG, CUT, MALFORMED], ids=["stall", "cut", "malformed"])
def test_what_breaks_after_twenty_tokens_is_told_with_them(client, router_of, read, end):
    """All that was sent reaches the caller, and once more in the error."""
    with OpenAIServer(Stream([*TOKENS, end])) as bad, OpenAIServer(Reply("two")) as good:
        limits = {"stall_timeout": SHORT} if end is HANG else {}
        seen, router = [], router_of(bad.base_url, good.base_url, limits=limits)
        with pytest.raises(StreamInterruptedError) as error:
            read(router, seen)
        assert text(client, seen) == error.value.partial == "".join(TOKENS)
        assert good.requests == []


def test_what_breaks_after_twenty_tokens_is_begun_anew(client, router_of, read):
    """Behind a reset stands the whole answer of the second."""
    with OpenAIServer(Stream([*TOKENS, CUT])) as bad, OpenAIServer(Reply("two")) as good:
        router = router_of(bad.base_url, good.base_url, mid_stream="restart")
        seen = read(router)
        [at] = [n for n, chunk in enumerate(seen) if isinstance(chunk, StreamReset)]
        assert text(client, seen[:at]) == seen[at].partial == "".join(TOKENS)
        assert text(client, seen[at + 1 :]) == "two"


def test_tool_calls_are_content(client, router_of, read):
    """In deltas, from the second model: the first was blank."""
    calls = ToolCalls(ToolCall("weather", {"city": "Oslo"}), letters=4)
    with OpenAIServer(Reply("")) as bad, OpenAIServer(calls) as good:
        chunks = read(router_of(bad.base_url, good.base_url))
        assert any(map(client.more, chunks))
        assert text(client, chunks) == ""


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
@pytest.mark.parametrize("limit", [None, 30.0])
@pytest.mark.parametrize("action", [Status(500), Reply("")], ids=["500", "blank"])
def test_whole_answers(client, router_of, action, limit):
    """Calls that are no streams go the same way."""
    with OpenAIServer(action) as bad, OpenAIServer(Reply("two")) as good:
        router = router_of(bad.base_url, good.base_url, total_timeout=limit)
        said = router.call(lambda c: c.model.ask(), is_blank=lambda answer: not answer.strip())
        assert said == "two"


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

    async def one(router, name):
        def opened(candidate, prefill):
            asked = [{"role": "user", "content": name}]
            return candidate.model.chat.completions.create(model="m", messages=asked, stream=True)

        chunks = router.astream(opened, OPENAI.reader)
        return text(OPENAI, [chunk async for chunk in chunks])

    async def run(bad, good):
        settings = {"api_key": "key", "max_retries": 0}
        async with (
            openai.AsyncOpenAI(base_url=bad.base_url, **settings) as first,
            openai.AsyncOpenAI(base_url=good.base_url, **settings) as second,
        ):
            candidates = [ModelCandidate("a", first), ModelCandidate("b", second)]
            breaker = CircuitBreaker(failure_threshold=1000)
            router = ModelRouter(candidates, breaker=breaker)
            said = await asyncio.gather(*(one(router, str(n)) for n in range(200)))
            # The client drops generators of its own, which the loop closes in its next rounds.
            for _ in range(1000):
                await asyncio.sleep(0)
            assert len(asyncio.all_tasks()) == 1
        return said, told(router)

    with (
        OpenAIServer(answer) as bad,
        OpenAIServer(lambda r: Stream([r.json["messages"][0]["content"], " is whole"])) as good,
    ):
        said, first = asyncio.run(run(bad, good))
        assert said == [f"{n} is whole" for n in range(200)]
        assert first["failures"] == {"blank": 20, "connection": 20, "server": 20}
        assert first["successes"] == 140
        for server in (bad, good):
            server.wait_until(lambda server=server: server.open_connections == 0)
