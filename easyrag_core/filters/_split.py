"""What a store can filter itself, and what is left to do after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from easyrag_core.filters._tree import And, Condition, Filter, Not, Or, all_of, any_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

__all__ = ["split_filter"]

_OPPOSITE: Final = {"eq": "ne", "ne": "eq", "in": "nin", "nin": "in"}


def split_filter(
    filter: Filter | None,  # noqa: A002 - the frameworks' word
    operators: Collection[str],
    *,
    accepts: Callable[[Condition], bool] | None = None,
) -> tuple[Filter | None, Filter | None]:
    """Split a filter into what a store can apply and what must be applied after it.

    A document passes the filter exactly when it passes both parts, so the first part never
    leaves out what the whole would keep: fetch more by it, then keep what `rest.matches`.
    Negations are moved down to the conditions where the store knows no `not`.

    Args:
        filter: The whole; `None` for none.
        operators: What the store knows: of `OPERATORS`, and of `and`, `or`, `not`.
        accepts: Says whether the store can take a condition with a known operator, for what
            depends on field or value: booleans, dates, lists.

    Returns:
        `(pushed, rest)`; each `None` when there is nothing.

    >>> whole = Condition("tenant", "eq", "a") & Condition("title", "contains", "x")
    >>> pushed, rest = split_filter(whole, {"eq", "and"})
    >>> pushed, rest.operator
    (Condition(field='tenant', operator='eq', value='a'), 'contains')
    """
    if filter is None:
        return None, None
    known = frozenset(operators)
    wanted = filter if "not" in known else _without_not(filter, negated=False)
    pushed: list[Filter] = []
    rest: list[Filter] = []
    for part in _conjuncts(wanted):
        fits = _fits(part, known, accepts) and ("and" in known or not pushed)
        (pushed if fits else rest).append(part)
    return all_of(*pushed), all_of(*rest)


def _conjuncts(filter: Filter) -> list[Filter]:  # noqa: A002 - as above
    if not isinstance(filter, And):
        return [filter]
    return [part for each in filter.filters for part in _conjuncts(each)]


def _fits(
    filter: Filter,  # noqa: A002 - as above
    known: frozenset[str],
    accepts: Callable[[Condition], bool] | None,
) -> bool:
    if isinstance(filter, Condition):
        return filter.operator in known and (accepts is None or accepts(filter))
    if isinstance(filter, Not):
        return "not" in known and _fits(filter.filter, known, accepts)
    if not isinstance(filter, And | Or) or not filter.filters:
        # No store says "nothing" or "everything" by an empty list.
        return False
    name = "and" if isinstance(filter, And) else "or"
    return name in known and all(_fits(part, known, accepts) for part in filter.filters)


def _without_not(filter: Filter, *, negated: bool) -> Filter:  # noqa: A002 - as above
    if isinstance(filter, Not):
        return _without_not(filter.filter, negated=not negated)
    if isinstance(filter, And | Or):
        parts = [_without_not(part, negated=negated) for part in filter.filters]
        if isinstance(filter, And) is not negated:
            return And(tuple(parts))
        return any_of(*parts)
    return _negated(filter) if negated else filter


def _negated(filter: Filter) -> Filter:  # noqa: A002 - as above
    if isinstance(filter, Condition):
        if filter.operator in _OPPOSITE:
            return Condition(filter.field, _OPPOSITE[filter.operator], filter.value)
        if filter.operator == "exists":
            return Condition(filter.field, "exists", not filter.value)
    # "Not greater" is not "at most": it also holds where there is no value.
    return Not(filter)
