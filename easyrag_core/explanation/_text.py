"""An explanation for a terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from easyrag_core._shown import clipped, text_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from easyrag_core.explanation._explanation import Explanation, FellOut

__all__ = [
    "MOST_FALLEN",
    "MOST_SHOWN",
    "more",
    "stage_align",
    "stage_rows",
    "text_of",
    "told_fall",
    "told_place",
    "told_score",
    "told_title",
]

MOST_SHOWN: Final = 50
MOST_FALLEN: Final = 20

_PASSAGE: Final = 60
_NOTE: Final = 90
_NAME: Final = 24


def text_of(explanation: Explanation) -> str:
    """Write an explanation as lines."""
    lines = [clipped(told_title(explanation), _NOTE), *_passages(explanation)]
    if explanation.stages:
        rows = [
            [clipped(r[0], _NAME), *r[1:-1], clipped(r[-1], _NOTE)] for r in stage_rows(explanation)
        ]
        lines += ["", *text_table(rows, stage_align(rows))]
    if fallen := explanation.fell_out:
        lines += ["", f"{len(fallen):,} fell out:"]
        for one in fallen[:MOST_FALLEN]:
            lines.append(f"  {_shown(explanation, one.id)}")
            lines.append(f"    {clipped(told_fall(one), _NOTE)}")
        lines += more(len(fallen), MOST_FALLEN)
    return "\n".join(lines)


def _passages(explanation: Explanation) -> Iterator[str]:
    if not explanation.hits:
        return
    channels = explanation.channels
    rows = [["#", "score", *(clipped(name, _NAME) for name in channels), "passage"]]
    for place, hit in enumerate(explanation.hits[:MOST_SHOWN], 1):
        places = [told_place(hit.channels.get(name)) for name in channels]
        rows.append([str(place), told_score(hit.score), *places, _shown(explanation, hit.id)])
        blank = [""] * (len(channels) + 2)
        rows += [[*blank, f"· {clipped(note, _NOTE)}"] for note in explanation.notes(hit)]
    yield from text_table(rows, "rr" + "l" * (len(channels) + 1))
    yield from more(len(explanation.hits), MOST_SHOWN)


def _shown(explanation: Explanation, id_: str) -> str:
    return clipped(explanation.texts.get(id_) or id_, _PASSAGE)


def told_title(explanation: Explanation) -> str:
    """Say how many passages there are, and what was asked."""
    count = len(explanation.hits)
    asked = "" if explanation.query is None else f" for: {explanation.query}"
    return f"{count:,} passage{'' if count == 1 else 's'}{asked}"


def told_score(score: float | None) -> str:
    """Write a score.

    >>> told_score(0.0163934), told_score(None)
    ('0.01639', '-')
    """
    return "-" if score is None or math.isnan(score) else f"{score:.4g}"


def told_place(place: tuple[int, float | None] | None) -> str:
    """Write where a channel put a hit.

    >>> told_place((2, 7.5)), told_place((2, None)), told_place(None)
    ('2 (7.5)', '2', '-')
    """
    if place is None:
        return "-"
    rank, score = place
    return str(rank) if score is None else f"{rank} ({told_score(score)})"


def stage_rows(explanation: Explanation) -> list[list[str]]:
    """Write what each stage did: its name, counts, milliseconds if known, and how it failed."""
    timed = any(stage.seconds for stage in explanation.stages)
    rows = [["stage", "in", "out", *(["ms"] if timed else []), ""]]
    for stage in explanation.stages:
        failed = "" if stage.error is None else f"failed: {stage.error}"
        taken = str(len(stage.taken)) if stage.taken else ""
        took = [f"{1000 * stage.seconds:.2f}"] if timed else []
        rows.append([stage.name, taken, str(len(stage.given)), *took, failed])
    return rows


def stage_align(rows: list[list[str]]) -> str:
    """Say how the columns of `stage_rows` stand."""
    return "l" + "r" * (len(rows[0]) - 2) + "l"


def told_fall(one: FellOut) -> str:
    """Write where a passage fell out, and where it stood before."""
    places = "".join(f", {name} rank {rank}" for name, rank in one.channels.items())
    return f"at {one.stage}{places}" + (f": {one.note}" if one.note else "")


def more(count: int, most: int) -> list[str]:
    """Say how many are not shown; nothing where all are."""
    return [f"… and {count - most:,} more"] if count > most else []
