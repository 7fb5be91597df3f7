"""What FusionRetriever and HybridRetriever share: settings of a fusion, and its result."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index_instrumentation import get_dispatcher

from easyrag_core import FusedItem, InvalidParameterError, reciprocal_rank_fusion, score_fusion
from llamaindex_easyrag._facts import facts_of_fused, scored_node

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from llama_index.core.schema import NodeWithScore

__all__ = ["Fusion", "checked_weights", "fused_nodes", "reported", "with_failed"]

_logger = logging.getLogger(__name__)
_dispatcher = get_dispatcher(__name__)


@dataclass(frozen=True, slots=True)
class Fusion:
    """How rankings become one.

    Attributes:
        by: `"rrf"` by rank, `"score"` by score.
        normalization: For scores: `"min_max"`, `"z_score"` or `"none"`.
        combine: For scores: `"sum"`, `"max"` or `"mnz"`.
        weights: One per ranking; `None` weighs all the same.
        rank_constant: For ranks.
    """

    by: str = "rrf"
    normalization: str = "min_max"
    combine: str = "sum"
    weights: tuple[float, ...] | None = None
    rank_constant: float = 60

    def fuse(
        self, rankings: Sequence[Sequence[NodeWithScore]], *, k: int | None = None
    ) -> list[FusedItem[str]]:
        """Fuse rankings of nodes; a node is known by its id.

        Args:
            rankings: Scored nodes, best first.
            k: How many are wanted; `None` gives all.

        Returns:
            Fused ids, best first.

        Raises:
            InvalidParameterError: A setting is not allowed.
        """
        if self.by == "rrf":
            return reciprocal_rank_fusion(
                [[found.node.id_ for found in ranking] for ranking in rankings],
                weights=self.weights,
                rank_constant=self.rank_constant,
                k=k,
            )
        return score_fusion(
            [_scored_ids(ranking) for ranking in rankings],
            weights=self.weights,
            normalization=self.normalization,
            combine=self.combine,
            unscored="append",
            k=k,
        )


def _scored_ids(ranking: Sequence[NodeWithScore]) -> list[tuple[str, float | None]]:
    scores = [found.score for found in ranking]
    if ranking and all(score is None for score in scores):
        _logger.warning("A ranking gives no scores: its ranks are taken in their place.")
        scores = [-float(rank) for rank in range(len(ranking))]
    return [(found.node.id_, score) for found, score in zip(ranking, scores, strict=True)]


def checked_weights(
    name: str, weights: Sequence[float] | None, number: int
) -> tuple[float, ...] | None:
    """Refuse weights that could only fail, or find nothing, later.

    Args:
        name: The parameter's name, for the message.
        weights: What the caller gave.
        number: How many there must be.

    Returns:
        The weights; `None` if there are none.

    Raises:
        InvalidParameterError: They are not as many finite numbers of at least 0, not all 0.
    """
    if weights is None:
        return None
    given: Any = weights
    told = tuple(given) if isinstance(given, Iterable) else ()
    numbers = all(isinstance(weight, Real) and math.isfinite(weight) for weight in told)
    if len(told) != number or not numbers or not any(told) or min(told) < 0:
        allowed = f"give {number} finite numbers of at least 0, not all of them 0"
        raise InvalidParameterError(name, weights, allowed)
    return told


def reported(errors: Mapping[str, BaseException]) -> dict[str, str]:
    """Report failed channels as events.

    Args:
        errors: Channel name to its error.

    Returns:
        The errors as text, for the facts of those nodes that were found all the same.
    """
    for error in errors.values():
        _dispatcher.event(ExceptionEvent(exception=error))
    return {name: repr(error) for name, error in errors.items()}


def with_failed(
    nodes: list[NodeWithScore], errors: Mapping[str, BaseException]
) -> list[NodeWithScore]:
    """Report failed channels as events, and in the facts of those nodes that were found.

    Args:
        nodes: What the other channels found.
        errors: Channel name to its error.

    Returns:
        The nodes; copies, where a channel failed.
    """
    failed = reported(errors)
    if not failed:
        return nodes
    return [scored_node(one.node, one.score, {"failed": failed}) for one in nodes]


def fused_nodes(
    rankings: Mapping[str, Sequence[NodeWithScore]], fusion: Fusion, *, k: int
) -> list[NodeWithScore]:
    """Fuse what the channels gave.

    Args:
        rankings: Scored nodes, best first, by the name of the channel that gave them.
        fusion: The settings.
        k: How many nodes are wanted.

    Returns:
        Copies of the nodes with fused scores; each carries its rank and raw score in every
        channel.
    """
    nodes = []
    for rank, item in enumerate(fusion.fuse(list(rankings.values()), k=k), start=1):
        sources = {
            name: None if place is None else _at(ranking, item.key, place)
            for (name, ranking), place in zip(rankings.items(), item.ranks, strict=True)
        }
        ranked = [(place, name) for name, place in zip(rankings, item.ranks, strict=True) if place]
        # The first of those that rank it best: `min` keeps the order of the channels.
        best = sources[min(ranked, key=itemgetter(0))[1]]
        facts = facts_of_fused(item, rank, sources)
        nodes += [] if best is None else [scored_node(best.node, item.score, facts)]
    return nodes


def _at(ranking: Sequence[NodeWithScore], node_id: str, place: int) -> NodeWithScore | None:
    """Find a node by its rank; a ranking that was sorted by score first is searched."""
    if place <= len(ranking) and ranking[place - 1].node.id_ == node_id:
        return ranking[place - 1]
    return next((found for found in ranking if found.node.id_ == node_id), None)
