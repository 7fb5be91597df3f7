"""Text splitters that know where each chunk comes from."""

from __future__ import annotations

from langchain_easyrag.text_splitters.code import CodeTextSplitter
from langchain_easyrag.text_splitters.document import DocumentTextSplitter
from langchain_easyrag.text_splitters.markdown import MarkdownSectionTextSplitter
from langchain_easyrag.text_splitters.parent_child import ParentChildTextSplitter

__all__ = [
    "CodeTextSplitter",
    "DocumentTextSplitter",
    "MarkdownSectionTextSplitter",
    "ParentChildTextSplitter",
]
