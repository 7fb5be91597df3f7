"""Rankings into one: fusion, diversity, merging."""

from easyrag_core.ranking.cosine import cosines, fitting_vectors
from easyrag_core.ranking.expansion import ExpandedItem, expand_to_parents
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
    "ExpandedItem",
    "FusedItem",
    "MMRResult",
    "MergedItem",
    "auto_merge",
    "cosines",
    "expand_to_parents",
    "fitting_vectors",
    "lexical_vectors",
    "maximal_marginal_relevance",
    "reciprocal_rank_fusion",
    "reciprocal_rank_scores",
    "score_fusion",
]
