"""What candidates are asked for: a chat, a completion or an object, each in its four forms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypeVar

from llama_index.core.base.llms.generic_utils import (
    astream_chat_response_to_completion_response,
    prompt_to_messages,
    stream_chat_response_to_completion_response,
)
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    MessageRole,
)
from llama_index.core.callbacks import EventPayload
from typing_extensions import override

from easyrag_core import InvalidParameterError
from llamaindex_easyrag.llms._reading import (
    CHAT_READER,
    COMPLETION_READER,
    OBJECT_READER,
    is_blank_chat,
    is_blank_completion,
    message_after,
    sees_images,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from llama_index.core.prompts import BasePromptTemplate
    from llama_index.core.tools import BaseTool

    from easyrag_core import DeltaReader, StreamReset

__all__ = ["Call", "ChatCall", "CompletionCall", "Form", "ObjectCall", "ToolBox", "parted"]

Form: TypeAlias = Literal["", "a", "stream_", "astream_"]
"""The beginning of the method's name."""

A = TypeVar("A")

_KEY: Final = "easyrag"
_RESET_KEY: Final = "easyrag_reset"


@dataclass(frozen=True)
class ToolBox:
    """Tools on their way to a candidate, which puts them into words of its own."""

    tools: Sequence[BaseTool]
    settings: Mapping[str, Any]


def parted(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Part what is for the router from what is for the candidates.

    Args:
        given: The keyword arguments of a call.

    Returns:
        `wants` and `model`; all others.

    Raises:
        InvalidParameterError: `wants` is one string, which would be read as its letters.
    """
    wants = given.get("wants") or ()
    if isinstance(wants, str):
        raise InvalidParameterError("wants", wants, "give a collection of strings")
    route = {"wants": frozenset(wants), "model": given.get("model")}
    return route, {name: value for name, value in given.items() if name not in route}


class Call(Protocol[A]):
    """One request, asked of one candidate after the other."""

    trace: str
    """What a trace of it is called."""

    @property
    def reader(self) -> DeltaReader[Any]:
        """What a chunk of its stream carries."""

    def run(self, model: Any, form: Form, prefill: str = "") -> Any:
        """Ask a model; the two async forms give a coroutine."""

    def wants(self, known: Collection[str]) -> frozenset[str]:
        """Say what it takes to answer, of what any candidate is known for."""

    def is_blank(self, answer: A) -> bool:
        """Whether an answer says nothing."""

    def marked(self, answer: A, facts: Mapping[str, Any], prefill: str = "") -> A:
        """Copy an answer or a chunk with what is to be told of it."""

    def reset(self, given: StreamReset, facts: Mapping[str, Any]) -> A | None:
        """Make the chunk that stands where another model begins anew."""

    def begun(self) -> dict[str, Any]:
        """Tell handlers what is asked."""

    def ended(self, answer: A | None) -> dict[str, Any]:
        """Tell handlers what was answered."""


@dataclass(frozen=True)
class ChatCall(Call[ChatResponse]):
    """Messages, with tools or without."""

    messages: Sequence[ChatMessage]
    settings: Mapping[str, Any]
    trace = "chat"
    reader = CHAT_READER

    @override
    def run(self, model: Any, form: Form, prefill: str = "") -> Any:
        messages, settings = [*self.messages, *_prefilled(prefill)], dict(self.settings)
        box = settings.get("tools")
        if not isinstance(box, ToolBox):
            return getattr(model, f"{form}chat")(messages, **settings)
        settings.pop("tools")
        ask = getattr(model, f"{form}chat_with_tools")
        return ask([*box.tools], chat_history=messages, **box.settings, **settings)

    @override
    def wants(self, known: Collection[str]) -> frozenset[str]:
        tools = self.settings.get("tools")
        sees = "vision" in known and sees_images(self.messages)
        calls = isinstance(tools, ToolBox) or ("tools" in known and tools)
        return frozenset([*["vision"] * bool(sees), *["tools"] * bool(calls)])

    @override
    def is_blank(self, answer: ChatResponse) -> bool:
        return is_blank_chat(answer)

    @override
    def marked(
        self, answer: ChatResponse, facts: Mapping[str, Any], prefill: str = ""
    ) -> ChatResponse:
        told: dict[str, Any] = {"additional_kwargs": {**answer.additional_kwargs, _KEY: facts}}
        if prefill:
            told["message"] = message_after(prefill, answer.message)
        return answer.model_copy(update=told)

    @override
    def reset(self, given: StreamReset, facts: Mapping[str, Any]) -> ChatResponse:
        message = ChatMessage(content="", role=MessageRole.ASSISTANT)
        return ChatResponse(message=message, delta="", additional_kwargs=_reset_facts(given, facts))

    @override
    def begun(self) -> dict[str, Any]:
        told = {name: value for name, value in self.settings.items() if name != "tools"}
        return {EventPayload.MESSAGES: self.messages, EventPayload.ADDITIONAL_KWARGS: told}

    @override
    def ended(self, answer: ChatResponse | None) -> dict[str, Any]:
        return {EventPayload.MESSAGES: self.messages, EventPayload.RESPONSE: answer}


@dataclass(frozen=True)
class CompletionCall(Call[CompletionResponse]):
    """A prompt."""

    prompt: str
    settings: Mapping[str, Any]
    formatted: bool = False
    trace = "completion"
    reader = COMPLETION_READER

    @override
    def run(self, model: Any, form: Form, prefill: str = "") -> Any:
        # A chat model goes on from a message of its own, others from where the text ends.
        if prefill and model.metadata.is_chat_model:
            messages = [*prompt_to_messages(self.prompt), *_prefilled(prefill)]
            stream = getattr(model, f"{form}chat")(messages, **self.settings)
            return _as_completions(stream, form)
        ask = getattr(model, f"{form}complete")
        return ask(self.prompt + prefill, formatted=self.formatted, **self.settings)

    @override
    def wants(self, known: Collection[str]) -> frozenset[str]:
        return frozenset()

    @override
    def is_blank(self, answer: CompletionResponse) -> bool:
        return is_blank_completion(answer)

    @override
    def marked(
        self, answer: CompletionResponse, facts: Mapping[str, Any], prefill: str = ""
    ) -> CompletionResponse:
        told = {**answer.additional_kwargs, _KEY: facts}
        return answer.model_copy(update={"additional_kwargs": told, "text": prefill + answer.text})

    @override
    def reset(self, given: StreamReset, facts: Mapping[str, Any]) -> CompletionResponse:
        return CompletionResponse(text="", delta="", additional_kwargs=_reset_facts(given, facts))

    @override
    def begun(self) -> dict[str, Any]:
        told = dict(self.settings)
        return {EventPayload.PROMPT: self.prompt, EventPayload.ADDITIONAL_KWARGS: told}

    @override
    def ended(self, answer: CompletionResponse | None) -> dict[str, Any]:
        return {EventPayload.PROMPT: self.prompt, EventPayload.COMPLETION: answer}


@dataclass(frozen=True)
class ObjectCall(Call[Any]):
    """An object of a class, made by the candidate's own means. It cannot be marked."""

    output_cls: type[Any]
    prompt: BasePromptTemplate
    llm_kwargs: Mapping[str, Any]
    values: Mapping[str, Any] = field(default_factory=dict)
    trace = "chat"
    reader = OBJECT_READER

    @override
    def run(self, model: Any, form: Form, prefill: str = "") -> Any:
        # Programs write into the settings that they are given.
        settings, ask = dict(self.llm_kwargs), getattr(model, f"{form}structured_predict")
        return ask(self.output_cls, self.prompt, llm_kwargs=settings, **self.values)

    @override
    def wants(self, known: Collection[str]) -> frozenset[str]:
        sees = "vision" in known and sees_images(self._messages())
        return frozenset({"vision"} if sees else ())

    @override
    def is_blank(self, answer: Any) -> bool:
        return answer is None

    @override
    def marked(self, answer: Any, facts: Mapping[str, Any], prefill: str = "") -> Any:
        return answer

    @override
    def reset(self, given: StreamReset, facts: Mapping[str, Any]) -> None:
        """Nothing: each chunk is all of the object so far, its own correction."""

    @override
    def begun(self) -> dict[str, Any]:
        told = dict(self.llm_kwargs)
        return {EventPayload.MESSAGES: self._messages(), EventPayload.ADDITIONAL_KWARGS: told}

    @override
    def ended(self, answer: Any) -> dict[str, Any]:
        said = "" if answer is None else answer.model_dump_json()
        message = ChatMessage(content=said, role=MessageRole.ASSISTANT)
        response = ChatResponse(message=message, raw=answer)
        return {EventPayload.MESSAGES: self._messages(), EventPayload.RESPONSE: response}

    def _messages(self) -> list[ChatMessage]:
        return self.prompt.format_messages(**self.values)


def _prefilled(prefill: str) -> list[ChatMessage]:
    return [ChatMessage(content=prefill, role=MessageRole.ASSISTANT)] if prefill else []


def _as_completions(stream: Any, form: Form) -> Any:
    if form == "stream_":
        return stream_chat_response_to_completion_response(stream)

    async def opened() -> Any:
        return astream_chat_response_to_completion_response(await stream)

    return opened()


def _reset_facts(given: StreamReset, facts: Mapping[str, Any]) -> dict[str, Any]:
    error = f"{type(given.error).__name__}: {given.error}"
    reset = {"candidate": given.candidate, "partial": given.partial, "error": error}
    return {_KEY: facts, _RESET_KEY: reset}
