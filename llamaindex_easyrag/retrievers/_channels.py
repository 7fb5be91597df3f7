"""Retrievers as channels of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from llama_index.core.base.base_retriever import BaseRetriever

from easyrag_core import Channel, InvalidParameterError
from easyrag_core.pipeline import NO_LIMIT, in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from llama_index.core.schema import NodeWithScore, QueryBundle

__all__ = ["aretrieved", "checked_retrievers", "child_channels", "query_channels"]


def checked_retrievers(retrievers: Any) -> list[BaseRetriever]:
    """Refuse what cannot be asked.

    Args:
        retrievers: What the user gave.

    Returns:
        At least one retriever.

    Raises:
        InvalidParameterError: It is no list of retrievers, or empty.
    """
    if isinstance(retrievers, str) or not isinstance(retrievers, Iterable):
        raise InvalidParameterError("retrievers", retrievers, "give a list of retrievers")
    children: list[BaseRetriever] = list(retrievers)
    if not children:
        raise InvalidParameterError("retrievers", children, "give at least one")
    for child in children:
        if not (hasattr(child, "retrieve") and hasattr(child, "aretrieve")):
            allowed = "give retrievers; of an index take index.as_retriever()"
            raise InvalidParameterError("retrievers", child, allowed)
    return children


def child_channels(
    children: Sequence[BaseRetriever],
    names: Sequence[str],
    query_bundle: QueryBundle,
    *,
    weights: Sequence[float] | None,
    timeouts: Sequence[float | None],
    k: int = NO_LIMIT,
) -> list[Channel[NodeWithScore]]:
    """Make one channel per retriever.

    Args:
        children: The retrievers.
        names: One per child.
        query_bundle: What is asked.
        weights: One per child; 1 each if not given.
        timeouts: One per child.
        k: How many nodes of each answer are taken: how many it gives is a retriever's own
            setting.

    Returns:
        The channels, in the order of the children.
    """
    votes = [1.0] * len(children) if weights is None else weights
    return [
        Channel(name, asked.search, k=k, weight=vote, timeout=timeout, asearch=asked.asearch)
        for name, asked, vote, timeout in zip(
            names, [_Child(child, query_bundle) for child in children], votes, timeouts, strict=True
        )
    ]


def query_channels(
    child: BaseRetriever,
    query_bundles: Mapping[str, QueryBundle],
    *,
    timeout: float | None,
    weights: Sequence[float] | None = None,
) -> list[Channel[NodeWithScore]]:
    """Make one channel per query, all of one retriever.

    Args:
        child: The retriever.
        query_bundles: What is asked, by the channel's name.
        timeout: For each query.
        weights: One per query; 1 each if not given.

    Returns:
        The channels, in the order of the queries.
    """
    votes = [1.0] * len(query_bundles) if weights is None else weights
    asked = [_Child(child, bundle) for bundle in query_bundles.values()]
    return [
        Channel(name, one.search, k=NO_LIMIT, weight=vote, timeout=timeout, asearch=one.asearch)
        for name, one, vote in zip(query_bundles, asked, votes, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Child:
    """A retriever within one request."""

    retriever: BaseRetriever
    query_bundle: QueryBundle

    def search(self, _query: str, _k: int) -> list[NodeWithScore]:
        # Each gets a bundle of its own: the framework's retrievers write embeddings into it.
        return self.retriever.retrieve(replace(self.query_bundle))

    async def asearch(self, _query: str, _k: int) -> list[NodeWithScore]:
        return await aretrieved(self.retriever, replace(self.query_bundle))


async def aretrieved(retriever: BaseRetriever, query_bundle: QueryBundle) -> list[NodeWithScore]:
    """Ask a retriever without standing in the event loop's way.

    Args:
        retriever: Any; one without an async form goes into a thread.
        query_bundle: The query, which the retriever may write into.

    Returns:
        What it finds.
    """
    if getattr(type(retriever), "_aretrieve", None) is BaseRetriever._aretrieve:  # noqa: SLF001
        # What the framework gives those that have none would block the event loop.
        return await in_thread(partial(retriever.retrieve, query_bundle))
    return await retriever.aretrieve(query_bundle)
