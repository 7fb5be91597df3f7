"""One topic, and what is to be done with its questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from easyrag_core.errors import InvalidParameterError, check_choice, check_count
from easyrag_core.filters import Filter, filter_from_dict

__all__ = ["INTENT_KINDS", "INTENT_LEVELS", "IntentNode", "node_from_dict"]

INTENT_LEVELS: Final = ("domain", "category", "topic")
"""From the widest to the narrowest."""

INTENT_KINDS: Final = ("knowledge", "system", "tool")
"""Answered from documents, by the system itself (greetings, help), or by calling a tool."""

_TEXTS: Final = ("id", "name", "description")
_OPTIONAL_TEXTS: Final = ("prompt", "model", "collection", "tool")


@dataclass(frozen=True, slots=True)
class IntentNode:
    """A domain, category or topic.

    Attributes:
        id: Unique in the tree.
        name: What users call it.
        level: `domain`, `category` or `topic`; by its depth if not given.
        kind: `knowledge`, `system` or `tool`.
        description: What belongs to it, for the model.
        examples: Questions that belong to it.
        children: Nodes of a narrower level; a node without any is a leaf, and leaves are chosen.
        k: How many passages to retrieve.
        prompt: What the answering model is told.
        model: Which model answers.
        collection: Where the documents are.
        tool: What to call, for kind `tool`.
        filters: System conditions for its documents.

    Raises:
        InvalidParameterError: For values of another kind.

    >>> IntentNode("hr", "Human resources", children=[IntentNode("leave", "Leave", k=3)]).kind
    'knowledge'
    """

    id: str
    name: str
    level: str | None = None
    kind: str = "knowledge"
    description: str = ""
    examples: tuple[str, ...] = ()
    children: tuple[IntentNode, ...] = ()
    k: int | None = None
    prompt: str | None = None
    model: str | None = None
    collection: str | None = None
    tool: str | None = None
    filters: Filter | None = None

    def __post_init__(self) -> None:
        """Refuse values of another kind, and keep lists as tuples."""
        for name in _TEXTS:
            _check_text(name, getattr(self, name), blank=name == "description")
        for name in _OPTIONAL_TEXTS:
            if (value := getattr(self, name)) is not None:
                _check_text(name, value, blank=False)
        check_choice("kind", self.kind, INTENT_KINDS)
        if self.level is not None:
            check_choice("level", self.level, INTENT_LEVELS)
        if self.k is not None:
            check_count("k", self.k, minimum=1)
        if self.filters is not None and not isinstance(self.filters, Filter):
            raise InvalidParameterError("filters", self.filters, "give a Filter or None")
        for name, kind in (("examples", str), ("children", IntentNode)):
            object.__setattr__(self, name, _several(name, getattr(self, name), kind))


def _check_text(name: str, value: Any, *, blank: bool) -> None:
    if not isinstance(value, str) or not (blank or value.strip()):
        raise InvalidParameterError(name, value, "give a text" + ("" if blank else " with content"))


def _several(name: str, values: Any, kind: type) -> tuple[Any, ...]:
    several = tuple(values) if isinstance(values, list | tuple) else (None,)
    if not all(isinstance(value, kind) for value in several):
        raise InvalidParameterError(name, values, f"give a list of {kind.__name__}")
    return several


def node_from_dict(data: Any, children: tuple[IntentNode, ...]) -> IntentNode:
    """Build a node from a mapping with its fields' names.

    Args:
        data: `filters` may be a mapping as `filter_to_dict` writes it.
        children: The node's children, built already.

    Returns:
        The node.

    Raises:
        InvalidParameterError: For unknown or missing keys, or values of another kind.
    """
    known = {field.name for field in fields(IntentNode)}
    if not isinstance(data, Mapping) or not {"id", "name"} <= set(data) <= known:
        allowed = "give a mapping with id, name and any of " + ", ".join(sorted(known))
        raise InvalidParameterError("node", data, allowed)
    values = {**data, "children": children}
    if isinstance(values.get("filters"), Mapping):
        values["filters"] = filter_from_dict(values["filters"])
    return IntentNode(**values)
