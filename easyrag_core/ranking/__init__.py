"""Rankings into one: fusion, diversity, merging."""

from easyrag_core.ranking.fusion import (
    FusedItem,
    reciprocal_rank_fusion,
    reciprocal_rank_scores,
    score_fusion,
)
from easyrag_core.ranking.lexical_vectors import lexical_vectors
from easyrag_core.ranking.merging import MergedItem, auto_merge
from easyrag_core.ranking.mmr import MMRResult, maximal_marginal_relevance

__all__ = [
    "FusedItem",
    "MMRResult",
    "MergedItem",
    "auto_merge",
    "lexical_vectors",
    "maximal_marginal_relevance",
    "reciprocal_rank_fusion",
    "reciprocal_rank_scores",
    "score_fusion",
]
