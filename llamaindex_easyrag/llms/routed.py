"""An LLM that is several LLMs, each behind a circuit breaker."""

from __future__ import annotations

# LlamaIndex and pydantic read the annotations, so that what they name is there at run time.
# ruff: noqa: TC002, TC003
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Iterable, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.llms import LLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from pydantic import BaseModel, Field, PrivateAttr
from typing_extensions import override

from easyrag_core import (
    CircuitBreaker,
    InvalidParameterError,
    ModelCandidate,
    ModelRouter,
    RoutingSnapshot,
)
from easyrag_core.errors import check_names, check_text
from easyrag_core.routing.candidates import given_candidates
from easyrag_core.routing.failures import COUNTED_KINDS, MOVING_KINDS
from llamaindex_easyrag._conversation import given_messages
from llamaindex_easyrag._members import model_name_of
from llamaindex_easyrag._rebuilt import Rebuilt
from llamaindex_easyrag.llms._asking import Asking
from llamaindex_easyrag.llms._calls import (
    Call,
    ChatCall,
    CompletionCall,
    ObjectCall,
    ToolBox,
    parted,
)
from llamaindex_easyrag.llms._reading import capabilities_of

if TYPE_CHECKING:
    from llama_index.core.prompts import BasePromptTemplate
    from llama_index.core.tools import BaseTool

__all__ = ["RoutedLLM"]

A = TypeVar("A")
O = TypeVar("O", bound=BaseModel)  # noqa: E741 - the object that is asked for


class RoutedLLM(Rebuilt, FunctionCallingLLM):
    """Ask one LLM after the other until one answers.

    A drop-in where the framework has no fallback of its own: for query engines, agents and
    structured output. A model that fails twice in a row is left alone for 30 s, then tried by
    one request. A stream counts as begun when there is content, so that empty chunks, silence
    and blank answers are failures, too; see `easyrag_core.ModelRouter` for the rules.

    An answer's `additional_kwargs["easyrag"]` has `candidate`, who gave it, and `asked`, all who
    were asked. Candidates are asked in their own way, a completion model by a prompt and a chat
    model by messages, with tools and structured output by their own means. They tell events
    and handlers of their own; the handlers of this model are told of each candidate's call, too,
    but none of them twice. What a handler raises reaches the caller as it is: nobody else is
    asked, no circuit opens. A `system_prompt` is this model's, not a candidate's.

    Two keyword arguments of a call are for the router: `model`, the name of the candidate to ask
    first, and `wants`, capabilities that the request needs. "tools" is wanted by itself, "vision"
    where an image is sent and a candidate is known to see.

    With `mid_stream="restart"` an empty chunk with `additional_kwargs["easyrag_reset"]`
    (`candidate`, `partial`, `error`) stands where another model begins anew: `message.content`
    and `text` are right by themselves, who joins deltas clears them there. With `"continue"` the
    next model is sent the partial answer, and the text of its chunks begins with it.

    Examples:
        ```python
        from llamaindex_easyrag import RoutedLLM

        llm = RoutedLLM([OpenAI(model="a"), OpenAI(model="b")], stall_timeout=20)
        llm.complete("Hi").additional_kwargs["easyrag"]["candidate"]
        llm.snapshot()  # for a health page
        ```
    """

    candidates: tuple[Any, ...] = Field(exclude=True, frozen=True)
    """The models, as `ModelCandidate`."""

    breaker: CircuitBreaker | None = Field(default=None, exclude=True, frozen=True)
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

    moving_kinds: Collection[str] = Field(default=MOVING_KINDS, exclude=True, frozen=True)
    """The failures after which the next candidate is asked."""

    counted_kinds: Collection[str] = Field(default=COUNTED_KINDS, exclude=True, frozen=True)
    """The failures that a circuit breaker counts."""

    classify: Callable[..., Any] | None = Field(default=None, exclude=True, frozen=True)
    """A word on errors that goes before ours: from an exception to a `Failure`, or `None`."""

    on_event: Callable[..., Any] | None = Field(default=None, exclude=True, frozen=True)
    """Is told the router's events."""

    _router: ModelRouter[LLM] = PrivateAttr()

    def __init__(
        self,
        models: Iterable[LLM] | None = None,
        *,
        candidates: Iterable[ModelCandidate[LLM]] | None = None,
        **kwargs: Any,
    ) -> None:
        """Check the settings; nobody is asked yet.

        Args:
            models: LLMs, in the order in which they are asked; they are called by their model
                names, a second one of a name gets a number.
            candidates: Instead of `models`: with names, priorities, timeouts and capabilities of
                your own. One without capabilities has those that its metadata speak of.
            **kwargs: The fields of this class and of `LLM`.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        check_names(kwargs, type(self).model_fields)
        members = given_candidates(
            models, candidates, kind=LLM, name_of=model_name_of, capabilities=capabilities_of
        )
        router = ModelRouter(members, **{n: v for n, v in kwargs.items() if n in _ROUTING})
        super().__init__(**{**kwargs, "candidates": members})
        self._router = router

    @classmethod
    @override
    def class_name(cls) -> str:
        return "RoutedLLM"

    @property
    def router(self) -> ModelRouter[LLM]:
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
    def metadata(self) -> LLMMetadata:
        """What holds whoever answers: the least of all candidates."""
        members = self._router.candidates
        told = [each.model.metadata for each in members]
        return LLMMetadata(
            context_window=min(each.context_window for each in told),
            # The room that is kept free for an answer has to do for all.
            num_output=max(each.num_output for each in told),
            is_chat_model=all(each.is_chat_model for each in told),
            is_function_calling_model=all("tools" in each.capabilities for each in members),
            model_name=", ".join(each.name for each in members),
            system_role=told[0].system_role,
        )

    @override
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._whole(*_chat(messages, kwargs))

    @override
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return await self._awhole(*_chat(messages, kwargs))

    @override
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        return self._stream(*_chat(messages, kwargs))

    @override
    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> ChatResponseAsyncGen:
        return await self._astream(*_chat(messages, kwargs))

    @override
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return self._whole(*_completion(prompt, kwargs, formatted=formatted))

    @override
    async def acomplete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        return await self._awhole(*_completion(prompt, kwargs, formatted=formatted))

    @override
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        return self._stream(*_completion(prompt, kwargs, formatted=formatted))

    @override
    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseAsyncGen:
        return await self._astream(*_completion(prompt, kwargs, formatted=formatted))

    @override
    def structured_predict(
        self,
        output_cls: type[O],
        prompt: BasePromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> O:
        """Get an object, made by the candidate's own means.

        An answer that is no such object is a failure, after which the next candidate is asked.
        "vision" is wanted as in a chat, where the prompt has an image.

        Args:
            output_cls: The class of the object.
            prompt: The template of what is asked.
            llm_kwargs: Settings for the candidate, and `model` and `wants` for the router.
            **prompt_args: What is filled into the template.

        Returns:
            The object.
        """
        return self._whole(*self._object(output_cls, prompt, llm_kwargs, prompt_args))

    @override
    async def astructured_predict(
        self,
        output_cls: type[O],
        prompt: BasePromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> O:
        """Get an object: the async twin of `structured_predict`."""
        return await self._awhole(*self._object(output_cls, prompt, llm_kwargs, prompt_args))

    @override
    def stream_structured_predict(
        self,
        output_cls: type[O],
        prompt: BasePromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> Generator[Any, None, None]:
        """Get an object as it grows, made by the candidate's own means."""
        return self._stream(*self._object(output_cls, prompt, llm_kwargs, prompt_args))

    @override
    async def astream_structured_predict(
        self,
        output_cls: type[O],
        prompt: BasePromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> AsyncGenerator[Any, None]:
        """Get an object as it grows: the async twin of `stream_structured_predict`."""
        return await self._astream(*self._object(output_cls, prompt, llm_kwargs, prompt_args))

    @override
    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        """Let the candidate who answered read its own calls of tools."""
        name = response.additional_kwargs.get("easyrag", {}).get("candidate")
        able = [each for each in self._router.candidates if "tools" in each.capabilities]
        if not able:
            told = [each.name for each in self._router.candidates]
            raise InvalidParameterError("candidates", told, "none of them calls tools")
        reader: Any = min(able, key=lambda each: each.name != name).model
        selections: list[ToolSelection] = reader.get_tool_calls_from_response(
            response, error_on_no_tool_call=error_on_no_tool_call, **kwargs
        )
        return selections

    @override
    def _prepare_chat_with_tools(
        self,
        tools: Sequence[BaseTool],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        verbose: bool = False,
        allow_parallel_tool_calls: bool = False,
        tool_required: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Keep the tools as they are until it is known which candidate is asked."""
        if isinstance(user_msg, str):
            user_msg = ChatMessage(content=user_msg, role=MessageRole.USER)
        settings = {"verbose": verbose, "allow_parallel_tool_calls": allow_parallel_tool_calls}
        required = {"tool_required": True} if tool_required else {}
        return {
            "messages": [*(chat_history or []), *([user_msg] if user_msg else [])],
            "tools": ToolBox(tools, {**settings, **required}),
            **kwargs,
        }

    def _object(
        self,
        output_cls: type[O],
        prompt: BasePromptTemplate,
        llm_kwargs: dict[str, Any] | None,
        values: dict[str, Any],
    ) -> tuple[Call[O], dict[str, Any]]:
        route, settings = parted(llm_kwargs or {})
        return ObjectCall(output_cls, prompt, settings, values), route

    def _whole(self, call: Call[A], route: dict[str, Any]) -> A:
        if self.rate_limiter is not None:
            self.rate_limiter.acquire()
        return Asking(self._router, self.callback_manager, call, route).whole()

    async def _awhole(self, call: Call[A], route: dict[str, Any]) -> A:
        if self.rate_limiter is not None:
            await self.rate_limiter.async_acquire()
        return await Asking(self._router, self.callback_manager, call, route).awhole()

    def _stream(self, call: Call[A], route: dict[str, Any]) -> Generator[A, None, None]:
        if self.rate_limiter is not None:
            self.rate_limiter.acquire()
        return Asking(self._router, self.callback_manager, call, route).stream()

    async def _astream(self, call: Call[A], route: dict[str, Any]) -> AsyncGenerator[A, None]:
        if self.rate_limiter is not None:
            await self.rate_limiter.async_acquire()
        return Asking(self._router, self.callback_manager, call, route).astream()


_ROUTING = signature(ModelRouter).parameters.keys()


def _chat(
    messages: Sequence[ChatMessage], given: dict[str, Any]
) -> tuple[Call[ChatResponse], dict[str, Any]]:
    route, settings = parted(given)
    # A stream is opened later, when the caller's list may have grown.
    return ChatCall(given_messages("messages", messages), settings), route


def _completion(
    prompt: str, given: dict[str, Any], *, formatted: bool
) -> tuple[Call[CompletionResponse], dict[str, Any]]:
    route, settings = parted(given)
    return CompletionCall(check_text("prompt", prompt), settings, formatted=formatted), route
