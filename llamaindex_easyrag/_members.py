"""The names of the models that a router is given, and of its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from easyrag_core import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["check_names", "model_name_of"]

_NAMES = ("model_name", "model", "deployment_name")
# What the framework's classes are called by when nobody has given them a name.
_NAMELESS = frozenset({"unknown"})


def model_name_of(model: object) -> str | None:
    """Read a model's name from where integrations keep it.

    Args:
        model: An LLM or an embedding model.

    Returns:
        The first name that says something; `None` when it has none.
    """
    told = [getattr(model, name, None) for name in _NAMES]
    told.append(getattr(getattr(model, "metadata", None), "model_name", None))
    names = (name for name in told if isinstance(name, str) and name.strip())
    return next((name for name in names if name not in _NAMELESS), None)


def check_names(given: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse settings that there are not: pydantic would leave them out without a word.

    Args:
        given: The constructor's keyword arguments.
        known: The names that it takes.

    Raises:
        InvalidParameterError: A name is unknown.
    """
    for name in given.keys() - set(known):
        allowed = "there is no such setting, only " + ", ".join(sorted(known))
        raise InvalidParameterError(name, given[name], allowed)
