"""Settings searched for on one part of the questions, and judged on another."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from easyrag_core._progress import with_progress
from easyrag_core._shown import clipped, escaped, html_box, html_table, text_table
from easyrag_core.errors import InvalidParameterError, check_count, check_number
from easyrag_core.evaluation._bootstrap import Bootstrap
from easyrag_core.evaluation._comparison import Comparison, compare_runs
from easyrag_core.evaluation._evaluation import groups_of, judged, values_of
from easyrag_core.evaluation._metrics import metric_of
from easyrag_core.evaluation._tables import html_tables, text_of

if TYPE_CHECKING:
    from easyrag_core.evaluation._judged import Qrels, Run
    from easyrag_core.evaluation._metrics import Metric

__all__ = ["Settings", "Trial", "Tuning", "tune"]

_logger = logging.getLogger(__name__)

Settings: TypeAlias = Mapping[str, Any]
"""Name of a setting to its value."""

_FEWEST: Final = 10
"""Questions, or groups of them, that each part needs: with fewer, chance chooses."""


class Trial(NamedTuple):
    """Settings that were tried.

    Attributes:
        settings: Name to value.
        score: Mean over the train part; `None` where the search failed.
        error: How it failed, as `repr` tells the exception.
    """

    settings: Settings
    score: float | None
    error: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Tuning:
    """What a search for settings found.

    In a notebook it is tables, and so it is when printed.

    Attributes:
        settings: The best on the train part; of equal ones the first of the grid.
        metric: What was looked at.
        trials: Everything that was tried, in the order of the grid.
        held_out: The first settings of the grid, called `first`, and the best, called `tuned`, on
            the questions that the choice never saw. Without `tuned` where the first are the best.
        train_questions: The questions that chose.
        held_out_questions: The others.
    """

    settings: Settings
    metric: str
    trials: tuple[Trial, ...]
    held_out: Comparison
    train_questions: tuple[str, ...]
    held_out_questions: tuple[str, ...]

    def __str__(self) -> str:
        """Return the tables for a terminal."""
        head, *rows = self._table()
        table = text_table([head, *rows], "l" * (len(head) - 1) + "r")
        return "\n".join([self._train_title(), *table, "", self._title(), text_of(self.held_out)])

    def __repr__(self) -> str:
        """Return the tables, so that a prompt shows them."""
        return str(self)

    def _repr_html_(self) -> str:
        """Return the tables for a notebook."""
        head, *rows = self._table()
        cells = ([escaped(cell) for cell in row] for row in rows)
        return html_box(
            [
                f"<div>{escaped(self._train_title())}</div>",
                html_table(head, cells, "l" * (len(head) - 1) + "r"),
                f"<div><b>{escaped(self._title())}</b></div>",
                *html_tables(self.held_out),
            ]
        )

    def _train_title(self) -> str:
        return f"{self.metric} on {len(self.train_questions):,} questions to choose by"

    def _title(self) -> str:
        told = ", ".join(f"{name}={_told(value)}" for name, value in self.settings.items())
        return f"Chosen: {told}. On {len(self.held_out_questions):,} other questions:"

    def _table(self) -> list[list[str]]:
        names = list(self.settings)
        rows = [[*names, self.metric]]
        best = _best_of(self.trials)
        for number, (settings, score, error) in enumerate(self.trials):
            mark = " *" if number == best else "  "
            told = f"{score:.4f}{mark}" if score is not None else clipped(str(error), 60)
            rows.append([*(_told(settings[name]) for name in names), told])
        return rows


def tune(
    search: Callable[[dict[str, Any]], Run],
    grid: Mapping[str, Sequence[Any]],
    questions: Qrels,
    *,
    metric: str = "ndcg@10",
    held_out: float = 0.5,
    groups: Mapping[str, Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
    seed: int = 0,
    show_progress: bool = False,
) -> Tuning:
    """Try every combination of settings, choose on one part of the questions, judge on another.

    Each combination is searched with once, over all questions; the choice sees the train part of
    what was found, and the rest judges the choice alone.

    Args:
        search: Settings by name to what is found with them for each question: a run, as
            `evaluate` takes it.
        grid: Name of a setting to its values, at least one each. The first of each together are
            what the choice is compared with, so put there what you have now.
        questions: Question to what is relevant: ids, or id to grade.
        metric: What is to be high; one of those that `evaluate` takes.
        held_out: Share of the questions that judge, above 0 and below 1.
        groups: Question to what it hangs together with: a group is in one part whole, and is
            drawn together.
        bootstrap: How the intervals are drawn. Default: `Bootstrap()`.
        seed: Of the split, at least 0. The same seed parts the same questions in the same way.
        show_progress: Show a tqdm bar over the combinations.

    Returns:
        The best settings, all that were tried, and how the best do on the held-out part.

    Raises:
        InvalidParameterError: An argument is not as above, or either part has fewer than 10
            questions (or groups).
        MissingDependencyError: A bar is wanted and tqdm is not installed.
        Exception: What `search` raised, if it failed for every combination.

    >>> relevant = {f"q{n}": ["a"] for n in range(40)}
    >>> def search(settings):
    ...     return {question: ["x"] * settings["depth"] + ["a"] for question in relevant}
    >>> tuned = tune(search, {"depth": [2, 0, 1]}, relevant, metric="mrr")
    >>> tuned.settings, round(tuned.held_out.differences["tuned"]["mrr"].mean, 3)
    ({'depth': 0}, 0.667)
    """
    combinations, bootstrap = _combinations(grid), Bootstrap.checked(bootstrap)
    wanted, grades = metric_of(metric, parameter="metric"), judged(questions, name="questions")
    train, rest = _parts(grades, groups_of(groups, grades), _share(held_out), seed=seed)
    tried = _Tried(wanted, {question: grades[question] for question in train})
    for settings in with_progress(combinations, what="Tuning", show=show_progress):
        tried.add(settings, search)
    compared = compare_runs(
        tried.runs(),
        {question: grades[question] for question in rest},
        metrics=[metric],
        groups=groups,
        bootstrap=bootstrap,
    )
    best = combinations[_best_of(tried.trials)]
    return Tuning(best, metric, tuple(tried.trials), compared, tuple(train), tuple(rest))


class _Tried:
    """What was tried, with the runs that are still needed: the first and the best."""

    def __init__(self, metric: Metric, grades: dict[str, dict[str, float]]) -> None:
        self._metric = metric
        self._grades = grades
        self._runs: dict[int, Run] = {}
        self._errors: list[Exception] = []
        self.trials: list[Trial] = []

    def add(self, settings: dict[str, Any], search: Callable[[dict[str, Any]], Run]) -> None:
        number = len(self.trials)
        try:
            run = search(dict(settings))
            values = values_of(run, self._grades, [self._metric], name=f"search({settings})")
        except Exception as error:  # noqa: BLE001 - one bad combination is no reason to lose all
            _logger.warning("The search failed with %r: %r", settings, error)
            self._errors.append(error)
            self.trials.append(Trial(settings, None, repr(error)))
            return
        self.trials.append(Trial(settings, float(values.mean())))
        if number in (0, _best_of(self.trials)):
            self._runs = {at: one for at, one in self._runs.items() if at == 0} | {number: run}

    def runs(self) -> dict[str, Run]:
        if not self._runs:
            raise self._errors[0]
        return {"tuned" if number else "first": run for number, run in self._runs.items()}


def _best_of(trials: Sequence[Trial]) -> int:
    """Return the place of the best; of equal ones the first. One at least did not fail."""
    scores = [(trial.score, -at) for at, trial in enumerate(trials) if trial.score is not None]
    return -max(scores)[1]


def _combinations(grid: Any) -> list[dict[str, Any]]:
    allowed = "give a dict of setting to a list of values, at least one each"
    if not isinstance(grid, Mapping) or not grid:
        raise InvalidParameterError("grid", grid, allowed)
    listed = {}
    for name, values in grid.items():
        unordered = isinstance(values, str | bytes | Mapping | AbstractSet)
        listed[name] = list(values) if isinstance(values, Iterable) and not unordered else []
        if not listed[name]:
            raise InvalidParameterError(f"grid[{name!r}]", values, allowed)
    return [dict(zip(listed, values, strict=True)) for values in product(*listed.values())]


def _share(held_out: float) -> float:
    allowed = "give a share above 0 and below 1"
    if not 0 < check_number("held_out", held_out, allowed=allowed) < 1:
        raise InvalidParameterError("held_out", held_out, allowed)
    return held_out


def _parts(
    questions: Iterable[str], groups: Sequence[Hashable], share: float, *, seed: int
) -> tuple[list[str], list[str]]:
    """Part the questions by chance, groups whole; each part in the order given."""
    listed = list(questions)
    group_of = dict(zip(listed, groups or listed, strict=True))
    units = list(dict.fromkeys(group_of.values()))
    judging = round(len(units) * share)
    if min(judging, len(units) - judging) < _FEWEST:
        # Rounded first: 1 - 0.9 is a little less than 0.1.
        needed = math.ceil(round(_FEWEST / min(share, 1 - share), 9))
        what = "groups of questions" if groups else "questions"
        allowed = (
            f"give at least {needed} {what} for held_out={share:g}: with fewer than {_FEWEST} in "
            "a part, chance decides"
        )
        raise InvalidParameterError("len(questions)", len(units), allowed)
    order = np.random.default_rng(check_count("seed", seed)).permutation(len(units))
    apart = {units[at] for at in order[:judging].tolist()}
    return (
        [question for question in listed if group_of[question] not in apart],
        [question for question in listed if group_of[question] in apart],
    )


def _told(value: object) -> str:
    return clipped(value if isinstance(value, str) else repr(value), 30)
