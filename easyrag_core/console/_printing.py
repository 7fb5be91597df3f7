"""What was found, for people and for machines."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from easyrag_core.files import SkippedFile
    from easyrag_core.index import HybridIndex
    from easyrag_core.types import Chunk, Hit

__all__ = ["Report", "as_json", "as_text"]

_WIDTH = 96
_LINES_SHOWN = 6
_SKIPPED_SHOWN = 10


@dataclass(slots=True)
class Report:
    """One search, ready to be printed.

    Attributes:
        query: What was asked.
        found: Hits with their chunks, best first.
        way: How it was searched, in words.
        skipped: Files that were not read.
        notes: What else the reader should know.
        timings: Step to milliseconds.
    """

    query: str
    found: Sequence[tuple[Hit, Chunk]]
    way: str
    skipped: Sequence[SkippedFile] = ()
    notes: Sequence[str] = ()
    timings: Mapping[str, float] = field(default_factory=dict)


def as_json(report: Report) -> str:
    """Return a report as one JSON object.

    Args:
        report: The search.

    Returns:
        An object with `query`, `hits`, `skipped`, `notes` and `timings` (milliseconds).
    """
    return json.dumps(
        {
            "query": report.query,
            "hits": [_hit_as_json(hit, chunk) for hit, chunk in report.found],
            "skipped": [{"file": s.path, "reason": s.reason} for s in report.skipped],
            "notes": list(report.notes),
            "timings": dict(report.timings),
        },
        ensure_ascii=False,
        indent=2,
    )


def _hit_as_json(hit: Hit, chunk: Chunk) -> dict[str, Any]:
    return {
        "id": hit.id,
        "file": chunk.document_id,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "start": chunk.start,
        "end": chunk.end,
        "heading_path": list(chunk.heading_path),
        "score": hit.score,
        "channels": {name: place._asdict() for name, place in hit.channels.items()},
        "reasons": list(hit.reasons),
        "text": chunk.text,
    }


def as_text(report: Report, *, explained_by: HybridIndex | None = None) -> str:
    """Return a report as lines for a terminal.

    Args:
        report: The search.
        explained_by: The index, to show what each word of the question contributes.

    Returns:
        The lines, joined.
    """
    return "\n".join(_lines(report, explained_by))


def _lines(report: Report, index: HybridIndex | None) -> Iterator[str]:
    count = len(report.found)
    yield f"{count or 'No'} passage{'s' if count != 1 else ''} for: {report.query}"
    yield f"({report.way})"
    for number, (hit, chunk) in enumerate(report.found, start=1):
        yield ""
        path = f"  [{' > '.join(chunk.heading_path)}]" if chunk.heading_path else ""
        place = f"{chunk.document_id}:{chunk.start_line}-{chunk.end_line}"
        yield f"{number}. {place}{path}  score {hit.score:.4f}"
        for reason in hit.reasons:
            yield f"   {reason}"
        if index is not None:
            yield from _explanation(index, report.query, hit.id)
        yield from (f"   | {line}" for line in _shown(chunk.text))
    yield from _footnotes(report)


def _explanation(index: HybridIndex, query: str, id_: str) -> Iterator[str]:
    if id_ not in index.bm25:
        return
    explanation = index.bm25.explain(query, id_)
    for term in explanation.terms:
        if term.tf:
            yield (
                f"   word {term.term!r}: {term.contribution:.3f} = "
                f"idf {term.idf:.3f} of {term.document_frequency} passages, "
                f"{term.tf} here, length {explanation.length}"
            )


def _shown(text: str) -> list[str]:
    lines = [textwrap.shorten(line, _WIDTH, placeholder=" …") for line in text.splitlines()]
    lines = [line for line in lines if line]
    more = len(lines) - _LINES_SHOWN
    return lines if more <= 1 else [*lines[:_LINES_SHOWN], f"… {more} more lines"]


def _footnotes(report: Report) -> Iterator[str]:
    if report.skipped or report.notes:
        yield ""
    yield from report.notes
    if report.skipped:
        yield f"Skipped {len(report.skipped)}:"
        for skipped in report.skipped[:_SKIPPED_SHOWN]:
            yield f"  {skipped.path} {skipped.reason}"
        if len(report.skipped) > _SKIPPED_SHOWN:
            yield f"  … and {len(report.skipped) - _SKIPPED_SHOWN} more (all with --json)"
