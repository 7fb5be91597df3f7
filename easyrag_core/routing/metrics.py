"""What a router has seen of each candidate, for a health page and for a notebook."""

from __future__ import annotations

import statistics
import threading
from collections import Counter, deque
from html import escape
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from easyrag_core.routing.failures import FailureKind

__all__ = ["CandidateMetrics", "RoutingSnapshot"]

_WINDOW: Final = 256


class CandidateMetrics:
    """Counts of one candidate's calls. Times to the first token are those of the last 256."""

    def __init__(self) -> None:
        """Begin at zero."""
        # Reentrant: a forgotten stream may be collected, and counted, in the midst of a count.
        self._lock = threading.RLock()
        self._counts: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._first_tokens: deque[float] = deque(maxlen=_WINDOW)

    def count(self, what: str) -> None:
        """Count a call, a success, a cancellation, a skip or a change of state.

        Args:
            what: The snapshot's own word for it.
        """
        with self._lock:
            self._counts[what] += 1

    def failed(self, kind: FailureKind) -> None:
        """Count a failure.

        Args:
            kind: Its class.
        """
        with self._lock:
            self._failures[kind] += 1

    def first_token(self, seconds: float) -> None:
        """Keep the time that passed before the first content.

        Args:
            seconds: Since the candidate was asked.
        """
        with self._lock:
            self._first_tokens.append(seconds)

    def snapshot(self) -> dict[str, Any]:
        """Tell all counts, in plain JSON types.

        Returns:
            `calls`, `successes`, `cancelled` and `skipped` (not asked because of the circuit),
            `failures` by class, `state_changes`, and `first_token_seconds` with `last`, `mean`
            and `p50`, `None` before the first.
        """
        with self._lock:
            counts = {name: self._counts[name] for name in _COUNTS}
            times = list(self._first_tokens)
            failures = dict(sorted(self._failures.items()))
        return {**counts, "failures": failures, "first_token_seconds": _summary(times)}


_COUNTS: Final = ("calls", "successes", "cancelled", "skipped", "state_changes")


def _summary(times: list[float]) -> dict[str, float | None]:
    if not times:
        return {"last": None, "mean": None, "p50": None}
    return {"last": times[-1], "mean": statistics.fmean(times), "p50": statistics.median(times)}


class RoutingSnapshot(dict[str, Any]):
    """How a router stands: a plain dict for `json.dumps`, a table in a notebook."""

    def _repr_html_(self) -> str:
        """Show one row per candidate; every text in it is escaped."""
        head = "".join(f"<th>{escape(title)}</th>" for title in _COLUMNS)
        rows = "".join(map(_row, self["candidates"]))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


_COLUMNS: Final = ("model", "state", "try again", "calls", "ok", "failures", "first token p50")


def _row(candidate: dict[str, Any]) -> str:
    failures = ", ".join(f"{kind} {count}" for kind, count in candidate["failures"].items())
    p50 = candidate["first_token_seconds"]["p50"]
    cells = (
        candidate["name"],
        candidate["state"],
        f"{candidate['retry_after']:.1f} s" if candidate["retry_after"] else "",
        candidate["calls"],
        candidate["successes"],
        failures,
        "" if p50 is None else f"{p50 * 1000:.0f} ms",
    )
    return "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells) + "</tr>"
