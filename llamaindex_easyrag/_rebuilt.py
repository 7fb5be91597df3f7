"""Copies of components that hold a router."""

from __future__ import annotations

import copy
from typing import Any

from pydantic import BaseModel

__all__ = ["Rebuilt"]


class Rebuilt:
    """A component whose copies are made anew from its settings.

    Locks, counts and circuits stay where they are, and so do callback handlers: another process
    has its own. What else cannot be copied is an error, not a setting that is lost.
    """

    def __getstate__(self: Any) -> dict[str, Any]:
        """Hand over the settings alone; the framework calls the constructor with them."""
        state = BaseModel.__getstate__(self)
        fields = {n: v for n, v in state["__dict__"].items() if n != "callback_manager"}
        return {**state, "__dict__": fields, "__pydantic_private__": None}

    def __deepcopy__(self: Any, memo: dict[int, Any] | None = None) -> Any:
        """Make another from copies of the settings."""
        return type(self)(**copy.deepcopy(self.__getstate__()["__dict__"], memo))
