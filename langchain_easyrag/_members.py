"""The names of the models that a router is given."""

from __future__ import annotations

__all__ = ["model_name_of"]

_NAMES = ("model_name", "model", "model_id", "deployment_name", "repo_id")


def model_name_of(model: object) -> str | None:
    """Read a model's name from where integrations keep it.

    Args:
        model: A chat model or an embedding model.

    Returns:
        The first name that is not blank; `None` when it has none.
    """
    told = (getattr(model, name, None) for name in _NAMES)
    return next((name for name in told if isinstance(name, str) and name.strip()), None)
