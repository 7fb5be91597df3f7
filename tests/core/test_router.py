"""The router's calls and its choice of models, held by its sync and by its async form."""

from __future__ import annotations

import contextvars
import json
import logging
import threading

import numpy as np
import pytest

from easyrag_core import (
    CircuitBreaker,
    CircuitOpenError,
    Failure,
    InvalidParameterError,
    ModelCandidate,
    ModelRouter,
    ModelUnavailableError,
)
from tests.core.routing_forms import FORMS, HANG, PATIENT, SHORT, Clock, Model, routed


@pytest.fixture(params=FORMS, ids=lambda form: form.name)
def form(request):
    made = request.param()
    yield made
    made.close()


def told(router, name="a"):
    return next(each for each in router.snapshot()["candidates"] if each["name"] == name)


def refusal(status, name="APIStatusError"):
    error = type(name, (Exception,), {})("told")
    error.status_code = status
    return error


def test_the_first_that_answers(form):
    """Errors of the first are remembered, the second's answer is given."""
    first, second = Model(OSError("down"), "one"), Model("two")
    router = routed(first, second)
    assert form.call(router) == "two"
    assert form.call(router) == "one"
    assert (first.calls, second.calls) == (2, 1)


def test_order_by_request_priority_and_place():
    """The asked-for one, then the smaller priority, then the order given."""
    router = ModelRouter(
        [
            ModelCandidate("a", None, priority=2),
            ModelCandidate("b", None, priority=1),
            ModelCandidate("c", None, priority=1),
            ModelCandidate("d", None, priority=3),
        ],
        breaker=CircuitBreaker(failure_threshold=100),
    )

    def order(**wanted):
        asked = []

        def ask(candidate):
            asked.append(candidate.name)
            raise OSError

        with pytest.raises(ModelUnavailableError):
            router.call(ask, **wanted)
        return asked

    assert order() == ["b", "c", "a", "d"]
    assert order(model="d") == ["d", "b", "c", "a"]


def test_who_lacks_a_capability_is_left_out(form):
    """Also when it is asked for by name; and when nobody has it, that is said."""
    router = ModelRouter(
        [
            ModelCandidate("plain", Model("plain")),
            ModelCandidate("eyes", Model("eyes"), capabilities=["vision", "tools"]),
        ]
    )
    assert form.call(router) == "plain"
    assert form.call(router, wants=["vision"]) == "eyes"
    assert form.call(router, wants={"vision", "tools"}, model="plain") == "eyes"
    with pytest.raises(InvalidParameterError, match="thinking"):
        form.call(router, wants=["thinking"])
    with pytest.raises(InvalidParameterError, match="'plain', 'eyes'"):
        form.call(router, model="other")
    with pytest.raises(InvalidParameterError, match="collection of strings"):
        form.call(router, wants="tools")


def test_when_all_fail_all_errors_are_told(form):
    """By name, in the order tried; the last is the cause."""
    failures = [OSError("one"), TimeoutError("two")]
    with pytest.raises(ModelUnavailableError) as error:
        form.call(routed(*map(Model, failures)))
    assert error.value.attempts == dict(zip("ab", failures, strict=True))
    assert list(error.value.attempts) == ["a", "b"]
    assert error.value.__cause__ is failures[1]
    assert not isinstance(error.value, CircuitOpenError | TimeoutError)


def test_a_dead_first_model_is_left_alone(form):
    """Five calls ask it twice; after thirty seconds one call probes it, and it is back."""
    clock = Clock()
    first, second = Model(OSError(), OSError(), "back"), Model("two")
    router = routed(first, second, breaker=CircuitBreaker(clock=clock))
    assert [form.call(router) for _ in range(5)] == ["two"] * 5
    assert first.calls == 2
    clock.now += 30
    assert form.call(router) == "back"
    assert told(router)["state"] == "closed"


def test_when_all_circuits_are_open_the_shortest_wait_is_told(form):
    """Nobody is asked then; a later call is."""
    clock = Clock()
    wait = refusal(429)
    wait.headers = {"retry-after": "90"}
    models = Model(wait), Model(OSError())
    router = routed(*models, breaker=CircuitBreaker(failure_threshold=1, clock=clock))
    with pytest.raises(ModelUnavailableError):
        form.call(router)
    clock.now += 10
    with pytest.raises(CircuitOpenError) as error:
        form.call(router)
    assert error.value.retry_after == 20
    assert [each.retry_after for each in error.value.attempts.values()] == [80, 20]
    assert [model.calls for model in models] == [1, 1]


def test_an_open_circuit_is_told_among_the_attempts(form):
    """Who was passed over, and who failed."""
    failure = OSError("b")
    router = routed(
        Model(OSError()), Model("two", failure), breaker=CircuitBreaker(failure_threshold=1)
    )
    assert form.call(router) == "two"
    with pytest.raises(ModelUnavailableError) as error:
        form.call(router)
    assert isinstance(error.value.attempts["a"], CircuitOpenError)
    assert error.value.attempts["b"] is failure
    assert not isinstance(error.value, CircuitOpenError)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_wrong_key_moves_on_and_is_no_outage(form, status):
    """The next one answers, the failure is counted by its class, the circuit stays closed."""
    first, second = Model(refusal(status)), Model("two")
    router = routed(first, second)
    assert [form.call(router) for _ in range(5)] == ["two"] * 5
    assert first.calls == 5
    assert told(router)["state"] == "closed"
    assert sum(told(router)["failures"].values()) == 5


@pytest.mark.parametrize("status", [400, 422])
def test_a_bad_request_is_the_callers_own(form, status):
    """The model's own error is raised, nobody else is asked, the circuit stays closed."""
    error = refusal(status)
    second = Model("two")
    router = routed(Model(error), second)
    for _ in range(5):
        with pytest.raises(type(error)) as raised:
            form.call(router)
        assert raised.value is error
    assert second.calls == 0
    assert told(router)["state"] == "closed"
    assert told(router)["failures"] == {"invalid_request": 5}


def test_what_moves_on_and_what_counts_is_a_policy(form):
    """Both sets are the caller's to choose."""
    router = routed(
        Model(refusal(400)),
        Model(refusal(401)),
        Model("three"),
        moving_kinds={"invalid_request", "authentication"},
        counted_kinds=["authentication"],
    )
    assert [form.call(router) for _ in range(3)] == ["three"] * 3
    assert [told(router, name)["state"] for name in "abc"] == ["closed", "open", "closed"]
    router = routed(Model(OSError("x")), Model("two"), moving_kinds=())
    with pytest.raises(OSError, match="x"):
        form.call(router)


def test_the_users_own_word_on_errors(form):
    """It goes first, and may leave errors to ours."""
    words = {
        KeyError: Failure("invalid_request"),
        ValueError: Failure("rate_limit", retry_after=77),
        ConnectionError: None,
    }
    router = routed(
        Model(ValueError(), ConnectionError(), KeyError()),
        Model("two"),
        classify=lambda error: words[type(error)],
    )
    assert [form.call(router) for _ in range(2)] == ["two", "two"]
    assert told(router)["failures"] == {"connection": 1, "rate_limit": 1}
    assert 76 < told(router)["retry_after"] <= 77
    router = routed(Model(KeyError()), Model("two"), classify=lambda error: words[type(error)])
    with pytest.raises(KeyError):
        form.call(router)


@pytest.mark.parametrize(
    "classify",
    [lambda _: 1 // 0, lambda _: "timeout", lambda _: Failure("rate_limit", retry_after="7")],
)
def test_a_word_on_errors_that_fails_is_logged_and_left_out(form, caplog, classify):
    """Ours is taken; the next model is asked."""
    router = routed(Model(ConnectionError()), Model("two"), classify=classify)
    with caplog.at_level(logging.WARNING):
        assert form.call(router) == "two"
    assert "classify failed" in caplog.text
    assert told(router)["failures"] == {"connection": 1}


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_answer_is_a_failure(form, blank):
    """The next one is asked; blank answers open a circuit; or they are taken as they are."""
    first = Model(blank)
    blank_text = lambda text: not text.strip()  # noqa: E731 - the adapter's word on answers
    router = routed(first, Model("two"))
    assert [form.call(router, is_blank=blank_text) for _ in range(3)] == ["two"] * 3
    assert first.calls == 2
    assert told(router)["failures"] == {"blank": 2}
    router = routed(Model(blank), Model("two"), empty="accept")
    assert form.call(router, is_blank=blank_text) == blank
    with pytest.raises(ModelUnavailableError, match="'a' gave a blank answer"):
        form.call(routed(Model(blank)), is_blank=blank_text)


@pytest.mark.parametrize("answer", [None, [], 0, "", "x"], ids=repr)
def test_any_answer_is_one_where_nobody_says_what_is_blank(form, answer):
    """Without `is_blank`, whatever a model returns is its answer."""
    assert form.call(routed(Model(answer))) == answer


def test_a_whole_answer_that_is_late(form):
    """Past the total time the next one is asked, and it counts as a failure."""
    router = routed(Model(HANG), Model("two"), settings={"total_timeout": SHORT})
    assert form.call(router) == "two"
    assert told(router)["failures"] == {"timeout": 1}
    with pytest.raises(ModelUnavailableError, match=f"no whole answer within {SHORT} s"):
        form.call(routed(Model(HANG), total_timeout=SHORT))


def test_answers_within_their_time(form):
    """A limit that is not reached changes nothing, infinity is no limit."""
    for limit in (PATIENT, float("inf")):
        assert form.call(routed(Model("one"), total_timeout=limit)) == "one"
        with pytest.raises(ModelUnavailableError) as error:
            form.call(routed(Model(TimeoutError("its own")), total_timeout=limit))
        assert str(error.value.attempts["a"]) == "its own"


class StopNowError(BaseException):
    """What is no `Exception`: an interrupt, a cancellation."""


@pytest.mark.parametrize("limit", [None, PATIENT])
def test_what_is_no_exception_goes_on_and_says_nothing_about_the_model(form, limit):
    """It is never swallowed, nobody else is asked, the place is free again."""
    clock = Clock()
    first, second = Model(OSError(), OSError(), StopNowError(), "one"), Model("two")
    router = routed(first, second, breaker=CircuitBreaker(clock=clock), total_timeout=limit)
    assert [form.call(router) for _ in range(2)] == ["two", "two"]
    clock.now += 30
    with pytest.raises(StopNowError):
        form.call(router)
    assert told(router)["cancelled"] == 1
    assert second.calls == 2
    assert form.call(router) == "one"


def test_a_call_in_a_thread_carries_the_callers_context():
    """Tracing depends on it."""
    caller = contextvars.ContextVar("caller", default="nobody")
    caller.set("me")
    router = routed(Model(), total_timeout=PATIENT)
    assert router.call(lambda _: (caller.get(), threading.current_thread().daemon)) == ("me", True)


def test_events_tell_what_happened(form):
    """Attempts with outcome, class and time; states; who was passed over."""
    heard = []
    clock = Clock()
    router = routed(
        Model(ConnectionError()),
        Model("two"),
        breaker=CircuitBreaker(failure_threshold=1, clock=clock),
        on_event=heard.append,
    )
    form.call(router)
    form.call(router)
    names = [event.name.removeprefix("easyrag.routing.") for event in heard]
    assert names == ["state", "attempt", "attempt", "skipped", "attempt"]
    assert dict(heard[0].attributes) == {
        "gen_ai.request.model": "a",
        "easyrag.routing.state": "open",
        "easyrag.routing.previous_state": "closed",
    }
    assert dict(heard[1].attributes) == {
        "gen_ai.request.model": "a",
        "easyrag.routing.outcome": "failure",
        "easyrag.routing.probe": False,
        "error.type": "ConnectionError",
        "easyrag.routing.failure": "connection",
    }
    assert heard[2].attributes["easyrag.routing.outcome"] == "success"
    assert heard[3].attributes["easyrag.routing.retry_after"] == 30.0


def test_a_listener_that_fails_stops_nothing(form, caplog):
    """It is logged, as everywhere."""

    def broken(event):
        raise RuntimeError

    with caplog.at_level(logging.WARNING):
        assert form.call(routed(Model("one"), on_event=broken)) == "one"
    assert "event handler failed" in caplog.text


def test_the_snapshot_is_plain_json(form):
    """All of it, before and after calls, in the order given."""
    router = routed(Model(OSError("x")), Model("two"), settings={"capabilities": {"b", "a"}})
    assert router.snapshot()["available"] == 2
    assert form.call(router) == "two"
    assert form.call(router) == "two"
    snapshot = json.loads(json.dumps(router.snapshot()))
    first, second = snapshot["candidates"]
    assert snapshot["available"] == 1
    assert (first["name"], first["state"], first["capabilities"]) == ("a", "open", ["a", "b"])
    assert (first["calls"], first["successes"], first["state_changes"]) == (2, 0, 1)
    assert (second["calls"], second["successes"], second["failures"]) == (2, 2, {})
    assert second["first_token_seconds"] == {"last": None, "mean": None, "p50": None}


def test_the_notebook_view_is_escaped():
    """A name is text, whatever stands in it."""
    router = ModelRouter([ModelCandidate("<script>alert(1)</script>&", Model(OSError("x")))])
    with pytest.raises(ModelUnavailableError):
        router.call(lambda _: (_ for _ in ()).throw(TimeoutError()))
    shown = router.snapshot()._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;" in shown
    assert "timeout 1" in shown


def test_a_router_is_a_model_too():
    """One within another: its open circuits are told with their wait."""
    inner = routed(Model(OSError()), breaker=CircuitBreaker(failure_threshold=1))
    outer = ModelRouter(
        [ModelCandidate("inner", inner)], breaker=CircuitBreaker(failure_threshold=2)
    )

    def ask(candidate):
        return candidate.model.call(lambda deep: (_ for _ in ()).throw(OSError("down")))

    for _ in range(2):
        with pytest.raises(ModelUnavailableError):
            outer.call(ask)
    assert told(outer, "inner")["state"] == "open"


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"first_token_timeout": 0}, "first_token_timeout"),
        ({"stall_timeout": -1}, "stall_timeout"),
        ({"total_timeout": float("nan")}, "total_timeout"),
        ({"empty": "ignore"}, "empty"),
        ({"mid_stream": "resume"}, "mid_stream"),
        ({"moving_kinds": ["slow"]}, "moving_kinds"),
        ({"counted_kinds": "timeout"}, "counted_kinds"),
        ({"moving_kinds": None}, "moving_kinds=None"),
        ({"counted_kinds": 5}, "counted_kinds=5"),
        ({"first_token_timeout": 10**400}, "first_token_timeout"),
        ({"breaker": 5}, "breaker=5"),
        ({"breaker": "x"}, "breaker='x'"),
        ({"breaker": 0}, "breaker=0"),
        ({"breaker": []}, r"breaker=\[\]"),
        ({"classify": 5}, "classify=5"),
        ({"on_event": "x"}, "on_event='x'"),
    ],
    ids=str,
)
def test_wrong_settings_are_refused(settings, name):
    """At construction, with the setting's name."""
    with pytest.raises(InvalidParameterError, match=name):
        routed(Model(), **settings)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"name": " "}, "name"),
        ({"name": 1}, "name"),
        ({"priority": 1.5}, "priority"),
        ({"capabilities": "tools"}, "capabilities"),
        ({"capabilities": 5}, "capabilities=5"),
        ({"capabilities": None}, "capabilities=None"),
        ({"capabilities": [1]}, "capabilities"),
        ({"total_timeout": 10**400}, "total_timeout"),
        ({"first_token_timeout": -1}, "first_token_timeout"),
        ({"stall_timeout": True}, "stall_timeout"),
        ({"total_timeout": "1"}, "total_timeout"),
    ],
    ids=str,
)
def test_wrong_candidates_are_refused(settings, name):
    """Each by itself, before there is a router."""
    with pytest.raises(InvalidParameterError, match=name):
        ModelCandidate(**{"name": "a", "model": None, **settings})


def test_a_router_needs_candidates_with_names_of_their_own():
    """None at all, or one name twice."""
    with pytest.raises(InvalidParameterError, match="at least one"):
        ModelRouter([])
    with pytest.raises(InvalidParameterError, match="name of its own"):
        ModelRouter([ModelCandidate("a", 1), ModelCandidate("a", 2)])


@pytest.mark.parametrize(
    "wrong", [None, 5, ModelCandidate("a", 1), "ab", [1], {"a": ModelCandidate("a", 1)}], ids=repr
)
def test_what_is_no_list_of_candidates_is_refused(wrong):
    """It is named, and what is wanted."""
    with pytest.raises(InvalidParameterError, match=r"candidates=.*give.*ModelCandidates"):
        ModelRouter(wrong)


@pytest.mark.parametrize("wants", [5, None, "tools", [1]], ids=repr)
def test_wants_that_are_no_words_are_refused(form, wants):
    """By each request, before anybody is asked."""
    model = Model("one")
    with pytest.raises(InvalidParameterError, match=r"wants=.*collection of strings"):
        form.call(routed(model), wants=wants)
    assert model.calls == 0


def test_words_may_come_one_by_one(form):
    """A generator is read once, and nothing of it is lost."""
    router = routed(
        Model(refusal(400)),
        Model("two"),
        moving_kinds=(kind for kind in ["invalid_request"]),
        counted_kinds=(kind for kind in ["invalid_request"]),
        breaker=CircuitBreaker(failure_threshold=1),
    )
    assert form.call(router) == "two"
    assert told(router)["state"] == "open"
    able = ModelCandidate("a", Model("one"), capabilities=(each for each in ["tools"]))
    assert able.capabilities == {"tools"}
    router = ModelRouter(each for each in [able])
    assert form.call(router, wants=(each for each in ["tools"])) == "one"


def test_seconds_of_numpy(form):
    """They are kept as floats, with which threads and loops can wait."""
    model = Model(HANG)
    settings = {"total_timeout": np.float32(SHORT)}
    router = routed(model, Model("two"), settings=settings, total_timeout=np.int64(PATIENT))
    assert isinstance(router.candidates[0].total_timeout, float)
    assert form.call(router) == "two"


@pytest.mark.parametrize("limit", ["first_token_timeout", "stall_timeout", "total_timeout"])
@pytest.mark.parametrize("seconds", [1e10, 1e300])
def test_any_finite_time_can_be_waited_for(form, limit, seconds):
    """Also one beyond what a thread can wait at a time."""
    pause = threading.Event()

    class Slow(Model):
        def next_turn(self):
            for chunk in ("one", "two"):
                pause.wait(SHORT)
                yield chunk

    assert form.stream(routed(Slow(), **{limit: seconds})) == ["one", "two"]
    if form.name == "sync" and limit == "total_timeout":
        router = routed(Model("one"), total_timeout=seconds)
        assert router.call(lambda _: pause.wait(SHORT)) is False


def test_the_breakers_listener_and_the_routers_hear_of_a_change(form):
    """Whoever gives a router a breaker with a listener is told of every candidate's circuit."""
    told, heard = [], []
    breaker = CircuitBreaker(failure_threshold=1, on_change=lambda *change: told.append(change))
    router = routed(Model(OSError()), Model("two"), breaker=breaker, on_event=heard.append)
    assert form.call(router) == "two"
    assert [state.value for state in told[0]] == ["closed", "open"]
    assert heard[0].name == "easyrag.routing.state"
    assert router.snapshot()["candidates"][0]["state_changes"] == len(told) == 1
