"""What was really asked: steps that rewrite, expand, split, route and filter a question."""

from __future__ import annotations

from langchain_easyrag.runnables.decomposer import QueryDecomposer
from langchain_easyrag.runnables.filters import FilterExtractor
from langchain_easyrag.runnables.generator import MultiQueryGenerator
from langchain_easyrag.runnables.intent_classifier import IntentClassifier
from langchain_easyrag.runnables.intent_router import IntentResult, IntentRouter
from langchain_easyrag.runnables.memory import SummarizedChatHistory
from langchain_easyrag.runnables.rewriter import QueryRewriter
from langchain_easyrag.runnables.terms import TermMapper

__all__ = [
    "FilterExtractor",
    "IntentClassifier",
    "IntentResult",
    "IntentRouter",
    "MultiQueryGenerator",
    "QueryDecomposer",
    "QueryRewriter",
    "SummarizedChatHistory",
    "TermMapper",
]
