"""Many texts at once: here, or in worker processes where that pays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from easyrag_core._progress import with_progress
from easyrag_core.bulk import BULK_CHARACTERS, collection_paused
from easyrag_core.errors import InvalidParameterError, check_count
from easyrag_core.index.analyzer._workers import reading

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    given: Sequence[object] = [None] if isinstance(texts, str) else texts
    if not all(isinstance(text, str) for text in given):
        raise InvalidParameterError("texts", texts, "give a list of texts")
    characters = sum(map(len, texts))
    if characters < pool_from:
        workers = 1
    with collection_paused(when=characters > BULK_CHARACTERS), reading(analyzer, workers) as read:
        terms = with_progress(read(texts), what="Analyzing", show=show_progress, total=len(texts))
        return list(terms)
