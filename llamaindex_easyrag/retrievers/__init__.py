"""Retrievers: BM25, hybrid, fusion, pipelines, several queries, scopes, parents."""

from __future__ import annotations

from llamaindex_easyrag.retrievers.bm25 import BM25Retriever
from llamaindex_easyrag.retrievers.fusion import FusionRetriever
from llamaindex_easyrag.retrievers.history_blend import HistoryBlendRetriever
from llamaindex_easyrag.retrievers.hybrid import HybridRetriever
from llamaindex_easyrag.retrievers.multi_query import MultiQueryRetriever
from llamaindex_easyrag.retrievers.parent_child import ParentChildRetriever
from llamaindex_easyrag.retrievers.pipeline import PipelineRetriever
from llamaindex_easyrag.retrievers.scoped import ScopedRetriever
from llamaindex_easyrag.retrievers.transform import TransformRetriever

__all__ = [
    "BM25Retriever",
    "FusionRetriever",
    "HistoryBlendRetriever",
    "HybridRetriever",
    "MultiQueryRetriever",
    "ParentChildRetriever",
    "PipelineRetriever",
    "ScopedRetriever",
    "TransformRetriever",
]
