"""Embedding models that are one model in several places, each behind a circuit breaker."""

from __future__ import annotations

# LlamaIndex and pydantic read the annotations, so that what they name is there at run time.
# ruff: noqa: TC003
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import Field, PrivateAttr
from typing_extensions import override

from easyrag_core import (
    CircuitBreaker,
    InvalidParameterError,
    ModelCandidate,
    ModelRouter,
    RoutingSnapshot,
    VectorRouter,
)
from easyrag_core.errors import check_count, check_names
from easyrag_core.routing.candidates import given_candidates
from llamaindex_easyrag._members import model_name_of
from llamaindex_easyrag._rebuilt import Rebuilt

__all__ = ["RoutedEmbeddings"]

# ruff: noqa: SLF001 - what the framework's base asks of us in private, members are asked likewise


class RoutedEmbeddings(Rebuilt, BaseEmbedding):
    """Ask one place after the other for the vectors of one embedding model.

    Vectors of two models cannot be compared, so the members have to be the same model: another
    provider, region or server of it. Members whose model names or whose numbers of dimensions
    differ are refused. The first vector settles how many dimensions there are; a member that
    then gives another number has failed, and what it gave is never handed on.

    Events, cache, rate limiter and batches are those of this model: a member's own are not used,
    and a member that has a cache or a limiter is refused. Batches are as large as the smallest
    of the members'.

    Examples:
        ```python
        from llamaindex_easyrag import RoutedEmbeddings

        first = OpenAIEmbedding(model="text-embedding-3-small", api_base="https://one.example/v1")
        second = OpenAIEmbedding(model="text-embedding-3-small", api_base="https://two.example/v1")
        embed_model = RoutedEmbeddings([first, second], total_timeout=10)
        ```
    """

    candidates: tuple[Any, ...] = Field(exclude=True, frozen=True)
    """The members, as `ModelCandidate`."""

    same_model: bool = Field(default=False, frozen=True)
    """You vouch for it that they are one model under different names, as deployments are."""

    dimensions: int | None = Field(default=None, frozen=True)
    """How many dimensions the vectors have, where it is known: an index that is there already is
    then safe from the first vector on."""

    breaker: CircuitBreaker | None = Field(default=None, exclude=True, frozen=True)
    """Its settings and its clock are those of each member's own breaker."""

    total_timeout: float | None = Field(default=60.0, frozen=True)
    """Seconds for one member's answer; `None` for no limit."""

    classify: Callable[..., Any] | None = Field(default=None, exclude=True, frozen=True)
    """A word on errors that goes before ours: from an exception to a `Failure`, or `None`."""

    on_event: Callable[..., Any] | None = Field(default=None, exclude=True, frozen=True)
    """Is told the router's events."""

    _router: ModelRouter[BaseEmbedding] = PrivateAttr()
    _vectors: VectorRouter[BaseEmbedding] = PrivateAttr()

    def __init__(
        self,
        models: Iterable[BaseEmbedding] | None = None,
        *,
        candidates: Iterable[ModelCandidate[BaseEmbedding]] | None = None,
        **kwargs: Any,
    ) -> None:
        """Check the settings; nobody is asked yet.

        Args:
            models: Embedding models, in the order in which they are asked.
            candidates: Instead of `models`: with names, priorities and timeouts of your own.
            **kwargs: The fields of this class and of `BaseEmbedding`.

        Raises:
            InvalidParameterError: The members are not one model as far as can be told, or a
                setting is not as above.
        """
        check_names(kwargs, type(self).model_fields)
        for name in ("embed_batch_size", "num_workers"):
            if kwargs.get(name) is not None:
                check_count(name, kwargs[name], minimum=1)
        members: tuple[ModelCandidate[BaseEmbedding], ...] = given_candidates(
            models,
            candidates,
            kind=BaseEmbedding,
            name_of=model_name_of,
            capabilities=lambda _: frozenset(),
        )
        router = ModelRouter(
            members,
            breaker=kwargs.get("breaker"),
            total_timeout=kwargs.get("total_timeout", 60.0),
            classify=kwargs.get("classify"),
            on_event=kwargs.get("on_event"),
        )
        vectors = VectorRouter(
            router,
            name_of=model_name_of,
            same_model=kwargs.get("same_model", False),
            dimensions=kwargs.get("dimensions"),
        )
        _check_bare(members)
        fields = {**_common(members), **kwargs, "candidates": members}
        super().__init__(**fields)
        self._router, self._vectors = router, vectors

    @classmethod
    @override
    def class_name(cls) -> str:
        return "RoutedEmbeddings"

    @property
    def router(self) -> ModelRouter[BaseEmbedding]:
        """The router behind it."""
        return self._router

    def snapshot(self) -> RoutingSnapshot:
        """Tell how all members stand.

        Returns:
            Plain JSON types, which a notebook shows as a table; see `ModelRouter.snapshot`.
        """
        return self._router.snapshot()

    @override
    def _get_query_embedding(self, query: str) -> list[float]:
        return self._vectors.call(lambda model, _: [model._get_query_embedding(query)], [query])[0]

    @override
    async def _aget_query_embedding(self, query: str) -> list[float]:
        async def ask(model: BaseEmbedding, _: list[str]) -> list[list[float]]:
            return [await model._aget_query_embedding(query)]

        return (await self._vectors.acall(ask, [query]))[0]

    @override
    def _get_text_embedding(self, text: str) -> list[float]:
        return self._vectors.call(lambda model, _: [model._get_text_embedding(text)], [text])[0]

    @override
    async def _aget_text_embedding(self, text: str) -> list[float]:
        async def ask(model: BaseEmbedding, _: list[str]) -> list[list[float]]:
            return [await model._aget_text_embedding(text)]

        return (await self._vectors.acall(ask, [text]))[0]

    @override
    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._vectors.call(lambda model, given: model._get_text_embeddings(given), texts)

    @override
    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await self._vectors.acall(
            lambda model, given: model._aget_text_embeddings(given), texts
        )

    @override
    def __getstate__(self) -> dict[str, Any]:
        """Hand over the settled dimensions as if they had been known."""
        state: dict[str, Any] = super().__getstate__()
        return {**state, "__dict__": {**state["__dict__"], "dimensions": self._vectors.dimensions}}


def _check_bare(members: Sequence[ModelCandidate[BaseEmbedding]]) -> None:
    """Refuse members with a cache or a limiter of their own: neither would be used."""
    for each in members:
        if each.model.embeddings_cache is not None or each.model.rate_limiter is not None:
            allowed = "give its cache and its rate limiter to RoutedEmbeddings instead"
            raise InvalidParameterError("models", each.name, allowed)


def _common(members: Sequence[ModelCandidate[BaseEmbedding]]) -> dict[str, Any]:
    """What is told of the model unless the caller says otherwise."""
    names = [model_name_of(each.model) for each in members]
    name = next((name for name in names if name is not None), "unknown")
    return {
        "model_name": name,
        "embed_batch_size": min(each.model.embed_batch_size for each in members),
    }
