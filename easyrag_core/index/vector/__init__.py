"""Exact search by cosine over vectors that come, change and go."""

from __future__ import annotations

from easyrag_core.index.vector._index import VectorIndex

__all__ = ["VectorIndex"]
