"""How good rankings are over many questions, and how sure that is."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from easyrag_core._shown import escaped, html_box, html_table, text_table
from easyrag_core.errors import InvalidParameterError
from easyrag_core.evaluation._bootstrap import Bootstrap, Estimate
from easyrag_core.evaluation._judged import gains_of, grades_of, ranked_ids
from easyrag_core.evaluation._metrics import ideal_of, metrics_of
from easyrag_core.evaluation._tables import told_questions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from easyrag_core.evaluation._judged import Qrels, Run
    from easyrag_core.evaluation._metrics import Metric

__all__ = [
    "METRICS",
    "Evaluation",
    "evaluate",
    "evaluation_of",
    "groups_of",
    "judged",
    "values_of",
    "warn_of_barren",
]

_logger = logging.getLogger(__name__)

METRICS: Final = ("recall@5", "recall@10", "mrr@10", "ndcg@10")
"""What is measured if nothing else is asked for."""


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """How good one run is.

    In a notebook it is a table, and so it is when printed.

    Attributes:
        estimates: Metric to its mean over the questions, with an interval.
        per_query: Metric to question to value.
        confidence: Of the intervals.
    """

    estimates: Mapping[str, Estimate]
    per_query: Mapping[str, Mapping[str, float]]
    confidence: float = 0.95

    @property
    def means(self) -> dict[str, float]:
        """Metric to mean."""
        return {name: estimate.mean for name, estimate in self.estimates.items()}

    @property
    def questions(self) -> int:
        """How many questions there were."""
        return len(next(iter(self.per_query.values())))

    def __str__(self) -> str:
        """Return the table for a terminal."""
        rows = [
            [name, *(f"{value:.4f}" for value in estimate)]
            for name, estimate in self.estimates.items()
        ]
        return "\n".join([self._title(), *text_table([["", "mean", "low", "high"], *rows], "lrrr")])

    def __repr__(self) -> str:
        """Return the tables, so that a prompt shows them."""
        return str(self)

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        rows = [
            [escaped(name), *(f"{value:.4f}" for value in estimate)]
            for name, estimate in self.estimates.items()
        ]
        return html_box([self._title(), html_table(["", "mean", "low", "high"], rows, "lrrr")])

    def _title(self) -> str:
        return told_questions(self.questions, self.confidence)


def evaluate(
    run: Run,
    qrels: Qrels,
    *,
    metrics: Sequence[str] = METRICS,
    groups: Mapping[str, Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> Evaluation:
    """Measure a run over every question that is judged.

    The values are those of trec_eval (with `-c`: a question for which nothing was found counts,
    with 0; so does one to which nothing is relevant). Questions that nobody judged are left out.

    Args:
        run: Question to what was found: ids or hits, best first, taken as they stand; or id to
            score, sorted as trec_eval sorts (by score in single precision, equal ones by id, both
            descending).
        qrels: Question to what is relevant: ids, or id to grade. A grade above 0 is relevant.
        metrics: `recall@k`, `precision@k`, `mrr`, `mrr@k`, `ndcg`, `ndcg@k`, `map`, `map@k`.
        groups: Question to what it hangs together with, such as the document that it was written
            for: questions of one group are drawn together. Default: each stands alone.
        bootstrap: How the intervals are drawn. Default: `Bootstrap()`.

    Returns:
        Mean and interval for each metric, and the value of each question.

    Raises:
        InvalidParameterError: An argument is not as above, no question is judged, or none of
            those that were asked is.

    >>> found = {"q1": ["a", "b"], "q2": ["x"]}
    >>> evaluate(found, {"q1": ["b"], "q2": ["c"]}, metrics=["recall@2", "mrr"]).means
    {'recall@2': 0.5, 'mrr': 0.25}
    """
    grades, wanted = judged(qrels), metrics_of(metrics)
    bootstrap = Bootstrap.checked(bootstrap)
    warn_of_barren(grades)
    values = values_of(run, grades, wanted)
    estimates = bootstrap.estimates(values, groups_of(groups, grades))
    return evaluation_of(values, estimates, wanted, grades, bootstrap)


def evaluation_of(
    values: NDArray[np.float64],
    estimates: Sequence[Estimate],
    metrics: Sequence[Metric],
    questions: Mapping[str, Any],
    bootstrap: Bootstrap,
) -> Evaluation:
    """Name the columns and rows of what was measured.

    Args:
        values: Shape (questions, metrics).
        estimates: One for each metric.
        metrics: The metrics.
        questions: The questions.
        bootstrap: How the intervals were drawn.
    """
    columns = zip(metrics, values.T.tolist(), strict=True)
    return Evaluation(
        {metric.name: estimate for metric, estimate in zip(metrics, estimates, strict=True)},
        {metric.name: dict(zip(questions, column, strict=True)) for metric, column in columns},
        bootstrap.confidence,
    )


def judged(qrels: Qrels, *, name: str = "qrels") -> dict[str, dict[str, float]]:
    """Read what is relevant to each question.

    Args:
        qrels: As `evaluate` takes it.
        name: What it is called in messages.

    Returns:
        Question to id to grade.

    Raises:
        InvalidParameterError: It is no dict, or an empty one, or `grades_of` refuses a value.
    """
    given: object = qrels
    if not isinstance(given, Mapping) or not given:
        raise InvalidParameterError(name, qrels, "give a dict of question to what is relevant")
    return {
        question: grades_of(relevant, name=f"{name}[{question!r}]")
        for question, relevant in qrels.items()
    }


def warn_of_barren(grades: Mapping[str, Mapping[str, float]]) -> None:
    """Warn of questions to which nothing is relevant."""
    barren = sum(not any(grade > 0 for grade in told.values()) for told in grades.values())
    if barren:
        _logger.warning(
            "To %d of %d questions nothing is relevant: they count 0, whatever is found.",
            barren,
            len(grades),
        )


def values_of(
    run: Run,
    grades: Mapping[str, Mapping[str, float]],
    metrics: Sequence[Metric],
    *,
    name: str = "run",
) -> NDArray[np.float64]:
    """Measure a run.

    Args:
        run: As `evaluate` takes it.
        grades: Question to id to grade.
        metrics: What to measure.
        name: What the run is called in messages.

    Returns:
        Shape (questions, metrics).

    Raises:
        InvalidParameterError: It is no dict, asks none of the questions, or `ranked_ids` refuses
            a value.
    """
    if not isinstance(run, Mapping):
        raise InvalidParameterError(name, run, "give a dict of question to what was found")
    found = {
        question: ranked_ids(run[question], name=f"{name}[{question!r}]")
        for question in grades
        if question in run
    }
    if run and not found:
        allowed = f"none of its questions is judged; {next(iter(grades))!r} would be"
        raise InvalidParameterError(name, next(iter(run)), allowed)
    _warn_of_strangers(found, grades, name=name)
    rows = []
    for question, told in grades.items():
        gains, ideal = gains_of(found.get(question, ()), told), ideal_of(told.values())
        rows.append([metric.of(gains, ideal) for metric in metrics])
    return np.array(rows, np.float64)


def _warn_of_strangers(
    found: Mapping[str, Sequence[str]], grades: Mapping[str, Mapping[str, float]], *, name: str
) -> None:
    """Warn where no id that was found is judged: the two may speak of different things."""
    if any(id_ in grades[question] for question, ids in found.items() for id_ in ids):
        return
    first = next((ids[0] for ids in found.values() if ids), None)
    wanted = next((id_ for told in grades.values() for id_ in told), None)
    if first is not None and wanted is not None:
        _logger.warning(
            "%s: nothing that was found is judged. Found is such as %r, judged is such as %r: are "
            "both ids of the same kind?",
            name,
            first,
            wanted,
        )


def groups_of(
    groups: Mapping[str, Hashable] | None, questions: Mapping[str, Any]
) -> list[Hashable]:
    """Return the group of each question; an empty list where none are given.

    Args:
        groups: Question to group.
        questions: The questions.

    Raises:
        InvalidParameterError: It is no dict, or a question has no group that can be hashed.
    """
    if groups is None:
        return []
    if not isinstance(groups, Mapping):
        raise InvalidParameterError("groups", groups, "give a dict of question to group")
    missing = next((question for question in questions if question not in groups), None)
    if missing is not None:
        raise InvalidParameterError("groups", missing, "this question has no group")
    listed = [groups[question] for question in questions]
    for group in listed:
        if not isinstance(group, Hashable):
            raise InvalidParameterError("groups", group, "a group is told by something hashable")
    return listed
