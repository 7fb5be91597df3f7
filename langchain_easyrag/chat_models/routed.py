"""A chat model that is several chat models, each behind a circuit breaker."""

from __future__ import annotations

# LangChain and pydantic read the annotations, so that what they name is there at run time.
# ruff: noqa: TC002, TC003
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForLLMRun,
    CallbackManager,
    CallbackManagerForLLMRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool
from pydantic import Field, PrivateAttr
from typing_extensions import override

from easyrag_core import (
    CircuitBreaker,
    InvalidParameterError,
    ModelCandidate,
    ModelRouter,
    RoutingSnapshot,
    StreamReset,
)
from easyrag_core.routing.failures import COUNTED_KINDS, MOVING_KINDS
from langchain_easyrag._members import given_candidates
from langchain_easyrag._settings import check_settings
from langchain_easyrag.chat_models._reading import READER, capabilities_of, is_blank
from langchain_easyrag.chat_models._requests import BoundTools, Request, aclose, wanted
from langchain_easyrag.chat_models._runs import ChildRuns, nested_in, runs_in
from langchain_easyrag.chat_models.resets import (
    RESET_EVENT,
    generation_chunk,
    reset_facts,
)
from langchain_easyrag.chat_models.structured import RoutedStructuredOutput

if TYPE_CHECKING:
    from langchain_core.language_models.base import LangSmithParams

__all__ = ["RoutedChatModel"]


class RoutedChatModel(BaseChatModel):
    """Ask one chat model after the other until one answers.

    A drop-in for a chat model where `with_fallbacks` gives none: it binds tools, gives structured
    output and drives agents. A model that fails twice in a row is left alone for 30 s, then tried
    by one request. A stream counts as begun when there is content, so that empty chunks, silence
    and blank answers are failures, too; see `easyrag_core.ModelRouter` for the rules.

    The answer's `response_metadata["easyrag"]` has `candidate`, who gave it, and `asked`, all who
    were asked. Each candidate's run is a child of this model's run. Handlers that are no tracers
    hear tokens and usage from this model's run alone, so that nothing is counted twice.

    Two keyword arguments of a call, or of `bind`, are for the router: `model`, the name of the
    candidate to ask first, and `wants`, capabilities that the request needs. "tools" and
    "structured_output" are wanted by themselves, "vision" where an image is sent.

    With `mid_stream="restart"` a `StreamResetChunk` stands where another model begins anew, and
    the custom event `easyrag_stream_reset` is dispatched. The sum over the stream is the second
    answer alone. With `"continue"` the next model is sent the partial answer as the last message.

    Instantiate:
        ```python
        from langchain_easyrag import RoutedChatModel

        model = RoutedChatModel([ChatOpenAI(model="a"), ChatOpenAI(model="b")], stall_timeout=20)
        ```

    Invoke:
        ```python
        model.invoke("Hi").response_metadata["easyrag"]["candidate"]
        model.snapshot()  # for a health page
        ```
    """

    candidates: tuple[Any, ...]
    """The models, as `ModelCandidate`."""

    breaker: CircuitBreaker | None = None
    """Its settings and its clock are those of each candidate's own breaker."""

    first_token_timeout: float | None = 60.0
    """Seconds until the first content of a stream; `None` for no limit."""

    stall_timeout: float | None = None
    """Seconds between the chunks of a stream after that; `None` for no limit."""

    total_timeout: float | None = None
    """Seconds for one candidate's whole answer; `None` for no limit."""

    empty: Literal["failure", "accept"] = "failure"
    """Whether a blank answer is a failure, or to be taken as it is."""

    mid_stream: Literal["raise", "restart", "continue"] = "raise"
    """What happens when a stream breaks after its first content."""

    moving_kinds: Collection[str] = MOVING_KINDS
    """The failures after which the next candidate is asked."""

    counted_kinds: Collection[str] = COUNTED_KINDS
    """The failures that a circuit breaker counts."""

    classify: Callable[..., Any] | None = Field(default=None, exclude=True)
    """A word on errors that goes before ours: from an exception to a `Failure`, or `None`."""

    on_event: Callable[..., Any] | None = Field(default=None, exclude=True)
    """Is told the router's events."""

    _router: ModelRouter[BaseChatModel] = PrivateAttr()
    _runs: ChildRuns | None = PrivateAttr(default=None)
    _streams: list[AsyncIterator[Any]] = PrivateAttr(default_factory=list)

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
        members = given_candidates(
            models, candidates, kind=BaseChatModel, capabilities=capabilities_of
        )
        given = {name: value for name, value in kwargs.items() if name in _ROUTING}
        router = ModelRouter(members, **given)
        fields: dict[str, Any] = {**kwargs, "candidates": members}
        super().__init__(**fields)
        self._router = router

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
        return {"candidates": told, "empty": self.empty, "mid_stream": self.mid_stream}

    @override
    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        # Names that no price list has: what an answer costs is told by the candidate's own run.
        names = ", ".join(each.name for each in self._router.candidates)
        named = {"model": names, **kwargs}
        params = super()._get_ls_params(stop=stop, **named)
        params["ls_provider"] = "easyrag"
        return params

    @override
    def invoke(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        inside, own = self._inside(config, CallbackManager)
        return super(RoutedChatModel, inside).invoke(input, own, stop=stop, **kwargs)

    @override
    async def ainvoke(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        inside, own = self._inside(config, AsyncCallbackManager)
        return await super(RoutedChatModel, inside).ainvoke(input, own, stop=stop, **kwargs)

    @override
    def stream(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> Iterator[AIMessageChunk]:
        inside, own = self._inside(config, CallbackManager)
        return super(RoutedChatModel, inside).stream(input, own, stop=stop, **kwargs)

    @override
    async def astream(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[AIMessageChunk]:
        inside, own = self._inside(config, AsyncCallbackManager)
        stream = super(RoutedChatModel, inside).astream(input, own, stop=stop, **kwargs)
        try:
            async for chunk in stream:
                yield chunk
        finally:
            # Whoever leaves leaves the candidate at once: the base does not close what it reads.
            for each in (*inside._streams, stream):  # noqa: SLF001 - a copy of ourselves
                await aclose(each)

    def _inside(
        self, config: RunnableConfig | None, kind: type[CallbackManager | AsyncCallbackManager]
    ) -> tuple[RoutedChatModel, RunnableConfig]:
        """Take the model as it is in one run: `_stream` is not told in which run it is."""
        own, runs = nested_in(config, kind)
        inside = self.model_copy()
        inside._runs, inside._streams = runs, []  # noqa: SLF001 - a copy of ourselves
        return inside, own

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        request = Request.of(messages, stop, kwargs, self._runs_in(run_manager))
        route = self._route(messages, kwargs)
        return _result(self._router.call(request.ask, is_blank=is_blank, **route))

    @override
    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        request = Request.of(messages, stop, kwargs, self._runs_in(run_manager))
        route = self._route(messages, kwargs)
        return _result(await self._router.acall(request.aask, is_blank=is_blank, **route))

    @override
    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        runs = self._runs_in(run_manager)
        request = Request.of(messages, stop, kwargs, runs)
        for given in self._router.stream(request.open, READER, **self._route(messages, kwargs)):
            if isinstance(given, StreamReset) and runs.parent is not None:
                dispatch_custom_event(RESET_EVENT, reset_facts(given), config=runs.parent)
            yield generation_chunk(given)

    @override
    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        runs = self._runs_in(run_manager)
        request = Request.of(messages, stop, kwargs, runs)
        stream = self._router.astream(request.aopen, READER, **self._route(messages, kwargs))
        if self._runs is not None:
            self._streams.append(stream)
        async for given in stream:
            if isinstance(given, StreamReset) and runs.parent is not None:
                await adispatch_custom_event(RESET_EVENT, reset_facts(given), config=runs.parent)
            yield generation_chunk(given)

    @override
    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools: each candidate binds its own, those that have none are left out.

        Args:
            tools: What the candidates' own `bind_tools` take.
            tool_choice: The tool to call, "any" for any, as the candidates take it.
            **kwargs: Passed on to the candidates.

        Returns:
            This model with the tools.

        Raises:
            InvalidParameterError: No candidate has tools.
        """
        settings = kwargs if tool_choice is None else {**kwargs, "tool_choice": tool_choice}
        forms = {
            each.name: each.model.bind_tools(tools, **settings) for each in self._able("tools")
        }
        return self.bind(tools=BoundTools(tools, forms, settings), **settings)

    @override
    def with_structured_output(
        self, schema: dict[str, Any] | type, *, include_raw: bool = False, **kwargs: Any
    ) -> Runnable[LanguageModelInput, Any]:
        """Get objects: each candidate makes them by its own means.

        An answer that cannot be parsed is a failure, after which the next candidate is asked.

        Args:
            schema: A Pydantic class, a `TypedDict` class or a JSON schema.
            include_raw: Give a dict with `raw`, `parsed` and `parsing_error`; an answer that
                cannot be parsed is then given as it is.
            **kwargs: Passed on to the candidates' own `with_structured_output`.

        Returns:
            A runnable from what is asked to the object.

        Raises:
            InvalidParameterError: No candidate gives structured output.
        """
        forms = {
            each.name: each.model.with_structured_output(schema, include_raw=include_raw, **kwargs)
            for each in self._able("structured_output")
        }
        return RoutedStructuredOutput(router=self._router, forms=forms, include_raw=include_raw)

    def _able(self, capability: str) -> list[ModelCandidate[BaseChatModel]]:
        able = [each for each in self._router.candidates if capability in each.capabilities]
        if not able:
            names = [each.name for each in self._router.candidates]
            raise InvalidParameterError("candidates", names, f"none of them has {capability!r}")
        return able

    def _route(self, messages: Sequence[BaseMessage], given: dict[str, Any]) -> dict[str, Any]:
        known = frozenset().union(*(each.capabilities for each in self._router.candidates))
        return {"wants": wanted(messages, given, known), "model": given.get("model")}

    def _runs_in(
        self, run_manager: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None
    ) -> ChildRuns:
        return runs_in(run_manager) if self._runs is None else self._runs


_ROUTING = signature(ModelRouter).parameters.keys()


def _result(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])
