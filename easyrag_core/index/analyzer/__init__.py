"""How a text becomes terms, the same when it is indexed and when it is searched."""

from __future__ import annotations

from easyrag_core.index.analyzer._jieba import JiebaAnalyzer
from easyrag_core.index.analyzer._protocol import Analyzer, FunctionAnalyzer, as_analyzer
from easyrag_core.index.analyzer._registry import analyzer_from_settings
from easyrag_core.index.analyzer._standard import StandardAnalyzer

__all__ = [
    "Analyzer",
    "FunctionAnalyzer",
    "JiebaAnalyzer",
    "StandardAnalyzer",
    "analyzer_from_settings",
    "as_analyzer",
]
