"""Whose conditions count: the system's always, the model's as far as a schema allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from easyrag_core.errors import InvalidParameterError, check_count
from easyrag_core.filters._extracted import DroppedCondition, ExtractedConditions
from easyrag_core.filters._schema import FilterField, coerced, operator_named
from easyrag_core.filters._tree import Condition, Filter, all_of, conditions_in

__all__ = ["FilterPolicy"]

_KEYS: Final = (("field", "key", "name", "字段"), ("operator", "op", "comparator", "运算符"))
_VALUE_KEYS: Final = ("value", "values", "值")


class FilterPolicy:
    """Joins what must always hold with what a question asks for.

    System conditions (tenant, permissions, dates of validity) come from code. They are never
    shown to a model, apply to every search, and are never relaxed. Business conditions are drawn
    by a model from a closed schema and can only narrow what the system allows.

    >>> policy = FilterPolicy(
    ...     system=Condition("tenant", "eq", "a"),
    ...     business_schema=[FilterField("year", "integer")],
    ... )
    >>> drawn = policy.check([{"field": "year", "operator": ">=", "value": "2020"}])
    >>> [condition.field for condition in conditions_in(policy.apply(drawn))]
    ['tenant', 'year']
    >>> policy.check([{"field": "tenant", "operator": "ne", "value": "a"}]).dropped[0].reason
    'unknown field'
    """

    def __init__(
        self,
        *,
        system: Filter | None = None,
        business_schema: Iterable[FilterField] = (),
        max_conditions: int = 8,
    ) -> None:
        """Keep both sides apart.

        Args:
            system: What every document must fulfil; `None` for no condition.
            business_schema: The fields that a model may set conditions on.
            max_conditions: The most conditions of a model that are used.

        Raises:
            InvalidParameterError: For fields that come twice or that the system uses, or values
                of another kind.
        """
        if system is not None and not isinstance(system, Filter):
            raise InvalidParameterError("system", system, "give a Filter or None")
        self._system = system
        self._fields = _fields_by_name(business_schema)
        self._max_conditions = check_count("max_conditions", max_conditions, minimum=1)
        both = sorted({c.field for c in conditions_in(system)} & set(self._fields))
        if both:
            allowed = "a field of the system conditions is never shown to a model"
            raise InvalidParameterError("business_schema", both, allowed)

    @property
    def system(self) -> Filter | None:
        """What every document must fulfil."""
        return self._system

    @property
    def business_schema(self) -> tuple[FilterField, ...]:
        """The fields that a model may set conditions on."""
        return tuple(self._fields.values())

    def restricted_to(self, system: Filter | None) -> FilterPolicy:
        """Return a policy with further system conditions, for one tenant or one user.

        Args:
            system: What must hold as well.

        Returns:
            A new policy.

        Raises:
            InvalidParameterError: The business schema holds one of its fields.
        """
        return FilterPolicy(
            system=all_of(self._system, system),
            business_schema=self.business_schema,
            max_conditions=self._max_conditions,
        )

    def check(self, drawn: Iterable[Any]) -> ExtractedConditions:
        """Check a model's conditions one by one; bad ones are dropped and reported.

        Args:
            drawn: Mappings with `field`, `operator` and `value`, from anywhere.

        Returns:
            Good conditions, each once, and the dropped ones.

        Raises:
            InvalidParameterError: It is nothing to iterate over.
        """
        if not isinstance(drawn, Iterable):
            raise InvalidParameterError("drawn", drawn, "give a list of conditions")
        good: dict[Condition, None] = {}
        dropped = []
        for raw in drawn:
            try:
                condition = self._checked(raw)
            except (ValueError, OverflowError) as error:
                dropped.append(DroppedCondition(raw, str(error)))
                continue
            if condition not in good and len(good) == self._max_conditions:
                dropped.append(DroppedCondition(raw, "too many conditions"))
            else:
                good[condition] = None
        return ExtractedConditions(tuple(good), tuple(dropped))

    def _checked(self, raw: Any) -> Condition:
        if not isinstance(raw, Mapping):
            raise ValueError("not an object with field, operator and value")  # noqa: TRY004
        names = [_first(raw, keys) for keys in _KEYS]
        field = self._fields.get(names[0]) if isinstance(names[0], str) else None
        if field is None:
            raise ValueError("unknown field")
        operator = operator_named(names[1])
        value = _first(raw, _VALUE_KEYS)
        if operator == "eq" and isinstance(value, list) and len(value) > 1:
            operator = "in"
        if operator is None or operator not in field.operators:
            raise ValueError("operator not allowed for this field")
        return Condition(field.name, operator, coerced(field, operator, value))

    def apply(self, business: ExtractedConditions | None = None) -> Filter | None:
        """Return the filter of a search.

        Args:
            business: What `check` or `parse_filters` returned.

        Returns:
            The system conditions and these; `None` when there is nothing to filter.

        Raises:
            InvalidParameterError: For a condition that is not of the schema.
        """
        if business is None:
            return self._system
        if not isinstance(business, ExtractedConditions):
            raise InvalidParameterError("business", business, "give what check() returned")
        for condition in business.conditions:
            field = self._fields.get(condition.field)
            if field is None or condition.operator not in field.operators:
                raise InvalidParameterError("business", condition, "give what check() returned")
        return all_of(self._system, *business.conditions)

    def attempts(self, business: ExtractedConditions | None = None) -> list[Filter | None]:
        """Return the filters to search with, in order, until one finds something.

        Args:
            business: What `check` or `parse_filters` returned.

        Returns:
            The whole filter, then, if there are business conditions, the system's alone.

        Raises:
            InvalidParameterError: For a condition that is not of the schema.
        """
        whole = self.apply(business)
        return [whole, self._system] if business and business.conditions else [whole]


def _fields_by_name(schema: Any) -> dict[str, FilterField]:
    fields: dict[str, FilterField] = {}
    if not isinstance(schema, Iterable):
        raise InvalidParameterError("business_schema", schema, "give a list of FilterFields")
    for field in schema:
        if not isinstance(field, FilterField):
            raise InvalidParameterError("business_schema", field, "give FilterFields")
        if field.name in fields:
            raise InvalidParameterError("business_schema", field.name, "name each field once")
        fields[field.name] = field
    return fields


def _first(raw: Mapping[Any, Any], keys: tuple[str, ...]) -> Any:
    return next((raw[key] for key in keys if key in raw), None)
