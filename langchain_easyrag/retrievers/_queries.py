"""Several queries for one retriever, at once, as channels of the pipeline."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from easyrag_core import Channel, RetrievalPipeline, score_fusion
from easyrag_core.pipeline import NO_LIMIT
from langchain_easyrag._convert import facts_of, facts_of_fused, with_facts
from langchain_easyrag._document_items import DocumentItems
from langchain_easyrag._given import as_documents

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from langchain_core.documents import Document
    from langchain_core.retrievers import RetrieverLike
    from langchain_core.runnables import RunnableConfig

    from easyrag_core import FusedItem, WeightedQuery

__all__ = ["QueryItems", "queries_pipeline"]

_logger = logging.getLogger(__name__)


def queries_pipeline(
    retriever: RetrieverLike,
    queries: Sequence[WeightedQuery],
    config_of: Callable[[str], RunnableConfig],
    *,
    items: QueryItems,
    rank_constant: float = 60,
    timeout: float | None = None,
    strict: bool = False,
) -> RetrievalPipeline[Document]:
    """Make one channel per query.

    Args:
        retriever: Who is asked with each of them.
        queries: Different texts.
        config_of: Gives the config of a call by its tag.
        items: How the answers are merged.
        rank_constant: For `"rrf"`.
        timeout: Seconds for each query.
        strict: Raise the error of the first query that fails.

    Returns:
        The pipeline, to be run with any text: each channel has its own.
    """
    channels = []
    for name, query in zip(items.queries, queries, strict=True):
        asked = _Query(retriever, query.text, config_of, name.replace(" ", "_"))
        channels.append(
            Channel(
                name,
                asked.search,
                k=NO_LIMIT,
                weight=query.weight,
                timeout=timeout,
                asearch=asked.asearch,
            )
        )
    return RetrievalPipeline(channels, rank_constant=rank_constant, items=items, strict=strict)


@dataclass(frozen=True, slots=True)
class _Query:
    """One query within one request."""

    retriever: RetrieverLike
    text: str
    config_of: Callable[[str], RunnableConfig]
    tag: str

    def search(self, _: str, __: int) -> list[Document]:
        return as_documents(self.retriever.invoke(self.text, self.config_of(self.tag)))

    async def asearch(self, _: str, __: int) -> list[Document]:
        return as_documents(await self.retriever.ainvoke(self.text, self.config_of(self.tag)))


@dataclass(frozen=True, slots=True)
class QueryItems(DocumentItems):
    """Documents that one retriever found for several queries.

    All scores are of one scorer, so they need not be brought to one scale.

    Attributes:
        queries: Channel name to text.
        merge: `"rrf"` fuses ranks; `"max"` and `"sum"` take the best and the sum of the scores.
        normalization: For `"sum"`, as in `score_fusion`.
    """

    queries: Mapping[str, str] = field(default_factory=dict)
    merge: str = "rrf"
    normalization: str = "none"

    @classmethod
    def of(cls, queries: Sequence[WeightedQuery], **settings: Any) -> QueryItems:
        """Name the queries by their numbers."""
        named = {f"query {at}": query.text for at, query in enumerate(queries, start=1)}
        return cls(queries=named, **settings)

    @override
    def fused(
        self,
        rankings: Mapping[str, Sequence[Document]],
        *,
        fusion: str,
        weights: Sequence[float],
        rank_constant: float,
        k: int,
    ) -> list[Document]:
        """Merge what the queries found."""
        if self.merge == "rrf":
            # Not `super()`: a class with slots is made anew, and the short form knows the old.
            return DocumentItems.fused(
                self, rankings, fusion=fusion, weights=weights, rank_constant=rank_constant, k=k
            )
        self.know(list(rankings.values()))
        found = {
            name: {self.id_of(document): document for document in reversed(ranking)}
            for name, ranking in rankings.items()
        }
        merged: list[FusedItem[Hashable]] = score_fusion(
            [self._scores(ranking) for ranking in rankings.values()],
            weights=weights,
            normalization=self.normalization,
            combine=self.merge,
            k=k,
        )
        documents = []
        for rank, item in enumerate(merged, start=1):
            sources = {name: by_id.get(str(item.key)) for name, by_id in found.items()}
            best = next(filter(None, sources.values()))
            documents.append(with_facts(best, facts_of_fused(item, rank, sources)))
        return documents

    def _scores(self, ranking: Sequence[Document]) -> list[tuple[Hashable, float | None]]:
        scores = [self.score_of(document) for document in ranking]
        if ranking and all(score is None for score in scores):
            _logger.warning("The retriever gives no scores: ranks are taken in their place.")
            scores = [1 / rank for rank in range(1, len(ranking) + 1)]
        return [(self.id_of(d), score) for d, score in zip(ranking, scores, strict=True)]

    @override
    def finished(
        self, items: Sequence[Document], reasons: Mapping[str, Sequence[str]]
    ) -> list[Document]:
        """Say which queries found each document."""
        told = []
        for document in DocumentItems.finished(self, items, reasons):
            facts = facts_of(document)
            by = [self.queries[name] for name in facts.get("channels", {})]
            told.append(with_facts(document, {**facts, "queries": by}))
        return told
