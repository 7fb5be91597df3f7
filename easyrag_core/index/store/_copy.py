"""Copies of chunks that share nothing that can change."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from easyrag_core.types import Chunk

__all__ = ["copied"]

_CONSTANT = (str, int, float, bool, type(None))


def copied(chunk: Chunk) -> Chunk:
    """Copy a chunk with its metadata, however deep that is nested."""
    if not chunk.metadata:
        return replace(chunk, metadata={})
    return replace(chunk, metadata={key: _copied(value) for key, value in chunk.metadata.items()})


def _copied(value: Any) -> Any:
    # `copy.deepcopy` keeps a memo of every object: ten times slower on plain JSON values.
    if isinstance(value, _CONSTANT):
        return value
    if type(value) is dict:
        return {key: _copied(entry) for key, entry in value.items()}
    if type(value) is list:
        return [_copied(entry) for entry in value]
    return copy.deepcopy(value)
