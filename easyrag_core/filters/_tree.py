"""Filters as a tree: conditions on fields, joined by and, or, not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, TypeAlias

from easyrag_core.errors import InvalidParameterError, check_choice
from easyrag_core.filters._values import compared, is_scalar, plain, same

__all__ = [
    "OPERATORS",
    "And",
    "Condition",
    "Filter",
    "FilterScalar",
    "FilterValue",
    "Not",
    "Or",
    "all_of",
    "any_of",
    "conditions_in",
    "filter_from_dict",
    "filter_to_dict",
]

FilterScalar: TypeAlias = str | bool | int | float | date
"""What one value may be; dates become ISO strings."""

FilterValue: TypeAlias = FilterScalar | tuple[FilterScalar, ...]
"""What a condition compares with."""

_ORDER: Final = ("gt", "gte", "lt", "lte")
_LISTS: Final = ("in", "nin", "any", "all")
OPERATORS: Final = ("eq", "ne", *_ORDER, *_LISTS, "contains", "exists")
"""The operators of a `Condition`."""

_NEGATED: Final = {"ne": "eq", "nin": "in"}
_DEEPEST: Final = 50
_ALLOWED: Final = "give a Condition, And, Or or Not"


class Filter:
    """What a document's metadata must be like: a `Condition`, `And`, `Or` or `Not`.

    Every filter is true or false for every metadata; `&`, `|` and `~` combine filters.

    >>> year = Condition("year", "gte", 2020)
    >>> (year & ~Condition("draft", "eq", True)).matches({"year": 2021})
    True
    """

    __slots__ = ()

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """Say whether a document passes.

        Args:
            metadata: The document's metadata; a value of `None` is a missing one.

        Returns:
            Whether it passes.
        """
        return _passes(self, metadata)

    def __and__(self, other: Filter) -> Filter:
        """Both."""
        return And((self, other))

    def __or__(self, other: Filter) -> Filter:
        """At least one."""
        return Or((self, other))

    def __invert__(self) -> Filter:
        """Those that this leaves out."""
        return Not(self)


@dataclass(frozen=True, slots=True)
class Condition(Filter):
    """One field compared with a value.

    - `eq`, `ne`: equal or not; a boolean equals no number, a list equals an equal list.
    - `gt`, `gte`, `lt`, `lte`: numbers with numbers, texts with texts, ISO dates by time. Against
      a plain day (`2024-12-31`), moments of that day are equal to it.
    - `in`, `nin`: one of the values, or none of them.
    - `contains`: a list holds the value, or a text holds the text.
    - `any`, `all`: a list holds at least one, or each, of the values; a lone value is a list of
      one.
    - `exists`: whether there is a value.

    On a missing field only `ne`, `nin` and `exists` `False` are true; a value of another kind is
    never equal, and never in order. So `ne` is always `Not` of `eq`, and `nin` of `in`.

    Attributes:
        field: The metadata key.
        operator: One of `OPERATORS`.
        value: A text, boolean, number or date; several for `in`, `nin`, `any`, `all`; a boolean
            for `exists`.

    Raises:
        InvalidParameterError: For an unknown operator, or a value that does not go with it.

    >>> Condition("tags", "any", ["a", "b"]).matches({"tags": ["b", "c"]})
    True
    """

    field: str
    operator: str
    value: FilterValue | Iterable[FilterScalar]

    def __post_init__(self) -> None:
        """Refuse what can never mean anything; keep lists as tuples, dates as texts."""
        field: Any = self.field
        if not isinstance(field, str) or not field:
            raise InvalidParameterError("field", field, "give the name of a metadata field")
        check_choice("operator", self.operator, OPERATORS)
        object.__setattr__(self, "value", _checked_value(self.operator, self.value))


def _passes(filter: Filter, metadata: Mapping[str, Any]) -> bool:  # noqa: A002 - as below
    if isinstance(filter, Condition):
        return _condition_passes(filter, metadata.get(filter.field))
    if isinstance(filter, And):
        return all(_passes(part, metadata) for part in filter.filters)
    if isinstance(filter, Or):
        return any(_passes(part, metadata) for part in filter.filters)
    if isinstance(filter, Not):
        return not _passes(filter.filter, metadata)
    raise InvalidParameterError("filter", filter, _ALLOWED)


def _condition_passes(condition: Condition, value: Any) -> bool:
    if condition.operator == "exists":
        return (value is not None) is condition.value
    if condition.operator in _NEGATED:
        return not _holds(_NEGATED[condition.operator], value, condition.value)
    return _holds(condition.operator, value, condition.value)


def _checked_value(operator: str, value: Any) -> FilterValue:
    if operator == "exists" and not isinstance(value, bool):
        raise InvalidParameterError("value", value, "give True or False for exists")
    if operator in _LISTS:
        if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
            raise InvalidParameterError("value", value, f"give a list for {operator}")
        several = list(value)
        if isinstance(value, set | frozenset):
            several.sort(key=repr)
        return tuple(_checked_scalar(operator, one) for one in several)
    if operator in ("eq", "ne") and isinstance(value, list | tuple):
        return tuple(_checked_scalar(operator, one) for one in value)
    return _checked_scalar(operator, value)


def _checked_scalar(operator: str, value: Any) -> FilterScalar:
    if not is_scalar(value):
        raise InvalidParameterError("value", value, f"give a text, number or date for {operator}")
    if operator in _ORDER and isinstance(value, bool):
        raise InvalidParameterError("value", value, f"booleans have no order for {operator}")
    scalar: FilterScalar = plain(value)
    return scalar


def _holds(operator: str, value: Any, wanted: Any) -> bool:
    if value is None:
        return False
    if operator == "eq":
        return same(value, wanted)
    if operator in _ORDER:
        order = compared(value, wanted)
        allowed = {"gt": (1,), "gte": (0, 1), "lt": (-1,), "lte": (-1, 0)}[operator]
        return order in allowed
    if operator == "in":
        return any(same(value, one) for one in wanted)
    return _has(operator, value, wanted)


def _has(operator: str, value: Any, wanted: Any) -> bool:
    if operator == "contains" and isinstance(value, str):
        return isinstance(wanted, str) and wanted in value
    several = value if isinstance(value, list | tuple | set | frozenset) else [value]
    if operator == "contains":
        return several is value and any(same(one, wanted) for one in several)
    test = any if operator == "any" else all
    return test(any(same(one, each) for one in several) for each in wanted)


@dataclass(frozen=True, slots=True)
class And(Filter):
    """All of several filters; without any, everything passes.

    Attributes:
        filters: The parts.
    """

    filters: tuple[Filter, ...]

    def __post_init__(self) -> None:
        """Refuse what is no filter."""
        object.__setattr__(self, "filters", _checked_filters(self.filters))


@dataclass(frozen=True, slots=True)
class Or(Filter):
    """At least one of several filters; without any, nothing passes.

    Attributes:
        filters: The parts.
    """

    filters: tuple[Filter, ...]

    def __post_init__(self) -> None:
        """Refuse what is no filter."""
        object.__setattr__(self, "filters", _checked_filters(self.filters))


@dataclass(frozen=True, slots=True)
class Not(Filter):
    """What a filter leaves out.

    Attributes:
        filter: The filter.
    """

    filter: Filter

    def __post_init__(self) -> None:
        """Refuse what is no filter."""
        _checked_filters((self.filter,))


def _checked_filters(filters: Any) -> tuple[Filter, ...]:
    if isinstance(filters, Filter) or not isinstance(filters, Iterable):
        raise InvalidParameterError("filters", filters, "give several filters")
    parts = tuple(filters)
    for part in parts:
        if not isinstance(part, Filter):
            raise InvalidParameterError("filters", part, _ALLOWED)
    return parts


def all_of(*filters: Filter | None) -> Filter | None:
    """Join filters by and: nested ones flattened, `None` left out.

    Args:
        *filters: Filters, or `None` for no filter.

    Returns:
        The filter itself when there is one, `None` when there is none.

    >>> all_of(None, Condition("a", "eq", 1))
    Condition(field='a', operator='eq', value=1)
    """
    parts: list[Filter] = []
    for one in filters:
        if one is not None:
            parts += one.filters if isinstance(one, And) else [one]
    return parts[0] if len(parts) == 1 else And(tuple(parts)) if parts else None


def any_of(*filters: Filter) -> Filter:
    """Join filters by or, nested ones flattened.

    Args:
        *filters: At least one filter, or nothing passes.

    Returns:
        The filter itself when there is one.

    >>> any_of(Condition("a", "eq", 1), Condition("b", "eq", 2)).matches({"b": 2})
    True
    """
    parts: list[Filter] = []
    for one in filters:
        parts += one.filters if isinstance(one, Or) else [one]
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def conditions_in(filter: Filter | None) -> Iterator[Condition]:  # noqa: A002 - the frameworks' word
    """Walk over every condition of a filter, from left to right.

    Args:
        filter: A filter, or `None`.

    Yields:
        The conditions, negated ones too.

    >>> both = Condition("a", "eq", 1) & ~Condition("b", "eq", 2)
    >>> [condition.field for condition in conditions_in(both)]
    ['a', 'b']
    """
    if isinstance(filter, Condition):
        yield filter
    elif isinstance(filter, Not):
        yield from conditions_in(filter.filter)
    elif isinstance(filter, And | Or):
        for part in filter.filters:
            yield from conditions_in(part)


def filter_to_dict(filter: Filter) -> dict[str, Any]:  # noqa: A002 - as above
    """Write a filter in plain JSON types.

    Args:
        filter: The filter.

    Returns:
        `{"field", "operator", "value"}`, or one of `and`, `or`, `not` with what it joins.

    >>> filter_to_dict(~Condition("a", "in", [1, 2]))
    {'not': {'field': 'a', 'operator': 'in', 'value': [1, 2]}}
    """
    if isinstance(filter, Not):
        return {"not": filter_to_dict(filter.filter)}
    if isinstance(filter, And | Or):
        name = "and" if isinstance(filter, And) else "or"
        return {name: [filter_to_dict(part) for part in filter.filters]}
    if not isinstance(filter, Condition):
        raise InvalidParameterError("filter", filter, _ALLOWED)
    value = list(filter.value) if isinstance(filter.value, tuple) else filter.value
    return {"field": filter.field, "operator": filter.operator, "value": value}


def filter_from_dict(data: Mapping[str, Any]) -> Filter:
    """Read what `filter_to_dict` wrote, from a file of the developer's; never from a model.

    Args:
        data: The mapping.

    Returns:
        The filter.

    Raises:
        InvalidParameterError: For any other shape, or a nesting deeper than 50.

    >>> filter_from_dict({"field": "a", "operator": "eq", "value": 1})
    Condition(field='a', operator='eq', value=1)
    """
    return _from_dict(data, 0)


def _from_dict(data: Any, depth: int) -> Filter:
    allowed = "give {field, operator, value}, or one of {and: [...]}, {or: [...]}, {not: ...}"
    if not isinstance(data, Mapping) or depth > _DEEPEST:
        raise InvalidParameterError("filter", data, allowed)
    if set(data) == {"field", "operator", "value"}:
        return Condition(data["field"], data["operator"], data["value"])
    if set(data) == {"not"}:
        return Not(_from_dict(data["not"], depth + 1))
    for name, join in (("and", And), ("or", Or)):
        if set(data) == {name} and isinstance(data[name], list | tuple):
            return join(tuple(_from_dict(part, depth + 1) for part in data[name]))
    raise InvalidParameterError("filter", data, allowed)
