"""What all steps that ask a model share: one plan, driven with and without waiting."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, TypeVar

from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.llms import CustomLLM
from llama_index.core.prompts.mixin import PromptMixin
from llama_index.core.settings import Settings
from llama_index_instrumentation import get_dispatcher

from easyrag_core import InvalidParameterError, report_degradation
from easyrag_core.errors import check_choice
from easyrag_core.pipeline import in_thread
from easyrag_core.plans import adriven, driven
from llamaindex_easyrag.events import QueryStepEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.prompts import BasePromptTemplate

    from easyrag_core.events import EventHandler
    from llamaindex_easyrag._prompting import Prompting

__all__ = ["Plan", "QueryStep", "Request", "achat", "checked_llm"]

_dispatcher = get_dispatcher(__name__)

Out = TypeVar("Out")


class Request(NamedTuple):
    """What a step asks a model.

    Attributes:
        prompting: How it is worded.
        question: Chooses the language.
        variables: What fills the placeholders.
        llm: Who is asked, where it is not the step's own model.
    """

    prompting: Prompting
    question: str
    variables: Mapping[str, str]
    llm: BaseLLM | None = None


Plan: TypeAlias = Generator[Request, str | None, Out]
"""Gives each request, is sent the reply or `None` for a failed call, ends with the result."""


class QueryStep(PromptMixin):
    """Asks a model, and goes on without it where it fails."""

    step: ClassVar[str] = ""
    _prompting: Prompting

    def __init__(
        self, llm: BaseLLM | None, *, on_error: str, on_event: EventHandler | None
    ) -> None:
        """Check the settings.

        Args:
            llm: Who is asked; `None` is `Settings.llm`, looked up when there is something to
                ask.
            on_error: `"fallback"` or `"raise"`.
            on_event: Hears when the step goes on without the model.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        super().__init__()
        self._llm = checked_llm("llm", llm)
        self._strict = check_choice("on_error", on_error, ("fallback", "raise")) == "raise"
        self._on_event = on_event

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        return self._prompting.shown()

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: dict[str, Any]) -> None:
        self._prompting.update(prompts)

    @property
    def _reading(self) -> dict[str, Any]:
        """How a reply is read."""
        return {"strict": self._strict, "on_event": self._on_event}

    def _drive(self, plan: Plan[Out], question: str) -> Out:
        calls = 0

        def answer(request: Request) -> str | None:
            nonlocal calls
            calls += 1
            try:
                llm = request.llm or self._model()
                return _text(llm.chat(_messages(request, llm)))
            except Exception as error:  # noqa: BLE001 - a model may fail in any way
                self._failed(error)
                return None

        result: Out = driven(plan, answer)
        self._ended(result, question, calls)
        return result

    async def _adrive(self, plan: Plan[Out], question: str) -> Out:
        calls = 0

        async def answer(request: Request) -> str | None:
            nonlocal calls
            calls += 1
            try:
                llm = request.llm or self._model()
                return _text(await achat(llm, _messages(request, llm)))
            except Exception as error:  # noqa: BLE001 - a model may fail in any way
                self._failed(error)
                return None

        result: Out = await adriven(plan, answer)
        self._ended(result, question, calls)
        return result

    def _model(self) -> BaseLLM:
        return Settings.llm if self._llm is None else self._llm

    def _failed(self, error: Exception) -> None:
        _dispatcher.event(ExceptionEvent(exception=error))
        report_degradation(
            self.step, "the model failed", error=error, on_event=self._on_event, strict=self._strict
        )

    def _ended(self, result: Any, question: str, calls: int) -> None:
        told = list(self._told(result))
        _dispatcher.event(
            QueryStepEvent(step=self.step, question=question, result=told, calls=calls)
        )

    def _told(self, result: Any) -> Iterable[str]:
        """What an event tells of a result."""
        raise NotImplementedError


def checked_llm(name: str, given: Any) -> BaseLLM | None:
    """Return what was given as a model, or `None`.

    Args:
        name: The parameter's name, for the message.
        given: What the caller gave.

    Returns:
        The same.

    Raises:
        InvalidParameterError: It is no model.
    """
    if given is not None and not isinstance(given, BaseLLM):
        raise InvalidParameterError(name, given, "give a model of LlamaIndex, or None")
    return given


def _messages(request: Request, llm: BaseLLM) -> list[ChatMessage]:
    return request.prompting.messages(request.question, request.variables, llm)


def _text(response: Any) -> str:
    return response.message.content or ""


async def achat(llm: BaseLLM, messages: list[ChatMessage]) -> Any:
    """Ask a model without standing in the event loop's way.

    Args:
        llm: Any model; a `CustomLLM` without an async form goes into a thread.
        messages: The request.

    Returns:
        Its response.
    """
    if next(kind for kind in type(llm).__mro__ if "achat" in vars(kind)) is CustomLLM:
        # Their async form calls the other one, and would block the event loop.
        return await in_thread(partial(llm.chat, messages))
    return await llm.achat(messages)
