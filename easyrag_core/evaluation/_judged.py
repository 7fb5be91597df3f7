"""Reads what was found and what is relevant, in each form in which people have them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from easyrag_core.errors import InvalidParameterError, check_number
from easyrag_core.types import Hit

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Qrels", "Ranking", "Relevant", "Run", "gains_of", "grades_of", "ranked_ids"]

Ranking: TypeAlias = Sequence[str] | Sequence[Hit] | Mapping[str, float]
"""What was found: ids or hits, best first, as they stand; or id to score, which is sorted by
score as trec_eval sorts it."""

Relevant: TypeAlias = Collection[str] | Mapping[str, float]
"""What is relevant: ids, or id to grade; a grade above 0 is relevant."""

Run: TypeAlias = Mapping[str, Ranking]
"""Question to what was found for it."""

Qrels: TypeAlias = Mapping[str, Relevant]
"""Question to what is relevant to it."""


def grades_of(relevant: Relevant, *, name: str = "relevant") -> dict[str, float]:
    """Read what is relevant.

    Args:
        relevant: Ids, or id to grade.
        name: What it is called in messages.

    Returns:
        Id to grade; 1 for ids without a grade.

    Raises:
        InvalidParameterError: It is a plain string or no collection, an id is no string, or a
            grade is no finite number.
    """
    if isinstance(relevant, str | bytes) or not isinstance(relevant, Collection):
        raise InvalidParameterError(name, relevant, "give a list of ids, or a dict of id to grade")
    _check_ids(relevant, name)
    if not isinstance(relevant, Mapping):
        return dict.fromkeys(relevant, 1.0)
    return {id_: _finite(f"{name}[{id_!r}]", grade) for id_, grade in relevant.items()}


def _finite(name: str, grade: object) -> float:
    allowed = "a grade is a finite number"
    number = check_number(name, grade, allowed=allowed)
    if not math.isfinite(number):
        raise InvalidParameterError(name, grade, allowed)
    return number


def ranked_ids(found: Ranking | Iterable[str | Hit], *, name: str = "found") -> list[str]:
    """Read a ranking.

    A dict of scores is sorted as trec_eval sorts it: by score in single precision, and where
    that is equal by id, both descending.

    Args:
        found: Ids or hits, best first; or id to score.
        name: What it is called in messages.

    Returns:
        Ids, best first.

    Raises:
        InvalidParameterError: It is a plain string or nothing to iterate over, an id is no
            string, or a score is no number.
    """
    if isinstance(found, str | bytes):
        raise InvalidParameterError(name, found, "give a list of ids or hits, best first")
    try:
        items: list[Any] = list(found)
    except TypeError:
        allowed = "give a list of ids or hits, best first, or a dict of id to score"
        raise InvalidParameterError(name, found, allowed) from None
    ids = [item.id if isinstance(item, Hit) else item for item in items]
    _check_ids(ids, name)
    return _by_score(found, name) if isinstance(found, Mapping) else ids


def _by_score(found: Mapping[str, float], name: str) -> list[str]:
    scores = list(found.values())
    # NaN alone differs from itself; the slow way says which score is none.
    if any(type(score) is not float or score != score for score in scores):  # noqa: PLR0124
        scores = [check_number(f"{name}[{id_!r}]", score) for id_, score in found.items()]
    with np.errstate(over="ignore"):
        rounded = np.asarray(scores, np.float32).tolist()
    return [id_ for _, id_ in sorted(zip(rounded, found, strict=True), reverse=True)]


def _check_ids(ids: Iterable[object], name: str) -> None:
    for id_ in ids:
        if not isinstance(id_, str):
            allowed = "ids are strings; of a document or a node give its id"
            raise InvalidParameterError(name, id_, allowed)


def gains_of(ids: Iterable[str], grades: Mapping[str, float]) -> list[float]:
    """Grade a ranking.

    Args:
        ids: What was found, best first.
        grades: Id to grade.

    Returns:
        A grade for each place: 0 for what is not relevant, not judged, or was there before.
    """
    left = {id_: grade for id_, grade in grades.items() if grade > 0}
    return [left.pop(id_, 0.0) for id_ in ids]
