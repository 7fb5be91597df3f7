"""The models among which a router chooses, and the order in which it asks them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from easyrag_core.errors import InvalidParameterError, check_count, check_timeout
from easyrag_core.routing._checks import checked_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

__all__ = ["ModelCandidate", "checked_candidates", "given_candidates", "ordered_candidates"]

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
            seconds = check_timeout(getattr(self, setting), name=setting)
            object.__setattr__(self, setting, seconds)


def checked_candidates(candidates: Iterable[ModelCandidate[M]]) -> tuple[ModelCandidate[M], ...]:
    """Take candidates of which a router can tell one from the other.

    Args:
        candidates: At least one, with unique names.

    Returns:
        The same, in the order given.

    Raises:
        InvalidParameterError: No list of candidates, none in it, or a name that comes again.

    >>> [each.name for each in checked_candidates([ModelCandidate("a", 1), ModelCandidate("b", 2)])]
    ['a', 'b']
    """
    if isinstance(candidates, str | Mapping) or not isinstance(candidates, Iterable):
        raise InvalidParameterError("candidates", candidates, "give a list of ModelCandidates")
    kept = tuple(candidates)
    for each in kept:
        if not isinstance(each, ModelCandidate):
            raise InvalidParameterError("candidates", each, "give ModelCandidates")
    if not kept:
        raise InvalidParameterError("candidates", kept, "give at least one candidate")
    names = Counter(candidate.name for candidate in kept)
    again = [name for name, count in names.items() if count > 1]
    if again:
        raise InvalidParameterError("candidates", again, "give each candidate a name of its own")
    return kept


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


def given_candidates(
    models: Iterable[Any] | None,
    candidates: Iterable[Any] | None,
    *,
    kind: Any,
    name_of: Callable[[Any], str | None],
    capabilities: Callable[[M], Collection[str]],
) -> tuple[ModelCandidate[M], ...]:
    """Take plain models, named by themselves, or candidates.

    Args:
        models: Models, in the order in which they are to be asked.
        candidates: Candidates; one without capabilities has those that are guessed.
        kind: What each model has to be.
        name_of: Reads a model's name; one without is called by its class.
        capabilities: Guesses what a model is able to do.

    Returns:
        Candidates in the order given.

    Raises:
        InvalidParameterError: Both or neither are given, or one is something else.

    >>> given = given_candidates(
    ...     ["a", "b"], None, kind=str, name_of=lambda _: "m", capabilities=lambda _: {"tools"}
    ... )
    >>> [(one.name, one.model) for one in given]
    [('m', 'a'), ('m #2', 'b')]
    """
    if (models is None) == (candidates is None):
        raise InvalidParameterError("models", models, "give either models or candidates")
    for name, listed in (("models", models), ("candidates", candidates)):
        # One model may itself give its fields one by one.
        if listed is not None and (isinstance(listed, kind) or not isinstance(listed, Iterable)):
            raise InvalidParameterError(name, type(listed).__name__, "give a list of them")
    given = _named(models or (), name_of) if candidates is None else list(candidates)
    for each in given:
        if not isinstance(each, ModelCandidate):
            raise InvalidParameterError("candidates", each, "give ModelCandidates")
        if not isinstance(each.model, kind):
            told = type(each.model).__name__
            allowed = f"each has to be a {kind.__name__}; bind settings in its constructor"
            raise InvalidParameterError("models", told, allowed)
    return tuple(
        each if each.capabilities else replace(each, capabilities=capabilities(each.model))
        for each in given
    )


def _named(
    models: Iterable[Any], name_of: Callable[[Any], str | None]
) -> list[ModelCandidate[Any]]:
    named: dict[str, ModelCandidate[Any]] = {}
    for model in models:
        name = _distinct(name_of(model) or type(model).__name__, named)
        named[name] = ModelCandidate(name, model)
    return list(named.values())


def _distinct(name: str, taken: Collection[str]) -> str:
    others = (f"{name} #{number}" for number in count(2))
    return name if name not in taken else next(other for other in others if other not in taken)
