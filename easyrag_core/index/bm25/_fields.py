"""Fields that count more than the text: a title, a path of headings."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

from easyrag_core.errors import InvalidParameterError, check_count

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["check_known", "checked_weights", "field_texts"]

_MOST_WEIGHT = 100


def checked_weights(weights: Any) -> dict[str, int]:
    """Return the weights of the fields.

    Args:
        weights: Field to weight, or `None` for no fields.

    Returns:
        A dict of its own.

    Raises:
        InvalidParameterError: For names that are no strings, or weights that are no whole
            numbers from 1 to 100.
    """
    allowed = "give a name and a whole number from 1 to 100 for each field"
    if weights is None:
        return {}
    if not isinstance(weights, Mapping) or not all(isinstance(name, str) for name in weights):
        raise InvalidParameterError("field_weights", weights, allowed)
    checked = {
        name: check_count(f"field_weights[{name!r}]", weight, minimum=1)
        for name, weight in weights.items()
    }
    # A weight is that many copies of the field's terms.
    if any(weight > _MOST_WEIGHT for weight in checked.values()):
        raise InvalidParameterError("field_weights", weights, allowed)
    return checked


def check_known(fields: Any, weights: Mapping[str, int]) -> None:
    """Refuse fields that have no weight.

    Raises:
        InvalidParameterError: For what is no dict, or a field that is not among the weights.
    """
    if fields is None:
        return
    if not isinstance(fields, Mapping):
        raise InvalidParameterError("fields", fields, "give a dict of field to a list of texts")
    for name in fields:
        if name not in weights:
            known = ", ".join(weights) or "no fields"
            raise InvalidParameterError("fields", name, f"the index was made for {known}")


def field_texts(
    metadatas: Iterable[Mapping[Any, Any]], names: Iterable[str]
) -> dict[str, list[str]]:
    """Take the fields of documents out of their metadata, as `BM25Index.add(fields=)` wants them.

    Args:
        metadatas: (n,) the metadata of each document.
        names: The fields, e.g. `index.field_weights`.

    Returns:
        Name to (n,) texts. Texts and numbers count as they are written, of a list (a path of
        headings) every one, line by line; what is missing or anything else is empty.

    >>> field_texts([{"title": "Redis", "heading_path": ["Caches"]}, {}], ["title", "heading_path"])
    {'title': ['Redis', ''], 'heading_path': ['Caches', '']}
    """
    listed = list(metadatas)
    return {name: [_text_of(its.get(name)) for its in listed] for name in names}


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return "\n".join(filter(None, map(_text_of, value)))
    return str(value) if isinstance(value, Real) and not isinstance(value, bool) else ""
