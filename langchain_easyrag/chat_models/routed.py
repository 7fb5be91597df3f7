"""A chat model that is several chat models, each behind a circuit breaker."""

from __future__ import annotations

# LangChain and pydantic read the annotations, so that what they name is there at run time.
# ruff: noqa: TC002, TC003
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

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
from pydantic import PrivateAttr
from typing_extensions import override

from easyrag_core import StreamInterruptedError, StreamReset
from easyrag_core.routing.aside import given_back
from langchain_easyrag.chat_models._configured import ConfiguredChatModel
from langchain_easyrag.chat_models._reading import READER, is_blank
from langchain_easyrag.chat_models._requests import BoundTools, Request, aclose, wanted
from langchain_easyrag.chat_models._runs import ChildRuns, nested_in, runs_in
from langchain_easyrag.chat_models.resets import (
    RESET_EVENT,
    reset_chunk,
    reset_facts,
    voidable,
)
from langchain_easyrag.chat_models.structured import RoutedStructuredOutput

__all__ = ["RoutedChatModel"]


class RoutedChatModel(ConfiguredChatModel):
    """Ask one chat model after the other until one answers.

    A drop-in for a chat model where `with_fallbacks` gives none: it binds tools, gives structured
    output and drives agents. A model that fails twice in a row is left alone for 30 s, then tried
    by one request. A stream counts as begun when there is content, so that empty chunks, silence
    and blank answers are failures, too; see `easyrag_core.ModelRouter` for the rules.

    The answer's `response_metadata["easyrag"]` has `candidate`, who gave it, and `asked`, all who
    were asked. Each candidate's run is a child of this model's run. Handlers that are no tracers
    hear tokens and usage from this model's run alone, so that nothing is counted twice.
    What a handler raises reaches the caller as it is: nobody else is asked, no circuit opens.

    Two keyword arguments of a call, or of `bind`, are for the router: `model`, the name of the
    candidate to ask first, and `wants`, capabilities that the request needs. "tools" and
    "structured_output" are wanted by themselves, "vision" where an image is sent.

    With `mid_stream="restart"` a `StreamResetChunk` stands where another model begins anew, and
    the custom event `easyrag_stream_reset` is dispatched. The sum over the stream is the second
    answer alone. Events of `version="v3"` cannot be taken back: there a reset is raised as a
    `StreamInterruptedError`. With `"continue"` the next model is sent the partial answer as the
    last message.

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

    _runs: ChildRuns | None = PrivateAttr(default=None)
    _streams: list[AsyncIterator[Any]] = PrivateAttr(default_factory=list)

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
            await inside._close_streams()  # noqa: SLF001 - a copy of ourselves
            await aclose(stream)

    def _inside(
        self, config: RunnableConfig | None, kind: type[CallbackManager | AsyncCallbackManager]
    ) -> tuple[RoutedChatModel, RunnableConfig]:
        own, runs = nested_in(config, kind)
        return self._as_in(runs), own

    def _as_in(self, runs: ChildRuns) -> RoutedChatModel:
        """Take the model as it is in one run: `_stream` is not told in which run it is."""
        _ = self._serialized  # is kept once it is made, and comes with the copy
        inside = self.model_copy()
        inside._runs, inside._streams = runs, []  # noqa: SLF001 - a copy of ourselves
        return inside

    async def _close_streams(self) -> None:
        """Leave the candidate as soon as the caller leaves: the base does not close its stream."""
        for each in self._streams:
            await aclose(each)

    @override
    def _generate_with_cache(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        inside = self if self._runs is not None else self._as_in(runs_in(run_manager))
        return super(RoutedChatModel, inside)._generate_with_cache(
            messages, stop, run_manager, **kwargs
        )

    @override
    async def _agenerate_with_cache(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        inside = self if self._runs is not None else self._as_in(runs_in(run_manager))
        try:
            return await super(RoutedChatModel, inside)._agenerate_with_cache(
                messages, stop, run_manager, **kwargs
            )
        finally:
            await inside._close_streams()  # noqa: SLF001 - a copy of ourselves

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        request, route = self._asked(messages, stop, run_manager, kwargs)
        with given_back():
            return _result(self._router.call(request.ask, is_blank=is_blank, **route))

    @override
    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        request, route = self._asked(messages, stop, run_manager, kwargs)
        with given_back():
            return _result(await self._router.acall(request.aask, is_blank=is_blank, **route))

    @override
    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        request, route = self._asked(messages, stop, run_manager, kwargs)
        inside = request.runs.parent
        with given_back():
            for given in self._router.stream(request.open, READER, **route):
                part = self._part(given, run_manager)
                if isinstance(given, StreamReset) and inside is not None:
                    dispatch_custom_event(RESET_EVENT, reset_facts(given), config=inside)
                yield part

    @override
    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        request, route = self._asked(messages, stop, run_manager, kwargs)
        inside = request.runs.parent
        stream = self._router.astream(request.aopen, READER, **route)
        if self._runs is not None:
            self._streams.append(stream)
        with given_back():
            async for given in stream:
                part = self._part(given, run_manager)
                if isinstance(given, StreamReset) and inside is not None:
                    await adispatch_custom_event(RESET_EVENT, reset_facts(given), config=inside)
                yield part

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
        Callbacks, tags, metadata and the rate limiter are this model's. Its cache is not used: a
        message from it that makes no object would stand for a model that fails. Give the
        candidates caches of their own where that is wanted.

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
            each.name: self._uncached(each.model).with_structured_output(
                schema, include_raw=include_raw, **kwargs
            )
            for each in self._able("structured_output")
        }
        defaults = self._defaults if self.stop is None else {**self._defaults, "stop": self.stop}
        bound = {name: form.bind(**defaults) for name, form in forms.items()} if defaults else forms
        own = {"callbacks": self.callbacks, "tags": self.tags, "metadata": self.metadata}
        return RoutedStructuredOutput(
            router=self._router,
            forms=bound,
            include_raw=include_raw,
            own={name: value for name, value in own.items() if value},
            rate_limiter=self.rate_limiter,
        )

    def _uncached(self, model: BaseChatModel) -> BaseChatModel:
        """Keep a candidate that says nothing of caches from a global one, where we do."""
        if self.cache is not False or model.cache is not None:
            return model
        return model.model_copy(update={"cache": False})

    def _asked(
        self,
        messages: Sequence[BaseMessage],
        stop: list[str] | None,
        run_manager: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None,
        given: dict[str, Any],
    ) -> tuple[Request, dict[str, Any]]:
        """Make the request, and say whom it may go to."""
        runs = runs_in(run_manager) if self._runs is None else self._runs
        settings = {**self._defaults, **given}
        request = Request.of(messages, stop or self.stop, settings, runs)
        known = self._router.capabilities
        return request, {"wants": wanted(messages, given, known), "model": given.get("model")}

    def _part(
        self,
        given: AIMessageChunk | StreamReset,
        run_manager: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None,
    ) -> ChatGenerationChunk:
        if not isinstance(given, StreamReset):
            message = voidable(given) if self.mid_stream == "restart" else given
            return ChatGenerationChunk(message=message)
        # LangChain hands its run over where it adds up protocol events (`version="v3"`), and
        # those have no word for a reset: both answers would end up as one.
        if run_manager is not None:
            raise StreamInterruptedError(given.partial) from given.error
        return ChatGenerationChunk(message=reset_chunk(given))


def _result(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])
