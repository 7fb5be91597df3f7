"""Channels in parallel: one set of claims, held by the sync and by the async form."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading

import pytest

from easyrag_core import AllChannelsFailedError, InvalidParameterError, arun_channels, run_channels

caller = contextvars.ContextVar("caller", default="nobody")

# So long that only a channel that never comes makes a test fail.
PATIENT = 30.0
SHORT = 0.05


class Sync:
    """Runs channels in threads; what channels wait for are `threading` things."""

    name = "sync"

    def __init__(self):
        self.loose = threading.Event()

    def run(self, calls, **settings):
        return run_channels(calls, **settings)

    def giving(self, value):
        return lambda: value

    def raising(self, error):
        def call():
            raise error

        return call

    def hanging(self):
        return lambda: self.loose.wait(PATIENT)

    def meeting(self, count):
        """Calls of which none returns before all have begun."""
        barrier = threading.Barrier(count)
        return [lambda: barrier.wait(PATIENT) >= 0 for _ in range(count)]

    def in_turn(self, count, order):
        """Calls that end one after the other, in an order that is not that of their start."""
        ended = [threading.Event() for _ in range(count)]
        before = {order[0]: None} | dict(zip(order[1:], order, strict=False))

        def call(number):
            if before[number] is not None:
                assert ended[before[number]].wait(PATIENT)
            ended[number].set()
            return number

        return [lambda n=n: call(n) for n in range(count)]

    def telling_context(self):
        return lambda: (caller.get(), caller.set("channel"))[0]


class Async:
    """The same as tasks of one event loop."""

    name = "async"

    def run(self, calls, **settings):
        return asyncio.run(arun_channels(calls, **settings))

    def giving(self, value):
        async def call():
            return value

        return call

    def raising(self, error):
        async def call():
            raise error

        return call

    def hanging(self):
        async def call():
            await asyncio.Event().wait()

        return call

    def meeting(self, count):
        begun = []

        async def call():
            begun.append(1)
            if len(begun) == count:
                for waiting in begun[:-1]:
                    waiting.set()
                return True
            begun[-1] = asyncio.Event()
            await begun[-1].wait()
            return True

        return [call] * count

    def in_turn(self, count, order):
        ended = {number: asyncio.Event() for number in range(count)}
        before = {order[0]: None} | dict(zip(order[1:], order, strict=False))

        def call(number):
            async def run():
                if before[number] is not None:
                    await ended[before[number]].wait()
                ended[number].set()
                return number

            return run

        return [call(number) for number in range(count)]

    def telling_context(self):
        async def call():
            return (caller.get(), caller.set("channel"))[0]

        return call


@pytest.fixture(params=[Sync, Async], ids=lambda form: form.name)
def form(request):
    made = request.param()
    yield made
    if isinstance(made, Sync):
        made.loose.set()


def test_answers_come_in_the_order_given(form):
    """The order is that of the calls, whichever ends first."""
    calls = dict(zip("abcd", form.in_turn(4, [2, 3, 0, 1]), strict=True))
    outcome = form.run(calls, timeout=PATIENT)
    assert list(outcome.results.items()) == [("a", 0), ("b", 1), ("c", 2), ("d", 3)]
    assert outcome.errors == {}


@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize("timeout", [PATIENT, None])
def test_channels_run_at_once(form, count, timeout):
    """Channels that wait for each other all answer: none waits for another's end."""
    calls = dict(enumerate(form.meeting(count)))
    assert form.run(calls, timeout=timeout).results == dict.fromkeys(range(count), True)


@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize("timeout", [PATIENT, None])
def test_channels_carry_the_callers_context(form, calls, timeout):
    """Each channel sees the caller's context variables; with company, what it sets is its own."""
    token = caller.set("me")
    try:
        outcome = form.run({n: form.telling_context() for n in range(calls)}, timeout=timeout)
        assert outcome.results == dict.fromkeys(range(calls), "me")
        if calls > 1:
            assert caller.get() == "me"
    finally:
        caller.reset(token)


@pytest.mark.parametrize("value", [None, [], 0, "", [1, 2]], ids=repr)
def test_any_answer_is_an_answer(form, value):
    """`None` and empty answers are results, not failures."""
    outcome = form.run({"a": form.giving(value)})
    assert outcome.results == {"a": value}


def test_no_channels_no_answer(form):
    """Nothing asked, nothing answered, no error."""
    outcome = form.run({})
    assert (outcome.results, outcome.errors) == ({}, {})


def test_a_failing_channel_is_left_out(form, caplog):
    """The others answer; the error is kept as it was raised, and a warning names the channel."""
    failure = RuntimeError("no network")
    calls = {"a": form.giving(1), "b": form.raising(failure), "c": form.giving(3)}
    with caplog.at_level(logging.WARNING):
        outcome = form.run(calls)
    assert outcome.results == {"a": 1, "c": 3}
    assert list(outcome.errors) == ["b"]
    assert outcome.errors["b"] is failure
    [record] = caplog.records
    assert (record.levelname, record.name) == ("WARNING", "easyrag_core.pipeline")
    assert "'b'" in record.message
    assert "no network" in record.message


def test_a_hanging_channel_is_left_out(form, caplog):
    """After its time it is a `TimeoutError` that names the channel and the time it had."""
    calls = {"a": form.hanging(), "b": form.giving(2)}
    with caplog.at_level(logging.WARNING):
        outcome = form.run(calls, timeout=SHORT)
    assert outcome.results == {"b": 2}
    assert type(outcome.errors["a"]) is TimeoutError
    assert str(outcome.errors["a"]) == f"channel 'a' gave no answer within {SHORT} seconds"
    assert len(caplog.records) == 1


def test_a_lone_hanging_channel_is_late_too(form):
    """A single call has its timeout as well."""
    with pytest.raises(AllChannelsFailedError, match="gave no answer within"):
        form.run({"a": form.hanging()}, timeout=SHORT)


def test_a_channels_own_timeout_error_stays_its_own(form):
    """A `TimeoutError` of the channel, also one without words, is not taken for ours."""
    failure = TimeoutError()
    outcome = form.run({"a": form.raising(failure), "b": form.giving(1)}, timeout=PATIENT)
    assert outcome.errors["a"] is failure


def test_when_all_fail_all_errors_are_told(form):
    """The error holds every channel's error, in the order given, and says them."""
    failures = {"b": ValueError("one"), "a": KeyError("two")}
    calls = {name: form.raising(failure) for name, failure in failures.items()}
    with pytest.raises(AllChannelsFailedError, match=r"b: ValueError.*a: KeyError") as raised:
        form.run(calls)
    assert list(raised.value.errors) == ["b", "a"]
    assert all(raised.value.errors[name] is failures[name] for name in failures)


@pytest.mark.parametrize("failure", [RuntimeError("x"), TimeoutError(), OSError(5, "io")], ids=repr)
def test_strict_raises_the_channels_own_error(form, failure, caplog):
    """The very object that the first failing channel raised; no warning is needed then."""
    calls = {
        "a": form.giving(1),
        "b": form.raising(failure),
        "c": form.raising(ValueError("later")),
    }
    with caplog.at_level(logging.WARNING), pytest.raises(type(failure)) as raised:
        form.run(calls, strict=True)
    assert raised.value is failure
    assert caplog.records == []


def test_strict_raises_for_a_late_channel(form):
    """Under `strict` late is an error like any other."""
    with pytest.raises(TimeoutError, match="channel 'a'"):
        form.run({"a": form.hanging(), "b": form.giving(1)}, timeout=SHORT, strict=True)


class Interruption(BaseException):
    """No `Exception`: it asks for more than to leave a channel out."""


@pytest.mark.parametrize(
    "interruption",
    [KeyboardInterrupt("stop"), SystemExit(3), asyncio.CancelledError(), Interruption()],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("company", ["nobody", "an answer", "a hanging one"])
def test_what_is_no_exception_is_raised(form, interruption, strict, company):
    """An interruption inside a channel is the caller's, as it is: no warning, no other answer."""
    calls = {"a": form.raising(interruption)}
    if company == "an answer":
        calls = {"b": form.giving(1), **calls}
    if company == "a hanging one":
        calls["c"] = form.hanging()
    patience = SHORT if isinstance(interruption, asyncio.CancelledError) else PATIENT
    with pytest.raises(type(interruption)) as raised:
        form.run(calls, timeout=patience, strict=strict)
    if not isinstance(form, Async) or not isinstance(interruption, asyncio.CancelledError):
        assert raised.value is interruption


def test_an_interruption_is_raised_without_a_timeout_too(form):
    """Where channels may take for ever, an interruption does not wait for them."""
    calls = {"a": form.raising(KeyboardInterrupt()), "b": form.hanging()}
    with pytest.raises(KeyboardInterrupt):
        form.run(calls, timeout=None)


@pytest.mark.parametrize(
    "timeout", [0, -1, 0.0, float("nan"), float("-inf"), "15", True, [1]], ids=repr
)
def test_timeouts_that_are_none_are_refused(form, timeout):
    """Before any channel runs, with a typed error that says what is allowed."""
    ran = []
    calls = {"a": form.giving(1), "b": lambda: ran.append(1)}
    with pytest.raises(InvalidParameterError, match="seconds above 0, or None") as refused:
        form.run(calls, timeout=timeout)
    assert refused.value.name == "timeout"
    assert ran == []


@pytest.mark.parametrize("timeout", [None, 1, 2.5, 1e12, float("inf")], ids=repr)
def test_timeouts_that_are_allowed(form, timeout):
    """No timeout, small and huge ones."""
    assert form.run({"a": form.giving(1), "b": form.giving(2)}, timeout=timeout).errors == {}


# What only one of them can show


def test_a_single_call_without_timeout_stays_in_the_callers_thread():
    """Nothing runs beside it, so no thread is made."""
    outcome = run_channels({"a": threading.get_ident}, timeout=None)
    assert outcome.results == {"a": threading.get_ident()}


def test_threads_are_named_and_do_not_hold_the_process():
    """A late thread is a daemon that tells which channel it was."""
    outcome = run_channels({"web": threading.current_thread})
    assert outcome.results["web"].daemon
    assert "web" in outcome.results["web"].name


def test_a_late_answer_is_thrown_away():
    """What a channel gives after its time changes nothing."""
    go, ended = threading.Event(), threading.Event()

    def late():
        go.wait(PATIENT)
        ended.set()
        return "late"

    outcome = run_channels({"a": late, "b": lambda: 1}, timeout=SHORT)
    go.set()
    assert ended.wait(PATIENT)
    assert outcome.results == {"b": 1}


async def test_a_late_task_is_cancelled():
    """A task that is late is ended, not left behind."""
    ended = []

    async def late():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def quick():
        return 1

    outcome = await arun_channels({"a": late, "b": quick}, timeout=SHORT)
    assert outcome.results == {"b": 1}
    assert ended == ["cancelled"]


@pytest.mark.parametrize("strict", [False, True])
async def test_cancelling_the_caller_cancels_the_channels(strict, caplog):
    """The cancellation reaches every channel, and goes on."""
    begun, ended = [], []
    all_begun = asyncio.Event()

    async def channel():
        begun.append(1)
        if len(begun) == 3:
            all_begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append(1)
            raise

    calls = dict.fromkeys("abc", channel)
    task = asyncio.create_task(arun_channels(calls, timeout=PATIENT, strict=strict))
    await all_begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert len(ended) == 3
    assert caplog.records == []


async def test_channels_of_many_callers_do_not_mix():
    """Concurrent calls answer each for itself."""

    async def ask(number):
        async def channel(add):
            await asyncio.get_running_loop().run_in_executor(None, lambda: None)
            return number + add

        calls = {"a": lambda: channel(0), "b": lambda: channel(100)}
        return (await arun_channels(calls)).results

    found = await asyncio.gather(*(ask(number) for number in range(10)))
    assert found == [{"a": number, "b": number + 100} for number in range(10)]


async def test_what_is_not_awaitable_is_the_channels_failure():
    """A call that gives no awaitable is left out like one that raises."""

    async def good():
        return 1

    outcome = await arun_channels({"a": lambda: 7, "b": good})
    assert outcome.results == {"b": 1}
    assert isinstance(outcome.errors["a"], TypeError)
