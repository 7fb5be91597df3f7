"""Retrievers: BM25, hybrid, fusion and MMR."""

from __future__ import annotations

from langchain_easyrag.retrievers.bm25 import BM25Retriever
from langchain_easyrag.retrievers.fusion import FusionRetriever, fuse_documents
from langchain_easyrag.retrievers.hybrid import HybridRetriever
from langchain_easyrag.retrievers.mmr import MMRRetriever

__all__ = [
    "BM25Retriever",
    "FusionRetriever",
    "HybridRetriever",
    "MMRRetriever",
    "fuse_documents",
]
