"""Channels in parallel, fused, and postprocessors in series."""

from easyrag_core.pipeline._channels import (
    ChannelOutcome,
    arun_channels,
    distinct_names,
    in_thread,
    run_channels,
)
from easyrag_core.pipeline._diversity import Diversify
from easyrag_core.pipeline._items import HitItems, Items
from easyrag_core.pipeline._parents import AutoMerge, ParentExpansion
from easyrag_core.pipeline._pipeline import NO_LIMIT, PipelineResult, RetrievalPipeline
from easyrag_core.pipeline._reranking import Rerank
from easyrag_core.pipeline._selecting import Dedupe, EvidenceGate, ScoreThreshold
from easyrag_core.pipeline._stage import Channel, PipelineContext, Postprocessor, aprocessed

__all__ = [
    "NO_LIMIT",
    "AutoMerge",
    "Channel",
    "ChannelOutcome",
    "Dedupe",
    "Diversify",
    "EvidenceGate",
    "HitItems",
    "Items",
    "ParentExpansion",
    "PipelineContext",
    "PipelineResult",
    "Postprocessor",
    "Rerank",
    "RetrievalPipeline",
    "ScoreThreshold",
    "aprocessed",
    "arun_channels",
    "distinct_names",
    "in_thread",
    "run_channels",
]
