"""What of an index goes to disk, and what is checked when it comes back."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from easyrag_core.errors import IndexFormatError, InvalidParameterError
from easyrag_core.index._folder import FolderContents
from easyrag_core.index.analyzer import analyzer_from_settings
from easyrag_core.index.bm25._params import BM25Params
from easyrag_core.index.bm25._segment import Segment
from easyrag_core.index.bm25._part import Part
from easyrag_core.index.bm25._snapshot import Snapshot
from easyrag_core.index.bm25._vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from easyrag_core.index.analyzer import Analyzer

__all__ = ["KIND", "VERSION", "packed", "unpacked"]

KIND: Final = "bm25"
VERSION: Final = 1


def packed(snapshot: Snapshot, params: BM25Params, analyzer: Analyzer) -> FolderContents:
    """Return arrays, settings and texts of an index, compacted.

    Args:
        snapshot: The documents.
        params: The index's own settings of the formula.
        analyzer: Its analyzer.

    Returns:
        Contents for `write_folder`.
    """
    compact = snapshot.compacted()
    segment = compact.parts[0].segment if compact.parts else _EMPTY
    return FolderContents(
        arrays={
            "lengths": segment.lengths,
            "offsets": segment.offsets,
            "documents": segment.documents,
            "frequencies": segment.frequencies,
        },
        settings={"params": asdict(params), "analyzer": analyzer.settings()},
        texts={"ids": segment.ids, "terms": compact.vocabulary.terms()},
    )


def unpacked(
    contents: FolderContents, analyzer: Analyzer | None
) -> tuple[Snapshot, BM25Params, Analyzer]:
    """Rebuild an index from its contents.

    Args:
        contents: What `packed` returned.
        analyzer: The caller's analyzer; `None` builds the one that the settings describe.

    Returns:
        Documents, settings, analyzer.

    Raises:
        IndexFormatError: If the parts do not fit together, or the analyzer is another one.
    """
    try:
        params = BM25Params(**contents.settings["params"])
        saved = contents.settings["analyzer"]
        segment = _segment(contents)
        vocabulary = Vocabulary.of(contents.texts["terms"])
    except (KeyError, TypeError, InvalidParameterError) as error:
        raise IndexFormatError(
            f"The saved BM25 index is incomplete ({error}): rebuild it."
        ) from error
    total_length = int(segment.lengths.sum(dtype=np.int64))
    parts = (Part.of(segment),) if len(segment) else ()
    snapshot = Snapshot(parts, vocabulary, total_length, len(segment))
    return snapshot, params, _agreed(saved, analyzer)


def _segment(contents: FolderContents) -> Segment:
    arrays, ids = contents.arrays, contents.texts["ids"]
    segment = Segment(
        ids=ids,
        orders=np.arange(len(ids), dtype=np.int64),
        lengths=arrays["lengths"],
        terms=np.arange(len(contents.texts["terms"]), dtype=np.int32),
        offsets=arrays["offsets"],
        documents=arrays["documents"],
        frequencies=arrays["frequencies"],
    )
    fits = (
        segment.lengths.shape == (len(ids),)
        and segment.offsets.shape == (segment.terms.size + 1,)
        and segment.documents.shape == segment.frequencies.shape == (int(segment.offsets[-1]),)
        and segment.lengths.dtype == segment.documents.dtype == np.int32
    )
    if not fits:
        raise IndexFormatError("The arrays of the saved BM25 index do not fit: rebuild it.")
    return segment


def _agreed(saved: Mapping[str, Any], given: Analyzer | None) -> Analyzer:
    if given is None:
        return analyzer_from_settings(saved)
    if given.settings() != saved:
        raise IndexFormatError(
            f"The index was built with the analyzer {dict(saved)!r} and cannot be searched with "
            f"{given.settings()!r}: give the same analyzer, or rebuild the index."
        )
    return given


_EMPTY: Final = Segment(
    ids=[],
    orders=np.empty(0, np.int64),
    lengths=np.empty(0, np.int32),
    terms=np.empty(0, np.int32),
    offsets=np.zeros(1, np.int64),
    documents=np.empty(0, np.int32),
    frequencies=np.empty(0, np.uint8),
)
