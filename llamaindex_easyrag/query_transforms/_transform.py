"""What all transforms share: bundles in and out, and an async twin for every call."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from llama_index.core.indices.query.query_transform.base import BaseQueryTransform
from llama_index.core.memory import BaseMemory
from llama_index.core.schema import QueryBundle

from easyrag_core import InvalidParameterError
from easyrag_core.pipeline import in_thread
from llamaindex_easyrag._conversation import said_in, spoken
from llamaindex_easyrag._step import QueryStep

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from llama_index.core.base.llms.base import BaseLLM

    from easyrag_core import Message
    from easyrag_core.events import EventHandler
    from llamaindex_easyrag._step import Plan

__all__ = [
    "HISTORY_KEY",
    "ModelTransform",
    "arun_transform",
    "asked_bundle",
    "bundle_of",
    "checked_memory",
    "transformed",
    "with_history",
]

Out = TypeVar("Out")

HISTORY_KEY = "chat_history"
"""Where in a transform's metadata the conversation is."""


def bundle_of(query: str | QueryBundle) -> QueryBundle:
    """Return a query as a bundle.

    Args:
        query: A text or a bundle.

    Returns:
        A bundle of the caller's own.

    Raises:
        InvalidParameterError: It is neither.
    """
    given: Any = query
    if isinstance(given, QueryBundle):
        return replace(given)
    if not isinstance(given, str):
        raise InvalidParameterError("query", query, "give a text or a QueryBundle")
    return QueryBundle(given)


def asked_bundle(query: str | QueryBundle) -> QueryBundle:
    """Return a bundle as the framework's `run` makes it: a text is embedded even if it is empty."""
    bundle = bundle_of(query)
    return replace(bundle, custom_embedding_strs=[query]) if isinstance(query, str) else bundle


def transformed(bundle: QueryBundle, query: str, embedded: Sequence[str]) -> QueryBundle:
    """Return a bundle with other texts, and without the vector of the texts before.

    Args:
        bundle: The bundle; it is left as it is.
        query: Its text.
        embedded: What is embedded.

    Returns:
        A copy; with its vector where nothing changed.
    """
    if query == bundle.query_str and list(embedded) == bundle.embedding_strs:
        return replace(bundle)
    return replace(bundle, query_str=query, custom_embedding_strs=list(embedded), embedding=None)


def checked_memory(memory: Any) -> BaseMemory | None:
    """Refuse what is no memory."""
    if memory is not None and not isinstance(memory, BaseMemory):
        raise InvalidParameterError("memory", memory, "give a memory of LlamaIndex")
    return memory


async def arun_transform(
    transform: Any, query_bundle: QueryBundle, metadata: dict[str, Any] | None
) -> QueryBundle:
    """Run a transform without standing in the event loop's way.

    Args:
        transform: Ours, or any of the framework, which goes into a thread.
        query_bundle: The query.
        metadata: For the transform.

    Returns:
        The transformed query.
    """
    if hasattr(transform, "arun"):
        found: QueryBundle = await transform.arun(query_bundle, metadata)
        return found
    return await in_thread(partial(transform.run, query_bundle, metadata))


class ModelTransform(QueryStep, BaseQueryTransform):
    """A transform that may ask a model."""

    def __init__(
        self,
        llm: BaseLLM | None,
        *,
        memory: BaseMemory | None = None,
        on_error: str,
        on_event: EventHandler | None,
    ) -> None:
        """Check the settings; see the transforms."""
        super().__init__(llm, on_error=on_error, on_event=on_event)
        self._memory = checked_memory(memory)

    async def arun(
        self, query_bundle_or_str: str | QueryBundle, metadata: dict[str, Any] | None = None
    ) -> QueryBundle:
        """Transform a query: the async twin of `run`.

        Args:
            query_bundle_or_str: The query.
            metadata: May hold the conversation under `chat_history`.

        Returns:
            The transformed query.
        """
        return await self._arun(asked_bundle(query_bundle_or_str), metadata or {})

    async def _arun(self, query_bundle: QueryBundle, metadata: dict[str, Any]) -> QueryBundle:
        question = query_bundle.query_str
        history = await self._ahistory(metadata.get(HISTORY_KEY))
        return self._bundle(
            query_bundle, await self._adrive(self._plan(question, history), question)
        )

    def _transform(self, query_bundle: QueryBundle, metadata: Mapping[str, Any]) -> QueryBundle:
        result = self._result(query_bundle.query_str, metadata.get(HISTORY_KEY))
        return self._bundle(query_bundle, result)

    def _result(self, query: str | QueryBundle, chat_history: Any) -> Any:
        question = bundle_of(query).query_str
        return self._drive(self._plan(question, self._history(chat_history)), question)

    async def _aresult(self, query: str | QueryBundle, chat_history: Any) -> Any:
        question = bundle_of(query).query_str
        history = await self._ahistory(chat_history)
        return await self._adrive(self._plan(question, history), question)

    def _history(self, chat_history: Any) -> list[Message]:
        # An empty conversation that was given is one, too.
        if chat_history is None and self._memory is not None:
            return spoken(self._memory.get())
        return spoken(chat_history)

    async def _ahistory(self, chat_history: Any) -> list[Message]:
        if chat_history is None and self._memory is not None:
            return spoken(await self._memory.aget())
        return spoken(chat_history)

    def _plan(self, question: str, history: Sequence[Message]) -> Plan[Any]:
        """All that the transform is, but for the waiting."""
        raise NotImplementedError

    def _bundle(self, query_bundle: QueryBundle, result: Any) -> QueryBundle:
        """The query that a result makes."""
        raise NotImplementedError


def with_history(
    variables: Mapping[str, str], question: str, window: Iterable[Message]
) -> dict[str, str]:
    """Return what fills the placeholders, ours and the framework's."""
    return {**variables, "query_str": question, "chat_history": said_in(window)}
