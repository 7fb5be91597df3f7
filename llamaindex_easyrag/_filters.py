"""Metadata filters, evaluated on nodes."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from llama_index.core.schema import BaseNode

    from easyrag_core import Filter

__all__ = ["DOCUMENT_KEYS", "ScopeFilters", "in_scope", "matches"]

DOCUMENT_KEYS: Final = frozenset({"doc_id", "document_id", "ref_doc_id"})
"""What vector stores call the document that a node comes from; the framework writes these keys
over the node's own."""

_EMPTY: tuple[Any, ...] = (None, "", [])
_WORDS = {"true": True, "false": False}


class ScopeFilters(MetadataFilters):
    """Metadata filters with a filter of the core beside them, for our own retrievers alone.

    Attributes:
        scope: What a node's metadata must be like as well.
    """

    scope: Any = None


class _Facts(Mapping[str, Any]):
    """A node's own metadata, and under `DOCUMENT_KEYS` its document's id where it has none."""

    def __init__(self, node: BaseNode) -> None:
        self._node = node

    def get(self, key: str, default: Any = None) -> Any:
        found = self._node.metadata.get(key)
        if found is None and key in DOCUMENT_KEYS:
            found = self._node.ref_doc_id
        return default if found is None else found

    def __getitem__(self, key: str) -> Any:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[str]:
        return (
            key for key in {**self._node.metadata, **dict.fromkeys(DOCUMENT_KEYS)} if key in self
        )

    def __len__(self) -> int:
        return sum(1 for _ in self)


def in_scope(scope: Filter, node: BaseNode) -> bool:
    """Tell whether a node passes a filter of the core.

    Args:
        scope: The filter.
        node: Any node; `document_id`, `doc_id` and `ref_doc_id` are its document's id, unless
            its own metadata says something else.

    Returns:
        Whether it passes.
    """
    return scope.matches(_Facts(node))


def matches(filters: MetadataFilters | None, node: BaseNode) -> bool:
    """Tell whether a node passes the filters.

    As the framework's own evaluation, and: filters nest; a value of another type does not match
    instead of raising; `NOT` passes what none of its parts match; a missing key, like `None`,
    matches `!=`, `nin` and `is_empty` only; `in` with a plain string means that string and no
    part of it; a number written as text is that number beside a number; `"true"` is true
    beside a bool.

    Args:
        filters: The filters; `None` and an empty list let everything pass.
        node: Any node.

    Returns:
        Whether the node passes.
    """
    if isinstance(filters, ScopeFilters) and not in_scope(filters.scope, node):
        return False
    if filters is None or not filters.filters:
        return True
    passed = (_passes(part, node) for part in filters.filters)
    condition = filters.condition or FilterCondition.AND
    if condition == FilterCondition.AND:
        return all(passed)
    return any(passed) is (condition == FilterCondition.OR)


def _passes(part: MetadataFilter | MetadataFilters, node: BaseNode) -> bool:
    if isinstance(part, MetadataFilters):
        return matches(part, node)
    found = _Facts(node).get(part.key)
    if part.operator == FilterOperator.IS_EMPTY:
        return found in _EMPTY
    if part.operator == FilterOperator.NE:
        return found is None or not _equal(found, part.value)
    if part.operator == FilterOperator.NIN:
        return found is None or not _is_in(found, part.value)
    return found is not None and _TESTS[part.operator](found, part.value)


def _equal(found: Any, wanted: Any) -> bool:
    for value, text in ((found, wanted), (wanted, found)):
        if isinstance(text, str) and not isinstance(value, str):
            read = _WORDS.get(text.strip().lower()) if isinstance(value, bool) else _number(text)
            return read is not None and bool(value == read)
    return bool(found == wanted)


def _is_in(found: Any, wanted: Any) -> bool:
    return any(_equal(found, value) for value in _as_list(wanted))


def _contains(found: Any, value: Any) -> bool:
    if isinstance(found, str):
        return isinstance(value, str) and value in found
    return isinstance(found, list | tuple | set) and any(_equal(item, value) for item in found)


def _compares(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def test(found: Any, wanted: Any) -> bool:
        if isinstance(found, str) and isinstance(wanted, str):
            return compare(found, wanted)
        left, right = _number(found), _number(wanted)
        return left is not None and right is not None and compare(left, right)

    return test


def _text_match(found: Any, wanted: Any) -> bool:
    return isinstance(found, str) and isinstance(wanted, str) and wanted in found


def _text_match_insensitive(found: Any, wanted: Any) -> bool:
    both = isinstance(found, str) and isinstance(wanted, str)
    return both and wanted.lower() in found.lower()


def _all(found: Any, wanted: Any) -> bool:
    return all(_contains(found, value) for value in _as_list(wanted))


def _any(found: Any, wanted: Any) -> bool:
    return any(_contains(found, value) for value in _as_list(wanted))


_TESTS: dict[FilterOperator, Callable[[Any, Any], bool]] = {
    FilterOperator.EQ: _equal,
    FilterOperator.GT: _compares(operator.gt),
    FilterOperator.GTE: _compares(operator.ge),
    FilterOperator.LT: _compares(operator.lt),
    FilterOperator.LTE: _compares(operator.le),
    FilterOperator.IN: _is_in,
    FilterOperator.ANY: _any,
    FilterOperator.ALL: _all,
    FilterOperator.CONTAINS: _contains,
    FilterOperator.TEXT_MATCH: _text_match,
    FilterOperator.TEXT_MATCH_INSENSITIVE: _text_match_insensitive,
}


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple | set) else [value]


def _number(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    for read in (int, float):
        try:
            return read(value) if isinstance(value, str) else None
        except ValueError:
            continue
    return None
