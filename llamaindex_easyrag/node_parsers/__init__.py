"""Parsers that cut documents into nodes which know their exact place."""

from __future__ import annotations

from llamaindex_easyrag.node_parsers.code import CodeLineNodeParser
from llamaindex_easyrag.node_parsers.document import DocumentNodeParser
from llamaindex_easyrag.node_parsers.markdown import MarkdownSectionNodeParser
from llamaindex_easyrag.node_parsers.parent_child import ParentChildNodeParser

__all__ = [
    "CodeLineNodeParser",
    "DocumentNodeParser",
    "MarkdownSectionNodeParser",
    "ParentChildNodeParser",
]
