"""Retrieval inside a scope that no question and no model can leave."""

from __future__ import annotations

from collections.abc import Generator
from copy import copy
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from llama_index.core.base.base_retriever import BaseRetriever

from easyrag_core import FilterPolicy, InvalidParameterError, filter_to_dict
from easyrag_core.errors import check_count
from easyrag_core.plans import adriven, driven
from llamaindex_easyrag._facts import scored_node
from llamaindex_easyrag._filters import in_scope
from llamaindex_easyrag.filters import FilterExtractor
from llamaindex_easyrag.query_transforms._transform import bundle_of
from llamaindex_easyrag.retrievers._channels import aretrieved
from llamaindex_easyrag.retrievers._scope import (
    PUSHED,
    checked_operators,
    checked_source,
    narrowed,
    tells_its_end,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from llama_index.core.base.llms.base import BaseLLM
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.indices.base import BaseIndex
    from llama_index.core.schema import NodeWithScore, QueryBundle
    from llama_index.core.vector_stores.types import MetadataFilters

    from easyrag_core import ExtractedConditions, Filter
    from easyrag_core.events import EventHandler

__all__ = ["ScopedRetriever"]

_DEEPER: Final = 4

_Plan: TypeAlias = Generator[BaseRetriever, "list[NodeWithScore] | None", "list[NodeWithScore]"]


class ScopedRetriever(BaseRetriever):
    """Finds only what a policy allows: the system's conditions always, a question's where it can.

    The system's conditions are never shown to a model and never relaxed. Business conditions
    come from a `FilterExtractor`, and only narrow; where nothing fulfils them, the question is
    searched without them. What a store cannot express is applied after retrieval, with more
    nodes fetched; every node that comes out has passed the whole filter here.
    """

    def __init__(
        self,
        source: BaseRetriever
        | BaseIndex[Any]
        | Callable[[int, MetadataFilters | None], BaseRetriever],
        policy: FilterPolicy,
        *,
        llm: BaseLLM | None = None,
        extractor: FilterExtractor | None = None,
        similarity_top_k: int = 10,
        max_fetch: int = 1000,
        operators: Collection[str] = PUSHED,
        relax: bool = True,
        on_event: EventHandler | None = None,
        callback_manager: CallbackManager | None = None,
        verbose: bool = False,
    ) -> None:
        """Check the settings.

        Args:
            source: An index; a retriever; or a function of `k` and metadata filters that makes
                one. Our own retrievers apply every condition while they search. Retrievers that
                are neither ours nor of a vector index are filtered afterwards, out of as many
                nodes as they give.
            policy: What must always hold, and what a question may ask for.
            llm: Draws business conditions; without it and without an extractor there are none.
            extractor: Draws them in place of `llm`; it must have the same policy.
            similarity_top_k: How many nodes are returned.
            max_fetch: The most nodes that are fetched to find these.
            operators: What the store of an index filters itself: of `OPERATORS`, and of `and`,
                `or`, `not`. The default is what all stores filter alike.
            relax: Search without business conditions where nothing fulfils them.
            on_event: Hears when the model is done without, and what is dropped.
            callback_manager: Receives the retrieval events.
            verbose: The framework's flag.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        self._source = checked_source(source)
        if not isinstance(policy, FilterPolicy):
            raise InvalidParameterError("policy", policy, "give a FilterPolicy")
        self._policy = policy
        if extractor is None and llm is not None:
            extractor = FilterExtractor(policy, llm, on_event=on_event)
        self._extractor = _checked_extractor(extractor, policy)
        self.similarity_top_k: int = check_count("similarity_top_k", similarity_top_k, minimum=1)
        self._max_fetch = check_count("max_fetch", max_fetch, minimum=1)
        self._operators = checked_operators(operators)
        self._relax = relax
        super().__init__(callback_manager=callback_manager, verbose=verbose)

    @property
    def policy(self) -> FilterPolicy:
        """What must always hold, and what a question may ask for."""
        return self._policy

    def restricted_to(self, system: Filter) -> ScopedRetriever:
        """Return a retriever with further system conditions, for one tenant or one user.

        Args:
            system: What must hold as well.

        Returns:
            A copy; this retriever stays as it is.

        Raises:
            InvalidParameterError: The business schema holds one of its fields.
        """
        made = copy(self)
        made._policy = self._policy.restricted_to(system)  # noqa: SLF001 - it is one of ours
        return made

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {} if self._extractor is None else {"extractor": self._extractor}

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        drawn = None if self._extractor is None else self._extractor.extract(query_bundle)
        return driven(self._plan(drawn), lambda one: one.retrieve(bundle_of(query_bundle)))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        drawn = None if self._extractor is None else await self._extractor.aextract(query_bundle)
        return await adriven(
            self._plan(drawn), lambda one: aretrieved(one, bundle_of(query_bundle))
        )

    # An index node leads to an object, and whatever that finds would come out unfiltered. The
    # source has followed those that it found; what they gave is filtered here.

    def _handle_recursive_retrieval(
        self, query_bundle: QueryBundle, nodes: list[NodeWithScore]
    ) -> list[NodeWithScore]:
        del query_bundle
        return nodes

    async def _ahandle_recursive_retrieval(
        self, query_bundle: QueryBundle, nodes: list[NodeWithScore]
    ) -> list[NodeWithScore]:
        del query_bundle
        return nodes

    def _plan(self, drawn: ExtractedConditions | None) -> _Plan:
        """Which retrievers to ask, one after the other, until there is enough."""
        attempts = self._policy.attempts(drawn) if self._relax else [self._policy.apply(drawn)]
        kept: list[NodeWithScore] = []
        for number, wanted in enumerate(attempts):
            kept = yield from self._passing(wanted)
            if kept:
                return [_told(one, drawn, relaxed=number > 0) for one in kept]
        return kept

    def _passing(self, wanted: Filter | None) -> _Plan:
        """Fetch deeper and deeper until enough nodes pass, or there are no more."""
        k, seen = self.similarity_top_k, -1
        fetch = k
        while True:
            found = (yield narrowed(self._source, wanted, fetch, self._operators)) or []
            kept = [one for one in found if wanted is None or in_scope(wanted, one.node)]
            ended = tells_its_end(self._source) and (len(found) < fetch or len(found) <= seen)
            if len(kept) >= k or ended or fetch >= self._max_fetch:
                return kept[:k]
            fetch, seen = min(fetch * _DEEPER, max(self._max_fetch, k)), len(found)


def _checked_extractor(extractor: Any, policy: FilterPolicy) -> FilterExtractor | None:
    if extractor is None:
        return None
    if not isinstance(extractor, FilterExtractor):
        raise InvalidParameterError("extractor", extractor, "give a FilterExtractor")
    if extractor.policy.business_schema != policy.business_schema:
        allowed = "its policy must have the same business schema"
        raise InvalidParameterError("extractor", extractor, allowed)
    return extractor


def _told(hit: NodeWithScore, drawn: ExtractedConditions | None, *, relaxed: bool) -> NodeWithScore:
    """Tell which of the question's conditions a node fulfils; the system's are nobody's business.

    Only what the question asked for is told.
    """
    if drawn is None or not drawn.conditions:
        return hit
    told = [filter_to_dict(condition) for condition in drawn.conditions]
    facts = {"filter": {"conditions": told, "relaxed": relaxed}}
    return scored_node(hit.node, hit.score, facts)
