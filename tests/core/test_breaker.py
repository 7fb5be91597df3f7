"""The circuit breaker: three states, one probe, deadlines that never come closer."""

from __future__ import annotations

import json
import logging
import threading

import pytest

from easyrag_core import CircuitBreaker, CircuitState, InvalidParameterError

CLOSED, OPEN, HALF_OPEN = CircuitState


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def breaker(clock):
    return CircuitBreaker(clock=clock)


def fail(breaker, times=1, **more):
    for _ in range(times):
        breaker.acquire().failure(**more)


def test_two_failures_in_a_row_open_it_for_thirty_seconds(breaker, clock):
    """The defaults: a success between two failures starts the count anew."""
    fail(breaker)
    breaker.acquire().success()
    fail(breaker)
    assert breaker.state is CLOSED
    fail(breaker)
    assert (breaker.state, breaker.retry_after) == (OPEN, 30.0)
    clock.now += 29.9
    assert breaker.acquire() is None
    clock.now += 0.1
    assert breaker.state is HALF_OPEN
    assert breaker.acquire().is_probe


def test_twenty_five_failures_in_a_row_do_not_stay_in_rotation():
    """However fast they come, the third call is not let through."""
    breaker = CircuitBreaker()
    let_through = [breaker.acquire(), breaker.acquire()]
    for permit in let_through:
        permit.failure()
    assert [breaker.acquire() for _ in range(23)] == [None] * 23


@pytest.mark.parametrize("threshold", [1, 2, 5])
def test_the_threshold_is_the_number_that_opens(clock, threshold):
    """One failure fewer keeps it closed."""
    breaker = CircuitBreaker(failure_threshold=threshold, clock=clock)
    fail(breaker, threshold - 1)
    assert breaker.state is CLOSED
    fail(breaker)
    assert breaker.state is OPEN


def test_the_probe_decides(breaker, clock):
    """Its failure opens the circuit anew, its success closes it and forgets the failures."""
    fail(breaker, 2)
    clock.now += 30
    breaker.acquire().failure()
    assert (breaker.state, breaker.retry_after) == (OPEN, 30.0)
    clock.now += 30
    breaker.acquire().success()
    assert breaker.state is CLOSED
    fail(breaker)
    assert breaker.state is CLOSED


@pytest.mark.parametrize("end", ["release", "with", "cancelled", "lost"])
def test_a_probe_that_ends_without_a_word_frees_its_place(breaker, clock, end):
    """Released, left, cancelled or lost with its owner: the next caller probes at once."""
    fail(breaker, 2)
    clock.now += 30
    probe = breaker.acquire()
    assert breaker.acquire() is None
    if end == "release":
        probe.release()
    elif end == "with":
        with probe:
            pass
    elif end == "cancelled":
        with pytest.raises(KeyboardInterrupt), probe:
            raise KeyboardInterrupt
    del probe
    assert breaker.state is HALF_OPEN
    second = breaker.acquire()
    assert second.is_probe
    second.success()
    assert breaker.state is CLOSED


def test_only_the_owner_frees_the_probe(breaker, clock):
    """What other calls tell while the probe is in flight leaves its place taken."""
    early = [breaker.acquire() for _ in range(5)]
    fail(breaker, 2)
    clock.now += 30
    probe = breaker.acquire()
    for permit, word in zip(early, ["success", "failure", "release"], strict=False):
        getattr(permit, word)()
        assert breaker.acquire() is None
        assert breaker.state is HALF_OPEN
    probe.success()
    assert breaker.state is CLOSED


def test_only_the_first_word_counts(breaker, clock):
    """A permit that was told of once is told of for good."""
    fail(breaker, 2)
    clock.now += 30
    with breaker.acquire() as probe:
        probe.success()
        probe.failure()
    assert breaker.state is CLOSED
    permit = breaker.acquire()
    for _ in range(3):
        permit.failure()
    assert breaker.snapshot()["consecutive_failures"] == 1


def test_late_results_neither_close_nor_open(breaker, clock):
    """Calls from before an opening say nothing about the time after it."""
    early = [breaker.acquire() for _ in range(6)]
    fail(breaker, 2)
    early[0].success()
    assert breaker.state is OPEN
    early[1].failure()
    assert breaker.retry_after == 30.0
    clock.now += 30
    breaker.acquire().success()
    early[2].failure()
    early[3].failure()
    assert breaker.state is CLOSED
    fail(breaker)
    early[4].success()
    fail(breaker)
    assert breaker.state is OPEN


@pytest.mark.parametrize(
    ("first", "second", "wait"), [(None, 90, 90), (90, None, 90), (10, 20, 30), (0, -5, 30)]
)
def test_a_longer_retry_after_wins(breaker, first, second, wait):
    """Whichever of the failures in a row brought it; a shorter one changes nothing."""
    fail(breaker, retry_after=first)
    fail(breaker, retry_after=second)
    assert breaker.retry_after == wait


def test_a_late_retry_after_moves_the_deadline_away_only(breaker, clock):
    """Calls that were in flight at the opening may ask for more time, never for less."""
    late = [breaker.acquire() for _ in range(3)]
    fail(breaker, 2)
    clock.now += 10
    late[0].failure(retry_after=5)
    assert breaker.retry_after == 20
    late[1].failure(retry_after=50)
    assert breaker.retry_after == 50
    clock.now += 50
    breaker.acquire().success()
    late[2].failure(retry_after=500)
    assert breaker.state is CLOSED
    fail(breaker, 2)
    assert breaker.retry_after == 30


def test_a_retry_after_has_a_bound(clock):
    """A wrong header of ten years does not take the model away for ten years."""
    breaker = CircuitBreaker(max_retry_after=120, clock=clock)
    fail(breaker, 2, retry_after=3e8)
    assert breaker.retry_after == 120


def test_a_success_forgets_what_was_asked_before(breaker):
    """A model that answers again has no old wish left."""
    fail(breaker, retry_after=500)
    breaker.acquire().success()
    fail(breaker, 2)
    assert breaker.retry_after == 30


def test_changes_are_told_outside_of_the_lock(clock):
    """Each change once, in order; the listener may ask the breaker itself."""
    told = []
    breaker = CircuitBreaker(
        clock=clock, on_change=lambda *change: told.append((*change, breaker.state))
    )
    fail(breaker, 2)
    clock.now += 30
    breaker.acquire().success()
    assert told == [
        (CLOSED, OPEN, OPEN),
        (OPEN, HALF_OPEN, HALF_OPEN),
        (HALF_OPEN, CLOSED, CLOSED),
    ]


def test_the_snapshot_is_plain_json(breaker, clock):
    """In each state it can be served as it is."""
    assert breaker.snapshot() == {
        "state": "closed",
        "retry_after": 0.0,
        "consecutive_failures": 0,
        "openings": 0,
        "probing": False,
    }
    fail(breaker, 2)
    told = json.loads(json.dumps(breaker.snapshot()))
    assert (told["state"], told["retry_after"], told["openings"]) == ("open", 30.0, 1)
    clock.now += 31
    assert breaker.snapshot()["state"] == "half_open"
    assert breaker.snapshot()["probing"] is False
    probe = breaker.acquire()
    assert breaker.snapshot()["probing"] is True
    probe.release()
    assert breaker.snapshot()["probing"] is False


def test_a_twin_has_the_settings_and_nothing_else(clock):
    """Two candidates with one template do not open each other."""
    template = CircuitBreaker(failure_threshold=1, reset_timeout=7, max_retry_after=9, clock=clock)
    first, second = template.twin(), template.twin()
    fail(first, retry_after=100)
    assert first.retry_after == 9
    fail(second)
    assert second.retry_after == 7
    assert template.state is CLOSED


def test_a_twin_tells_its_templates_listener_and_its_own(clock):
    """In this order; one that fails is logged, and keeps nothing from the other."""
    told = []
    template = CircuitBreaker(clock=clock, on_change=lambda *change: told.append(("one", *change)))
    twin = template.twin(on_change=lambda *change: told.append(("two", *change)))
    fail(twin, 2)
    assert told == [("one", CLOSED, OPEN), ("two", CLOSED, OPEN)]


def test_a_listener_that_fails_breaks_no_call(clock, caplog):
    """The model's failure is told all the same."""
    told = []
    template = CircuitBreaker(clock=clock, on_change=lambda *_: 1 // 0)
    twin = template.twin(on_change=lambda *change: told.append(change))
    with caplog.at_level(logging.WARNING):
        fail(twin, 2)
    assert told == [(CLOSED, OPEN)]
    assert "listener failed" in caplog.text


def test_a_forgotten_call_that_is_collected_under_the_lock_blocks_nobody():
    """Its permit is released by whoever happens to collect it, here by the breaker itself."""
    forgotten = []

    def clock():
        forgotten.clear()
        return 0.0

    def call(permit):
        with permit:
            yield

    breaker = CircuitBreaker(clock=clock)
    forgotten.append(call(breaker.acquire()))
    next(forgotten[0])
    told = []
    thread = threading.Thread(target=lambda: told.append(breaker.snapshot()), daemon=True)
    thread.start()
    thread.join(timeout=30)
    assert [each["state"] for each in told] == ["closed"]
    assert forgotten == []


def test_eight_threads_get_one_probe(breaker, clock):
    """All ask at the same moment; one is let through."""
    fail(breaker, 2)
    clock.now += 30
    start, permits = threading.Barrier(8), []

    def ask():
        start.wait(timeout=30)
        permits.append(breaker.acquire())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert sum(permit is not None for permit in permits) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("failure_threshold", 0),
        ("failure_threshold", 1.5),
        ("reset_timeout", -1),
        ("reset_timeout", float("inf")),
        ("reset_timeout", float("nan")),
        ("reset_timeout", "30"),
        ("max_retry_after", -0.1),
        ("max_retry_after", True),
    ],
)
def test_wrong_settings_are_refused(name, value):
    """At construction, with the setting's name."""
    with pytest.raises(InvalidParameterError, match=name):
        CircuitBreaker(**{name: value})


@pytest.mark.parametrize(
    ("settings", "shown"),
    [({"clock": None}, "clock=None"), ({"clock": 5}, "clock=5"), ({"on_change": 5}, "on_change=5")],
    ids=str,
)
def test_what_cannot_be_called_is_refused(settings, shown):
    """When it is given, not when a circuit opens."""
    with pytest.raises(InvalidParameterError, match=f"{shown} is not allowed: give a function"):
        CircuitBreaker(**settings)
