"""Chunks shown over the text that they come from."""

from easyrag_core.chunking.view._view import ChunkView

__all__ = [
    "ChunkView",
]
