"""Retrievers: BM25, hybrid, fusion, pipelines, and children with their parents."""

from __future__ import annotations

from llamaindex_easyrag.retrievers.bm25 import BM25Retriever
from llamaindex_easyrag.retrievers.fusion import FusionRetriever
from llamaindex_easyrag.retrievers.hybrid import HybridRetriever
from llamaindex_easyrag.retrievers.parent_child import ParentChildRetriever
from llamaindex_easyrag.retrievers.pipeline import PipelineRetriever

__all__ = [
    "BM25Retriever",
    "FusionRetriever",
    "HybridRetriever",
    "ParentChildRetriever",
    "PipelineRetriever",
]
