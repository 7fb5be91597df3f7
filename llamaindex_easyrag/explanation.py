"""Why nodes were found, and what fell out on the way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from llama_index.core.schema import NodeWithScore

from easyrag_core import InvalidParameterError, StageFacts, explanation
from easyrag_core.explanation import Retrieved, hit_of_facts
from llamaindex_easyrag._facts import facts_of
from llamaindex_easyrag._sources import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from easyrag_core import Explanation

__all__ = ["explain"]


def explain(
    found: Iterable[NodeWithScore] | Retrieved[NodeWithScore],
    *,
    texts: Mapping[str, str] | None = None,
    stages: Iterable[StageFacts] | None = None,
    query: str | None = None,
) -> Explanation:
    """Explain a result of ours: why each node is there, and what fell out where.

    Args:
        found: Nodes, best first, with what was found out about them under
            `metadata["easyrag"]`; or a pipeline's result, which knows its stages.
        texts: Id to text of what else may be named, such as what fell out on the way.
        stages: What each stage did, in order. Default: the result's own.
        query: What was asked.

    Returns:
        The explanation; show it in a notebook, or print it.

    Raises:
        InvalidParameterError: It is no list of scored nodes.

    >>> from llama_index.core.schema import TextNode
    >>> from llamaindex_easyrag import BM25Retriever
    >>> words = BM25Retriever([TextNode(text="Ranks are fused.", id_="d1")])
    >>> print(explain(words.retrieve("ranks"), query="ranks"))
    1 passage for: ranks
    #   score  bm25        passage
    1  0.2877  1 (0.2877)  Ranks are fused.
    """
    if isinstance(found, Retrieved):
        stages = found.stages if stages is None else stages
        found = found.hits
    nodes = _checked(found)
    if stages is None and nodes:
        failed = facts_of(nodes[0].node).get("failed", {})
        stages = [StageFacts(name, error=error) for name, error in failed.items()]
    hits = [
        # The node's own score is the last one that anybody gave it.
        hit_of_facts(one.node.node_id, rank, {**facts_of(one.node), "score": one.score})
        for rank, one in enumerate(nodes, start=1)
    ]
    own = {one.node.node_id: text_of(one.node) for one in nodes}
    return explanation.explain(hits, texts={**(texts or {}), **own}, stages=stages, query=query)


def _checked(found: Any) -> list[NodeWithScore]:
    nodes = list(found) if isinstance(found, Iterable) else [found]
    for at, one in enumerate(nodes):
        if not isinstance(one, NodeWithScore):
            raise InvalidParameterError(f"found[{at}]", one, "give a list of NodeWithScore")
    return nodes
