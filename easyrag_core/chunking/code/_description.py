"""A caller's summary and keywords of a chunk, shortened to what the limit leaves."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from easyrag_core.text import grapheme_boundary_before

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from easyrag_core.types import Chunk

__all__ = ["add_description"]

_logger = logging.getLogger(__name__)


def add_description(
    chunk: Chunk,
    describe: Callable[[Chunk], Mapping[str, Any]],
    embed: Callable[[str, str], str],
    fits: Callable[[str], bool],
) -> None:
    """Ask for a chunk's description and put it into its metadata and what is embedded.

    A description that cannot be had leaves the chunk without one, with a warning.

    Args:
        chunk: The chunk; it is changed.
        describe: The caller's function.
        embed: From summary and keywords to the text to embed.
        fits: Whether a text to embed is within the limit.
    """
    try:
        described = describe(chunk)
        summary = str(described.get("summary") or "")
        keywords = _words(described.get("keywords"))
    except Exception as error:  # noqa: BLE001 - whatever a model's client raises
        _logger.warning("Chunk %s has no description: %r", chunk.id or chunk.index, error)
        return
    if summary:
        chunk.metadata["summary"] = summary
    if keywords:
        chunk.metadata["keywords"] = keywords
    # Keywords go first, then the end of the summary.
    low, high = 0, len(summary) + len(keywords)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(embed(*_shortened(summary, keywords, middle))):
            low = middle
        else:
            high = middle - 1
    chunk.embedding_text = embed(*_shortened(summary, keywords, low))


def _words(keywords: str | Sequence[str] | None) -> list[str]:
    if keywords is None:
        return []
    return [keywords] if isinstance(keywords, str) else [str(word) for word in keywords]


def _shortened(summary: str, keywords: list[str], size: int) -> tuple[str, str]:
    if size < len(summary):
        return summary[: grapheme_boundary_before(summary, size)], ""
    return summary, ", ".join(keywords[: size - len(summary)])
