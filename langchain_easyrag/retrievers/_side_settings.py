"""The settings of a hybrid search, as keyword arguments of a retriever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from easyrag_core import HybridConfig, HybridIndex, InvalidParameterError

__all__ = ["CONFIG_NAMES", "index_and_settings"]

CONFIG_NAMES = tuple(field.name for field in fields(HybridConfig))
"""What a retriever takes beside its own fields."""


def index_and_settings(given: dict[str, Any], index: HybridIndex | None) -> dict[str, Any]:
    """Take single settings out of keyword arguments.

    Args:
        given: The keyword arguments; those in `CONFIG_NAMES` are taken out.
        index: What is searched, if it is there already; its settings count where nothing else
            is said.

    Returns:
        `index` and `settings`.

    Raises:
        InvalidParameterError: A setting is out of range.
    """
    changed = {name: given.pop(name) for name in CONFIG_NAMES if name in given}
    if "weights" in changed:
        changed["weights"] = _by_side(changed["weights"])
    kept = given.get("settings") or (HybridConfig() if index is None else index.config)
    settings = replace(kept, **changed)
    return {"index": HybridIndex(settings) if index is None else index, "settings": settings}


def _by_side(weights: Any) -> Mapping[str, float] | None:
    """Name two weights by the sides that they are for; named ones stay as they are."""
    if weights is None or isinstance(weights, Mapping):
        return weights
    if not isinstance(weights, list | tuple) or len(weights) != 2:
        raise InvalidParameterError("weights", weights, "give two: of bm25 and of vector")
    return dict(zip(("bm25", "vector"), weights, strict=True))
