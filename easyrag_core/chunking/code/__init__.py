"""Code into chunks of whole lines, cut where a reader would."""

from easyrag_core.chunking.code._chunker import CodeChunker

__all__ = [
    "CodeChunker",
]
