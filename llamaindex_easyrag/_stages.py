"""LlamaIndex's node postprocessors as postprocessors of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from llama_index.core.postprocessor.types import BaseNodePostprocessor

from easyrag_core import InvalidParameterError, Rerank
from easyrag_core.ranking.hit_fusion import known_score
from llamaindex_easyrag._facts import facts_of, scored_node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.schema import NodeWithScore, QueryBundle

    from easyrag_core import PipelineContext, Postprocessor

__all__ = ["checked_parts", "stages_of"]


def checked_parts(parts: Any) -> list[Any]:
    """Refuse postprocessors that could only fail when data flow.

    Args:
        parts: What the user gave.

    Returns:
        Postprocessors of the framework and of the core.

    Raises:
        InvalidParameterError: It is no list of these.
    """
    if not isinstance(parts, Iterable) or isinstance(parts, str | BaseNodePostprocessor):
        raise InvalidParameterError("node_postprocessors", parts, "give a list")
    listed = list(parts)
    for part in listed:
        able = callable(getattr(part, "process", None))
        known = isinstance(part, BaseNodePostprocessor) or able
        if not known or isinstance(part, type):
            allowed = "give node postprocessors, or postprocessors of easyrag_core, not their class"
            raise InvalidParameterError("node_postprocessors", part, allowed)
    return listed


def stages_of(
    parts: Sequence[Any], query_bundle: QueryBundle
) -> list[Postprocessor[NodeWithScore]]:
    """Return parts of either kind as postprocessors.

    Args:
        parts: Node postprocessors, and postprocessors of the core; a `Rerank` may hold a
            reranker of the framework.
        query_bundle: What is asked; each part gets a copy.

    Returns:
        One postprocessor per part.
    """
    return [_stage_of(part, query_bundle) for part in parts]


def _stage_of(part: Any, query_bundle: QueryBundle) -> Any:
    if isinstance(part, BaseNodePostprocessor):
        return _FrameworkStage(part, query_bundle)
    if isinstance(part, Rerank) and isinstance(part.reranker, BaseNodePostprocessor):
        rerank = copy(part)
        rerank.reranker = _FrameworkStage(part.reranker, query_bundle)
        return rerank
    return part


@dataclass(frozen=True, slots=True)
class _FrameworkStage:
    """A node postprocessor within one request."""

    part: BaseNodePostprocessor
    query_bundle: QueryBundle

    @property
    def name(self) -> str:
        """What the part is called."""
        return type(self.part).__name__

    @property
    def limit(self) -> int | None:
        """The most nodes that come out, as the framework's parts name it."""
        limits = (getattr(self.part, name, None) for name in ("top_n", "top_k"))
        return next((n for n in limits if isinstance(n, int) and not isinstance(n, bool)), None)

    def process(
        self, hits: Sequence[NodeWithScore], context: PipelineContext[NodeWithScore]
    ) -> list[NodeWithScore]:
        """Run the part on copies: some write into the nodes that they are given."""
        given = _copies(hits)
        found = self.part.postprocess_nodes(given, query_bundle=replace(self.query_bundle))
        return _recognised(context.items.checked(found), hits, context)

    async def aprocess(
        self, hits: Sequence[NodeWithScore], context: PipelineContext[NodeWithScore]
    ) -> list[NodeWithScore]:
        """Run the part: the async twin of `process`."""
        given = _copies(hits)
        found = await self.part.apostprocess_nodes(given, query_bundle=replace(self.query_bundle))
        return _recognised(context.items.checked(found), hits, context)


def _copies(hits: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    return [scored_node(hit.node, hit.score, {}) for hit in hits]


def _recognised(
    found: Sequence[NodeWithScore],
    hits: Sequence[NodeWithScore],
    context: PipelineContext[NodeWithScore],
) -> list[NodeWithScore]:
    """Write new scores into the facts, and give facts back to nodes that lost them."""
    by_id = {hit.node.node_id: hit for hit in hits}
    recognised = []
    for one in found:
        before = by_id.get(one.node.node_id)
        old = {} if before is None else facts_of(before.node)
        facts = {**old, **facts_of(one.node), "score": known_score(one.score)}
        known = one if facts == facts_of(one.node) else scored_node(one.node, one.score, facts)
        if note := _note(facts, old):
            context.notes[one.node.node_id] = note
        recognised.append(known)
    return recognised


def _note(facts: dict[str, Any], old: dict[str, Any]) -> str:
    if (mmr := facts.get("mmr")) is not None and mmr != old.get("mmr"):
        return f"gain {mmr['gain']:.4g}"
    if (children := facts.get("children")) and children != old.get("children"):
        return f"stands for {len(children)} children"
    score = facts.get("score")
    return f"score {score:.4g}" if score is not None and score != old.get("score") else ""
