"""Postprocessors: fusion with words, diversity, and parents in place of their children."""

from __future__ import annotations

from llamaindex_easyrag.postprocessors.auto_merging import AutoMergingPostprocessor
from llamaindex_easyrag.postprocessors.fusion import RRFPostprocessor
from llamaindex_easyrag.postprocessors.mmr import MMRPostprocessor
from llamaindex_easyrag.postprocessors.parent_expansion import ParentExpansionPostprocessor

__all__ = [
    "AutoMergingPostprocessor",
    "MMRPostprocessor",
    "ParentExpansionPostprocessor",
    "RRFPostprocessor",
]
