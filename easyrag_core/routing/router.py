"""Asks one model after the other, each behind its circuit breaker, and watches the clock."""

from __future__ import annotations

from contextlib import aclosing, closing
from functools import partial
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from easyrag_core.errors import InvalidParameterError, check_choice, check_timeout
from easyrag_core.events import EventHandler, emit
from easyrag_core.routing._attempts import Attempts
from easyrag_core.routing._checks import check_hook, checked_kinds
from easyrag_core.routing._delivery import Delivery
from easyrag_core.routing._settings import Member, Settings
from easyrag_core.routing._steps import (
    AsyncSteps,
    Came,
    DirectSteps,
    Steps,
    ThreadedSteps,
    answer_step,
    awaited_step,
)
from easyrag_core.routing.breaker import CircuitBreaker, CircuitState
from easyrag_core.routing.candidates import (
    ModelCandidate,
    checked_candidates,
    ordered_candidates,
)
from easyrag_core.routing.failures import (
    COUNTED_KINDS,
    MOVING_KINDS,
    Classifier,
    FailureKind,
)
from easyrag_core.routing.metrics import CandidateMetrics, RoutingSnapshot

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterable,
        AsyncIterator,
        Awaitable,
        Callable,
        Collection,
        Iterable,
        Iterator,
        Sequence,
    )

    from easyrag_core.routing._attempts import Attempt
    from easyrag_core.routing.streams import DeltaReader, StreamReset

__all__ = ["ModelRouter"]

M = TypeVar("M")
R = TypeVar("R")
C = TypeVar("C")


class ModelRouter(Generic[M]):
    """Routes requests among candidates, safe to share between threads and tasks.

    A request goes to the asked-for model, then by priority, then in the order given; candidates
    without a wanted capability are left out, those with an open circuit are passed over. What
    their errors mean is told by `classify_failure`. All timeouts are those of one candidate, so a
    slow one leaves time for the next.

    In a stream nothing is handed over before the first content. Until then a candidate can fail,
    be late or say nothing, and the next one starts. After it, `mid_stream` decides: `"raise"` a
    `StreamInterruptedError` with the partial text, `"restart"` on the next candidate behind a
    `StreamReset`, or `"continue"` there with the partial text as prefill. A cancelled or closed
    request frees its place at once and says nothing about the model.

    Args:
        candidates: At least one `ModelCandidate`, with unique names.
        breaker: Its settings, its clock and its `on_change` are those of each candidate's own
            breaker, the clock is the router's, too; by default `CircuitBreaker()`.
        first_token_timeout: Seconds until the first content of a stream; `None` for no limit.
        stall_timeout: Seconds between the chunks of a stream after that; `None` for no limit.
        total_timeout: Seconds for one candidate's whole answer; `None` for no limit. Whoever reads
            a stream may take his time: what passes between two chunks that way is left out.
        empty: Whether a blank answer is a `"failure"`, or to be taken as it is (`"accept"`). One
            that a content filter ended is a refusal, which is an answer, unless refusals move on;
            one that its length limit ended is "truncated", which is not counted.
        mid_stream: What happens when a stream breaks after its first content.
        moving_kinds: The failures after which the next candidate is asked; after the others the
            model's own error is raised.
        counted_kinds: The failures that a circuit breaker counts.
        classify: A word on errors that goes before ours; `None` from it leaves them to ours. The
            error of a blank answer has what came as `answers`.
        on_event: Is told of `easyrag.routing.attempt`, `.first_token`, `.skipped`, `.switched`
            and `.state`.

    Raises:
        InvalidParameterError: A setting is outside what is allowed.

    >>> def ask(candidate):
    ...     if candidate.model is None:
    ...         raise ConnectionError("refused")
    ...     return f"{candidate.model} from {candidate.name}"
    >>> router = ModelRouter([ModelCandidate("first", None), ModelCandidate("second", "Hello")])
    >>> router.call(ask)
    'Hello from second'
    >>> router.snapshot()["candidates"][0]["failures"]
    {'connection': 1}
    """

    def __init__(
        self,
        candidates: Sequence[ModelCandidate[M]],
        *,
        breaker: CircuitBreaker | None = None,
        first_token_timeout: float | None = 60.0,
        stall_timeout: float | None = None,
        total_timeout: float | None = None,
        empty: Literal["failure", "accept"] = "failure",
        mid_stream: Literal["raise", "restart", "continue"] = "raise",
        moving_kinds: Collection[FailureKind] = MOVING_KINDS,
        counted_kinds: Collection[FailureKind] = COUNTED_KINDS,
        classify: Classifier | None = None,
        on_event: EventHandler | None = None,
    ) -> None:
        """Check everything; nobody is asked yet."""
        settled = CircuitBreaker() if breaker is None else _checked_breaker(breaker)
        check_hook("classify", classify)
        check_hook("on_event", on_event)
        self._settings = Settings(
            first_token_timeout=check_timeout(first_token_timeout, name="first_token_timeout"),
            stall_timeout=check_timeout(stall_timeout, name="stall_timeout"),
            total_timeout=check_timeout(total_timeout, name="total_timeout"),
            empty=check_choice("empty", empty, ("failure", "accept")),
            mid_stream=check_choice("mid_stream", mid_stream, ("raise", "restart", "continue")),
            moving_kinds=checked_kinds("moving_kinds", moving_kinds),
            counted_kinds=checked_kinds("counted_kinds", counted_kinds),
            classify=classify,
            on_event=on_event,
            clock=settled.clock,
        )
        self._members = {
            candidate.name: self._member(candidate, settled)
            for candidate in checked_candidates(candidates)
        }

    @property
    def candidates(self) -> tuple[ModelCandidate[M], ...]:
        """All candidates, in the order given."""
        return tuple(member.candidate for member in self._members.values())

    @property
    def capabilities(self) -> frozenset[str]:
        """What any of the candidates is able to do."""
        return frozenset().union(*(each.capabilities for each in self.candidates))

    def call(
        self,
        run: Callable[[ModelCandidate[M]], R],
        *,
        wants: Collection[str] = (),
        model: str | None = None,
        is_blank: Callable[[R], bool] | None = None,
    ) -> R:
        """Get one whole answer.

        Args:
            run: Asks a candidate. With a `total_timeout` it runs in a thread that carries the
                caller's context, and is left alone there when it is late.
            wants: Capabilities that the request needs.
            model: The name of the candidate to ask first.
            is_blank: Whether an answer says nothing; without it no answer is blank.

        Returns:
            The first answer that is one.

        Raises:
            CircuitOpenError: All circuits are open; `retry_after` is the shortest wait.
            InvalidParameterError: No candidate has the name, or what is wanted.
            ModelUnavailableError: All candidates failed; `attempts` has their errors.
            Exception: The model's own, when its kind is not among `moving_kinds`.
        """
        attempts = self._attempts(wants, model)
        for attempt in attempts:
            with attempt:
                candidate, limit = attempt.candidate, attempt.total_timeout
                step = answer_step(partial(run, candidate), limit, name=candidate.name)
                accepted = attempts.accepts(attempt, step, is_blank)
            if accepted and isinstance(step, Came):
                return step.value
        raise attempts.failure()

    async def acall(
        self,
        run: Callable[[ModelCandidate[M]], Awaitable[R]],
        *,
        wants: Collection[str] = (),
        model: str | None = None,
        is_blank: Callable[[R], bool] | None = None,
    ) -> R:
        """Get one whole answer: the async twin of `call`. What is late is cancelled.

        Args:
            run: Asks a candidate.
            wants: Capabilities that the request needs.
            model: The name of the candidate to ask first.
            is_blank: Whether an answer says nothing; without it no answer is blank.

        Returns:
            The first answer that is one.

        Raises:
            CircuitOpenError: All circuits are open; `retry_after` is the shortest wait.
            InvalidParameterError: No candidate has the name, or what is wanted.
            ModelUnavailableError: All candidates failed; `attempts` has their errors.
            Exception: The model's own, when its kind is not among `moving_kinds`.
        """
        attempts = self._attempts(wants, model)
        for attempt in attempts:
            with attempt:
                step = await awaited_step(partial(run, attempt.candidate), attempt.total_timeout)
                accepted = attempts.accepts(attempt, step, is_blank)
            if accepted and isinstance(step, Came):
                return step.value
        raise attempts.failure()

    def stream(
        self,
        open_stream: Callable[[ModelCandidate[M], str], Iterable[C]],
        reader: DeltaReader[C],
        *,
        wants: Collection[str] = (),
        model: str | None = None,
    ) -> Iterator[C | StreamReset]:
        """Get an answer chunk by chunk.

        With any timeout the stream is read in a thread that carries the caller's context, at most
        16 chunks ahead, and closed there when it is left. A read that blocks in the client cannot
        be ended from outside: that thread waits for the client's own timeout. `astream` cancels.

        Args:
            open_stream: Asks a candidate. Its second argument is the text that the model is to
                continue, "" but for `mid_stream="continue"`. What it returns is closed by its
                `close`, if it has one.
            reader: What a chunk carries.
            wants: Capabilities that the request needs.
            model: The name of the candidate to ask first.

        Returns:
            Chunks as the model gave them, in order; `StreamReset` only with
            `mid_stream="restart"`.

        Raises:
            InvalidParameterError: No candidate has the name, or what is wanted. At once; what
                follows is raised while the stream is read.
            CircuitOpenError: All circuits are open; `retry_after` is the shortest wait.
            FirstTokenTimeoutError: No candidate gave content in time.
            ModelUnavailableError: All candidates failed before their first content.
            StreamInterruptedError: The answer broke off; `partial` is what there is of it.
            Exception: The model's own, when its kind is not among `moving_kinds`.
        """
        return self._stream(self._attempts(wants, model), open_stream, reader)

    def astream(
        self,
        open_stream: Callable[
            [ModelCandidate[M], str], AsyncIterable[C] | Awaitable[AsyncIterable[C]]
        ],
        reader: DeltaReader[C],
        *,
        wants: Collection[str] = (),
        model: str | None = None,
    ) -> AsyncIterator[C | StreamReset]:
        """Get an answer chunk by chunk: the async twin of `stream`. What is late is cancelled.

        Args:
            open_stream: Asks a candidate: an async iterable, or a coroutine that gives one. Its
                second argument is the text that the model is to continue.
            reader: What a chunk carries.
            wants: Capabilities that the request needs.
            model: The name of the candidate to ask first.

        Returns:
            Chunks as the model gave them, in order; `StreamReset` only with
            `mid_stream="restart"`.

        Raises:
            InvalidParameterError: No candidate has the name, or what is wanted. At once; what
                follows is raised while the stream is read.
            CircuitOpenError: All circuits are open; `retry_after` is the shortest wait.
            FirstTokenTimeoutError: No candidate gave content in time.
            ModelUnavailableError: All candidates failed before their first content.
            StreamInterruptedError: The answer broke off; `partial` is what there is of it.
            Exception: The model's own, when its kind is not among `moving_kinds`.
        """
        return self._astream(self._attempts(wants, model), open_stream, reader)

    def snapshot(self) -> RoutingSnapshot:
        """Tell how all candidates stand, in plain JSON types.

        Returns:
            `available`, the number of candidates whose circuit is not open, and `candidates` in
            the order given: name, priority, capabilities, what `CircuitBreaker.snapshot` and what
            `CandidateMetrics.snapshot` tell. In a notebook it shows as a table.
        """
        told = [_told(member) for member in self._members.values()]
        available = sum(candidate["state"] != CircuitState.OPEN.value for candidate in told)
        return RoutingSnapshot(available=available, candidates=told)

    def _stream(
        self,
        attempts: Attempts[M],
        open_stream: Callable[[ModelCandidate[M], str], Iterable[C]],
        reader: DeltaReader[C],
    ) -> Iterator[C | StreamReset]:
        delivery = Delivery(attempts, reader)
        for attempt in attempts:
            with attempt:
                delivery.begin(attempt)
                opened = partial(open_stream, attempt.candidate, delivery.prefill)
                with closing(_steps(opened, attempt)) as steps:
                    while not delivery.over:
                        yield from delivery.take(steps.step(delivery.patience()))
            if delivery.done:
                return
        raise delivery.failure()

    async def _astream(
        self,
        attempts: Attempts[M],
        open_stream: Callable[
            [ModelCandidate[M], str], AsyncIterable[C] | Awaitable[AsyncIterable[C]]
        ],
        reader: DeltaReader[C],
    ) -> AsyncIterator[C | StreamReset]:
        delivery = Delivery(attempts, reader)
        for attempt in attempts:
            with attempt:
                delivery.begin(attempt)
                opened = partial(open_stream, attempt.candidate, delivery.prefill)
                async with aclosing(AsyncSteps(opened)) as steps:
                    while not delivery.over:
                        for given in delivery.take(await steps.step(delivery.patience())):
                            yield given
            if delivery.done:
                return
        raise delivery.failure()

    def _attempts(self, wants: Collection[str], model: str | None) -> Attempts[M]:
        ordered = ordered_candidates(self.candidates, wants=wants, model=model)
        return Attempts([self._members[each.name] for each in ordered], self._settings)

    def _member(self, candidate: ModelCandidate[M], breaker: CircuitBreaker) -> Member[M]:
        metrics = CandidateMetrics()

        def changed(before: CircuitState, after: CircuitState) -> None:
            metrics.count("state_changes")
            attributes = {
                "gen_ai.request.model": candidate.name,
                "easyrag.routing.state": after.value,
                "easyrag.routing.previous_state": before.value,
            }
            emit(self._settings.on_event, "easyrag.routing.state", attributes)

        return Member(candidate, breaker.twin(on_change=changed), metrics)


def _checked_breaker(breaker: object) -> CircuitBreaker:
    if not isinstance(breaker, CircuitBreaker):
        raise InvalidParameterError("breaker", breaker, "give a CircuitBreaker, or None")
    return breaker


def _steps(open_stream: Callable[[], Iterable[C]], attempt: Attempt[M]) -> Steps[C]:
    if attempt.is_limited:
        return ThreadedSteps(open_stream, name=attempt.candidate.name)
    return DirectSteps(open_stream)


def _told(member: Member[M]) -> dict[str, object]:
    candidate = member.candidate
    return {
        "name": candidate.name,
        "priority": candidate.priority,
        "capabilities": sorted(candidate.capabilities),
        **member.breaker.snapshot(),
        **member.metrics.snapshot(),
    }
