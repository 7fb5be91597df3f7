"""Retrievers: BM25, hybrid and fusion."""

from __future__ import annotations

from llamaindex_easyrag.retrievers.bm25 import BM25Retriever
from llamaindex_easyrag.retrievers.fusion import FusionRetriever
from llamaindex_easyrag.retrievers.hybrid import HybridRetriever

__all__ = ["BM25Retriever", "FusionRetriever", "HybridRetriever"]
