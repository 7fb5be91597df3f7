"""The breaker and the router under random lives: calls, failures, cancellations, time, company."""

from __future__ import annotations

import asyncio
import threading

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)

from easyrag_core import (
    CircuitBreaker,
    CircuitState,
    ModelCandidate,
    ModelRouter,
    ModelUnavailableError,
)

CLOSED, OPEN, HALF_OPEN = CircuitState
RESET, LONGEST = 30.0, 200.0

words = st.sampled_from(["success", "failure", "failure", "release", "lost"])
waits = st.none() | st.floats(0, 500)
seconds = st.sampled_from([0.5, 10.0, RESET, 70.0])


class BreakerLife(RuleBasedStateMachine):
    """Eight callers at most hold permits, alone or at the same moment in eight threads."""

    def __init__(self):
        super().__init__()
        self.now = 0.0
        self.threshold = 2
        self.breaker = CircuitBreaker(
            failure_threshold=self.threshold,
            reset_timeout=RESET,
            max_retry_after=LONGEST,
            clock=lambda: self.now,
        )
        self.permits = []
        self.deadline = 0.0

    def word(self, permit, word, wait):
        if word == "failure":
            permit.failure(retry_after=wait)
        elif word != "lost":
            getattr(permit, word)()

    @rule()
    def ask(self):
        """A permit is given but while the circuit is open or its probe is in flight."""
        state, probing = self.breaker.state, any(permit.is_probe for permit in self.permits)
        permit = self.breaker.acquire()
        assert (permit is None) == (state is OPEN or (state is HALF_OPEN and probing))
        if permit is not None:
            assert permit.is_probe == (state is HALF_OPEN)
            self.permits.append(permit)

    @precondition(lambda self: self.permits)
    @rule(data=st.data(), word=words, wait=waits)
    def end(self, data, word, wait):
        """What a call tells changes the state only as its own permit allows."""
        permit = self.permits.pop(data.draw(st.integers(0, len(self.permits) - 1)))
        before, told = self.breaker.state, self.breaker.snapshot()["consecutive_failures"]
        probe = permit.is_probe
        self.word(permit, word, wait)
        del permit
        after = self.breaker.state
        if probe:
            expected = {"success": CLOSED, "failure": OPEN}.get(word, HALF_OPEN)
            assert after is expected
        elif before is CLOSED:
            opens = word == "failure" and told + 1 >= self.threshold
            # A call from before the last opening is late and opens nothing.
            assert after is CLOSED or (after is OPEN and opens)
        elif before is HALF_OPEN and after is OPEN:
            assert word == "failure"
            assert wait
        else:
            assert after is before

    @rule(word=words, wait=waits)
    def company(self, word, wait):
        """Eight threads ask at one moment, and tell at one moment.

        All tell the same, so that what follows does not depend on who comes first.
        """
        state, probing = self.breaker.state, any(permit.is_probe for permit in self.permits)
        asked, told, gained = threading.Barrier(8), threading.Barrier(8), []

        def life():
            asked.wait(timeout=30)
            permit = self.breaker.acquire()
            gained.append(permit is not None)
            told.wait(timeout=30)
            if permit is not None:
                self.word(permit, word, wait)

        threads = [threading.Thread(target=life) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)
        expected = {CLOSED: 8, OPEN: 0, HALF_OPEN: 0 if probing else 1}[state]
        assert sum(gained) == expected

    @rule(passed=seconds)
    def wait(self, passed):
        """Time passes."""
        self.now += passed

    @invariant()
    def one_probe(self):
        """There are never two probes at once."""
        assert sum(permit.is_probe for permit in self.permits) <= 1

    @invariant()
    def deadlines_never_shrink(self):
        """While it is open, and from one opening to the next; and none is beyond the longest."""
        if self.breaker.state is OPEN:
            deadline = self.now + self.breaker.retry_after
            assert deadline >= self.deadline - 1e-6
            assert self.breaker.retry_after <= LONGEST
            self.deadline = deadline

    def teardown(self):
        """No permit is lost: once all are gone and the time is over, the model is tried again."""
        self.permits.clear()
        self.now += LONGEST
        permit = self.breaker.acquire()
        assert permit is not None
        permit.success()
        assert self.breaker.state is CLOSED


class RouterLife(RuleBasedStateMachine):
    """Up to eight tasks ask a router of two models; each call ends as the machine says."""

    def __init__(self):
        super().__init__()
        self.now = 0.0
        self.loop = asyncio.new_event_loop()
        self.waiting = {"a": [], "b": []}
        self.tasks = []
        breaker = CircuitBreaker(reset_timeout=RESET, clock=lambda: self.now)
        self.router = ModelRouter(
            [ModelCandidate("a", None), ModelCandidate("b", None)], breaker=breaker
        )

    async def ask(self, candidate):
        answer = self.loop.create_future()
        self.waiting[candidate.name].append(answer)
        try:
            return await answer
        finally:
            self.waiting[candidate.name].remove(answer)

    def settle(self):
        for _ in range(20):
            self.loop.run_until_complete(asyncio.sleep(0))
        for task in [task for task in self.tasks if task.done()]:
            self.tasks.remove(task)
            if not task.cancelled() and task.exception() is not None:
                assert isinstance(task.exception(), ModelUnavailableError)

    def states(self):
        return {told["name"]: told for told in self.router.snapshot()["candidates"]}

    @precondition(lambda self: len(self.tasks) < 8)
    @rule()
    def begin(self):
        """One more caller; who finds a closed circuit or a free probe is in flight."""
        before = self.states()["a"]
        in_flight = len(self.waiting["a"])
        self.tasks.append(self.loop.create_task(self.router.acall(self.ask)))
        self.settle()
        goes_to_a = before["state"] == "closed" or (
            before["state"] == "half_open" and not before["probing"]
        )
        assert len(self.waiting["a"]) == in_flight + goes_to_a

    @precondition(lambda self: any(self.waiting.values()))
    @rule(data=st.data(), error=st.none() | st.sampled_from([OSError("x"), TimeoutError("x")]))
    def end(self, data, error):
        """A model answers or fails."""
        name = data.draw(st.sampled_from([name for name, each in self.waiting.items() if each]))
        future = data.draw(st.sampled_from(self.waiting[name]))
        future.set_result("yes") if error is None else future.set_exception(error)
        self.settle()

    @precondition(lambda self: self.tasks)
    @rule(data=st.data())
    def cancel(self, data):
        """A caller is cancelled: its task ends as cancelled, whatever the router does."""
        task = data.draw(st.sampled_from(self.tasks))
        task.cancel()
        self.settle()
        assert task.cancelled()

    @rule(passed=seconds)
    def wait(self, passed):
        """Time passes."""
        self.now += passed

    @invariant()
    def a_probe_is_in_flight_exactly_while_somebody_waits_for_it(self):
        """No permit is lost, in either direction."""
        for name, told in self.states().items():
            if told["probing"]:
                assert self.waiting[name]
            calls = told["successes"] + told["cancelled"] + sum(told["failures"].values())
            assert told["calls"] - calls == len(self.waiting[name])

    def teardown(self):
        """When all are gone and the time is over, both models are tried and taken again."""
        for task in self.tasks:
            task.cancel()
        self.settle()
        self.now += RESET

        async def healthy(candidate):
            return candidate.name

        for name in "ab":
            said = self.loop.run_until_complete(self.router.acall(healthy, model=name))
            assert said == name
            assert self.states()[name]["state"] == "closed"
        self.loop.close()


TestBreakerLife = BreakerLife.TestCase
TestRouterLife = RouterLife.TestCase
TestBreakerLife.settings = settings(stateful_step_count=30)
TestRouterLife.settings = settings(stateful_step_count=30)
