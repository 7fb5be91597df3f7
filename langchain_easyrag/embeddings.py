"""Embedding models that are one model in several places, each behind a circuit breaker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.embeddings import Embeddings
from typing_extensions import override

from easyrag_core import ModelCandidate, ModelRouter, VectorRouter
from easyrag_core.routing.candidates import given_candidates
from langchain_easyrag._members import model_name_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from easyrag_core import CircuitBreaker, EventHandler, RoutingSnapshot
    from easyrag_core.routing.failures import Classifier

__all__ = ["RoutedEmbeddings"]


class RoutedEmbeddings(Embeddings):
    """Ask one place after the other for the vectors of one embedding model.

    Vectors of two models cannot be compared, so the members have to be the same model: another
    provider, region or server of it. Members whose model names or whose numbers of dimensions
    differ are refused. The first vector settles how many dimensions there are; a member that
    then gives another number has failed, and what it gave is never handed on.

    Instantiate:
        ```python
        from langchain_easyrag import RoutedEmbeddings

        first = OpenAIEmbeddings(model="text-embedding-3-small", base_url="https://one.example/v1")
        second = OpenAIEmbeddings(model="text-embedding-3-small", base_url="https://two.example/v1")
        embeddings = RoutedEmbeddings([first, second], total_timeout=10)
        ```
    """

    def __init__(
        self,
        models: Iterable[Embeddings] | None = None,
        *,
        candidates: Iterable[ModelCandidate[Embeddings]] | None = None,
        same_model: bool = False,
        dimensions: int | None = None,
        breaker: CircuitBreaker | None = None,
        total_timeout: float | None = 60.0,
        classify: Classifier | None = None,
        on_event: EventHandler | None = None,
    ) -> None:
        """Check the settings; nobody is asked yet.

        Args:
            models: Embedding models, in the order in which they are asked.
            candidates: Instead of `models`: with names, priorities and timeouts of your own.
            same_model: You vouch for it that they are one model under different names, as
                deployments are.
            dimensions: How many dimensions the vectors have, where it is known: an index that is
                there already is then safe from the first vector on.
            breaker: Its settings and its clock are those of each member's own breaker.
            total_timeout: Seconds for one member's answer; `None` for no limit.
            classify: A word on errors that goes before ours.
            on_event: Is told the router's events.

        Raises:
            InvalidParameterError: The members are not one model as far as can be told, or a
                setting is not as above.
        """
        members: tuple[ModelCandidate[Embeddings], ...] = given_candidates(
            models,
            candidates,
            kind=Embeddings,
            name_of=model_name_of,
            capabilities=lambda _: frozenset(),
        )
        self._router = ModelRouter(
            members,
            breaker=breaker,
            total_timeout=total_timeout,
            classify=classify,
            on_event=on_event,
        )
        self._vectors = VectorRouter(
            self._router, name_of=model_name_of, same_model=same_model, dimensions=dimensions
        )

    @property
    def router(self) -> ModelRouter[Embeddings]:
        """The router behind it."""
        return self._router

    def snapshot(self) -> RoutingSnapshot:
        """Tell how all members stand.

        Returns:
            Plain JSON types, which a notebook shows as a table; see `ModelRouter.snapshot`.
        """
        return self._router.snapshot()

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._vectors.call(lambda model, given: model.embed_documents(given), texts)

    @override
    def embed_query(self, text: str) -> list[float]:
        return self._vectors.call(lambda model, _: [model.embed_query(text)], [text])[0]

    @override
    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return await self._vectors.acall(lambda model, given: model.aembed_documents(given), texts)

    @override
    async def aembed_query(self, text: str) -> list[float]:
        async def ask(model: Embeddings, _: list[str]) -> list[list[float]]:
            return [await model.aembed_query(text)]

        return (await self._vectors.acall(ask, [text]))[0]
