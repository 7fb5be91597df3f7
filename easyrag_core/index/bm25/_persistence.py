"""What of an index goes to disk, and what is checked when it comes back."""

from __future__ import annotations

from dataclasses import asdict
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from easyrag_core.errors import IndexFormatError, InvalidParameterError
from easyrag_core.index._folder import FolderContents
from easyrag_core.index.analyzer import analyzer_from_settings
from easyrag_core.index.bm25._fields import checked_weights
from easyrag_core.index.bm25._params import BM25Params
from easyrag_core.index.bm25._part import Part
from easyrag_core.index.bm25._segment import Segment
from easyrag_core.index.bm25._snapshot import Snapshot
from easyrag_core.index.bm25._strings import StringTable
from easyrag_core.index.bm25._vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from easyrag_core.index.analyzer import Analyzer

__all__ = ["KIND", "VERSION", "packed", "unpacked", "weights_of"]

KIND: Final = "bm25"
VERSION: Final = 2

# Array to its type and to what there is one of for each of its entries; an array of offsets has
# one entry more in each part.
_SEGMENT: Final = {
    "lengths": ("i4", "documents"),
    "terms": ("i4", "terms"),
    "offsets": ("i8", "terms"),
    "documents": ("i4", "postings"),
    "frequencies": ("u", "postings"),
}
_IDS: Final = {
    "blob": ("u1", "bytes"),
    "offsets": ("i8", "documents"),
    "codes": ("u4", "documents"),
    "numbers": ("i4", "documents"),
}


def packed(
    snapshot: Snapshot,
    params: BM25Params,
    analyzer: Analyzer,
    *,
    field_weights: Mapping[str, int],
) -> FolderContents:
    """Return arrays and settings of an index, compacted.

    The parts stand one behind the other in each array. The offsets of a part count from its own
    first posting, the places of its ids from the first byte of all.

    Args:
        snapshot: The documents.
        params: The index's own settings of the formula.
        analyzer: Its analyzer.
        field_weights: The weights of its fields.

    Returns:
        Contents for `write_folder`.
    """
    compact = snapshot.compacted()
    segments = [part.segment for part in compact.parts]
    ids = [StringTable.of(segment.ids) for segment in segments]
    terms = StringTable.of(compact.vocabulary.terms())
    arrays = {name: _joined([getattr(s, name) for s in segments], name) for name in _SEGMENT}
    arrays |= {f"ids_{name}": _joined([getattr(i, name) for i in ids], name) for name in _IDS}
    arrays |= {f"terms_{name}": getattr(terms, name) for name in _IDS}
    settings = {
        "format": VERSION,
        "params": asdict(params),
        "analyzer": analyzer.settings(),
        "field_weights": dict(field_weights),
        "total_length": compact.total_length,
        "parts": {
            "documents": [len(segment) for segment in segments],
            "terms": [int(segment.terms.size) for segment in segments],
            "postings": [int(segment.documents.size) for segment in segments],
            "bytes": [int(its.blob.size) for its in ids],
        },
    }
    return FolderContents(arrays=arrays, settings=settings)


def _joined(arrays: list[NDArray[Any]], name: str) -> NDArray[Any]:
    if arrays:
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    return np.empty(0, (_SEGMENT | _IDS)[name][0] + ("1" if name == "frequencies" else ""))


def unpacked(
    contents: FolderContents, analyzer: Analyzer | None
) -> tuple[Snapshot, BM25Params, Analyzer]:
    """Rebuild an index from its contents, without reading what is mapped.

    Args:
        contents: What `packed` returned.
        analyzer: The caller's analyzer; `None` builds the one that the settings describe.

    Returns:
        Documents, settings, analyzer.

    Raises:
        IndexFormatError: If the parts do not fit together, or the analyzer is another one.
    """
    settings = contents.settings
    if settings.get("format") != VERSION:
        raise IndexFormatError(
            f"The saved BM25 index has format {settings.get('format', 1)!r}, this easyrag-core "
            f"reads {VERSION}: rebuild it."
        )
    try:
        params = BM25Params(**settings["params"])
        saved = settings["analyzer"]
        total_length = int(settings["total_length"])
        terms = _table(contents.arrays)
        segments = list(_segments(contents.arrays, settings["parts"]))
    except (KeyError, TypeError, IndexError, InvalidParameterError) as error:
        raise IndexFormatError(
            f"The saved BM25 index is incomplete ({error}): rebuild it."
        ) from error
    parts = tuple(map(Part.of, segments))
    snapshot = Snapshot(parts, Vocabulary(terms), total_length, sum(map(len, segments)))
    return snapshot, params, _agreed(saved, analyzer)


def weights_of(contents: FolderContents) -> dict[str, int]:
    """Return the weights of the fields.

    Raises:
        IndexFormatError: If they are lost or damaged.
    """
    try:
        return checked_weights(contents.settings["field_weights"])
    except (KeyError, InvalidParameterError) as error:
        raise IndexFormatError(f"The weights of fields are damaged ({error}): rebuild.") from error


def _table(arrays: Mapping[str, NDArray[Any]]) -> StringTable:
    table = StringTable(**{name: arrays[f"terms_{name}"] for name in _IDS})
    if not table.fits():
        raise _unfit()
    return table


def _segments(
    arrays: Mapping[str, NDArray[Any]], counts: Mapping[str, list[int]]
) -> Iterator[Segment]:
    """Yield the parts as views of the arrays; only where they begin and end is read."""
    own = {name: _cut(arrays[name], counts, name, *told) for name, told in _SEGMENT.items()}
    ids = {name: _cut(arrays[f"ids_{name}"], counts, name, *told) for name, told in _IDS.items()}
    first = 0
    for at, size in enumerate(counts["documents"]):
        table = StringTable(**{name: cut[at] for name, cut in ids.items()})
        segment = Segment(
            ids=table,
            orders=np.arange(first, first + size),
            **{name: cut[at] for name, cut in own.items()},
        )
        postings = segment.documents.size
        if not table.fits() or (segment.offsets[0], segment.offsets[-1]) != (0, postings):
            raise _unfit()
        first += size
        yield segment


def _cut(
    array: NDArray[Any], counts: Mapping[str, list[int]], name: str, kind: str, each: str
) -> list[NDArray[Any]]:
    """Cut an array into its parts."""
    sizes = [int(count) + (name == "offsets") for count in counts[each]]
    fits = array.dtype.str[1:].startswith(kind) and array.shape == (sum(sizes),)
    if not fits or min(sizes, default=0) < 0:
        raise _unfit()
    borders = accumulate(sizes, initial=0)
    return [array[start:stop] for start, stop in pairwise(borders)]


def _unfit() -> IndexFormatError:
    return IndexFormatError("The arrays of the saved BM25 index do not fit: rebuild it.")


def _agreed(saved: Mapping[str, Any], given: Analyzer | None) -> Analyzer:
    if given is None:
        return analyzer_from_settings(saved)
    if given.settings() != saved:
        raise IndexFormatError(
            f"The index was built with the analyzer {dict(saved)!r} and cannot be searched with "
            f"{given.settings()!r}: give the same analyzer, or rebuild the index."
        )
    return given
