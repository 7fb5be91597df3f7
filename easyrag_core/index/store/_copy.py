"""Copies of chunks that share nothing that can change."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from easyrag_core.errors import InvalidParameterError
from easyrag_core.types import Chunk

__all__ = ["all_checked", "checked", "copied"]

_CONSTANT = (str, int, float, bool, type(None))
_TEXTS: Final = ("id", "document_id", "text", "embedding_text", "kind", "language")
_NUMBERS: Final = ("index", "start", "end", "start_line", "end_line")
_LARGEST: Final = (1 << 63) - 1


def checked(chunk: Chunk) -> Chunk:
    """Return a chunk that every store can keep.

    Args:
        chunk: What the caller gave.

    Returns:
        The same.

    Raises:
        InvalidParameterError: A field holds another kind of value than it is made for.
    """
    if not isinstance(chunk, Chunk):
        raise InvalidParameterError("chunks", chunk, "give Chunks")
    for name in _TEXTS:
        if not isinstance(getattr(chunk, name), str):
            raise _wrong(chunk, name, "a text")
    for name in _NUMBERS:
        value = getattr(chunk, name)
        if not hasattr(value, "__index__") or not -_LARGEST <= value <= _LARGEST:
            raise _wrong(chunk, name, "a whole number of 64 bits")
    if chunk.parent_id is not None and not isinstance(chunk.parent_id, str):
        raise _wrong(chunk, "parent_id", "a text or None")
    path: object = chunk.heading_path
    if not isinstance(path, tuple | list) or not all(isinstance(title, str) for title in path):
        raise _wrong(chunk, "heading_path", "a tuple of texts")
    if not isinstance(chunk.metadata, dict):
        raise _wrong(chunk, "metadata", "a dict")
    return chunk


def all_checked(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Read chunks once, from whatever gives them.

    Args:
        chunks: The chunks; an iterator is used up.

    Returns:
        The same as a list.

    Raises:
        InvalidParameterError: A single chunk or something else, or as for `checked`.
    """
    given: object = chunks
    if not isinstance(given, Iterable):
        raise InvalidParameterError("chunks", chunks, "give a list of Chunks")
    return [checked(chunk) for chunk in chunks]


def _wrong(chunk: Chunk, name: str, kind: str) -> InvalidParameterError:
    allowed = f"the {name} of chunk {chunk.id!r} must be {kind}"
    return InvalidParameterError(name, getattr(chunk, name), allowed)


def copied(chunk: Chunk) -> Chunk:
    """Copy a chunk with its metadata, however that is nested.

    Args:
        chunk: The chunk.

    Returns:
        An equal one that shares nothing that can change.

    Raises:
        InvalidParameterError: The metadata hold themselves, or are nested beyond all use.
    """
    if not chunk.metadata:
        return replace(chunk, metadata={})
    try:
        metadata = {key: _copied(value) for key, value in chunk.metadata.items()}
    except RecursionError as error:
        allowed = f"metadata of chunk {chunk.id!r} are nested too deep, or hold themselves"
        raise InvalidParameterError("metadata", chunk.metadata, allowed) from error
    return replace(chunk, metadata=metadata)


def _copied(value: Any) -> Any:
    # `copy.deepcopy` keeps a memo of every object: ten times slower on plain JSON values.
    if isinstance(value, _CONSTANT):
        return value
    if type(value) is dict:
        return {key: _copied(entry) for key, entry in value.items()}
    if type(value) is list:
        return [_copied(entry) for entry in value]
    return copy.deepcopy(value)
