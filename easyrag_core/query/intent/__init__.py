"""What a question is about: a tree of topics, a decision, and asking back."""

from easyrag_core.query.intent._clarification import Clarification, IntentOption
from easyrag_core.query.intent._decision import (
    IntentDecision,
    IntentMatch,
    IntentOutcome,
    IntentRules,
    cap_decisions,
    parse_intents,
    parse_judgement,
    resolve_clarification,
)
from easyrag_core.query.intent._node import INTENT_KINDS, INTENT_LEVELS, IntentNode
from easyrag_core.query.intent._prompt import IntentPrompt, JudgePrompt
from easyrag_core.query.intent._tree import IntentTree

__all__ = [
    "INTENT_KINDS",
    "INTENT_LEVELS",
    "Clarification",
    "IntentDecision",
    "IntentMatch",
    "IntentNode",
    "IntentOption",
    "IntentOutcome",
    "IntentPrompt",
    "IntentRules",
    "IntentTree",
    "JudgePrompt",
    "cap_decisions",
    "parse_intents",
    "parse_judgement",
    "resolve_clarification",
]
