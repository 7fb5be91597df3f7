"""Texts into chunks with exact places."""

from easyrag_core.chunking.document import DocumentChunker

__all__ = ["DocumentChunker"]
