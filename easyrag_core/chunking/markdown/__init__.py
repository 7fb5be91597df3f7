"""Markdown into chunks: by headings, then by blocks."""

from easyrag_core.chunking.markdown._chunker import (
    Heading,
    HeadingPathIn,
    HorizontalRule,
    MarkdownChunker,
    SectionPiece,
)

__all__ = ["Heading", "HeadingPathIn", "HorizontalRule", "MarkdownChunker", "SectionPiece"]
