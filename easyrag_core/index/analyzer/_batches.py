"""Many texts at once: here, or in worker processes where that pays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from easyrag_core._progress import with_progress
from easyrag_core.errors import check_count, check_texts
from easyrag_core.index.analyzer._workers import reading, tasks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from easyrag_core.index.analyzer._protocol import Analyzer

__all__ = ["analyze_all"]


def analyze_all(
    analyzer: Analyzer,
    texts: Sequence[str],
    *,
    processes: int | None,
    pool_from: int,
    show_progress: bool,
) -> list[list[str]]:
    """Return the terms of each text, in order.

    Args:
        analyzer: An analyzer that can be built from its settings.
        texts: The texts.
        processes: Number of worker processes at most; `None` means none.
        pool_from: Characters from which on workers pay.
        show_progress: Show a tqdm bar.

    Returns:
        One list of terms per text.

    Raises:
        InvalidParameterError: For a number of processes below 1, or what is no list of texts.
        MissingDependencyError: For a progress bar without tqdm.
    """
    workers = 1 if processes is None else check_count("processes", processes, minimum=1)
    listed = check_texts("texts", texts)
    if sum(map(len, listed)) < pool_from:
        workers = 1
    terms = _terms(analyzer, listed, workers)
    return list(with_progress(terms, what="Analyzing", show=show_progress, total=len(listed)))


def _terms(analyzer: Analyzer, texts: list[str], workers: int) -> Iterator[list[str]]:
    if workers == 1:
        yield from map(analyzer, texts)
        return
    with reading(analyzer, workers) as read:
        for numbered in read(tasks(texts)):
            yield from numbered.lists()
