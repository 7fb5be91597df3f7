"""The index of a BM25 retriever, by what its constructor is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from easyrag_core import BM25Index, BM25Params, InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from easyrag_core import Analyzer

__all__ = ["chosen_index", "params_of"]


def chosen_index(
    given: Any,
    *,
    params: BM25Params | Mapping[str, Any] | None,
    analyzer: Analyzer | Callable[[str], Sequence[str]] | None,
    field_weights: Mapping[str, int] | None,
) -> BM25Index:
    """Return an index that is given, or a new one.

    Args:
        given: A `BM25Index`; anything else is replaced.
        params: `k1` and `b` of a new one.
        analyzer: What a new one reads with.
        field_weights: The fields of a new one; a given one must have the same.

    Returns:
        The index.

    Raises:
        InvalidParameterError: A setting is wrong, or the given index has other fields.
    """
    if not isinstance(given, BM25Index):
        return BM25Index(params_of(params), analyzer=analyzer, field_weights=field_weights)
    if field_weights is not None and field_weights != given.field_weights:
        allowed = f"the index that is given has {given.field_weights}: leave them out"
        raise InvalidParameterError("field_weights", field_weights, allowed)
    return given


def params_of(given: BM25Params | Mapping[str, Any] | None) -> BM25Params:
    """Return `k1` and `b` as the core takes them, without the `epsilon` of other packages.

    Raises:
        InvalidParameterError: There are other settings, or values out of range.
    """
    if isinstance(given, BM25Params):
        return given
    values = {name: value for name, value in (given or {}).items() if name != "epsilon"}
    if not values.keys() <= {"k1", "b"}:
        raise InvalidParameterError("bm25_params", given, "the settings are k1 and b")
    return BM25Params(**values)
