"""Several queries of one request: a bundle for each, and what each of them found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from llamaindex_easyrag._facts import facts_of, scored_node
from llamaindex_easyrag._fusing import with_failed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from llama_index.core.schema import NodeWithScore, QueryBundle

    from easyrag_core import PipelineResult

__all__ = ["query_bundles", "with_queries"]


def query_bundles(
    query_bundle: QueryBundle,
    queries: Sequence[str],
    vectors: Sequence[list[float]] | None = None,
) -> dict[str, QueryBundle]:
    """Make one bundle per query; that of the question itself stays whole.

    Args:
        query_bundle: The question.
        queries: What is searched.
        vectors: One per query, if they are known.

    Returns:
        Bundles by the names of their channels.
    """
    bundles = {}
    for place, query in enumerate(queries):
        told = query_bundle
        if query != query_bundle.query_str:
            told = replace(told, query_str=query, custom_embedding_strs=None, embedding=None)
        if vectors is not None and told.embedding is None and told.custom_embedding_strs is None:
            told = replace(told, embedding=vectors[place])
        # The texts do not name the channels: names stand in logs.
        bundles[f"query {place + 1}"] = told
    return bundles


def with_queries(
    result: PipelineResult[NodeWithScore], bundles: Mapping[str, QueryBundle]
) -> list[NodeWithScore]:
    """Tell with each node which queries found it, and which failed.

    Args:
        result: What a pipeline of these queries found.
        bundles: As `query_bundles` made them.

    Returns:
        Copies of the nodes.
    """
    hits = []
    for hit in result.hits:
        found = facts_of(hit.node).get("channels", {})
        queries = [bundle.query_str for name, bundle in bundles.items() if name in found]
        hits.append(scored_node(hit.node, hit.score, {"queries": queries}))
    return with_failed(hits, result.errors)
