"""Conditions out of a question, and filters of the core as LlamaIndex's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from easyrag_core import (
    And,
    Condition,
    ExtractedConditions,
    Filter,
    FilterExtractionPrompt,
    FilterPolicy,
    InvalidParameterError,
    Not,
    Or,
    is_small_talk,
    parse_filters,
)
from llamaindex_easyrag._prompting import QUESTION, Prompting, core_wording
from llamaindex_easyrag._step import QueryStep, Request
from llamaindex_easyrag.query_transforms._transform import bundle_of

if TYPE_CHECKING:
    from llama_index.core.base.llms.base import BaseLLM
    from llama_index.core.schema import QueryBundle

    from easyrag_core.events import EventHandler
    from llamaindex_easyrag._step import Plan

__all__ = ["FilterExtractor", "metadata_filters"]

_OPERATORS: Final = {
    "eq": FilterOperator.EQ,
    "ne": FilterOperator.NE,
    "gt": FilterOperator.GT,
    "gte": FilterOperator.GTE,
    "lt": FilterOperator.LT,
    "lte": FilterOperator.LTE,
    "in": FilterOperator.IN,
    "nin": FilterOperator.NIN,
    "contains": FilterOperator.CONTAINS,
    "any": FilterOperator.ANY,
    "all": FilterOperator.ALL,
}


class FilterExtractor(QueryStep):
    """Asks a model which conditions a question names, out of a closed schema.

    The model is shown the policy's business schema and never its system conditions. What the
    schema does not allow is dropped, condition by condition, and told under `dropped`. Where the
    model fails there are no business conditions; the system's apply all the same.
    """

    step: ClassVar[str] = "filters"

    def __init__(
        self,
        policy: FilterPolicy,
        llm: BaseLLM | None = None,
        prompt: Any = None,
        *,
        on_error: str = "fallback",
        on_event: EventHandler | None = None,
    ) -> None:
        """Check the settings.

        Args:
            policy: Whose business schema counts.
            llm: Who is asked; by default `Settings.llm`, when there is something to ask.
            prompt: A template of the framework or of `easyrag_core`, with `{fields}`, and
                `{question}` or `{query_str}`; ours, if not given.
            on_error: `"fallback"` goes on without the model, `"raise"` raises its error.
            on_event: Hears when the model is done without, and what is dropped.

        Raises:
            InvalidParameterError: A setting is not as above, or the prompt lacks a placeholder.
        """
        super().__init__(llm, on_error=on_error, on_event=on_event)
        self._extraction = FilterExtractionPrompt(policy, core_wording(prompt))
        self._policy = policy
        self._prompting = Prompting(
            "filters_prompt", self._extraction.templates, prompt, QUESTION, ("fields",)
        )

    @property
    def policy(self) -> FilterPolicy:
        """Whose business schema counts."""
        return self._policy

    def extract(self, query: str | QueryBundle) -> ExtractedConditions:
        """Return the business conditions that a question names.

        Args:
            query: One question, made complete.

        Returns:
            Good and dropped conditions.

        Raises:
            Exception: With `on_error="raise"`: what the model raised, or `OutputParseError`.
        """
        question = bundle_of(query).query_str
        return self._drive(self._plan(question), question)

    async def aextract(self, query: str | QueryBundle) -> ExtractedConditions:
        """Return the business conditions: the async twin of `extract`."""
        question = bundle_of(query).query_str
        return await self._adrive(self._plan(question), question)

    def _plan(self, question: str) -> Plan[ExtractedConditions]:
        prompt = self._extraction
        if not prompt.needed or not question.strip() or is_small_talk(question):
            return ExtractedConditions()
        told = {**prompt.variables(question), "query_str": question}
        reply = yield Request(self._prompting, question, told)
        if reply is None:
            return ExtractedConditions()
        return parse_filters(reply, self._policy, **self._reading)

    def _told(self, result: ExtractedConditions) -> list[str]:
        return [f"{one.field} {one.operator} {one.value}" for one in result.conditions]


def metadata_filters(filter: Filter | None) -> MetadataFilters | None:  # noqa: A002 - their word
    """Write a filter as LlamaIndex's metadata filters, nested where it is nested.

    Not every store knows every operator, nested filters and booleans: `ScopedRetriever` gives a
    store what it can take and applies the rest itself.

    Args:
        filter: A filter of the core.

    Returns:
        The same for LlamaIndex; `None` for no filter.

    Raises:
        InvalidParameterError: It is no filter, or has a part that joins nothing.
    """
    if filter is None:
        return None
    written = _written(filter)
    return written if isinstance(written, MetadataFilters) else MetadataFilters(filters=[written])


def _written(filter: Filter) -> MetadataFilter | MetadataFilters:  # noqa: A002 - as above
    if isinstance(filter, Condition):
        return _condition(filter)
    if isinstance(filter, Not):
        return _joined([filter.filter], FilterCondition.NOT)
    if isinstance(filter, And | Or) and filter.filters:
        condition = FilterCondition.AND if isinstance(filter, And) else FilterCondition.OR
        return _joined(list(filter.filters), condition)
    raise InvalidParameterError("filter", filter, "give a Condition, And, Or or Not, none empty")


def _joined(filters: list[Filter], condition: FilterCondition) -> MetadataFilters:
    return MetadataFilters(filters=[_written(part) for part in filters], condition=condition)


def _condition(condition: Condition) -> MetadataFilter | MetadataFilters:
    if condition.operator == "exists":
        empty = MetadataFilter(key=condition.field, value=None, operator=FilterOperator.IS_EMPTY)
        if condition.value:
            return MetadataFilters(filters=[empty], condition=FilterCondition.NOT)
        return empty
    told: Any = condition.value
    value = list(told) if isinstance(told, tuple) else told
    # Their model refuses booleans, which stores compare as they are.
    return MetadataFilter.model_construct(
        key=condition.field, value=value, operator=_OPERATORS[condition.operator]
    )
