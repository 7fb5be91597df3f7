"""Exact BM25 over documents that come, change and go."""

from __future__ import annotations

from easyrag_core.index.bm25._explanation import BM25Explanation, TermExplanation
from easyrag_core.index.bm25._fields import field_texts
from easyrag_core.index.bm25._filter import IdFilter
from easyrag_core.index.bm25._index import BM25Index
from easyrag_core.index.bm25._params import BM25Params

__all__ = [
    "BM25Explanation",
    "BM25Index",
    "BM25Params",
    "IdFilter",
    "TermExplanation",
    "field_texts",
]
