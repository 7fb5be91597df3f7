"""How a filter reaches a retriever: as far as it can take it, the rest left for afterwards."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Final

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.retrievers import VectorIndexRetriever
from llama_index.core.vector_stores.types import FilterCondition, MetadataFilters

from easyrag_core import InvalidParameterError, split_filter
from easyrag_core.errors import check_choice
from easyrag_core.filters import OPERATORS
from llamaindex_easyrag._filters import DOCUMENT_KEYS, ScopeFilters
from llamaindex_easyrag.filters import metadata_filters
from llamaindex_easyrag.retrievers.bm25 import BM25Retriever
from llamaindex_easyrag.retrievers.hybrid import HybridRetriever

if TYPE_CHECKING:
    from collections.abc import Collection

    from easyrag_core import Condition, Filter

__all__ = ["PUSHED", "checked_operators", "checked_source", "narrowed", "tells_its_end"]

PUSHED: Final = ("eq", "in", "and")
"""What every store filters alike."""

_ORDER: Final = ("gt", "gte", "lt", "lte")


def checked_source(source: Any) -> Any:
    """Refuse what cannot be asked.

    Args:
        source: A retriever, an index, or a function that makes a retriever.

    Returns:
        The same.

    Raises:
        InvalidParameterError: It is none of these.
    """
    known = isinstance(source, BaseRetriever) or hasattr(source, "as_retriever") or callable(source)
    if not known:
        allowed = "give a retriever, an index, or a function (k, filters) that makes a retriever"
        raise InvalidParameterError("source", source, allowed)
    return source


def checked_operators(operators: Collection[str]) -> tuple[str, ...]:
    """Refuse operators that no filter has.

    Args:
        operators: Of `OPERATORS`, and of `and`, `or`, `not`.

    Returns:
        The same.

    Raises:
        InvalidParameterError: One is unknown.
    """
    if isinstance(operators, str):
        raise InvalidParameterError("operators", operators, "give a list")
    for name in operators:
        check_choice("operators", name, (*OPERATORS, "and", "or", "not"))
    return tuple(operators)


def narrowed(
    source: Any, wanted: Filter | None, k: int, operators: Collection[str]
) -> BaseRetriever:
    """Return a retriever that gives `k` nodes, filtered as far as it can filter.

    Args:
        source: As in `checked_source`; it is left as it is.
        wanted: The whole filter. What the retriever cannot take is left out, never turned into
            something narrower.
        k: How many nodes it should give; what has a size of its own keeps it.
        operators: What its store knows.

    Returns:
        A retriever of the source's kind.
    """
    if isinstance(source, BM25Retriever):
        made = copy(source)
        made.filters = _scoped(source.filters, wanted)
        made.similarity_top_k = k
        return made
    if isinstance(source, HybridRetriever):
        filters = _scoped(source.filters, wanted)
        return source.narrowed(
            filters, k, lambda side, size: narrowed(side, wanted, size, operators)
        )
    pushed = metadata_filters(split_filter(wanted, operators, accepts=_is_plain)[0])
    if isinstance(source, VectorIndexRetriever):
        return _narrowed_vectors(source, pushed, k)
    if isinstance(source, BaseRetriever):
        return source
    if hasattr(source, "as_retriever"):
        found: BaseRetriever = source.as_retriever(similarity_top_k=k, filters=pushed)
        return found
    made_of: BaseRetriever = source(k, pushed)
    return made_of


def tells_its_end(source: Any) -> bool:
    """Whether fewer nodes than were asked for mean that there are no more.

    A hybrid search with somebody else's vector side filters what that side gave: it may have
    more behind.
    """
    return not isinstance(source, HybridRetriever) or source._sides is None  # noqa: SLF001


def _scoped(own: MetadataFilters | None, wanted: Filter | None) -> MetadataFilters | None:
    if wanted is None:
        return own
    return ScopeFilters(filters=[] if own is None else [own], scope=wanted)


def _narrowed_vectors(source: Any, pushed: MetadataFilters | None, k: int) -> BaseRetriever:
    made: Any = copy(source)
    made.similarity_top_k = k
    own = source._filters  # noqa: SLF001 - the framework has no other way
    if pushed is not None and own is None:
        made._filters = pushed  # noqa: SLF001 - as above
    elif pushed is not None and _is_flat_and(own):
        joined = [*own.filters, *pushed.filters]
        made._filters = MetadataFilters(filters=joined)  # noqa: SLF001 - as above
    found: BaseRetriever = made
    return found


def _is_flat_and(filters: MetadataFilters) -> bool:
    flat = not any(isinstance(part, MetadataFilters) for part in filters.filters)
    return flat and filters.condition in (None, FilterCondition.AND)


def _is_plain(condition: Condition) -> bool:
    """Whether a store compares as we do, or keeps more.

    Booleans, lists as values and moments are told apart differently from store to store. Of the
    document's id a store knows only the framework's, not what a node's own metadata says.
    """
    if condition.field in DOCUMENT_KEYS:
        return False
    value: Any = condition.value
    several = value if condition.operator in ("in", "nin", "any", "all") else [value]
    kinds = {type(one) for one in several}
    if condition.operator in _ORDER:
        return kinds <= {int, float}
    return kinds in ({str}, {int})
