"""Retrievers: BM25, hybrid, fusion, MMR, pipelines, and parents by their children."""

from __future__ import annotations

from langchain_easyrag.retrievers.bm25 import BM25Retriever
from langchain_easyrag.retrievers.fusion import FusionRetriever, fuse_documents
from langchain_easyrag.retrievers.history_blend import HistoryBlendRetriever
from langchain_easyrag.retrievers.hybrid import HybridRetriever
from langchain_easyrag.retrievers.mmr import MMRRetriever
from langchain_easyrag.retrievers.multi_query import MultiQueryRetriever
from langchain_easyrag.retrievers.parent_child import ParentChildRetriever
from langchain_easyrag.retrievers.pipeline import PipelineRetriever
from langchain_easyrag.retrievers.scoped import ScopedRetriever

__all__ = [
    "BM25Retriever",
    "FusionRetriever",
    "HistoryBlendRetriever",
    "HybridRetriever",
    "MMRRetriever",
    "MultiQueryRetriever",
    "ParentChildRetriever",
    "PipelineRetriever",
    "ScopedRetriever",
    "fuse_documents",
]
