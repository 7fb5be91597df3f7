"""Times several calls side by side and puts the outcome into rows."""

from __future__ import annotations

import statistics
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["Row", "interleaved", "megabytes", "table"]


def megabytes(text: str) -> float:
    """How many megabytes of UTF-8 a text is."""
    return len(text.encode("utf-8")) / 1e6


@dataclass(frozen=True)
class Row:
    """One line of the table: ours against a peer on the same work.

    Attributes:
        name: What was done; `--only` chooses by it.
        work: On what.
        peer: Who else did it; empty when the row compares us with ourselves.
        amount: How much one run handles, in `unit`.
        unit: `MB` gives a throughput; anything else gives the time for one of it.
        ours: Seconds for one run, median.
        theirs: Seconds for one run of the peer, median.
        asked: The smallest ratio that is asked for; `None` where none is.
        note: What a reader should know.
    """

    name: str
    work: str
    peer: str = ""
    amount: float = 1
    unit: str = "call"
    ours: float | None = None
    theirs: float | None = None
    asked: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times faster we are."""
        return self.theirs / self.ours if self.ours and self.theirs else None

    def speed(self, seconds: float | None) -> str:
        """A throughput, or a time in the unit that reads best."""
        if seconds is None:
            return "-"
        if self.unit == "MB":
            return f"{self.amount / seconds:.1f} MB/s"
        one = seconds / self.amount
        scale, unit = next(
            (pair for pair in ((1, "s"), (1e3, "ms")) if one * pair[0] >= 1), (1e6, "us")
        )
        return f"{one * scale:.3g} {unit}"

    def told(self) -> dict[str, Any]:
        """The row for machines, with its ratio."""
        return {**asdict(self), "ratio": self.ratio}


def interleaved(
    calls: Sequence[Callable[[], object]],
    *,
    rounds: int = 3,
    at_least: float = 0.05,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Median seconds of each call, taken in turns so that load on the machine hits all alike.

    Args:
        calls: What to time; each runs once before, to warm up.
        rounds: How many times each is measured.
        at_least: Seconds that one measurement lasts; short calls are repeated within it.
        clock: Gives seconds.

    Returns:
        One median per call, for a single run of it.
    """
    repeats = []
    for call in calls:
        started = clock()
        call()
        repeats.append(max(1, round(at_least / max(clock() - started, 1e-7))))
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for at, call in enumerate(calls):
            started = clock()
            for _ in range(repeats[at]):
                call()
            seconds[at].append((clock() - started) / repeats[at])
    return [statistics.median(taken) for taken in seconds]


HEAD = ("what", "work", "ours", "peer", "", "ratio", "asked", "")
"""The table's columns; those without a word are the peer's name and the verdict."""


def table(rows: Iterable[Row]) -> str:
    """The rows as aligned text."""
    cells = [HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(HEAD))]
    lines = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in cells)
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, ...]:
    met = row.ratio is not None and row.asked is not None and row.ratio >= row.asked
    verdict = "" if row.ratio is None or row.asked is None else "met" if met else "NOT MET"
    return (
        row.name,
        row.work,
        row.speed(row.ours),
        row.speed(row.theirs),
        row.peer,
        "-" if row.ratio is None else f"{row.ratio:.2f}x",
        "-" if row.asked is None else f"{row.asked:g}x",
        " ".join(filter(None, (verdict, row.note))),
    )
