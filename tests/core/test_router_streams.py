"""The router's streams: held until the first content, watched after it, in both forms."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import statistics
import threading
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core import (
    CircuitBreaker,
    CircuitOpenError,
    DeltaReader,
    FirstTokenTimeoutError,
    InvalidParameterError,
    ModelUnavailableError,
    StreamInterruptedError,
    StreamReset,
)
from tests.core.routing_forms import (
    FORMS,
    HANG,
    PATIENT,
    READER,
    ROLE,
    SHORT,
    TOOL,
    Async,
    Clock,
    Model,
    Sync,
    routed,
    text_of,
)

CUT = ConnectionError("cut")


@pytest.fixture(params=FORMS, ids=lambda form: form.name)
def form(request):
    made = request.param()
    yield made
    made.close()


def told(router, name="a"):
    return next(each for each in router.snapshot()["candidates"] if each["name"] == name)


def reads_with_a_thread(**more):
    """Both ways in which a sync stream is read."""
    return pytest.mark.parametrize("patience", [None, PATIENT], **more)


@reads_with_a_thread()
def test_chunks_pass_unchanged_and_in_order(form, patience):
    """White space, roles and ends without text are all there, where they were."""
    chunks = [ROLE, "", "\n\n", "a", "\n\n", " ", "", TOOL, "b\n", ROLE]
    router = routed(Model(chunks), first_token_timeout=patience)
    assert form.stream(router) == chunks
    assert told(router)["successes"] == 1


@pytest.mark.parametrize(
    "before",
    [[], [ROLE], [ROLE, "", "", ROLE], ["\n\n"]],
    ids=["nothing", "role", "empties", "white space"],
)
@pytest.mark.parametrize("end", [CUT, HANG, None], ids=["cut", "silent", "over"])
def test_before_the_first_content_the_next_model_starts(form, before, end):
    """Whatever came is dropped with the model that sent it, its stream is closed."""
    first = Model(before if end is None else [*before, end])
    router = routed(first, Model([ROLE, "two"]), settings={"first_token_timeout": SHORT})
    assert form.stream(router) == [ROLE, "two"]
    kinds = {CUT: "connection", HANG: "timeout", None: "blank"}
    assert told(router)["failures"] == {kinds[end]: 1}
    form.close()
    if end is not HANG or isinstance(form, Async):
        assert first.closed == 1


@pytest.mark.parametrize("empty", ["", ROLE])
def test_a_flood_of_empty_chunks_is_no_content(form, empty):
    """Chunks that never pause do not push the deadline away."""

    class Flood(Model):
        def next_turn(self):
            return iter(lambda: empty, None)

    router = routed(Flood(), Model(["two"]), settings={"first_token_timeout": SHORT})
    assert form.stream(router) == ["two"]
    assert told(router)["failures"] == {"timeout": 1}


@pytest.mark.parametrize("first", [[TOOL], ["x"], [" x"]], ids=str)
def test_tool_calls_and_text_are_content(form, first):
    """They end the wait: what breaks later is an interruption."""
    with pytest.raises(StreamInterruptedError):
        form.stream(routed(Model([ROLE, *first, CUT]), Model(["two"])))


def test_when_nobody_gives_content_in_time(form):
    """It is a `TimeoutError` that names everybody."""
    router = routed(Model([HANG]), Model([ROLE, HANG]), first_token_timeout=SHORT)
    with pytest.raises(TimeoutError) as error:
        form.stream(router)
    assert isinstance(error.value, FirstTokenTimeoutError)
    assert list(error.value.attempts) == ["a", "b"]
    assert all(isinstance(e, FirstTokenTimeoutError) for e in error.value.attempts.values())
    with pytest.raises(ModelUnavailableError) as error:
        form.stream(routed(Model([HANG]), Model([CUT]), first_token_timeout=SHORT))
    assert not isinstance(error.value, FirstTokenTimeoutError)


def test_after_the_first_content_the_partial_text_is_told(form):
    """Nobody else is asked; what came stays, the cause is the model's own error."""
    second, seen = Model(["two"]), []
    router = routed(Model([ROLE, "hal", "\n", "f", CUT]), second)
    with pytest.raises(StreamInterruptedError) as error:
        form.stream(router, seen)
    assert seen == [ROLE, "hal", "\n", "f"]
    assert error.value.partial == "hal\nf"
    assert error.value.__cause__ is CUT
    assert error.value.attempts == {"a": CUT}
    assert second.calls == 0
    assert told(router)["failures"] == {"connection": 1}


@pytest.mark.parametrize("limit", ["stall_timeout", "total_timeout"])
def test_a_stall_after_twenty_tokens(form, limit):
    """Silence in mid-stream ends like an error."""
    seen = []
    router = routed(Model([*["x"] * 20, HANG]), Model(["two"]), **{limit: SHORT})
    with pytest.raises(StreamInterruptedError) as error:
        form.stream(router, seen)
    assert (len(seen), error.value.partial) == (20, "x" * 20)
    assert isinstance(error.value.__cause__, TimeoutError)
    assert "fell silent" in str(error.value.__cause__)
    assert told(router)["failures"] == {"timeout": 1}


def test_the_total_time_holds_for_a_stream_that_never_pauses(form):
    """Endless chatter ends as well."""

    class Chatter(Model):
        def next_turn(self):
            return iter(lambda: "x", None)

    with pytest.raises(StreamInterruptedError):
        form.stream(routed(Chatter(), total_timeout=SHORT))


def test_a_readers_pauses_are_not_the_models_time(form):
    """However long each of them is, and however short the model's time."""
    clock = Clock()
    router = routed(
        Model(["x", " ", "y", "z"]),
        total_timeout=PATIENT,
        stall_timeout=PATIENT,
        breaker=CircuitBreaker(failure_threshold=1, clock=clock),
    )

    class Slow(list):
        def append(self, chunk):
            super().append(chunk)
            clock.now += 10 * PATIENT

    assert form.stream(router, Slow()) == ["x", " ", "y", "z"]
    assert router.snapshot()["candidates"][0]["state"] == "closed"


def test_the_models_own_time_counts_beside_its_readers():
    """A reader's pauses give it no more; without threads it is certain who lets time pass."""
    clock = Clock()

    class Read(list):
        def append(self, chunk):
            super().append(chunk)
            clock.now += 10 * PATIENT

    class Slow(Model):
        def next_turn(self):
            for chunk in "abcde":
                clock.now += 0.4 * PATIENT
                yield chunk

    seen = Read()
    router = routed(Slow(), total_timeout=PATIENT, breaker=CircuitBreaker(clock=clock))
    with pytest.raises(StreamInterruptedError):
        Async().stream(router, seen)
    assert seen == ["a", "b"]


def test_a_restart_is_told_before_the_new_chunks(form):
    """What came before is void; chunks that are held come after the reset."""
    router = routed(
        Model(["half", CUT]), Model([ROLE, CUT]), Model([ROLE, "whole"]), mid_stream="restart"
    )
    seen = form.stream(router)
    assert seen == ["half", StreamReset("c", "half", seen[1].error), ROLE, "whole"]
    assert [told(router, name)["successes"] for name in "abc"] == [0, 0, 1]


def test_a_restart_that_breaks_again(form):
    """Each reset voids what came before it, and the last partial text is the one that is told."""
    seen = []
    router = routed(Model(["one", CUT]), Model(["two", CUT]), mid_stream="restart")
    with pytest.raises(StreamInterruptedError) as error:
        form.stream(router, seen)
    assert [c.partial if isinstance(c, StreamReset) else c for c in seen] == ["one", "one", "two"]
    assert error.value.partial == "two"
    assert list(error.value.attempts) == ["a", "b"]


def test_without_a_second_model_nothing_is_reset(form):
    """The partial text stays what it is."""
    seen = []
    with pytest.raises(StreamInterruptedError) as error:
        form.stream(routed(Model(["one", CUT]), Model([CUT]), mid_stream="restart"), seen)
    assert seen == ["one"]
    assert error.value.partial == "one"


def test_a_continuation_gets_the_partial_text(form):
    """Twice, each with all that there is so far; the chunks make one text."""
    models = Model(["a", CUT]), Model([ROLE, "b", CUT]), Model(["c"])
    router = routed(*models, mid_stream="continue")
    assert form.stream(router) == ["a", ROLE, "b", "c"]
    assert [model.prefills for model in models] == [[""], ["a"], ["ab"]]


def test_a_tool_call_cannot_be_continued(form):
    """Half a call and a fresh one would be mixed: it is an interruption."""
    second = Model(["two"])
    with pytest.raises(StreamInterruptedError):
        form.stream(routed(Model(["a", TOOL, CUT]), second, mid_stream="continue"))
    assert second.calls == 0


def test_what_can_be_continued_is_the_readers_word():
    """A reader that knows of reasoning lets it be continued."""
    reader = DeltaReader(READER.carries_content, text_of, continuable=lambda _: True)
    router = routed(Model([TOOL, "a", CUT]), Model(["b"]), mid_stream="continue")
    assert list(router.stream(Sync().open, reader)) == [TOOL, "a", "b"]


@pytest.mark.parametrize("mid_stream", ["raise", "restart", "continue"])
def test_a_refusal_in_mid_stream_is_not_taken_to_others(form, mid_stream):
    """What does not move on before the first content does not after it."""
    refusal = type("ModelRefusalError", (Exception,), {})()
    second = Model(["two"])
    router = routed(Model(["a", refusal]), second, mid_stream=mid_stream)
    with pytest.raises(StreamInterruptedError) as error:
        form.stream(router)
    assert error.value.__cause__ is refusal
    assert second.calls == 0
    assert told(router)["state"] == "closed"


def test_a_bad_request_is_raised_as_it_is(form):
    """Before the first content the model's own error goes to the caller."""
    error = type("BadRequestError", (Exception,), {})("no")
    second = Model(["two"])
    with pytest.raises(type(error)) as raised:
        form.stream(routed(Model([ROLE, error]), second))
    assert raised.value is error
    assert second.calls == 0


def test_blank_streams_may_be_taken_as_they_are(form):
    """With all chunks that they have."""
    router = routed(Model([ROLE, "", " "]), Model(["two"]), empty="accept")
    assert form.stream(router) == [ROLE, "", " "]
    assert told(router)["successes"] == 1


def test_what_is_an_answer_without_content_is_the_readers_word(form):
    """It is taken at the regular end alone, also where another model had begun."""
    reader = replace(READER, is_answer=bool)
    first, second = Model([ROLE, CUT], [], [ROLE, ROLE]), Model(["two"])
    router = routed(first, second, breaker=CircuitBreaker(failure_threshold=3))
    read = [form.stream(router, reader=reader) for _ in range(3)]
    assert read == [["two"], ["two"], [ROLE, ROLE]]
    router = routed(Model(["half", CUT]), Model([ROLE]), mid_stream="restart")
    half, reset, role = form.stream(router, reader=reader)
    assert (half, reset.partial, role) == ("half", "half", ROLE)


def test_a_dead_model_is_left_alone_and_probed(form):
    """Streams open a circuit like calls, and close it at their end."""
    clock = Clock()
    first = Model([CUT], ["x", CUT], ["back"])
    router = routed(first, Model(["two"]), breaker=CircuitBreaker(clock=clock))
    assert form.stream(router) == ["two"]
    with pytest.raises(StreamInterruptedError):
        form.stream(router)
    assert [form.stream(router) for _ in range(3)] == [["two"]] * 3
    clock.now += 30
    assert form.stream(router) == ["back"]
    assert told(router)["state"] == "closed"
    with pytest.raises(CircuitOpenError):
        form.stream(_opened(form))


def _opened(form):
    router = routed(Model([CUT]), breaker=CircuitBreaker(failure_threshold=1))
    with pytest.raises(ModelUnavailableError):
        form.stream(router)
    return router


@reads_with_a_thread()
def test_a_stream_that_is_left_frees_its_place(form, patience):
    """In half-open, too: no failure, no success, the next caller probes, the stream is closed."""
    clock = Clock()
    first = Model([CUT], [CUT], ["a", "b", "c"])
    router = routed(
        first,
        Model(["two"]),
        breaker=CircuitBreaker(clock=clock),
        first_token_timeout=patience,
    )
    assert [form.stream(router) for _ in range(2)] == [["two"]] * 2
    clock.now += 30
    assert form.read(router, 1) == ["a"]
    assert (told(router)["state"], told(router)["cancelled"]) == ("half_open", 1)
    assert form.stream(router) == ["a", "b", "c"]
    assert told(router)["state"] == "closed"


def test_wrong_requests_are_refused_at_once():
    """Not at the first chunk, which may be asked for elsewhere."""
    router = routed(Model(["a"]))
    for stream in (router.stream, router.astream):
        with pytest.raises(InvalidParameterError, match="'a'"):
            stream(None, READER, model="b")


def test_the_time_to_the_first_token_is_kept(form):
    """Last, mean and median of what the clock said."""
    clock = Clock()

    class Slow(Model):
        def next_turn(self):
            clock.now += super().next_turn()
            return [ROLE, "x"]

    router = routed(Slow(1.0, 2.0, 6.0), breaker=CircuitBreaker(clock=clock))
    for _ in range(3):
        form.stream(router)
    assert told(router)["first_token_seconds"] == {"last": 6.0, "mean": 3.0, "p50": 2.0}


def test_events_of_a_stream(form):
    """First token, switch in mid-stream, and the ends of both attempts."""
    heard = []
    router = routed(Model(["a", CUT]), Model(["b"]), mid_stream="restart", on_event=heard.append)
    form.stream(router)
    names = [event.name.removeprefix("easyrag.routing.") for event in heard]
    assert names == ["first_token", "attempt", "first_token", "switched", "attempt"]
    assert heard[3].attributes == {
        "gen_ai.request.model": "b",
        "easyrag.routing.mid_stream": "restart",
    }


# What only one of the forms can do.


def test_a_cancelled_task_ends_as_cancelled():
    """While it waits for the first token, and in mid-stream: never swallowed, stream closed."""

    async def run(turn):
        first, second, form = Model(turn), Model(["two"]), Async()
        router = routed(first, second)
        waiting = asyncio.Event()

        async def opened(candidate, prefill):
            async for chunk in form.open(candidate, prefill):
                if chunk == ROLE:
                    waiting.set()
                yield chunk

        async def read():
            return [chunk async for chunk in router.astream(opened, READER)]

        task = asyncio.create_task(read())
        await waiting.wait()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()
        assert (first.closed, second.calls) == (1, 0)
        assert told(router)["cancelled"] == 1

    for turn in ([ROLE, HANG], ["a", ROLE, HANG]):
        asyncio.run(run(turn))


def test_a_coroutine_that_gives_the_stream_is_awaited_in_time():
    """As LlamaIndex's models open streams; what has only `close` is closed by that."""

    class Closable:
        closed = False

        async def __aiter__(self):
            yield "two"

        async def close(self):
            self.closed = True

    async def run():
        stream = Closable()

        async def opened(candidate, prefill):
            if candidate.name == "a":
                await asyncio.Event().wait()
            return stream

        router = routed(Model(), Model(), settings={"first_token_timeout": SHORT})
        assert [chunk async for chunk in router.astream(opened, READER)] == ["two"]
        assert stream.closed

    asyncio.run(run())


def test_the_callers_context_reaches_the_thread():
    """Tracing depends on it."""
    caller = contextvars.ContextVar("caller", default="nobody")
    caller.set("me")
    router = routed(Model(), first_token_timeout=PATIENT)
    told_by = list(router.stream(lambda *_: iter([caller.get()]), READER))
    assert told_by == ["me"]


def test_a_slow_reader_makes_the_model_wait():
    """The thread runs a few chunks ahead, not the whole stream, and ends when it is left."""
    made, closed = [], threading.Event()

    def opened(candidate, prefill):
        try:
            for number in range(10_000):
                made.append(number)
                yield "x"
        finally:
            closed.set()

    chunks = routed(Model()).stream(opened, READER)
    next(chunks)
    assert len(made) < 50
    chunks.close()
    assert closed.wait(PATIENT)
    assert len(made) < 50


def test_an_abandoned_thread_closes_its_stream_once_it_is_let_go():
    """A blocked read cannot be ended from outside; nothing is left of it afterwards."""
    before, let_go, closed = threading.active_count(), threading.Event(), threading.Event()

    def opened(candidate, prefill):
        try:
            if candidate.name == "a":
                assert let_go.wait(PATIENT)
            yield candidate.name
        finally:
            closed.set()

    router = routed(Model(), Model(), settings={"first_token_timeout": SHORT})
    assert list(router.stream(opened, READER)) == ["b"]
    closed.clear()
    let_go.set()
    assert closed.wait(PATIENT)
    for thread in threading.enumerate():
        if thread.name.startswith("model "):
            thread.join(PATIENT)
    assert threading.active_count() <= before


def test_a_stream_that_fails_to_close_is_only_logged(form, caplog):
    """The answer was whole by then."""

    class Stubborn:
        def __iter__(self):
            return iter(["a"])

        async def __aiter__(self):
            yield "a"

        def close(self):
            raise OSError("busy")

    router = routed(Model())
    if isinstance(form, Sync):
        assert list(router.stream(lambda *_: Stubborn(), READER)) == ["a"]
        for thread in threading.enumerate():
            if thread.name.startswith("model "):
                thread.join(PATIENT)
    else:

        async def read():
            return [c async for c in router.astream(lambda *_: Stubborn(), READER)]

        assert asyncio.run(read()) == ["a"]
    assert "failed to close" in caplog.text
    assert told(router)["successes"] == 1


def test_a_forgotten_stream_frees_its_place():
    """A generator that nobody closes is closed with its last reference."""
    router = routed(Model(["a", "b"]))
    chunks = router.stream(Sync().open, READER)
    next(chunks)
    del chunks
    gc.collect()
    assert told(router)["cancelled"] == 1


def test_the_way_to_the_first_token_is_short():
    """Less than a millisecond of work at the median, thread and all."""
    router, costs = routed(Model([ROLE, "a", "b"])), []
    for _ in range(50):
        began = time.process_time()
        chunks = router.stream(Sync().open, READER)
        next(chunks)
        costs.append(time.process_time() - began)
        chunks.close()
    assert statistics.median(costs) < 1e-3


PIECES = st.lists(st.sampled_from(["", " ", "\n\n", "a", "文", ROLE, TOOL, CUT]), max_size=8)


def _outcome(form, streams, mid_stream):
    """What was seen, with resets by name, and how it ended."""
    seen = []
    router = routed(*map(Model, streams), mid_stream=mid_stream, first_token_timeout=None)
    try:
        form.stream(router, seen)
        ended = None
    except ModelUnavailableError as error:
        ended = error
    return seen, ended


def _valid(seen):
    """What is left when each reset has thrown away what came before it."""
    kept = []
    for chunk in seen:
        kept = [] if isinstance(chunk, StreamReset) else [*kept, chunk]
    return kept


@given(st.lists(PIECES, min_size=1, max_size=4), st.sampled_from(["raise", "restart", "continue"]))
def test_no_chunk_is_lost_mixed_or_told_twice(streams, mid_stream):
    """Both forms give the same: the first whole stream, or a partial text that is told truly."""
    seen, ended = _outcome(Sync(), streams, mid_stream)
    again, ended_again = _outcome(Async(), streams, mid_stream)
    assert _valid(seen) == _valid(again)
    assert type(ended) is type(ended_again)
    kept = _valid(seen)
    if ended is None:
        whole = [s for s in streams if CUT not in s and any(map(READER.carries_content, s))]
        assert kept[-len(whole[0]) :] == whole[0]
        assert mid_stream == "continue" or kept == whole[0]
    elif isinstance(ended, StreamInterruptedError):
        assert ended.partial == "".join(map(text_of, kept))
        assert kept
    else:
        assert seen == []
