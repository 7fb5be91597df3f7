"""What the steps before retrieval report to LlamaIndex's instrumentation."""

from __future__ import annotations

from llama_index_instrumentation.base import BaseEvent

__all__ = ["QueryStepEvent"]


class QueryStepEvent(BaseEvent):
    """A step that works on a question has ended.

    Attributes:
        step: `rewrite`, `expansion`, `decomposition`, `terms`, `intent` or `filters`.
        question: As it came in.
        result: What came out: queries, ids of topics, or conditions as text.
        calls: How often a model was asked: 0 where rules knew that there was no need.
    """

    step: str
    question: str
    result: list[str]
    calls: int

    @classmethod
    def class_name(cls) -> str:
        """Return the event's name."""
        return "QueryStepEvent"
