"""A second look at the best candidates, by whatever scores them better."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from easyrag_core.errors import InvalidParameterError, check_count, check_timeout
from easyrag_core.pipeline._selecting import above, checked_min_score
from easyrag_core.pipeline._stage import aprocessed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from easyrag_core.pipeline._stage import PipelineContext, Postprocessor

__all__ = ["Rerank"]

T = TypeVar("T")

_RERANKERS = "give a function of a query and hits, or a postprocessor, not its class"


class Rerank(Generic[T]):
    """Lets a reranker score the best candidates anew; what it does not see falls out.

    Where it fails or is late, the stage is skipped: the order from before stays.

    >>> from easyrag_core import Channel, Hit, RetrievalPipeline
    >>> channel = Channel("words", lambda query, k: [Hit("a", 9.0, 1), Hit("b", 8.0, 2)])
    >>> lengths = {"a": 0.2, "b": 0.7}
    >>> rerank = Rerank(lambda query, hits: [lengths[hit.id] for hit in hits], min_score=0.5)
    >>> [(hit.id, hit.score) for hit in RetrievalPipeline([channel], [rerank]).run("q").hits]
    [('b', 0.7)]
    """

    def __init__(
        self,
        reranker: Postprocessor[T] | Callable[[str, Sequence[T]], Sequence[float | None]] | object,
        *,
        candidate_limit: int | None = None,
        min_score: float | None = None,
        timeout: float | None = None,
        name: str = "rerank",
    ) -> None:
        """Check the settings.

        Args:
            reranker: A postprocessor that gives hits with new scores, best first; or a function
                of the query and hits that gives one score per hit, higher is better (`None`: it
                has none, and comes last). In the frameworks also a reranker of theirs.
            candidate_limit: How many candidates it sees, the best of them. Default: all that the
                fusion hands on.
            min_score: The lowest final score that stays; 0 is a threshold like any other. `None`
                keeps all.
            timeout: Seconds that it has; `None` waits for ever.
            name: The stage's name.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        self.reranker: Any = reranker
        # A class can be called like a function, but gives no scores.
        if reranker is None or isinstance(reranker, str | bytes | int | float | type):
            raise InvalidParameterError("reranker", reranker, _RERANKERS)
        if candidate_limit is not None:
            check_count("candidate_limit", candidate_limit, minimum=1)
        check_timeout(timeout)
        self.candidate_limit = candidate_limit
        self.min_score: float | None = None if min_score is None else checked_min_score(min_score)
        self.timeout = timeout
        self.name = name

    def check(self) -> None:
        """Refuse a reranker that the line cannot ask.

        Raises:
            InvalidParameterError: It is no function, and has no `process`.
        """
        if not callable(self.reranker) and not callable(getattr(self.reranker, "process", None)):
            raise InvalidParameterError("reranker", self.reranker, _RERANKERS)

    @property
    def limit(self) -> int | None:
        """The most hits that come out."""
        return self.candidate_limit

    def process(self, hits: Sequence[T], context: PipelineContext[T]) -> list[T]:
        """Score the candidates anew."""
        seen = self._candidates(hits, context)
        if not seen:
            return []
        return self._kept(self._stage.process(seen, context), context)

    async def aprocess(self, hits: Sequence[T], context: PipelineContext[T]) -> list[T]:
        """Score the candidates anew: the async twin of `process`."""
        seen = self._candidates(hits, context)
        if not seen:
            return []
        return self._kept(await aprocessed(self._stage, seen, context), context)

    @property
    def _stage(self) -> Postprocessor[T]:
        given: Any = self.reranker
        stage: Postprocessor[T] = given if hasattr(given, "process") else _Scoring(given)
        return stage

    def _candidates(self, hits: Sequence[T], context: PipelineContext[T]) -> Sequence[T]:
        limit = context.fetch_k if self.candidate_limit is None else self.candidate_limit
        for hit in hits[limit:]:
            context.notes[context.items.id_of(hit)] = f"not among the best {limit} candidates"
        return hits[:limit]

    def _kept(self, found: Sequence[T], context: PipelineContext[T]) -> list[T]:
        items = context.items
        for hit in found:
            score = items.score_of(hit)
            context.notes.setdefault(
                items.id_of(hit), "no score" if score is None else f"score {score:.4g}"
            )
        return list(found) if self.min_score is None else above(self.min_score, found, context)


class _Scoring(Generic[T]):
    """A function that scores, as a postprocessor."""

    name = "scoring"

    def __init__(self, score: Callable[[str, Sequence[T]], Sequence[float | None]]) -> None:
        self._score = score

    def process(self, hits: Sequence[T], context: PipelineContext[T]) -> list[T]:
        items, given = context.items, self._score(context.query, hits)
        allowed = f"give one per hit, there are {len(hits)}"
        if not isinstance(given, Iterable):
            raise InvalidParameterError("scores", given, allowed)
        scores = list(given)
        if len(scores) != len(hits):
            raise InvalidParameterError("len(scores)", len(scores), allowed)
        for score in scores:
            if not isinstance(score, Real | None):
                raise InvalidParameterError("scores", score, "give numbers, or None for no score")
        scored = [items.scored(hit, score) for hit, score in zip(hits, scores, strict=True)]
        # The sort is stable: what ties stays in the order from before.
        return sorted(scored, key=lambda hit: _descending(items.score_of(hit)))


def _descending(score: float | None) -> tuple[bool, float]:
    return (True, 0.0) if score is None else (False, -score)
