"""What a retriever owes the runnables that it calls."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever, RetrieverLike
from langchain_core.runnables import Runnable, ensure_config, patch_config
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.runnables.utils import get_unique_config_specs
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
from typing_extensions import override

from easyrag_core import HybridIndex, InvalidParameterError
from easyrag_core.pipeline import distinct_names
from langchain_easyrag._given import is_listing
from langchain_easyrag._query_vectors import one_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableConfig
    from langchain_core.runnables.utils import ConfigurableFieldSpec

__all__ = [
    "ParentRetriever",
    "channel_names",
    "child_config",
    "listed_children",
    "request_size",
    "unwrapped",
    "vector_sources",
]

_ASKED = (
    "give a list of at least one retriever or runnable; of a vector store take as_retriever(), "
    "and put a function into a RunnableLambda"
)


class ParentRetriever(BaseRetriever):
    """A retriever that asks others, and hands its caller's whole config on to them.

    `BaseRetriever` gives only the callbacks to `_get_relevant_documents`; tags, metadata and
    configurable values of a direct call would end there.
    """

    def asked(self) -> Sequence[RetrieverLike]:
        """Return the runnables that are asked."""
        raise NotImplementedError

    @property
    @override
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The configurable fields of all children."""
        return get_unique_config_specs(
            spec for child in self.asked() for spec in child.config_specs
        )

    @override
    def invoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Retrieve documents.

        Args:
            input: The query.
            config: Goes on to every child as a whole.
            **kwargs: Per-call settings, such as `k`.

        Returns:
            The documents, best first.
        """
        config = ensure_config(config)
        with one_request():
            return super().invoke(input, config, parent_config=config, **kwargs)

    @override
    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Retrieve documents: the async twin of `invoke`."""
        config = ensure_config(config)
        with one_request():
            return await super().ainvoke(input, config, parent_config=config, **kwargs)


def child_config(
    config: RunnableConfig | None,
    run_manager: CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun,
    tag: str | None = None,
) -> RunnableConfig:
    """Return the caller's config with the callbacks of a child run."""
    return patch_config(config, callbacks=run_manager.get_child(tag))


def channel_names(children: Iterable[RetrieverLike]) -> list[str]:
    """Return one name per child, numbered where two are called alike.

    It is the `run_name` given by `with_config`, else the name of the runnable itself.
    """
    names = []
    for child in children:
        given = child.config.get("run_name") if isinstance(child, RunnableBindingBase) else None
        names.append(given or unwrapped(child).get_name())
    return distinct_names(names)


def listed_children(retrievers: Any, names: Sequence[str] | None = None) -> dict[str, list[Any]]:
    """Return retrievers as a list, with their names where these are given.

    Args:
        retrievers: A list of retrievers or other runnables, or a mapping that names them.
        names: Names for those of a list.

    Returns:
        The fields `retrievers` and, if there are any, `names`.

    Raises:
        InvalidParameterError: There is none, one is no runnable, or there are more or fewer
            names than retrievers.
    """
    named = isinstance(retrievers, Mapping)
    children = list(retrievers.values() if named else retrievers if is_listing(retrievers) else ())
    if not children:
        raise InvalidParameterError("retrievers", retrievers, _ASKED)
    for child in children:
        if not isinstance(child, Runnable):
            raise InvalidParameterError("retrievers", child, _ASKED)
    if named and names is not None:
        raise InvalidParameterError("names", names, "the retrievers have names already")
    told = list(retrievers) if named else names
    if told is None:
        return {"retrievers": children}
    if not is_listing(told) or len(list(told)) != len(children):
        raise InvalidParameterError("names", told, "give one per retriever")
    return {"retrievers": children, "names": list(told)}


def unwrapped(runnable: Any) -> Any:
    """Return what stands inside bindings and configurable wrappers."""
    while isinstance(runnable, RunnableBindingBase | DynamicRunnable):
        runnable = runnable.bound if isinstance(runnable, RunnableBindingBase) else runnable.default
    return runnable


def request_size(child: RetrieverLike, k: int) -> dict[str, int]:
    """Return the keyword arguments that ask a child for `k` documents; none if it has no `k`.

    Both of its methods have to take one: LangChain's own async method, which a retriever
    inherits that has only a sync one, does not.
    """
    retriever = unwrapped(child)
    if not isinstance(retriever, BaseRetriever):
        return {}
    named = isinstance(retriever, VectorStoreRetriever) or "k" in _parameters(
        retriever._get_relevant_documents  # noqa: SLF001 - where a retriever tells what it takes
    )
    asynchronous = _parameters(retriever._aget_relevant_documents)  # noqa: SLF001 - as above
    return {"k": k} if named and not asynchronous.isdisjoint({"k", "kwargs"}) else {}


def _parameters(method: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(method).parameters)


def vector_sources(retriever: Any) -> dict[str, Any]:
    """Find where a retriever, or the first of its children that has any, keeps its vectors.

    Args:
        retriever: A retriever or any other runnable.

    Returns:
        `vector_store` and `embeddings`, as far as they are known.
    """
    inner = unwrapped(retriever)
    stores = (getattr(inner, name, None) for name in ("vectorstore", "vector_store", "index"))
    store = next((store for store in stores if isinstance(store, VectorStore | HybridIndex)), None)
    model = getattr(inner, "embeddings", None)
    found = {"vector_store": store, "embeddings": model if isinstance(model, Embeddings) else None}
    known = {name: value for name, value in found.items() if value is not None}
    if known or not isinstance(inner, ParentRetriever):
        return known
    return next(filter(None, map(vector_sources, inner.asked())), {})
