"""One request: what each candidate is asked, in all four forms, and who was asked."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from langchain_core.messages import AIMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from easyrag_core import InvalidParameterError
from easyrag_core.routing.aside import Places, set_aside
from langchain_easyrag._given import is_listing
from langchain_easyrag.chat_models._reading import as_chunk, sees_images

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessageChunk, BaseMessage
    from langchain_core.runnables import Runnable, RunnableConfig

    from easyrag_core import ModelCandidate
    from langchain_easyrag.chat_models._runs import ChildRuns

__all__ = ["BoundTools", "Request", "aclose", "given_wants", "wanted"]

A = TypeVar("A", bound=AIMessage)


def _failure_told(names: Mapping[str, Any], error: BaseException) -> BaseException | None:
    """Return a failure that a handler was told of and raised again, heard or not.

    Any other error that LangChain lets out of a handler was meant to be: it has `raise_error`.
    """
    told = names.get("args", ())
    return error if any(each is error for each in told) else None


# Where LangChain calls handlers: what one raises is for the caller, and no model's failure.
_HANDLING: Final[Places] = {
    ("langchain_core.callbacks.manager", name): _failure_told
    for name in ("handle_event", "_ahandle_event_for_handler")
}

_END: Any = object()


class BoundTools(list[Any]):
    """Tools as they are told to a trace, with each candidate that has bound them its own way."""

    def __init__(
        self, tools: Sequence[Any], forms: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> None:
        """Keep the forms.

        Args:
            tools: As the caller gave them.
            forms: Candidates with the tools bound, by name.
            settings: What was bound with them.
        """
        super().__init__(map(_told, tools))
        self.forms = forms
        self.settings = settings


def _told(tool: Any) -> Any:
    try:
        return convert_to_openai_tool(tool)
    except Exception:  # noqa: BLE001 - a provider's own form, in which the candidates take it
        return tool


def given_wants(given: Mapping[str, Any]) -> set[str]:
    """Return what a call's keyword arguments want of a candidate.

    Args:
        given: The call's keyword arguments.

    Returns:
        Capabilities.

    Raises:
        InvalidParameterError: `wants` is no collection; one string would be read as its letters.
    """
    wants = given.get("wants") or ()
    if not is_listing(wants) and not isinstance(wants, AbstractSet):
        raise InvalidParameterError("wants", wants, "give a collection of strings")
    return set(wants)


def wanted(
    messages: Sequence[BaseMessage], given: Mapping[str, Any], known: frozenset[str]
) -> set[str]:
    """Say what a request needs.

    Args:
        messages: What is asked.
        given: The call's keyword arguments.
        known: What any of the candidates is able to do.

    Returns:
        Capabilities: those under `wants`, "tools" with tools, "vision" with an image where a
        candidate is known to see.
    """
    wants = given_wants(given)
    if given.get("tools"):
        wants.add("tools")
    if "vision" in known and sees_images(messages):
        wants.add("vision")
    return wants


@dataclass(frozen=True)
class Request:
    """Asks candidates for one answer."""

    messages: Sequence[BaseMessage]
    runs: ChildRuns
    settings: Mapping[str, Any]
    forms: Mapping[str, Runnable[Any, AIMessage]]
    asked: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        messages: Sequence[BaseMessage],
        stop: list[str] | None,
        given: Mapping[str, Any],
        runs: ChildRuns,
    ) -> Request:
        """Part what is for the router from what is for the candidates.

        Args:
            messages: What is asked.
            stop: Where to stop.
            given: The call's keyword arguments.
            runs: The run in which the candidates are asked.

        Returns:
            The request.
        """
        settings = {k: v for k, v in given.items() if k not in {"wants", "model"}}
        forms: Mapping[str, Any] = {}
        tools = settings.get("tools")
        if isinstance(tools, BoundTools):
            forms, bound = tools.forms, {**tools.settings, "tools": tools}
            settings = {k: v for k, v in settings.items() if v is not bound.get(k, _END)}
        if stop is not None:
            settings["stop"] = stop
        return cls(messages, runs, settings, forms)

    def ask(self, candidate: ModelCandidate[BaseChatModel]) -> AIMessage:
        """Get a whole answer."""
        asked, config = self._begin(candidate)
        with self._inside(config):
            answer = asked.invoke(self.messages, config, **self.settings)
        return self._signed(answer, candidate.name)

    async def aask(self, candidate: ModelCandidate[BaseChatModel]) -> AIMessage:
        """Get a whole answer: the async twin of `ask`."""
        asked, config = self._begin(candidate)
        with self._inside(config):
            answer = await asked.ainvoke(self.messages, config, **self.settings)
        return self._signed(answer, candidate.name)

    def open(
        self, candidate: ModelCandidate[BaseChatModel], prefill: str
    ) -> Iterator[AIMessageChunk]:
        """Get an answer in chunks, of which the last tells who gave it."""
        asked, config = self._begin(candidate)
        # A model that is itself routed looks around for handlers before the first chunk.
        with self._inside(config):
            stream = asked.stream(self._with(prefill), config, **self.settings)
        try:
            while (chunk := self._next(stream, config)) is not _END:
                yield self._part(chunk, candidate.name)
        finally:
            _close(stream)

    async def aopen(
        self, candidate: ModelCandidate[BaseChatModel], prefill: str
    ) -> AsyncIterator[AIMessageChunk]:
        """Get an answer in chunks: the async twin of `open`."""
        asked, config = self._begin(candidate)
        with self._inside(config):
            stream = asked.astream(self._with(prefill), config, **self.settings)
        try:
            while (chunk := await self._anext(stream, config)) is not _END:
                yield self._part(chunk, candidate.name)
        finally:
            await aclose(stream)

    def _begin(
        self, candidate: ModelCandidate[BaseChatModel]
    ) -> tuple[Runnable[Any, AIMessage], RunnableConfig]:
        self.asked.append(candidate.name)
        asked = self.forms.get(candidate.name, candidate.model)
        return asked, self.runs.config(candidate.name)

    @contextmanager
    def _inside(self, config: RunnableConfig) -> Iterator[None]:
        with self.runs.entered(config), set_aside(_HANDLING):
            yield

    def _with(self, prefill: str) -> Sequence[BaseMessage]:
        return [*self.messages, AIMessage(prefill)] if prefill else self.messages

    def _next(self, stream: Iterator[Any], config: RunnableConfig) -> Any:
        with self._inside(config):
            return next(stream, _END)

    async def _anext(self, stream: AsyncIterator[Any], config: RunnableConfig) -> Any:
        with self._inside(config):
            return await anext(stream, _END)

    def _part(self, message: AIMessage, name: str) -> AIMessageChunk:
        chunk = as_chunk(message)
        return self._signed(chunk, name) if chunk.chunk_position == "last" else chunk

    def _signed(self, message: A, name: str) -> A:
        told = {"candidate": name, "asked": list(self.asked)}
        metadata = {**message.response_metadata, "easyrag": told}
        return message.model_copy(update={"response_metadata": metadata})


def _close(stream: Any) -> None:
    if hasattr(stream, "close"):
        stream.close()


async def aclose(stream: Any) -> None:
    """Close a stream, if it can be closed.

    Args:
        stream: An async generator, or any async iterator.
    """
    if hasattr(stream, "aclose"):
        await stream.aclose()
