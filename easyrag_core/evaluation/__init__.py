"""How good retrieval is: metrics, intervals, comparisons, tuning."""

from easyrag_core.evaluation._asking import (
    AsyncRetrieve,
    Found,
    HasHits,
    Retrieve,
    acompare,
    compare,
)
from easyrag_core.evaluation._bootstrap import Bootstrap, Estimate
from easyrag_core.evaluation._comparison import Comparison, compare_runs
from easyrag_core.evaluation._evaluation import METRICS, Evaluation, evaluate
from easyrag_core.evaluation._judged import Qrels, Ranking, Relevant, Run
from easyrag_core.evaluation._metrics import (
    average_precision,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
)
from easyrag_core.evaluation._tuning import Settings, Trial, Tuning, tune

__all__ = [
    "METRICS",
    "AsyncRetrieve",
    "Bootstrap",
    "Comparison",
    "Estimate",
    "Evaluation",
    "Found",
    "HasHits",
    "Qrels",
    "Ranking",
    "Relevant",
    "Retrieve",
    "Run",
    "Settings",
    "Trial",
    "Tuning",
    "acompare",
    "average_precision",
    "compare",
    "compare_runs",
    "evaluate",
    "ndcg_at_k",
    "precision_at_k",
    "recall_at_k",
    "reciprocal_rank",
    "tune",
]
