"""Conditions out of a question: what a model is shown, and what is believed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from easyrag_core.errors import InvalidParameterError
from easyrag_core.filters import DroppedCondition, ExtractedConditions, FilterPolicy
from easyrag_core.query._condition_groups import drawn_conditions, is_joined_otherwise
from easyrag_core.query._degradation import report_degradation
from easyrag_core.query._reply import read_json, visible_text
from easyrag_core.query._schemas import array_of, object_of, text
from easyrag_core.query._scripts import prompt_language
from easyrag_core.query._wording import EXTRACT
from easyrag_core.query.prompts import quoted, templates_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from easyrag_core.events import EventHandler
    from easyrag_core.filters import FilterField
    from easyrag_core.query._schemas import JSONSchema
    from easyrag_core.query._scripts import Language
    from easyrag_core.query.prompts import Message, PromptTemplate, TemplateChoice

__all__ = ["FilterExtractionPrompt", "parse_filters"]

_JOINED: Final = "negated or one of several in the prose"


class FilterExtractionPrompt:
    """Builds the messages that ask for conditions; only the business schema is shown.

    >>> from easyrag_core.filters import FilterField
    >>> policy = FilterPolicy(business_schema=[FilterField("year", "integer", ("gte", "lte"))])
    >>> FilterExtractionPrompt(policy).messages("papers since 2020")[1].content.splitlines()[1]
    '{"field": "year", "type": "integer", "operators": ["gte", "lte"]}'
    """

    def __init__(self, policy: FilterPolicy, template: TemplateChoice = None) -> None:
        """Choose schema and wording.

        Args:
            policy: Its business schema is shown, its system conditions are not.
            template: With `{fields}` and `{question}`. Ours, by the question's language, if not
                given.

        Raises:
            InvalidParameterError: For a template without its placeholders, or no policy.
        """
        if not isinstance(policy, FilterPolicy):
            raise InvalidParameterError("policy", policy, "give a FilterPolicy")
        needed = frozenset({"fields", "question"})
        self._templates = templates_of(template, EXTRACT, needed=needed)
        self._policy = policy
        self._fields = "\n".join(map(_told, policy.business_schema))

    @property
    def needed(self) -> bool:
        """Whether there is a field to ask for: without any, no call."""
        return bool(self._fields)

    @property
    def templates(self) -> dict[Language, PromptTemplate]:
        """The wording for each language, for a prompt of a framework's own kind."""
        return dict(self._templates)

    @property
    def reply_schema(self) -> JSONSchema:
        """The reply as JSON Schema, closed over fields and operators; `parse_filters` reads it."""
        fields = self._policy.business_schema
        operators = dict.fromkeys(name for field in fields for name in field.operators)
        value = {"description": "A text, number, boolean, or a list of them."}
        condition = object_of(
            field=text(enum=[field.name for field in fields]),
            operator=text(enum=list(operators)),
            value=value,
        )
        return object_of("Conditions", "Search conditions.", conditions=array_of(condition))

    def variables(self, question: str) -> dict[str, str]:
        """Return what fills the placeholders, for a prompt of a framework's own kind."""
        return {"fields": self._fields or "[]", "question": quoted(question)}

    def messages(self, question: str) -> list[Message]:
        """Return the messages for the model.

        Args:
            question: One question, made complete.

        Returns:
            A system message and a user message.
        """
        return self._templates[prompt_language(question)].messages(self.variables(question))


def _told(field: FilterField) -> str:
    told: dict[str, Any] = {
        "field": field.name,
        "type": field.type,
        "operators": list(field.operators),
    }
    if field.enum:
        told["values"] = list(field.enum)
    if field.description:
        told["description"] = field.description
    return json.dumps(told, ensure_ascii=False)


def parse_filters(
    reply: str,
    policy: FilterPolicy,
    *,
    strict: bool = False,
    on_event: EventHandler | None = None,
) -> ExtractedConditions:
    """Read conditions from a model's reply; whatever the schema does not allow is dropped.

    All conditions hold together: one that stands in a negation, among alternatives or in a group
    of unknown meaning is dropped, as it would say something else alone.

    Args:
        reply: The model's text, with a list of conditions or an object that holds it.
        policy: Whose business schema counts.
        strict: Raise when the reply holds no conditions or a bad one.
        on_event: Hears `easyrag.query.filters` when something is dropped.

    Returns:
        Good and dropped conditions; neither can touch the system's.

    Raises:
        OutputParseError: In strict mode, for an unusable reply or condition.

    >>> from easyrag_core.filters import FilterField
    >>> policy = FilterPolicy(business_schema=[FilterField("year", "integer")])
    >>> reply = '{"conditions": [{"field": "year", "operator": "gte", "value": 2020}]}'
    >>> parse_filters(reply, policy).conditions
    (Condition(field='year', operator='gte', value=2020),)
    """
    visible = visible_text(reply)
    value = read_json(visible, lambda found: drawn_conditions(found) is not None, nested=False)
    drawn = drawn_conditions(value)
    if drawn is None:
        report_degradation("filters", "no JSON", raw=reply, on_event=on_event, strict=strict)
        return ExtractedConditions()
    extracted = _checked(drawn, policy, joined=_JOINED if is_joined_otherwise(visible) else "")
    if extracted.dropped:
        reasons = ", ".join(dict.fromkeys(dropped.reason for dropped in extracted.dropped))
        report_degradation("filters", reasons, raw=reply, on_event=on_event, strict=strict)
    return extracted


def _checked(
    drawn: Sequence[tuple[Any, str]], policy: FilterPolicy, *, joined: str
) -> ExtractedConditions:
    """Check what simply holds; what stands in another group would mean something else alone."""
    reasons = [(raw, why or joined) for raw, why in drawn]
    extracted = policy.check(raw for raw, why in reasons if not why)
    grouped = tuple(DroppedCondition(raw, why) for raw, why in reasons if why)
    return replace(extracted, dropped=(*extracted.dropped, *grouped))
