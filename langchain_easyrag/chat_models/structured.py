"""Structured output from whichever candidate gives it, by that candidate's own means."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator  # noqa: TC003 - LangChain reads annotations
from typing import Any, Final

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import convert_to_messages
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from typing_extensions import override

from easyrag_core import DeltaReader, InvalidParameterError, ModelCandidate, StreamReset
from langchain_easyrag._given import is_listing
from langchain_easyrag.chat_models._reading import is_blank
from langchain_easyrag.chat_models._requests import given_wants

__all__ = ["RoutedStructuredOutput"]

# Each chunk is all of the object so far, so that a model that starts anew is its own correction.
_READER: Final[DeltaReader[Any]] = DeltaReader(
    carries_content=lambda chunk: chunk is not None, text_of=lambda _: ""
)


class RoutedStructuredOutput(RunnableSerializable[LanguageModelInput, Any]):
    """What `RoutedChatModel.with_structured_output` gives.

    It streams as the candidates do, a dict that grows or one object; with `include_raw` a stream
    is one piece. A dict that has begun is not continued by another model, but may be begun anew.
    """

    router: Any
    """The router of the model."""

    forms: dict[str, Any]
    """Candidates with structured output, by name."""

    include_raw: bool = False
    """Whether the answers are dicts with `raw`, `parsed` and `parsing_error`."""

    @override
    def invoke(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Any:
        ask: Any = self._ask
        return self._call_with_config(ask, input, config, **kwargs)

    @override
    async def ainvoke(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Any:
        ask: Any = self._aask
        return await self._acall_with_config(ask, input, config, **kwargs)

    @override
    def stream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        if self.include_raw:
            yield self.invoke(input, config, **kwargs)
            return
        parts: Any = self._parts
        yield from self._transform_stream_with_config(iter([input]), parts, config, **kwargs)

    @override
    async def astream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        if self.include_raw:
            yield await self.ainvoke(input, config, **kwargs)
            return
        parts: Any = self._aparts
        async for part in self._atransform_stream_with_config(
            _once(input), parts, config, **kwargs
        ):
            yield part

    def _ask(self, asked: LanguageModelInput, config: RunnableConfig, **kwargs: Any) -> Any:
        asked, (route, settings) = _given(asked), _parted(kwargs)

        def run(candidate: ModelCandidate[Any]) -> Any:
            return self.forms[candidate.name].invoke(asked, config, **settings)

        return self.router.call(run, is_blank=self._is_blank, **route)

    async def _aask(self, asked: LanguageModelInput, config: RunnableConfig, **kwargs: Any) -> Any:
        asked, (route, settings) = _given(asked), _parted(kwargs)

        def run(candidate: ModelCandidate[Any]) -> Any:
            return self.forms[candidate.name].ainvoke(asked, config, **settings)

        return await self.router.acall(run, is_blank=self._is_blank, **route)

    def _parts(
        self, inputs: Iterator[LanguageModelInput], config: RunnableConfig, **kwargs: Any
    ) -> Iterator[Any]:
        [asked], (route, settings) = map(_given, inputs), _parted(kwargs)

        def opened(candidate: ModelCandidate[Any], _: str) -> Any:
            return self.forms[candidate.name].stream(asked, config, **settings)

        for given in self.router.stream(opened, _READER, **route):
            if not isinstance(given, StreamReset):
                yield given

    async def _aparts(
        self, inputs: AsyncIterator[LanguageModelInput], config: RunnableConfig, **kwargs: Any
    ) -> AsyncIterator[Any]:
        [asked], (route, settings) = [_given(each) async for each in inputs], _parted(kwargs)

        def opened(candidate: ModelCandidate[Any], _: str) -> Any:
            return self.forms[candidate.name].astream(asked, config, **settings)

        async for given in self.router.astream(opened, _READER, **route):
            if not isinstance(given, StreamReset):
                yield given

    def _is_blank(self, answer: Any) -> bool:
        return is_blank(answer["raw"]) if self.include_raw else answer is None


def _given(asked: Any) -> LanguageModelInput:
    """Return what a chat model can be asked; no candidate is to blame for anything else."""
    if isinstance(asked, str | PromptValue):
        return asked
    if not is_listing(asked):
        raise InvalidParameterError("input", asked, "give a text, messages or a PromptValue")
    return convert_to_messages(asked)


def _parted(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Part what is for the router from what is for the candidates."""
    wants = given_wants(given) | {"structured_output"}
    settings = {name: value for name, value in given.items() if name not in {"wants", "model"}}
    return {"wants": wants, "model": given.get("model")}, settings


async def _once(asked: LanguageModelInput) -> AsyncIterator[LanguageModelInput]:
    yield asked
