"""The retrievers of both frameworks, each pair with the same passages and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import langchain_easyrag as lc
import llamaindex_easyrag as li
from easyrag_core import BM25Params, HybridConfig
from tests.parity.frameworks import (
    Found,
    WordEmbedding,
    WordEmbeddings,
    documents,
    found_documents,
    found_nodes,
    nodes,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ASKED", "PASSAGES", "QUERIES", "answers", "bm25s", "hybrids"]

PASSAGES = {
    "fuse": "Rankings are fused by rank, not by score.",
    "places": "Every chunk knows its exact place in the source.",
    "limit": "The size limit holds for every chunk, measured in tokens.",
    "fusion": "排序由名次融合而成，与分数无关。",
    "chunk": "每个片段都知道自己在原文中的位置。",
    "redis": "Redis介绍：内存数据库 v2.3",
    "twin": "Rankings are fused by rank, not by score.",
    "fox": "The quick brown fox jumps over the lazy dog.",
}
QUERIES = [
    "How are rankings fused?",
    "片段的位置",
    "redis",
    "chunk place rank",
    "nothing at all",
]

ASKED = ("invoke", "retrieve")
"""What each framework calls it."""


def answers(ask: Callable[..., Any], plugs: Any, query: str) -> tuple[list[Found], list[Found]]:
    """What LangChain's plug and what LlamaIndex's plug find."""
    by_document, by_node = plugs
    return (
        found_documents(ask(by_document, "invoke", query)),
        found_nodes(ask(by_node, "retrieve", query)),
    )


def bm25s(texts, k, **settings):
    """The two plugs; the core's parameters go by each framework's name for them."""
    params = settings.pop("params", BM25Params())
    return (
        lc.BM25Retriever.from_documents(documents(texts), k=k, bm25_params=params, **settings),
        li.BM25Retriever(nodes(texts), similarity_top_k=k, params=params, **settings),
    )


def hybrids(texts, k, **settings):
    """The two plugs over indexes of their own."""
    return (
        lc.HybridRetriever.from_documents(documents(texts), WordEmbeddings(), k=k, **settings),
        li.HybridRetriever(
            nodes(texts),
            embed_model=WordEmbedding(),
            similarity_top_k=k,
            config=HybridConfig(**settings),
        ),
    )
