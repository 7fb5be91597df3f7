"""The models that a router is given: their names, and what they are able to do."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from easyrag_core import InvalidParameterError, ModelCandidate

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

__all__ = ["check_names", "given_candidates", "model_name_of"]

M = TypeVar("M")

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


def given_candidates(
    models: Iterable[Any] | None,
    candidates: Iterable[Any] | None,
    *,
    kind: Any,
    capabilities: Callable[[M], Collection[str]],
) -> tuple[ModelCandidate[M], ...]:
    """Take plain models, named by themselves, or candidates.

    Args:
        models: Models, in the order in which they are to be asked.
        candidates: Candidates; one without capabilities has those that are guessed.
        kind: What each model has to be.
        capabilities: Guesses what a model is able to do.

    Returns:
        Candidates in the order given.

    Raises:
        InvalidParameterError: Both or neither are given, or one is something else.
    """
    if (models is None) == (candidates is None):
        raise InvalidParameterError("models", models, "give either models or candidates")
    given = _named(models or ()) if candidates is None else list(candidates)
    for each in given:
        if not isinstance(each, ModelCandidate):
            raise InvalidParameterError("candidates", each, "give ModelCandidates")
        if not isinstance(each.model, kind):
            told = type(each.model).__name__
            raise InvalidParameterError("models", told, f"each has to be a {kind.__name__}")
    return tuple(
        each if each.capabilities else replace(each, capabilities=capabilities(each.model))
        for each in given
    )


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


def _named(models: Iterable[Any]) -> list[ModelCandidate[Any]]:
    named: dict[str, ModelCandidate[Any]] = {}
    for model in models:
        name = _distinct(model_name_of(model) or type(model).__name__, named)
        named[name] = ModelCandidate(name, model)
    return list(named.values())


def _distinct(name: str, taken: Collection[str]) -> str:
    others = (f"{name} #{number}" for number in count(2))
    return name if name not in taken else next(other for other in others if other not in taken)
