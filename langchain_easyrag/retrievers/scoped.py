"""Any retriever within what the system allows and the question asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from langchain_core.retrievers import RetrieverLike  # noqa: TC002 - pydantic reads it
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
from pydantic import InstanceOf  # noqa: TC002 - pydantic reads it
from typing_extensions import override

from easyrag_core import (
    ExtractedConditions,
    FilterPolicy,
    InvalidParameterError,
    filter_to_dict,
)
from easyrag_core.errors import check_count
from easyrag_core.plans import adriven, driven
from langchain_easyrag._convert import facts_of, with_facts
from langchain_easyrag._given import as_documents, is_listing
from langchain_easyrag._settings import check_settings
from langchain_easyrag.retrievers._children import (
    ParentRetriever,
    child_config,
    request_size,
    unwrapped,
)
from langchain_easyrag.retrievers._store_filters import pushed_filter

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableConfig

    from easyrag_core import Filter

__all__ = ["ScopedRetriever"]

_K: Final = 4
_FIRST_FETCH: Final = 20
_GROWTH: Final = 4


@dataclass(frozen=True, slots=True)
class _Asking:
    """A call of a runnable within one request."""

    runnable: Runnable[Any, Any]
    tag: str
    arguments: dict[str, Any] = field(default_factory=dict)


class ScopedRetriever(ParentRetriever):
    """Search within a policy: the system's conditions always, the question's where it has any.

    What a store can filter itself it is told (Chroma, Qdrant, `InMemoryVectorStore`, our
    `BM25Retriever`); everything is checked again on what comes back, and more is fetched until
    `k` documents pass or there are no more. So any retriever can be scoped, and no document that
    the system forbids comes out, whatever a model draws. When nothing passes, conditions that
    were drawn by a model are given up; those of the system, and those given with a call, never.

    Of several retrievers that are fused, scope each one rather than the fusion, which cannot be
    asked for more. A store that searches approximately may find fewer than there are.

    Instantiate:
        ```python
        from easyrag_core import Condition, FilterField, FilterPolicy
        from langchain_easyrag import FilterExtractor, ScopedRetriever

        policy = FilterPolicy(
            system=Condition("tenant", "eq", "a"),
            business_schema=[FilterField("year", "integer")],
        )
        retriever = ScopedRetriever(
            retriever=vector_store, policy=policy, extractor=FilterExtractor(llm, policy)
        )
        ```

    Search:
        ```python
        retriever.invoke("papers since 2020")
        given = [{"field": "year", "operator": "gte", "value": 2020}]
        retriever.invoke("papers", conditions=given)
        ```

    Further conditions for one user:
        ```python
        retriever.restricted_to(Condition("owner", "eq", user.id)).invoke("papers")
        ```
    """

    retriever: RetrieverLike
    """Who is asked: a retriever, a vector store, or any runnable from a query to documents."""

    policy: InstanceOf[FilterPolicy]
    """What always holds, and what a question may ask for."""

    extractor: Runnable[Any, Any] | None = None
    """Draws conditions from the query, usually a `FilterExtractor`."""

    k: int | None = None
    """How many documents to return: as many as the retriever would, else 4."""

    relax: bool = True
    """Whether drawn conditions are given up when nothing passes them."""

    def __init__(self, *, retriever: Any, policy: FilterPolicy, **kwargs: Any) -> None:
        """Check the settings.

        Args:
            retriever: Who is asked.
            policy: What always holds, and what a question may ask for.
            **kwargs: The fields of this class; `tags`, `metadata` and `name`.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        if isinstance(retriever, VectorStore):
            retriever = retriever.as_retriever()
        if not isinstance(retriever, Runnable):
            raise InvalidParameterError("retriever", retriever, "give a retriever or a store")
        if not isinstance(policy, FilterPolicy):
            raise InvalidParameterError("policy", policy, "give a FilterPolicy")
        check_settings(kwargs, known=type(self).model_fields)
        super().__init__(**{**kwargs, "retriever": retriever, "policy": policy})

    def restricted_to(self, system: Filter) -> Self:
        """Return a retriever with further system conditions, for one tenant or one user.

        Args:
            system: What must hold as well.

        Returns:
            A copy; this retriever stays as it is.

        Raises:
            InvalidParameterError: The business schema holds one of its fields.
        """
        return self.model_copy(update={"policy": self.policy.restricted_to(system)})

    @override
    def asked(self) -> Sequence[RetrieverLike]:
        """Return the runnables that are asked."""
        return [self.retriever, *filter(None, [self.extractor])]

    @override
    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        conditions: Any = None,
        parent_config: RunnableConfig | None = None,
    ) -> list[Document]:
        def answer(call: _Asking) -> Any:
            config = child_config(parent_config, run_manager, call.tag)
            return call.runnable.invoke(query, config, **call.arguments)

        return list(driven(self._plan(k, conditions), answer))

    @override
    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        conditions: Any = None,
        parent_config: RunnableConfig | None = None,
    ) -> list[Document]:
        async def answer(call: _Asking) -> Any:
            config = child_config(parent_config, run_manager, call.tag)
            return await call.runnable.ainvoke(query, config, **call.arguments)

        return list(await adriven(self._plan(k, conditions), answer))

    def _plan(self, k: int | None, conditions: Any) -> Generator[_Asking, Any, list[Document]]:
        """All that a search is, but for the waiting."""
        own = _own_k(self.retriever) if self.k is None else self.k
        wanted = check_count("k", own if k is None else k)
        business = ExtractedConditions()
        if conditions is not None:
            business = self._given(conditions)
        elif self.extractor is not None:
            business = self._checked((yield _Asking(self.extractor, "extractor")))
        relaxes = self.relax and conditions is None
        attempts = self.policy.attempts(business) if relaxes else [self.policy.apply(business)]
        found: list[Document] = []
        for number, attempt in enumerate(attempts):
            found = yield from self._within(attempt, wanted)
            if found or number == len(attempts) - 1:
                return _told(found, business, relaxed=number > 0)
        return found

    def _within(self, whole: Filter | None, k: int) -> Generator[_Asking, Any, list[Document]]:
        """Fetch until `k` documents pass the whole filter, or there are no more."""
        if k == 0:
            return []
        pushed = pushed_filter(self.retriever, whole)
        size = k if pushed.whole else max(k * _GROWTH, _FIRST_FETCH)
        while True:
            sizes = _sizes(self.retriever, size)
            asking = _Asking(self.retriever, "retriever", {**sizes, **pushed.arguments})
            found = as_documents((yield asking))
            passed = [d for d in found if whole is None or whole.matches(d.metadata)]
            if len(passed) >= k or not sizes or len(found) < size:
                return passed[:k]
            size *= _GROWTH

    def _given(self, conditions: Any) -> ExtractedConditions:
        checked = self._checked(conditions)
        if checked.dropped:
            told = [(dropped.raw, dropped.reason) for dropped in checked.dropped]
            raise InvalidParameterError("conditions", told, "give what the business schema allows")
        return checked

    def _checked(self, drawn: Any) -> ExtractedConditions:
        """Check conditions against this policy, whoever has checked them before."""
        if isinstance(drawn, ExtractedConditions):
            drawn = [filter_to_dict(condition) for condition in drawn.conditions]
        if not is_listing(drawn):
            raise InvalidParameterError("conditions", drawn, "give a list of conditions")
        return self.policy.check(drawn)


def _own_k(retriever: Any) -> int:
    inner = unwrapped(retriever)
    settings: Mapping[str, Any] = getattr(inner, "search_kwargs", {})
    own = getattr(inner, "k", None) or settings.get("k")
    return own if isinstance(own, int) else _K


def _sizes(retriever: Any, size: int) -> dict[str, int]:
    """Return what asks a retriever for so many documents; nothing if it cannot be asked."""
    sizes = request_size(retriever, size)
    inner = unwrapped(retriever)
    if isinstance(inner, VectorStoreRetriever) and inner.search_type == "mmr":
        # It gives no more than it chooses among.
        sizes["fetch_k"] = max(inner.search_kwargs.get("fetch_k", _FIRST_FETCH), size)
    return sizes


def _told(
    found: Iterable[Document], business: ExtractedConditions, *, relaxed: bool
) -> list[Document]:
    """Say which business conditions a document was found by; never the system's."""
    if not business.conditions:
        return list(found)
    conditions = [filter_to_dict(condition) for condition in business.conditions]
    told = {"conditions": conditions, "relaxed": relaxed}
    return [with_facts(document, {**facts_of(document), "filter": told}) for document in found]
