"""What a routed chat model is made of: its settings, its candidates and its name in traces."""

from __future__ import annotations

# LangChain and pydantic read the annotations, so that what they name is there at run time.
# ruff: noqa: TC003
from abc import ABC
from collections.abc import Callable, Collection, Iterable, Mapping
from inspect import signature
from threading import Lock
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, Literal

from langchain_core.language_models import BaseChatModel
from pydantic import Field, PrivateAttr, SkipValidation
from typing_extensions import override

from easyrag_core import (
    CircuitBreaker,
    InvalidParameterError,
    ModelCandidate,
    ModelRouter,
    RoutingSnapshot,
)
from easyrag_core.routing.candidates import given_candidates
from easyrag_core.routing.failures import COUNTED_KINDS, MOVING_KINDS
from langchain_easyrag._members import model_name_of
from langchain_easyrag._settings import check_settings
from langchain_easyrag.chat_models._reading import capabilities_of

if TYPE_CHECKING:
    from langchain_core.language_models.base import LangSmithParams

__all__ = ["ConfiguredChatModel"]


class ConfiguredChatModel(BaseChatModel, ABC):
    """A chat model that has a router, and does not use it yet.

    What the router is made of cannot be changed afterwards: it would change nothing.
    """

    candidates: SkipValidation[tuple[Any, ...]] = Field(frozen=True, repr=False)
    """The models, as `ModelCandidate`. They keep their circuits: a model that is made of the
    fields of another, as `configurable_fields` does for a call, goes on with them where its
    routing settings are the same."""

    breaker: CircuitBreaker | None = Field(default=None, frozen=True)
    """Its settings and its clock are those of each candidate's own breaker."""

    first_token_timeout: float | None = Field(default=60.0, frozen=True)
    """Seconds until the first content of a stream; `None` for no limit."""

    stall_timeout: float | None = Field(default=None, frozen=True)
    """Seconds between the chunks of a stream after that; `None` for no limit."""

    total_timeout: float | None = Field(default=None, frozen=True)
    """Seconds for one candidate's whole answer; `None` for no limit."""

    empty: Literal["failure", "accept"] = Field(default="failure", frozen=True)
    """Whether a blank answer is a failure, or to be taken as it is."""

    mid_stream: Literal["raise", "restart", "continue"] = Field(default="raise", frozen=True)
    """What happens when a stream breaks after its first content."""

    moving_kinds: Collection[str] = Field(default=MOVING_KINDS, frozen=True)
    """The failures after which the next candidate is asked."""

    counted_kinds: Collection[str] = Field(default=COUNTED_KINDS, frozen=True)
    """The failures that a circuit breaker counts."""

    classify: Callable[..., Any] | None = Field(default=None, exclude=True, frozen=True)
    """A word on errors that goes before ours: from an exception to a `Failure`, or `None`."""

    on_event: Callable[..., Any] | None = Field(default=None, exclude=True, frozen=True)
    """Is told the router's events."""

    temperature: float | None = None
    """Sent with each request; `None` leaves it to the candidates."""

    max_tokens: int | None = None
    """Sent with each request; `None` leaves it to the candidates."""

    stop: list[str] | None = None
    """Sent with each request that has none of its own."""

    streaming: bool | None = None
    """Whether `invoke` reads a stream, for which `first_token_timeout` holds as well."""

    _router: ModelRouter[BaseChatModel] = PrivateAttr()

    def __init__(
        self,
        models: Iterable[BaseChatModel] | None = None,
        *,
        candidates: Iterable[ModelCandidate[BaseChatModel]] | None = None,
        **kwargs: Any,
    ) -> None:
        """Check the settings; nobody is asked yet.

        Args:
            models: Chat models, in the order in which they are asked; they are called by their
                model names, a second one of a name gets a number.
            candidates: Instead of `models`: with names, priorities, timeouts and capabilities of
                your own. One without capabilities has those that its class and profile speak of.
            **kwargs: The fields of this class and of `BaseChatModel`.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        check_settings(kwargs, known=type(self).model_fields, taken=("models",))
        members = _members(models, candidates)
        settings = {name: self._given(name, kwargs) for name in _ROUTING if name != "candidates"}
        router = members.router(settings)
        fields: dict[str, Any] = {**kwargs, "candidates": members}
        super().__init__(**fields)
        self._router = router

    @classmethod
    def _given(cls, name: str, settings: Mapping[str, Any]) -> Any:
        return settings.get(name, cls.model_fields[name].default)

    @property
    def router(self) -> ModelRouter[BaseChatModel]:
        """The router, for calls of other kinds over the same breakers."""
        return self._router

    def snapshot(self) -> RoutingSnapshot:
        """Tell how all candidates stand.

        Returns:
            Plain JSON types, which a notebook shows as a table; see `ModelRouter.snapshot`.
        """
        return self._router.snapshot()

    @property
    @override
    def _llm_type(self) -> str:
        return "easyrag-routed-chat"

    @property
    @override
    def _identifying_params(self) -> dict[str, Any]:
        told = [
            {
                "name": each.name,
                "priority": each.priority,
                "type": each.model._llm_type,  # noqa: SLF001 - what the base asks of us it tells
                **each.model._identifying_params,  # noqa: SLF001
            }
            for each in self._router.candidates
        ]
        told_of_all = {"empty": self.empty, "mid_stream": self.mid_stream, "stop": self.stop}
        return {"candidates": told, **told_of_all, **self._defaults}

    @override
    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        # Names that no price list has: what an answer costs is told by the candidate's own run.
        names = ", ".join(each.name for each in self._router.candidates)
        named = {"model": names, **kwargs}
        params = super()._get_ls_params(stop=stop, **named)
        params["ls_provider"] = "easyrag"
        return params

    @override
    def __repr_args__(self) -> Any:
        # Names only: each run is told our text, and models are long and may have secrets.
        names = [each.name for each in self._router.candidates]
        return [("candidates", names), *super().__repr_args__()]

    def _able(self, capability: str) -> list[ModelCandidate[BaseChatModel]]:
        able = [each for each in self._router.candidates if capability in each.capabilities]
        if not able:
            names = [each.name for each in self._router.candidates]
            raise InvalidParameterError("candidates", names, f"none of them has {capability!r}")
        return able

    @property
    def _defaults(self) -> dict[str, Any]:
        told = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        return {name: value for name, value in told.items() if value is not None}


class _Members(tuple[ModelCandidate[BaseChatModel], ...]):  # noqa: SLOT001 - it has a list
    """Candidates, with the routers over them by their settings."""

    def __init__(self, _: Iterable[ModelCandidate[BaseChatModel]]) -> None:
        self._lock = Lock()
        self._routers: list[tuple[Mapping[str, Any], ModelRouter[BaseChatModel]]] = []

    def router(self, settings: Mapping[str, Any]) -> ModelRouter[BaseChatModel]:
        """Return the router with these settings: the first one is kept, and those used last."""
        settings = {
            n: frozenset(v) if isinstance(v, set | list) else v for n, v in settings.items()
        }
        with self._lock:
            known = enumerate(self._routers)
            place = next((n for n, (its, _) in known if _same_settings(its, settings)), -1)
            if place == 0:
                return self._routers[0][1]
            new = place < 0
            used = (settings, ModelRouter(self, **settings)) if new else self._routers.pop(place)
            # What calls configure may be without end.
            self._routers = [*self._routers[:1], *self._routers[1:][-_KEPT_ROUTERS:], used]
            return used[1]


def _same_settings(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two routers would behave alike: of objects that act, equal ones are two."""
    return one.keys() == other.keys() and all(map(_same, one.values(), other.values()))


def _same(one: Any, other: Any) -> bool:
    acting = isinstance(one, CircuitBreaker) or (callable(one) and not isinstance(one, MethodType))
    return one is other if acting else bool(one == other)


def _members(
    models: Iterable[BaseChatModel] | None,
    candidates: Iterable[ModelCandidate[BaseChatModel]] | None,
) -> _Members:
    if models is None and isinstance(candidates, _Members):
        return candidates
    return _Members(
        given_candidates(
            models,
            candidates,
            kind=BaseChatModel,
            name_of=model_name_of,
            capabilities=capabilities_of,
        )
    )


_ROUTING = signature(ModelRouter).parameters.keys()

_KEPT_ROUTERS: Final = 16
