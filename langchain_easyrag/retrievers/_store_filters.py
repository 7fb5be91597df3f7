"""Filters in the words of the stores: what each can apply itself."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from langchain_core.vectorstores import InMemoryVectorStore, VectorStoreRetriever

from easyrag_core import And, Condition, Or, split_filter
from langchain_easyrag.retrievers.bm25 import BM25Retriever

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.documents import Document

    from easyrag_core import Filter

__all__ = ["Pushed", "pushed_filter"]

_CHROMA: Final = ("eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "and", "or")
# Not `ne` and `nin`: in a list, Qdrant looks for the value, where a list is another value to us.
_QDRANT: Final = ("eq", "in", "gt", "gte", "lt", "lte", "any", "all", "and", "or")
_ORDER: Final = ("gt", "gte", "lt", "lte")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
# Beyond it, floats do not tell whole numbers apart.
_LARGEST: Final = 2**53


class Pushed(NamedTuple):
    """What a retriever is told of a filter.

    Attributes:
        arguments: For its `invoke`.
        whole: Whether that is all of the filter.
    """

    arguments: dict[str, Any]
    whole: bool


def pushed_filter(retriever: Any, filter: Filter | None) -> Pushed:  # noqa: A002 - their word
    """Say what a retriever can apply of a filter while it searches.

    What it is told never leaves out a document that passes the whole filter: the rest is to be
    applied to what it finds. A filter that the retriever has already is joined, not replaced.

    Args:
        retriever: A retriever; one inside a binding has a filter of its own, perhaps, and is
            told nothing.
        filter: The whole filter.

    Returns:
        The arguments for its call.
    """
    if filter is None:
        return Pushed({}, whole=True)
    if isinstance(retriever, BM25Retriever):
        # It joins its own filter by itself.
        return Pushed({"filter": _test(filter)}, whole=True)
    if not isinstance(retriever, VectorStoreRetriever):
        return Pushed({}, whole=False)
    store, given = retriever.vectorstore, retriever.search_kwargs.get("filter")
    if isinstance(store, InMemoryVectorStore):
        return Pushed({"filter": _test(filter, given)}, whole=True)
    known = {cls.__name__ for cls in type(store).__mro__}
    if "Chroma" in known:
        return _chroma(filter, given)
    if "QdrantVectorStore" in known:
        return _qdrant(filter, given, store)
    return Pushed({}, whole=False)


def _test(
    filter: Filter,  # noqa: A002 - as above
    given: Callable[[Document], bool] | None = None,
) -> Callable[[Document], bool]:
    def passes(document: Document) -> bool:
        return filter.matches(document.metadata) and (given is None or given(document))

    return passes


def _is_number(value: Any) -> bool:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and math.isfinite(value) and abs(value) <= _LARGEST


def _is_writable(value: Any) -> bool:
    """Whether a value can be sent: half characters cannot, and no store holds them."""
    if isinstance(value, str):
        return not re.search("[\ud800-\udfff]", value)
    return isinstance(value, bool) or _is_number(value)


# Chroma


def _chroma(filter: Filter, given: dict[str, Any] | None) -> Pushed:  # noqa: A002 - as above
    pushed, rest = split_filter(filter, _CHROMA, accepts=_chroma_takes)
    if pushed is None:
        return Pushed({}, whole=False)
    where = _chroma_where(pushed)
    if given:
        where = {"$and": [given, where]}
    return Pushed({"filter": where}, whole=rest is None)


def _chroma_takes(condition: Condition) -> bool:
    several = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    if condition.field.startswith(("$", "#")) or not several or not all(map(_is_writable, several)):
        return False
    if condition.operator in ("eq", "ne") and isinstance(condition.value, tuple):
        return False
    if condition.operator in _ORDER and not _is_number(condition.value):
        return False
    # Against whole numbers, Chroma cuts the fraction off.
    if condition.operator not in ("eq", "in") and any(map(_has_fraction, several)):
        return False
    return len({type(value) for value in several}) == 1


def _has_fraction(value: Any) -> bool:
    return isinstance(value, float) and not value.is_integer()


def _chroma_where(filter: Filter) -> dict[str, Any]:  # noqa: A002 - as above
    if isinstance(filter, Condition):
        value = list(filter.value) if isinstance(filter.value, tuple) else filter.value
        return {filter.field: {f"${filter.operator}": value}}
    parts = [_chroma_where(part) for part in _parts(filter)]
    return parts[0] if len(parts) == 1 else {f"${_name(filter)}": parts}


def _parts(filter: Any) -> tuple[Filter, ...]:  # noqa: A002 - as above
    parts: tuple[Filter, ...] = tuple(filter.filters)
    return parts


def _name(filter: Filter) -> str:  # noqa: A002 - as above
    return "and" if isinstance(filter, And) else "or"


# Qdrant


def _qdrant(filter: Filter, given: Any, store: Any) -> Pushed:  # noqa: A002 - as above
    pushed, rest = split_filter(filter, _QDRANT, accepts=_qdrant_takes)
    if pushed is None:
        return Pushed({}, whole=False)
    from qdrant_client import models  # noqa: PLC0415 - it is there: the store is one of its

    wanted = [_qdrant_filter(pushed, store.metadata_payload_key)]
    both = models.Filter(must=wanted if given is None else [given, *wanted])
    return Pushed({"filter": both}, whole=rest is None)


def _qdrant_takes(condition: Condition) -> bool:
    several = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    if not _PLAIN_KEY.fullmatch(condition.field) or not several:
        return False
    if condition.operator == "eq" and isinstance(condition.value, tuple):
        return False
    if condition.operator in _ORDER:
        return _is_number(condition.value)
    return all(map(_is_writable, several))


def _qdrant_filter(filter: Filter, prefix: str) -> Any:  # noqa: A002 - as above
    from qdrant_client import models  # noqa: PLC0415 - as above

    if isinstance(filter, And | Or):
        parts = [_qdrant_filter(part, prefix) for part in filter.filters]
        return models.Filter(must=parts) if isinstance(filter, And) else models.Filter(should=parts)
    if not isinstance(filter, Condition):
        raise TypeError(filter)
    key = f"{prefix}.{filter.field}"
    if filter.operator in _ORDER:
        bound: dict[str, Any] = {filter.operator: filter.value}
        return models.FieldCondition(key=key, range=models.Range(**bound))
    if not isinstance(filter.value, tuple):
        return _qdrant_equal(key, filter.value)
    equal = [_qdrant_equal(key, value) for value in filter.value]
    every = filter.operator == "all"
    return models.Filter(must=equal) if every else models.Filter(should=equal)


def _qdrant_equal(key: str, value: Any) -> Any:
    from qdrant_client import models  # noqa: PLC0415 - as above

    if _is_number(value):
        # 1 equals 1.0: a match by value would tell them apart.
        number = models.Range(gte=float(value), lte=float(value))
        return models.FieldCondition(key=key, range=number)
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))
