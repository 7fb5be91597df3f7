"""The names of the models that a router is given."""

from __future__ import annotations

__all__ = ["model_name_of"]

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
