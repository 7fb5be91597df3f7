"""Postprocessors that leave hits out: what says the same, what scores too low."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

from easyrag_core.errors import InvalidParameterError, check_number
from easyrag_core.pipeline._stage import Quick

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from easyrag_core.pipeline._stage import PipelineContext

__all__ = ["Dedupe", "EvidenceGate", "ScoreThreshold", "above", "checked_min_score"]

T = TypeVar("T")


class Dedupe(Quick[T]):
    """Keeps of hits that say the same the best one, with the attribution of all.

    Fusion joins what has one id; this joins what has different ids and one content.

    >>> from easyrag_core import Hit, PipelineContext
    >>> from easyrag_core.pipeline import HitItems
    >>> texts = {"a": "same", "b": "same", "c": "other"}
    >>> dedupe = Dedupe(key=lambda hit: texts[hit.id])
    >>> context = PipelineContext("q", 10, 40, HitItems())
    >>> [hit.id for hit in dedupe.process([Hit(id_, 1.0, 1) for id_ in "abc"], context)]
    ['a', 'c']
    """

    def __init__(self, key: Callable[[T], Hashable] | None = None, *, name: str = "dedupe") -> None:
        """Say what counts as the same.

        Args:
            key: What is equal for hits that say the same. Default: their content, where hits
                carry it (documents, nodes), else their id.
            name: The stage's name.
        """
        self.key = key
        self.name = name

    def process(self, hits: Sequence[T], context: PipelineContext[T]) -> list[T]:
        """Keep the first of each group."""
        key_of = context.items.content_of if self.key is None else self.key
        groups: dict[Hashable, list[T]] = {}
        for hit in hits:
            groups.setdefault(key_of(hit), []).append(hit)
        id_of, joined = context.items.id_of, context.items.joined
        for first, *others in groups.values():
            for other in others:
                context.notes[id_of(other)] = f"says the same as {id_of(first)}"
        return [joined(group[0], group[1:]) if group[1:] else group[0] for group in groups.values()]


class ScoreThreshold(Quick[T]):
    """Leaves out hits whose score is under a threshold; 0 is one, and an unknown score is under it.

    >>> ScoreThreshold(0.5).min_score
    0.5
    """

    def __init__(self, min_score: float, *, name: str = "score threshold") -> None:
        """Check the threshold.

        Args:
            min_score: The lowest score that stays, on the scale that hits have at this place of
                the line.
            name: The stage's name.

        Raises:
            InvalidParameterError: It is no finite number.
        """
        self.min_score = checked_min_score(min_score)
        self.name = name

    def process(self, hits: Sequence[T], context: PipelineContext[T]) -> list[T]:
        """Keep what reaches the threshold."""
        return above(self.min_score, hits, context)


class EvidenceGate(Quick[T]):
    """Gives nothing at all where the best score is under a threshold: there is no evidence.

    An answer of weak passages is worse than none: a model would make something of them.

    >>> EvidenceGate(0.3).min_score
    0.3
    """

    def __init__(self, min_score: float, *, name: str = "evidence gate") -> None:
        """Check the threshold.

        Args:
            min_score: What the best hit must reach, on the scale that hits have at this place of
                the line.
            name: The stage's name.

        Raises:
            InvalidParameterError: It is no finite number.
        """
        self.min_score = checked_min_score(min_score)
        self.name = name

    def process(self, hits: Sequence[T], context: PipelineContext[T]) -> list[T]:
        """Let all pass, or none."""
        scores = [context.items.score_of(hit) for hit in hits]
        best = max((score for score in scores if score is not None), default=None)
        if best is not None and best >= self.min_score:
            return list(hits)
        told = "no hit has a score" if best is None else f"the best score is {best:.4g}"
        for hit in hits:
            context.notes[context.items.id_of(hit)] = (
                f"no evidence: {told}, {self.min_score:.4g} is asked"
            )
        return []


def checked_min_score(min_score: float) -> float:
    """Refuse a threshold that is no finite number."""
    allowed = "give a finite number"
    if math.isinf(check_number("min_score", min_score, allowed=allowed)):
        raise InvalidParameterError("min_score", min_score, allowed)
    return float(min_score)


def above(min_score: float, hits: Sequence[T], context: PipelineContext[T]) -> list[T]:
    """Keep the hits whose score reaches a threshold, and note why the others do not stay."""
    kept = []
    for hit in hits:
        score = context.items.score_of(hit)
        if score is not None and score >= min_score:
            kept.append(hit)
            continue
        told = "it has no score" if score is None else f"its score is {score:.4g}"
        context.notes[context.items.id_of(hit)] = f"left out: {told}, {min_score:.4g} is asked"
    return kept
