"""What was really asked: rewriting, splitting, routing and filtering a question."""

from easyrag_core.query._degradation import report_degradation
from easyrag_core.query._scripts import prompt_language
from easyrag_core.query._small_talk import is_small_talk
from easyrag_core.query.decompose import (
    DecomposePrompt,
    Decomposition,
    parse_decomposition,
    split_questions,
)
from easyrag_core.query.expansion import MultiQueryPrompt, distinct_queries, parse_queries
from easyrag_core.query.filter_extraction import FilterExtractionPrompt, parse_filters
from easyrag_core.query.history import HistoryBlend, WeightedQuery, history_window
from easyrag_core.query.intent import (
    Clarification,
    IntentDecision,
    IntentMatch,
    IntentNode,
    IntentOption,
    IntentPrompt,
    IntentRules,
    IntentTree,
    JudgePrompt,
    cap_decisions,
    parse_intents,
    parse_judgement,
    resolve_clarification,
)
from easyrag_core.query.memory import (
    ConversationMemory,
    ConversationNotes,
    MemoryState,
    SummaryStep,
    parse_summary,
)
from easyrag_core.query.note_taking import NoteTaker
from easyrag_core.query.prompts import Message, PromptTemplate
from easyrag_core.query.rewrite import Rewrite, RewritePrompt, needs_rewrite, parse_rewrite
from easyrag_core.query.terms import Term, TermMap, TermMatch

__all__ = [
    "Clarification",
    "ConversationMemory",
    "ConversationNotes",
    "DecomposePrompt",
    "Decomposition",
    "FilterExtractionPrompt",
    "HistoryBlend",
    "IntentDecision",
    "IntentMatch",
    "IntentNode",
    "IntentOption",
    "IntentPrompt",
    "IntentRules",
    "IntentTree",
    "JudgePrompt",
    "MemoryState",
    "Message",
    "MultiQueryPrompt",
    "NoteTaker",
    "PromptTemplate",
    "Rewrite",
    "RewritePrompt",
    "SummaryStep",
    "Term",
    "TermMap",
    "TermMatch",
    "WeightedQuery",
    "cap_decisions",
    "distinct_queries",
    "history_window",
    "is_small_talk",
    "needs_rewrite",
    "parse_decomposition",
    "parse_filters",
    "parse_intents",
    "parse_judgement",
    "parse_queries",
    "parse_rewrite",
    "parse_summary",
    "prompt_language",
    "report_degradation",
    "resolve_clarification",
    "split_questions",
]
