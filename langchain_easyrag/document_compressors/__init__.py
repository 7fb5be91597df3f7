"""Document compressors: relevant and different, and parents for their children."""

from __future__ import annotations

from langchain_easyrag.document_compressors.auto_merging import AutoMergingCompressor
from langchain_easyrag.document_compressors.mmr import MMRCompressor
from langchain_easyrag.document_compressors.parents import ParentExpansionCompressor

__all__ = ["AutoMergingCompressor", "MMRCompressor", "ParentExpansionCompressor"]
