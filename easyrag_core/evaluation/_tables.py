"""Comparisons as tables, for a terminal and for a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from easyrag_core._shown import clipped, escaped, html_box, html_table, text_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from easyrag_core.evaluation._bootstrap import Estimate
    from easyrag_core.evaluation._comparison import Comparison

__all__ = ["html_of", "html_tables", "text_of", "told_estimate", "told_questions"]

_LONGEST_NAME = 40
_LONGEST_ERROR = 160


def told_questions(count: int, confidence: float) -> str:
    """Say how many questions stand behind a table, and what its intervals are.

    >>> told_questions(1190, 0.95)
    '1,190 questions, intervals of 95 %'
    """
    return f"{count:,} question{'' if count == 1 else 's'}, intervals of {confidence * 100:g} %"


def told_estimate(estimate: Estimate, *, signed: bool = False) -> str:
    """Write a mean with its interval.

    >>> told_estimate((0.5, 0.4, 0.6)), told_estimate((0.1, 0.05, 0.2), signed=True)
    ('0.500 [0.400, 0.600]', '+0.100 [+0.050, +0.200]')
    """
    mean, low, high = (f"{value:{'+' if signed else ''}.3f}" for value in estimate)
    return f"{mean} [{low}, {high}]"


def text_of(comparison: Comparison) -> str:
    """Write a comparison for a terminal."""
    lines: list[str] = []
    for title, table in _tables(comparison):
        lines += [title, *text_table(table, "l" + "r" * (len(table[0]) - 1)), ""]
    return "\n".join([*lines, *_faults(comparison)]).rstrip("\n")


def html_of(comparison: Comparison) -> str:
    """Write a comparison for a notebook."""
    return html_box(html_tables(comparison))


def html_tables(comparison: Comparison) -> Iterator[str]:
    """Write the parts of a comparison in HTML: titles, tables, and what failed."""
    for title, (head, *rows) in _tables(comparison):
        cells = (
            [f"<b>{escaped(cell)}</b>" if cell.endswith("*") else escaped(cell) for cell in row]
            for row in rows
        )
        yield f"<div>{escaped(title)}</div>{html_table(head, cells, 'l' + 'r' * (len(head) - 1))}"
    for fault in _faults(comparison):
        yield f'<div class="er-fault">{escaped(fault)}</div>'


def _tables(comparison: Comparison) -> Iterator[tuple[str, list[list[str]]]]:
    if not comparison.evaluations:
        return
    first = next(iter(comparison.evaluations))
    evaluation = comparison.evaluations[first]
    title = told_questions(evaluation.questions, evaluation.confidence)
    yield f"{title}; * the best mean", _means(comparison, list(evaluation.means))
    if comparison.differences:
        title = f"Difference from {clipped(first, _LONGEST_NAME)}; * more than chance"
        yield title, _differences(comparison, list(evaluation.means))


def _means(comparison: Comparison, metrics: list[str]) -> list[list[str]]:
    best = {
        metric: max(one.means[metric] for one in comparison.evaluations.values())
        for metric in metrics
    }
    timed = bool(comparison.milliseconds)
    rows = [["", *metrics, *(["ms per question"] if timed else [])]]
    for name, one in comparison.evaluations.items():
        cells = [
            told_estimate(estimate) + (" *" if estimate.mean == best[metric] else "  ")
            for metric, estimate in one.estimates.items()
        ]
        took = comparison.milliseconds.get(name)
        cells += [] if not timed else ["-" if took is None else f"{took:,.2f}"]
        rows.append([clipped(name, _LONGEST_NAME), *cells])
    return rows


def _differences(comparison: Comparison, metrics: list[str]) -> list[list[str]]:
    rows = [["", *metrics]]
    for name, told in comparison.differences.items():
        cells = [
            told_estimate(one, signed=True) + (" *" if one.low > 0 or one.high < 0 else "  ")
            for one in told.values()
        ]
        rows.append([clipped(name, _LONGEST_NAME), *cells])
    return rows


def _faults(comparison: Comparison) -> list[str]:
    return [
        f"{clipped(name, _LONGEST_NAME)} failed on {len(errors):,} "
        f"question{'' if len(errors) == 1 else 's'}, such as {clipped(question, _LONGEST_NAME)!r}: "
        f"{clipped(error, _LONGEST_ERROR)}"
        for name, errors in comparison.errors.items()
        for question, error in list(errors.items())[:1]
    ]
