"""An explanation for a notebook: a table with bars, without scripts and outside resources."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from easyrag_core._shown import escaped, html_box, html_table
from easyrag_core.explanation._text import (
    MOST_FALLEN,
    MOST_SHOWN,
    more,
    stage_align,
    stage_rows,
    told_fall,
    told_place,
    told_score,
    told_title,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from easyrag_core.explanation._explanation import Explanation

__all__ = ["bar_widths", "page_of"]

_LONGEST_TEXT: Final = 400


def page_of(explanation: Explanation) -> str:
    """Write an explanation as HTML; everything from outside is escaped."""
    parts = [f"<div><b>{escaped(told_title(explanation))}</b></div>", _passages(explanation)]
    if explanation.stages:
        head, *stages = stage_rows(explanation)
        rows = [[escaped(cell) for cell in row] for row in stages]
        parts.append(html_table(head, rows, stage_align([head])))
    if fallen := explanation.fell_out:
        rows = [
            [_text(explanation, one.id), escaped(told_fall(one))] for one in fallen[:MOST_FALLEN]
        ]
        parts.append(html_table([f"{len(fallen):,} fell out", "where"], rows, "ll"))
        parts += more(len(fallen), MOST_FALLEN)
    return html_box(parts)


def _passages(explanation: Explanation) -> str:
    hits, channels = explanation.hits[:MOST_SHOWN], explanation.channels
    columns = [_bars([hit.score for hit in hits], "er-bar er-score")]
    for name in channels:
        places = [hit.channels.get(name) for hit in hits]
        scores = [None if place is None else _height(place) for place in places]
        columns.append(_bars(scores, "er-bar"))
    rows = []
    for at, hit in enumerate(hits):
        cells = [told_score(hit.score), *(told_place(hit.channels.get(name)) for name in channels)]
        barred = [escaped(cell) + bars[at] for cell, bars in zip(cells, columns, strict=True)]
        notes = "".join(
            f'<div class="er-note">{escaped(note)}</div>' for note in explanation.notes(hit)
        )
        rows.append([str(at + 1), *barred, _text(explanation, hit.id) + notes])
    head = ["#", "score", *channels, "passage"]
    rest = "".join(more(len(explanation.hits), MOST_SHOWN))
    return html_table(head, rows, "r" + "r" * (len(channels) + 1) + "l") + rest


def _height(place: tuple[int, float | None]) -> float:
    """Return what a channel's bar shows: the score, else the rank, the lower the better."""
    rank, score = place
    return -float(rank) if score is None else score


def _text(explanation: Explanation, id_: str) -> str:
    text = explanation.texts.get(id_)
    if text is None:
        return escaped(id_)
    cut = "…" if len(text) > _LONGEST_TEXT else ""
    return f'<span title="{escaped(id_)}">{escaped(text[:_LONGEST_TEXT])}{cut}</span>'


def _bars(scores: Sequence[float | None], kinds: str) -> list[str]:
    return [
        "" if width is None else f'<span class="{kinds}" style="width:{width:.0f}%"></span>'
        for width in bar_widths(scores)
    ]


def bar_widths(scores: Sequence[float | None]) -> Iterator[float | None]:
    """Bring scores onto one scale: from 0, or from the lowest where that is below 0.

    Args:
        scores: Higher is better; `None` and NaN get no bar.

    Returns:
        Per cent of the highest.

    >>> list(bar_widths([4.0, 1.0, None])), list(bar_widths([-1.0, -3.0]))
    ([100.0, 25.0, None], [100.0, 0.0])
    """
    known = [score for score in scores if score is not None and math.isfinite(score)]
    # Halved, so that no difference is beyond what a float can hold.
    low, high = min([0.0, *known]) / 2, max(known, default=0.0) / 2
    for score in scores:
        if score is None or not math.isfinite(score):
            yield None
        else:
            yield 100.0 if high == low else 100 * ((score / 2 - low) / (high - low))
