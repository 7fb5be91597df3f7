"""The line as a whole: channels at once, fusion, postprocessors one after the other."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from easyrag_core.errors import (
    AllChannelsFailedError,
    InvalidParameterError,
    check_choice,
    check_count,
    check_text,
    check_timeout,
)
from easyrag_core.pipeline._channels import (
    ChannelOutcome,
    arun_channels,
    distinct_names,
    in_thread,
    run_channels,
)
from easyrag_core.pipeline._items import HitItems
from easyrag_core.pipeline._reporting import Report
from easyrag_core.pipeline._reranking import Rerank
from easyrag_core.pipeline._stage import Channel, PipelineContext, aprocessed
from easyrag_core.ranking.fusion import reciprocal_rank_fusion

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence

    from easyrag_core.events import EventHandler
    from easyrag_core.pipeline._items import Items
    from easyrag_core.pipeline._stage import Postprocessor
    from easyrag_core.types import StageFacts

__all__ = ["NO_LIMIT", "PipelineResult", "RetrievalPipeline"]

_logger = logging.getLogger("easyrag_core.pipeline")

T = TypeVar("T")

NO_LIMIT: Final = sys.maxsize
"""A budget that nothing exceeds."""

_CANDIDATES: Final = 40
_CONTEXT: Final = 10
_OWN_STAGES: Final = ("fusion", "top k")


@dataclass(frozen=True, slots=True)
class PipelineResult(Generic[T]):
    """What a run gave, and how.

    Attributes:
        hits: Best first.
        stages: What each stage did: the channels in their order, `"fusion"`, the postprocessors,
            and `"top k"`.
        errors: Name of a channel or a postprocessor to its error, for those that failed and
            were left out.
    """

    hits: list[T]
    stages: tuple[StageFacts, ...] = ()
    errors: Mapping[str, Exception] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Step(Generic[T]):
    """Calls to be run at once, in both forms."""

    calls: Mapping[str, Callable[[], list[T]]]
    acalls: Mapping[str, Callable[[], Awaitable[list[T]]]]
    timeouts: Mapping[str, float | None]
    strict: bool


class RetrievalPipeline(Generic[T]):
    """Asks channels in parallel, fuses what they give, and lets postprocessors work on it.

    A channel that fails or is late is left out, a postprocessor that fails is skipped; both are
    logged, and told in the result. Candidates become fewer along the line: each channel gives at
    most its `k`, the fusion `fetch_k`, the end `k`.

    `run` and `arun` drive the same plan, with threads and with tasks. An instance holds no state
    of a run: it may be shared.

    >>> from easyrag_core import Channel, Hit
    >>> words = Channel("words", lambda query, k: [Hit("a", 7.1, 1), Hit("b", 3.0, 2)])
    >>> meaning = Channel("meaning", lambda query, k: [Hit("b", 0.9, 1)])
    >>> result = RetrievalPipeline([words, meaning]).run("what is RAG?")
    >>> [hit.id for hit in result.hits]
    ['b', 'a']
    >>> [(stage.name, len(stage.given)) for stage in result.stages]
    [('words', 2), ('meaning', 1), ('fusion', 2), ('top k', 2)]
    """

    def __init__(
        self,
        channels: Sequence[Channel[T]],
        postprocessors: Sequence[Postprocessor[T]] = (),
        *,
        fusion: str = "rrf",
        rank_constant: float = 60,
        fetch_k: int | None = None,
        k: int | None = None,
        items: Items[T] | None = None,
        strict: bool = False,
        on_event: EventHandler | None = None,
    ) -> None:
        """Check the plan.

        Args:
            channels: At least one, with different names and weights that are not all 0.
            postprocessors: What happens after fusion, in this order.
            fusion: `"rrf"` fuses ranks; `"score"` adds scores brought to [0, 1] per channel.
            rank_constant: For `"rrf"`: finite, >= 0; the larger, the less the first ranks stand
                out.
            fetch_k: How many candidates the fusion hands on, at most what all channels may give.
                Default: 40, or that.
            k: How many hits are wanted in the end, at most `fetch_k` and at most the `limit` of
                every postprocessor. Default: 10, or the smallest of these.
            items: How hits are read and written. Default: hits are `Hit`s.
            strict: Raise the first error of a channel or a postprocessor instead of going on
                without it.
            on_event: Takes an event per stage, named as OpenInference and OpenTelemetry name
                them.

        Raises:
            InvalidParameterError: A setting is not as above: also where a budget grows along the
                line.
        """
        self._channels = _checked_channels(channels)
        self._postprocessors = _checked_stages(postprocessors)
        names = [part.name for part in (*self._channels, *self._postprocessors)]
        self._names = distinct_names(names)[len(self._channels) :]
        self._fusion = check_choice("fusion", fusion, ("rrf", "score"))
        self._weights = [float(channel.weight) for channel in self._channels]
        if not any(self._weights):
            raise InvalidParameterError("weight", self._weights, "not all of them may be 0")
        # The kernel knows what weights and constants are allowed.
        empty: list[list[str]] = [[] for _ in self._channels]
        reciprocal_rank_fusion(empty, weights=self._weights, rank_constant=rank_constant)
        self._rank_constant = rank_constant
        self._fetch_k = _budget("fetch_k", fetch_k, _CANDIDATES, self._recall())
        self._k = _budget("k", k, _CONTEXT, _narrowest(self._fetch_k, self._postprocessors))
        self._items = cast("Items[T]", HitItems()) if items is None else items
        self._strict = strict
        self._on_event = on_event

    @property
    def k(self) -> int:
        """How many hits are wanted in the end."""
        return self._k

    @property
    def fetch_k(self) -> int:
        """How many candidates the fusion hands on."""
        return self._fetch_k

    @property
    def channels(self) -> tuple[Channel[T], ...]:
        """Who is asked."""
        return self._channels

    @property
    def postprocessors(self) -> tuple[Postprocessor[T], ...]:
        """What happens after fusion."""
        return self._postprocessors

    def _recall(self) -> int:
        return min(NO_LIMIT, sum(channel.k for channel in self._channels))

    def run(self, query: str, *, k: int | None = None) -> PipelineResult[T]:
        """Ask, in threads that carry the caller's context.

        Args:
            query: What is asked.
            k: How many hits are wanted this time; budgets that are smaller are raised to it.

        Returns:
            The hits, and what each stage did.

        Raises:
            AllChannelsFailedError: No channel answered.
            InvalidParameterError: The query is no text, or `k` no number of at least 0.
            Exception: `strict`, and a channel or a postprocessor failed: its own error.
        """
        plan = self._plan(query, k)
        advance: Callable[[], _Step[T]] = partial(next, plan)
        while True:
            try:
                step = advance()
            except StopIteration as done:
                return cast("PipelineResult[T]", done.value)
            try:
                found = run_channels(step.calls, timeout=step.timeouts, strict=step.strict)
            except Exception as error:  # noqa: BLE001 - the plan decides what goes on
                advance = partial(plan.throw, error)
            else:
                advance = partial(plan.send, found)

    async def arun(self, query: str, *, k: int | None = None) -> PipelineResult[T]:
        """Ask, as tasks: the async twin of `run`. Its cancellation cancels them and goes on.

        Args:
            query: What is asked.
            k: How many hits are wanted this time; budgets that are smaller are raised to it.

        Returns:
            The hits, and what each stage did.

        Raises:
            AllChannelsFailedError: No channel answered.
            InvalidParameterError: The query is no text, or `k` no number of at least 0.
            Exception: `strict`, and a channel or a postprocessor failed: its own error.
        """
        plan = self._plan(query, k)
        advance: Callable[[], _Step[T]] = partial(next, plan)
        while True:
            try:
                step = advance()
            except StopIteration as done:
                return cast("PipelineResult[T]", done.value)
            try:
                found = await arun_channels(step.acalls, timeout=step.timeouts, strict=step.strict)
            except Exception as error:  # noqa: BLE001 - the plan decides what goes on
                advance = partial(plan.throw, error)
            else:
                advance = partial(plan.send, found)

    def _plan(
        self, query: str, k: int | None
    ) -> Generator[_Step[T], ChannelOutcome[list[T]], PipelineResult[T]]:
        """All that a run is, but for the waiting."""
        check_text("query", query)
        wanted = self._k if k is None else check_count("k", k)
        report = Report(self._items, self._on_event, query, wanted)
        try:
            errors: dict[str, Exception] = {}
            # What a call asks for itself raises the budgets that are smaller.
            hits = yield from self._found(report, errors, least=0 if k is None else wanted)
            for name, stage in zip(self._names, self._postprocessors, strict=True):
                hits = yield from self._processed(name, stage, hits, report, errors)
            since = time.perf_counter()
            report.stage("top k", hits, hits[:wanted], since=since)
            hits = self._items.finished(hits[:wanted], report.reasons)
        except Exception as error:
            report.ended([], error)
            raise
        report.ended(hits)
        return PipelineResult(hits, tuple(report.stages), errors)

    def _found(
        self, report: Report[T], errors: dict[str, Exception], *, least: int
    ) -> Generator[_Step[T], ChannelOutcome[list[T]], list[T]]:
        names = [channel.name for channel in self._channels]
        try:
            outcome = yield self._asking(report.query, least)
        except AllChannelsFailedError as failed:
            told = {n: e for n, e in failed.errors.items() if isinstance(e, Exception)}
            report.channels(names, ChannelOutcome(errors=told))
            raise
        errors.update(outcome.errors)
        since = time.perf_counter()
        try:
            hits = self._items.fused(
                {name: outcome.results.get(name, []) for name in names},
                fusion=self._fusion,
                weights=self._weights,
                rank_constant=self._rank_constant,
                k=max(self._fetch_k, least) if self._postprocessors else report.k,
            )
        finally:
            seconds = time.perf_counter() - since
            # Only fusion sees which hits of different channels are one.
            report.channels(names, outcome)
        report.fusion(hits, seconds=seconds)
        return hits

    def _asking(self, query: str, least: int) -> _Step[T]:
        return _Step(
            {c.name: partial(self._ask, c, query, max(c.k, least)) for c in self._channels},
            {c.name: partial(self._aask, c, query, max(c.k, least)) for c in self._channels},
            {channel.name: channel.timeout for channel in self._channels},
            self._strict,
        )

    def _ask(self, channel: Channel[T], query: str, k: int) -> list[T]:
        return self._recalled(channel.search(query, k), k)

    async def _aask(self, channel: Channel[T], query: str, k: int) -> list[T]:
        if channel.asearch is None:
            return self._recalled(await in_thread(partial(channel.search, query, k)), k)
        return self._recalled(await channel.asearch(query, k), k)

    def _recalled(self, answer: object, k: int) -> list[T]:
        """Keep the first `k` of an answer; what comes again takes no place."""
        found = self._items.checked(answer)
        if len(found) <= k:
            return found
        kept, seen = [], set[str]()
        for item in found:
            id_ = self._items.id_of(item)
            if id_ in seen or len(seen) < k:
                seen.add(id_)
                kept.append(item)
        return kept

    def _processed(
        self,
        name: str,
        stage: Postprocessor[T],
        hits: list[T],
        report: Report[T],
        errors: dict[str, Exception],
    ) -> Generator[_Step[T], ChannelOutcome[list[T]], list[T]]:
        since, fetch_k = time.perf_counter(), max(self._fetch_k, report.k)
        context = PipelineContext(report.query, report.k, fetch_k, self._items)
        step: _Step[T] = _Step(
            {name: partial(self._process, stage, hits, context)},
            {name: partial(self._aprocess, stage, hits, context)},
            {name: getattr(stage, "timeout", None)},
            strict=True,
        )
        try:
            given = (yield step).results[name]
        except Exception as error:
            if self._strict:
                raise
            _logger.warning("Postprocessor %r failed and is skipped: %r", name, error)
            errors[name] = error
            report.stage(name, hits, hits, since=since, error=error)
            return hits
        report.stage(name, hits, given, since=since, notes=context.notes)
        return given

    def _process(
        self, stage: Postprocessor[T], hits: list[T], context: PipelineContext[T]
    ) -> list[T]:
        return self._items.checked(stage.process(tuple(hits), context))

    async def _aprocess(
        self, stage: Postprocessor[T], hits: list[T], context: PipelineContext[T]
    ) -> list[T]:
        return self._items.checked(await aprocessed(stage, tuple(hits), context))


def _checked_channels(channels: Any) -> tuple[Channel[Any], ...]:
    listed = tuple(channels) if isinstance(channels, Iterable) else ()
    if not listed or not all(isinstance(channel, Channel) for channel in listed):
        raise InvalidParameterError("channels", channels, "give a list of at least one Channel")
    names = [channel.name for channel in listed]
    for name in names:
        if names.count(name) > 1 or name in _OWN_STAGES:
            allowed = f"each channel has a name of its own, none of {_OWN_STAGES}"
            raise InvalidParameterError("name", name, allowed)
    return listed


def _checked_stages(postprocessors: Any) -> tuple[Any, ...]:
    if not isinstance(postprocessors, Iterable) or isinstance(postprocessors, str):
        raise InvalidParameterError("postprocessors", postprocessors, "give a list")
    listed = tuple(postprocessors)
    for stage in listed:
        able = callable(getattr(stage, "process", None)) and hasattr(stage, "name")
        if not able or isinstance(stage, type):
            allowed = "give objects with a name and a process(hits, context), not their class"
            raise InvalidParameterError("postprocessors", stage, allowed)
        check_timeout(getattr(stage, "timeout", None))
        if isinstance(stage, Rerank):
            stage.check()
    return listed


def _budget(name: str, given: int | None, default: int, most: int) -> int:
    if given is None:
        return min(default, most)
    if check_count(name, given) > most:
        allowed = (
            f"budgets do not grow along the line, and at most {most} come here: "
            "raise what stands before it, or lower it"
        )
        raise InvalidParameterError(name, given, allowed)
    return int(given)


def _narrowest(fetch_k: int, stages: Sequence[Any]) -> int:
    """Follow the limits along the line; none may be wider than what comes to it."""
    most = fetch_k
    for stage in stages:
        limit = getattr(stage, "limit", None)
        if limit is not None:
            most = _budget(f"limit of {stage.name!r}", limit, most, most)
    return most
