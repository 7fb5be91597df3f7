"""What became of the conditions that a model drew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from easyrag_core.filters._tree import all_of

if TYPE_CHECKING:
    from easyrag_core.filters._tree import Condition, Filter

__all__ = ["DroppedCondition", "ExtractedConditions"]


@dataclass(frozen=True, slots=True)
class DroppedCondition:
    """A condition that is not used.

    Attributes:
        raw: As the model gave it.
        reason: Why.
    """

    raw: Any
    reason: str


@dataclass(frozen=True, slots=True)
class ExtractedConditions:
    """The business conditions for a question, each checked against the schema.

    Attributes:
        conditions: Those that hold together.
        dropped: Those left out, with reasons.
    """

    conditions: tuple[Condition, ...] = ()
    dropped: tuple[DroppedCondition, ...] = ()

    @property
    def filter(self) -> Filter | None:
        """All conditions joined; `None` without any."""
        return all_of(*self.conditions)
