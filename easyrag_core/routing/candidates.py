"""The models among which a router chooses, and the order in which it asks them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from easyrag_core.errors import InvalidParameterError, check_count, check_timeout
from easyrag_core.routing._checks import checked_words

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = ["ModelCandidate", "ordered_candidates"]

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class ModelCandidate(Generic[M]):
    """One model that may be asked. The model itself is opaque to a router.

    Attributes:
        name: What it is called in errors, events and requests; unique within a router.
        model: Whatever the caller needs to ask it.
        priority: Smaller comes first; equal ones come in the order given.
        capabilities: What it can do, in the caller's words ("tools", "vision", …).
        first_token_timeout: Seconds until its first content; `None` takes the router's, infinity
            is no limit.
        stall_timeout: Seconds between its chunks after that; as above.
        total_timeout: Seconds for its whole answer; as above.

    Raises:
        InvalidParameterError: A blank name, a priority that is no whole number, capabilities
            that are one string, or a timeout that is not above 0.
    """

    name: str
    model: M
    priority: int = 0
    capabilities: Collection[str] = frozenset()
    first_token_timeout: float | None = None
    stall_timeout: float | None = None
    total_timeout: float | None = None

    def __post_init__(self) -> None:
        """Refuse what could only fail later."""
        name: object = self.name
        if not isinstance(name, str) or not name.strip():
            raise InvalidParameterError("name", name, "give a name that is not blank")
        check_count("priority", self.priority, minimum=-(2**63))
        object.__setattr__(self, "capabilities", checked_words("capabilities", self.capabilities))
        for setting in ("first_token_timeout", "stall_timeout", "total_timeout"):
            check_timeout(getattr(self, setting), name=setting)


def ordered_candidates(
    candidates: Sequence[ModelCandidate[M]],
    *,
    wants: Collection[str] = (),
    model: str | None = None,
) -> list[ModelCandidate[M]]:
    """Put candidates in the order in which they are asked.

    Args:
        candidates: All that there are.
        wants: Capabilities that the request needs: who lacks one is left out.
        model: The name of the one that was asked for: it comes first.

    Returns:
        The asked-for one, then by priority, then in the order given.

    Raises:
        InvalidParameterError: Nobody has that name, or nobody can do what is wanted.

    >>> small = ModelCandidate("small", None, priority=1)
    >>> large = ModelCandidate("large", None, priority=2, capabilities={"tools"})
    >>> [c.name for c in ordered_candidates([large, small])]
    ['small', 'large']
    >>> [c.name for c in ordered_candidates([large, small], wants=["tools"])]
    ['large']
    """
    names = [candidate.name for candidate in candidates]
    if model is not None and model not in names:
        raise InvalidParameterError("model", model, "choose one of " + ", ".join(map(repr, names)))
    wanted = checked_words("wants", wants)
    able = [candidate for candidate in candidates if wanted <= frozenset(candidate.capabilities)]
    if not able:
        raise InvalidParameterError(
            "wants", sorted(wanted), "ask for what one of the candidates is able to do"
        )
    return sorted(able, key=lambda candidate: (candidate.name != model, candidate.priority))
