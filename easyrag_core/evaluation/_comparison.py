"""Several runs over the same questions: which is better, and by how much for certain."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from easyrag_core.errors import InvalidParameterError
from easyrag_core.evaluation._bootstrap import Bootstrap, Estimate
from easyrag_core.evaluation._evaluation import (
    METRICS,
    Evaluation,
    evaluation_of,
    groups_of,
    judged,
    values_of,
    warn_of_barren,
)
from easyrag_core.evaluation._metrics import metrics_of
from easyrag_core.evaluation._tables import html_of, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from easyrag_core.evaluation._judged import Qrels, Run

__all__ = ["Comparison", "compare_runs"]


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """How good several runs are over the same questions.

    In a notebook it is a table, and so it is when printed: means with intervals, below them the
    differences from the first run. A difference whose interval leaves out 0 is more than chance.

    Attributes:
        evaluations: Name to how good it is; in the order given, without those that gave nothing.
        differences: Name to metric to the mean difference from the first; over pairs of values
            for one question, so it is surer than the intervals of the means look.
        milliseconds: Name to the median time for one question, where it was measured.
        errors: Name to question to what failed, as `repr` tells the exception; such a question
            counts 0.
    """

    evaluations: Mapping[str, Evaluation]
    differences: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    milliseconds: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def best(self, metric: str) -> str:
        """Return the name with the best mean; of equal ones the first.

        Args:
            metric: One of those that were measured.

        Returns:
            A name.

        Raises:
            InvalidParameterError: The metric was not measured.
        """
        means = {
            name: one.means[metric] for name, one in self.evaluations.items() if metric in one.means
        }
        if not means:
            measured = [told for one in self.evaluations.values() for told in one.means]
            allowed = "choose one of " + ", ".join(map(repr, dict.fromkeys(measured)))
            raise InvalidParameterError("metric", metric, allowed)
        return max(means, key=means.__getitem__)

    def __str__(self) -> str:
        """Return the tables for a terminal."""
        return text_of(self)

    def __repr__(self) -> str:
        """Return the tables, so that a prompt shows them."""
        return str(self)

    def _repr_html_(self) -> str:
        """Return the tables for a notebook."""
        return html_of(self)


def compare_runs(
    runs: Mapping[str, Run],
    qrels: Qrels,
    *,
    metrics: Sequence[str] = METRICS,
    groups: Mapping[str, Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> Comparison:
    """Measure several runs over the same questions, and their differences from the first.

    Args:
        runs: Name to run, at least one; see `evaluate`.
        qrels: Question to what is relevant: ids, or id to grade.
        metrics: As `evaluate` takes them.
        groups: Question to what it hangs together with.
        bootstrap: How the intervals are drawn; all from the same draws. Default: `Bootstrap()`.

    Returns:
        The comparison.

    Raises:
        InvalidParameterError: `runs` is no dict, or empty, or `evaluate` refuses one.

    >>> runs = {"words": {"q": ["x", "a"]}, "both": {"q": ["a", "x"]}}
    >>> compared = compare_runs(runs, {"q": ["a"]}, metrics=["mrr"])
    >>> compared.best("mrr"), compared.differences["both"]["mrr"].mean
    ('both', 0.5)
    """
    given: object = runs
    if not isinstance(given, Mapping) or not given:
        raise InvalidParameterError("runs", runs, "give a dict of name to run, at least one")
    bootstrap = Bootstrap.checked(bootstrap)
    grades, wanted = judged(qrels), metrics_of(metrics)
    told = groups_of(groups, grades)
    warn_of_barren(grades)
    values = [values_of(run, grades, wanted, name=f"runs[{name!r}]") for name, run in runs.items()]
    # Side by side, so that one draw of the questions is the same for all.
    columns = np.hstack([*values, *(other - values[0] for other in values[1:])])
    estimates = bootstrap.estimates(columns, told)
    rows = [estimates[at : at + len(wanted)] for at in range(0, len(estimates), len(wanted))]
    evaluations = {
        name: evaluation_of(own, row, wanted, grades, bootstrap)
        for name, own, row in zip(runs, values, rows, strict=False)
    }
    names = [metric.name for metric in wanted]
    differences = {
        name: dict(zip(names, row, strict=True))
        for name, row in zip(list(runs)[1:], rows[len(runs) :], strict=True)
    }
    return Comparison(evaluations, differences)
