"""Hits that differ from each other, by their vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from easyrag_core.errors import check_count
from easyrag_core.ranking.cosine import cosines, fitting_vectors
from easyrag_core.ranking.mmr import maximal_marginal_relevance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from easyrag_core.pipeline._stage import PipelineContext
    from easyrag_core.types import Hit

__all__ = ["Diversify"]


class Diversify:
    """Orders hits by maximal marginal relevance: relevant first, but nothing twice.

    >>> from easyrag_core import Channel, Hit, RetrievalPipeline
    >>> rows = {"a": [1.0, 0.0], "twin": [1.0, -0.01], "b": [0.0, 1.0]}
    >>> hits = [Hit("a", 3.0, 1), Hit("twin", 2.0, 2), Hit("b", 1.0, 3)]
    >>> diversify = Diversify(
    ...     lambda query, ids: ([rows[id_] for id_ in ids], [1.0, 1.0]), lambda_mult=0.5
    ... )
    >>> pipeline = RetrievalPipeline([Channel("words", lambda query, k: hits)], [diversify], k=2)
    >>> [hit.id for hit in pipeline.run("q").hits]
    ['a', 'b']
    """

    def __init__(
        self,
        vectors: Callable[[str, list[str]], tuple[Sequence[Any], Any]],
        *,
        lambda_mult: float = 0.7,
        limit: int | None = None,
        missing_vectors: str = "append",
        name: str = "mmr",
    ) -> None:
        """Check the settings.

        Args:
            vectors: The query and ids to one vector or `None` per id, and the query's vector.
                Without the latter relevance is the hits' scores, brought to [0, 1].
            lambda_mult: In [0, 1]; 1 is relevance alone, 0 is novelty alone.
            limit: How many hits come out at most; `None` orders all of them.
            missing_vectors: What happens to hits without a usable vector: `"append"` (last),
                `"drop"` or `"keep"` (similar to none).
            name: The stage's name.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        maximal_marginal_relevance(
            [], [], k=0, lambda_mult=lambda_mult, missing_vectors=missing_vectors
        )
        self.vectors = vectors
        self.lambda_mult = lambda_mult
        self.limit = limit if limit is None else check_count("limit", limit, minimum=1)
        self.missing_vectors = missing_vectors
        self.name = name

    def process(self, hits: Sequence[Hit], context: PipelineContext[Hit]) -> list[Hit]:
        """Order hits by their gain; their scores stay as they are."""
        if not hits:
            return []
        rows, asked = self.vectors(context.query, [hit.id for hit in hits])
        rows = fitting_vectors(rows, asked)
        scores = [context.items.score_of(hit) for hit in hits]
        picks = maximal_marginal_relevance(
            rows,
            scores if asked is None else cosines(rows, asked),
            k=len(hits) if self.limit is None else self.limit,
            lambda_mult=self.lambda_mult,
            normalize_relevance=asked is None,
            missing_vectors=self.missing_vectors,
        )
        for index, gain in zip(*picks, strict=True):
            context.notes[hits[index].id] = f"gain {gain:.4g}"
        return [replace(hits[i], rank=n) for n, i in enumerate(picks.indices, start=1)]
