"""Texts into chunks with exact places."""

from easyrag_core.chunking.by_path import chunker_for
from easyrag_core.chunking.code import CodeChunker
from easyrag_core.chunking.document import DocumentChunker
from easyrag_core.chunking.languages import language_name, language_of
from easyrag_core.chunking.markdown import Heading, MarkdownChunker
from easyrag_core.chunking.parent_child import Chunker, ParentChildChunker
from easyrag_core.chunking.view import ChunkView

__all__ = [
    "ChunkView",
    "Chunker",
    "CodeChunker",
    "DocumentChunker",
    "Heading",
    "MarkdownChunker",
    "ParentChildChunker",
    "chunker_for",
    "language_name",
    "language_of",
]
