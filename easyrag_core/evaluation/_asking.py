"""Retrievers asked the same questions, timed, and measured."""

from __future__ import annotations

import asyncio
import inspect
import logging
import statistics
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypeVar
from unicodedata import normalize

from easyrag_core._progress import with_progress
from easyrag_core.errors import InvalidParameterError, check_choice
from easyrag_core.evaluation._bootstrap import Bootstrap
from easyrag_core.evaluation._comparison import Comparison, compare_runs
from easyrag_core.evaluation._evaluation import METRICS, groups_of, judged
from easyrag_core.evaluation._judged import ranked_ids
from easyrag_core.evaluation._metrics import metrics_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from easyrag_core.evaluation._judged import Qrels

__all__ = ["AsyncRetrieve", "Found", "HasHits", "Retrieve", "acompare", "compare"]

_logger = logging.getLogger(__name__)

T = TypeVar("T")

T_co = TypeVar("T_co", covariant=True)


class HasHits(Protocol[T_co]):
    """A result that holds what was found, as a pipeline's does."""

    @property
    def hits(self) -> Sequence[T_co]:
        """What was found, best first."""


Found: TypeAlias = Iterable[T] | HasHits[T]
"""What was found, best first."""

Retrieve: TypeAlias = Callable[[str], Found[T]]
"""A question to what was found."""

AsyncRetrieve: TypeAlias = Callable[[str], Awaitable[Found[T]] | Found[T]]
"""The same, or a coroutine function."""

_ANSWER: Final = "the answer"
_OTHER: Final = "another text"


def compare(
    retrievers: Mapping[str, Retrieve[T]],
    questions: Qrels,
    *,
    metrics: Sequence[str] = METRICS,
    match: str = "id",
    key: Callable[[T], str | Sequence[str]] | None = None,
    text: Callable[[T], str] | None = None,
    groups: Mapping[str, Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
    strict: bool = False,
    show_progress: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> Comparison:
    """Ask several retrievers the same questions, and say which is better and faster.

    One after the other, so that the times can be compared. A retriever that fails on a question
    found nothing for it; that is told in the table and logged.

    Args:
        retrievers: Name to what gives, for a question, what was found, best first: ids, hits,
            anything that `key` and `text` can read, or a result that has these as its `hits`.
        questions: Question to what is relevant. Under `match="id"` the ids, or id to grade.
            Under `match="text"` the answer, in one or several wordings: a result that holds one
            of them, however it is spaced and written large or small, is the right one. That way
            passages of different sizes can be compared, whose ids are different.
        metrics: As `evaluate` takes them.
        match: `"id"` or `"text"`.
        key: A result's id, or several that it goes by, such as its own and its document's: the
            first that the question names counts. Default: the result itself, or a `Hit`'s id.
        text: A result's text; needed under `match="text"`.
        groups: Question to what it hangs together with; see `evaluate`.
        bootstrap: How the intervals are drawn. Default: `Bootstrap()`.
        strict: Raise a retriever's own error.
        show_progress: Show a tqdm bar for each retriever.
        clock: Tells seconds.

    Returns:
        Means, intervals, differences from the first that answered, and milliseconds.

    Raises:
        InvalidParameterError: An argument is not as above.
        MissingDependencyError: A bar is wanted and tqdm is not installed.

    >>> found = {"what is BM25?": ["d2", "d1"]}
    >>> compared = compare({"words": found.get}, {"what is BM25?": ["d1"]}, metrics=["mrr"])
    >>> compared.evaluations["words"].means
    {'mrr': 0.5}
    """
    _refuse_coroutines(retrievers)
    asked = _Asked(retrievers, questions, match=match, key=key, text=text, clock=clock)
    asked.measured_by(metrics=metrics, groups=groups, bootstrap=bootstrap)
    for name, retriever, question in asked.calls(show_progress=show_progress):
        with asked.timed(name, question, strict=strict) as take:
            take(retriever(question))
    return asked.comparison()


async def acompare(
    retrievers: Mapping[str, AsyncRetrieve[T]],
    questions: Qrels,
    *,
    metrics: Sequence[str] = METRICS,
    match: str = "id",
    key: Callable[[T], str | Sequence[str]] | None = None,
    text: Callable[[T], str] | None = None,
    groups: Mapping[str, Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
    strict: bool = False,
    show_progress: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> Comparison:
    """Ask several retrievers the same questions: the async twin of `compare`.

    What is no coroutine function runs in a thread, so the event loop goes on meanwhile.

    Args:
        retrievers: As in `compare`; functions, or coroutine functions.
        questions: As in `compare`.
        metrics: As in `compare`.
        match: As in `compare`.
        key: As in `compare`.
        text: As in `compare`.
        groups: As in `compare`.
        bootstrap: As in `compare`.
        strict: As in `compare`.
        show_progress: As in `compare`.
        clock: As in `compare`.

    Returns:
        As `compare` does.

    Raises:
        InvalidParameterError: An argument is not as in `compare`.
    """
    asked = _Asked(retrievers, questions, match=match, key=key, text=text, clock=clock)
    asked.measured_by(metrics=metrics, groups=groups, bootstrap=bootstrap)
    for name, retriever, question in asked.calls(show_progress=show_progress):
        with asked.timed(name, question, strict=strict) as take:
            take(await _answer(retriever, question))
    return await asyncio.to_thread(asked.comparison)


async def _answer(retriever: AsyncRetrieve[T], question: str) -> Found[T]:
    found: Any
    if inspect.iscoroutinefunction(retriever):
        found = retriever(question)
    else:
        found = await asyncio.to_thread(retriever, question)
    # Objects with an async `__call__`, and lambdas around one, look like plain functions.
    answer: Found[T] = await found if inspect.isawaitable(found) else found
    return answer


class _Asked(Generic[T]):
    """What is asked, and what has come back."""

    def __init__(
        self,
        retrievers: Mapping[str, Any],
        questions: Qrels,
        *,
        match: str,
        key: Callable[[T], str | Sequence[str]] | None,
        text: Callable[[T], str] | None,
        clock: Callable[[], float],
    ) -> None:
        self._retrievers = _checked(retrievers)
        for what, given in (("key", key), ("text", text), ("clock", clock)):
            if not (given is None and what != "clock") and not callable(given):
                raise InvalidParameterError(what, given, "give a function")
        self._key = key
        self._text = text
        self._clock = clock
        self._wordings: dict[str, list[str]] = {}
        self._grades: Qrels = judged(questions, name="questions")
        self._known = {id_ for relevant in self._grades.values() for id_ in relevant}
        if check_choice("match", match, ("id", "text")) == "text":
            if text is None:
                raise InvalidParameterError("text", text, "say how a result's text is read")
            self._wordings = {question: _wordings(question, questions) for question in questions}
            self._grades = dict.fromkeys(questions, (_ANSWER,))
        self._runs: dict[str, dict[str, list[str]]] = {name: {} for name in retrievers}
        self._seconds: dict[str, list[float]] = {name: [] for name in retrievers}
        self._errors: dict[str, dict[str, str]] = {}
        self._settings: dict[str, Any] = {}

    def measured_by(
        self,
        *,
        metrics: Sequence[str],
        groups: Mapping[str, Hashable] | None,
        bootstrap: Bootstrap | None,
    ) -> None:
        """Check how is measured, before anybody is asked."""
        metrics_of(metrics)
        groups_of(groups, self._grades)
        Bootstrap.checked(bootstrap)
        self._settings = {"metrics": metrics, "groups": groups, "bootstrap": bootstrap}

    def calls(self, *, show_progress: bool) -> Iterator[tuple[str, Any, str]]:
        """Give each retriever with each question."""
        for name, retriever in self._retrievers.items():
            for question in with_progress(self._grades, what=name, show=show_progress):
                yield name, retriever, question
            self._report(name)

    @contextmanager
    def timed(
        self, name: str, question: str, *, strict: bool
    ) -> Iterator[Callable[[Found[T]], None]]:
        """Take what a retriever gives, and how long it took; or what it raises."""
        began = self._clock()

        def take(found: Found[T]) -> None:
            # A pipeline's result holds its hits; a generator works while it is read.
            given = getattr(found, "hits", found)
            listed = given if isinstance(given, Mapping) else _listed(given)
            took = self._clock() - began
            self._runs[name][question] = self._ids(question, listed)
            self._seconds[name].append(took)

        try:
            yield take
        except Exception as error:
            if strict:
                raise
            self._errors.setdefault(name, {})[question] = repr(error)

    def _ids(self, question: str, found: Any) -> list[str]:
        wordings = self._wordings.get(question)
        if wordings is not None and self._text is not None:
            texts = (_plain(self._text(item)) for item in found)
            return [_ANSWER if any(w in told for w in wordings) else _OTHER for told in texts]
        if self._key is not None:
            found = [self._named(self._key(item), question) for item in found]
        return ranked_ids(found, name="found")

    def _named(self, names: str | Sequence[str], question: str) -> str:
        """Choose the name that this question knows, else one that any knows."""
        if isinstance(names, str):
            return names
        for known in (self._grades[question], self._known):
            for name in names:
                if name in known:
                    return name
        return names[0]

    def _report(self, name: str) -> None:
        if errors := self._errors.get(name):
            _logger.warning(
                "%r failed on %d of %d questions, which count 0. The first: %s",
                name,
                len(errors),
                len(self._grades),
                next(iter(errors.values())),
            )

    def comparison(self) -> Comparison:
        """Measure what has come back."""
        runs = {name: run for name, run in self._runs.items() if run}
        if not runs:
            return Comparison({}, errors=self._errors)
        compared = compare_runs(runs, self._grades, **self._settings)
        milliseconds = {name: 1000 * statistics.median(self._seconds[name]) for name in runs}
        return replace(compared, milliseconds=milliseconds, errors=self._errors)


def _checked(retrievers: Any) -> Mapping[str, Any]:
    if not isinstance(retrievers, Mapping) or not retrievers:
        raise InvalidParameterError(
            "retrievers", retrievers, "give a dict of name to retriever, at least one"
        )
    for name, retriever in retrievers.items():
        if not callable(retriever):
            allowed = "give what can be called with a question"
            raise InvalidParameterError(f"retrievers[{name!r}]", retriever, allowed)
    return retrievers


def _refuse_coroutines(retrievers: Any) -> None:
    for name, retriever in _checked(retrievers).items():
        if inspect.iscoroutinefunction(retriever):
            allowed = "a coroutine function is for acompare"
            raise InvalidParameterError(f"retrievers[{name!r}]", retriever, allowed)


def _listed(found: Any) -> list[Any]:
    if isinstance(found, str | bytes) or not isinstance(found, Iterable):
        raise InvalidParameterError("found", found, "a retriever gives a list of results")
    return list(found)


def _wordings(question: str, questions: Qrels) -> list[str]:
    wordings = [_plain(wording) for wording in questions[question]]
    if not wordings or not all(wordings):
        allowed = "give at least one wording of the answer, none of them blank"
        raise InvalidParameterError(f"questions[{question!r}]", questions[question], allowed)
    return wordings


def _plain(text: str) -> str:
    """Bring a text into a form in which spaces, width and case make no difference."""
    return "".join(normalize("NFKC", text).casefold().split())
