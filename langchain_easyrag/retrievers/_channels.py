"""Retrievers as channels of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from easyrag_core import Channel
from easyrag_core.pipeline import NO_LIMIT
from langchain_easyrag._given import as_documents
from langchain_easyrag.retrievers._children import channel_names, request_size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.documents import Document
    from langchain_core.retrievers import RetrieverLike
    from langchain_core.runnables import RunnableConfig

__all__ = ["child_channels"]


def child_channels(
    children: Sequence[RetrieverLike],
    config_of: Callable[[str], RunnableConfig],
    *,
    weights: Sequence[float] | None,
    timeouts: Sequence[float | None],
    names: Sequence[str] | None = None,
    k: int | None = None,
) -> list[Channel[Document]]:
    """Make one channel per retriever.

    Args:
        children: Retrievers, or any runnables from a query to documents.
        config_of: Gives the config of a child by its tag.
        weights: One per child; 1 each if not given.
        timeouts: One per child.
        names: One per child. Default: what they are called.
        k: How many documents each is asked for, if it takes a `k` per call. `None` asks for as
            many as it gives by itself, and takes all.

    Returns:
        The channels, in the order of the children.
    """
    told = channel_names(children) if names is None else names
    votes = [1.0] * len(children) if weights is None else weights
    channels = []
    for number, child in enumerate(children):
        asked = _Child(child, config_of, f"retriever_{number + 1}", sized=k is not None)
        channels.append(
            Channel(
                told[number],
                asked.search,
                k=NO_LIMIT if k is None else k,
                weight=votes[number],
                timeout=timeouts[number],
                asearch=asked.asearch,
            )
        )
    return channels


@dataclass(frozen=True, slots=True)
class _Child:
    """A retriever within one request."""

    retriever: RetrieverLike
    config_of: Callable[[str], RunnableConfig]
    tag: str
    sized: bool

    def search(self, query: str, k: int) -> list[Document]:
        return as_documents(self.retriever.invoke(query, self.config_of(self.tag), **self._size(k)))

    async def asearch(self, query: str, k: int) -> list[Document]:
        return as_documents(
            await self.retriever.ainvoke(query, self.config_of(self.tag), **self._size(k))
        )

    def _size(self, k: int) -> dict[str, int]:
        return request_size(self.retriever, k) if self.sized else {}
