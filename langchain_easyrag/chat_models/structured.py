"""Structured output from whichever candidate gives it, by that candidate's own means."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator  # noqa: TC003 - LangChain reads annotations
from contextlib import aclosing
from typing import Any, Final, cast

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from langchain_core.runnables.config import ensure_config, merge_configs
from pydantic import Field
from typing_extensions import override

from easyrag_core import DeltaReader, InvalidParameterError, StreamReset
from easyrag_core.routing.aside import given_back
from langchain_easyrag._given import is_listing
from langchain_easyrag.chat_models._reading import is_blank
from langchain_easyrag.chat_models._requests import Request, aclose, wanted
from langchain_easyrag.chat_models._runs import ChildRuns

__all__ = ["RoutedStructuredOutput"]

# Each chunk is all of the object so far, so that a model that starts anew is its own correction.
_READER: Final[DeltaReader[Any]] = DeltaReader(
    carries_content=lambda chunk: chunk is not None, text_of=lambda _: ""
)


class RoutedStructuredOutput(RunnableSerializable[LanguageModelInput, Any]):
    """What `RoutedChatModel.with_structured_output` gives.

    It streams as the candidates do, a dict that grows or one object; with `include_raw` a stream
    is one piece. A dict that has begun is not continued by another model, but may be begun anew.
    Who gave an answer is told in the metadata of the candidate's run, and in what is `raw`.
    """

    router: Any
    """The router of the model."""

    forms: dict[str, Any]
    """Candidates with structured output, by name."""

    include_raw: bool = False
    """Whether the answers are dicts with `raw`, `parsed` and `parsing_error`."""

    own: dict[str, Any] = Field(default_factory=dict)
    """The model's callbacks, tags and metadata, in addition to the caller's."""

    rate_limiter: Any = None
    """The model's own: asked once for a request, whoever answers it."""

    @override
    def invoke(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Any:
        ask: Any = self._ask
        return self._call_with_config(ask, input, self._own(config), **kwargs)

    @override
    async def ainvoke(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Any:
        ask: Any = self._aask
        return await self._acall_with_config(ask, input, self._own(config), **kwargs)

    @override
    def stream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        if self.include_raw:
            yield self.invoke(input, config, **kwargs)
            return
        parts: Any = self._parts
        yield from self._transform_stream_with_config(
            iter([input]), parts, self._own(config), **kwargs
        )

    @override
    async def astream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        if self.include_raw:
            yield await self.ainvoke(input, config, **kwargs)
            return
        parts: Any = self._aparts
        stream = self._atransform_stream_with_config(
            _once(input), parts, self._own(config), **kwargs
        )
        try:
            async for part in stream:
                yield part
        finally:
            await aclose(stream)

    def _own(self, config: RunnableConfig | None) -> RunnableConfig:
        # First what is around us: with callbacks of its own a config forgets it.
        around = ensure_config(config)
        heard = _handlers(around.get("callbacks"))
        own = _handlers(self.own.get("callbacks"))
        left = [each for each in own if not any(each is known for known in heard)]
        return merge_configs(around, cast("RunnableConfig", {**self.own, "callbacks": left}))

    def _ask(self, asked: LanguageModelInput, config: RunnableConfig, **kwargs: Any) -> Any:
        request, route = self._request(asked, config, kwargs)
        if self.rate_limiter is not None:
            self.rate_limiter.acquire(blocking=True)
        with given_back():
            return self.router.call(request.ask, is_blank=self._is_blank, **route)

    async def _aask(self, asked: LanguageModelInput, config: RunnableConfig, **kwargs: Any) -> Any:
        request, route = self._request(asked, config, kwargs)
        if self.rate_limiter is not None:
            await self.rate_limiter.aacquire(blocking=True)
        with given_back():
            return await self.router.acall(request.aask, is_blank=self._is_blank, **route)

    def _parts(
        self, inputs: Iterator[LanguageModelInput], config: RunnableConfig, **kwargs: Any
    ) -> Iterator[Any]:
        [asked] = inputs
        request, route = self._request(asked, config, kwargs)
        if self.rate_limiter is not None:
            self.rate_limiter.acquire(blocking=True)
        with given_back():
            for given in self.router.stream(request.open, _READER, **route):
                if not isinstance(given, StreamReset):
                    yield given

    async def _aparts(
        self, inputs: AsyncIterator[LanguageModelInput], config: RunnableConfig, **kwargs: Any
    ) -> AsyncIterator[Any]:
        [asked] = [each async for each in inputs]
        request, route = self._request(asked, config, kwargs)
        if self.rate_limiter is not None:
            await self.rate_limiter.aacquire(blocking=True)
        with given_back():
            async with aclosing(self.router.astream(request.aopen, _READER, **route)) as stream:
                async for given in stream:
                    if not isinstance(given, StreamReset):
                        yield given

    def _request(
        self, asked: LanguageModelInput, config: RunnableConfig, given: dict[str, Any]
    ) -> tuple[_ObjectRequest, dict[str, Any]]:
        """Make the request, and say whom it may go to."""
        messages = _given(asked)
        known = self.router.capabilities
        wants = wanted(messages, given, known) | {"structured_output"}
        settings = {name: value for name, value in given.items() if name not in {"wants", "model"}}
        request = _ObjectRequest(messages, ChildRuns(config, {}), settings, self.forms)
        return request, {"wants": wants, "model": given.get("model")}

    def _is_blank(self, answer: Any) -> bool:
        return is_blank(answer["raw"]) if self.include_raw else answer is None


class _ObjectRequest(Request):
    """Asks candidates for one object; an object itself cannot be signed, what is raw can."""

    @override
    def _part(self, message: Any, name: str) -> Any:
        return message

    @override
    def _signed(self, message: Any, name: str) -> Any:
        if not (isinstance(message, dict) and isinstance(message.get("raw"), AIMessage)):
            return message
        return {**message, "raw": super()._signed(message["raw"], name)}


def _handlers(callbacks: Any) -> list[Any]:
    return callbacks if isinstance(callbacks, list) else list(getattr(callbacks, "handlers", ()))


def _given(asked: Any) -> list[BaseMessage]:
    """Return what a chat model is asked; no candidate is to blame for anything else."""
    if isinstance(asked, str):
        return [HumanMessage(asked)]
    if isinstance(asked, PromptValue):
        return asked.to_messages()
    if not is_listing(asked):
        raise InvalidParameterError("input", asked, "give a text, messages or a PromptValue")
    return convert_to_messages(asked)


async def _once(asked: LanguageModelInput) -> AsyncIterator[LanguageModelInput]:
    yield asked
