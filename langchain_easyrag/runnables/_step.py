"""What all steps that ask a model share: one plan, driven with and without waiting."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeAlias, TypeVar

from langchain_core.runnables import Runnable, RunnableSerializable
from pydantic import ConfigDict, Field, PrivateAttr
from typing_extensions import override

from easyrag_core import report_degradation
from easyrag_core.errors import check_choice, check_count
from easyrag_core.events import EventHandler  # noqa: TC001 - pydantic reads it
from easyrag_core.plans import adriven, driven
from langchain_easyrag._settings import check_settings
from langchain_easyrag.runnables._conversation import Asked, asked_in
from langchain_easyrag.runnables._model_call import ModelCall, check_model, check_structured

if TYPE_CHECKING:
    from langchain_core.language_models import LanguageModelInput
    from langchain_core.runnables import RunnableConfig
    from langchain_core.runnables.utils import ConfigurableFieldSpec

    from langchain_easyrag.runnables._prompting import Prompting

__all__ = ["Plan", "QueryStep"]

Out = TypeVar("Out")

_COUNTS: Final = ("history_turns", "count", "max_questions", "candidates")

Plan: TypeAlias = Generator[tuple[ModelCall, Any], str | None, Out]
"""Gives each call with its request, is sent the reply or `None` for a failed call, ends with the
step's result."""


class QueryStep(RunnableSerializable[Any, Out], Generic[Out]):
    """A runnable that asks a model at most once, and goes on without it where it fails.

    Takes a text, a mapping with `input` and, where the conversation counts, `chat_history`, or a
    list of messages of which the last is the question.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    llm: Runnable[Any, Any]
    """Who is asked: a chat model, or any runnable that takes its place."""

    prompt: Any = None
    """A prompt template of LangChain, or of `easyrag_core`; ours, if not given."""

    structured: bool | str = False
    """Hold the reply to a schema: `True` where the model can, else plain text; or by
    `"json_schema"`, `"function_calling"` or `"json_mode"`. Always one call."""

    on_error: str = "fallback"
    """`"fallback"` goes on without the model, `"raise"` raises its error."""

    on_event: EventHandler | None = Field(default=None, exclude=True, repr=False)
    """Hears when the step goes on without the model."""

    input_key: str = "input"
    """Where in a mapping the question is."""

    history_key: str = "chat_history"
    """Where in a mapping the conversation is."""

    step: ClassVar[str] = ""
    """The step's name in events."""

    _prompting: Prompting = PrivateAttr()
    _call: ModelCall = PrivateAttr()

    def __init__(self, llm: Runnable[Any, Any], **kwargs: Any) -> None:
        """Check the settings.

        Args:
            llm: Who is asked.
            **kwargs: The fields of this class.

        Raises:
            InvalidParameterError: A setting is not as above, the prompt lacks a placeholder, or
                the model does not take the method named.
        """
        check_model(llm)
        check_settings(kwargs, known=type(self).model_fields)
        check_choice("on_error", kwargs.get("on_error", "fallback"), ("fallback", "raise"))
        check_structured(kwargs.get("structured", False))
        for name in _COUNTS:
            # Here, since pydantic would take "3" and True for numbers.
            check_count(name, kwargs.get(name, 1))
        super().__init__(**{**kwargs, "llm": llm})

    @property
    @override
    def InputType(self) -> Any:
        """A text, a mapping, or messages."""
        return Any

    @property
    @override
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The configurable fields of the model."""
        return self.llm.config_specs

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Out:
        """Run the step.

        Args:
            input: A text, a mapping, or messages.
            config: Goes on to the model, in a child run.
            **kwargs: None are taken.

        Returns:
            The step's result.

        Raises:
            InvalidParameterError: The input is none of these.
            Exception: With `on_error="raise"`: what the model raised, or `OutputParseError`.
        """
        return self._call_with_config(self._run, input, config, **kwargs)

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Out:
        """Run the step: the async twin of `invoke`."""
        return await self._acall_with_config(self._arun, input, config, **kwargs)

    def _plan(self, value: Any) -> Plan[Out]:
        """All that the step is, but for the waiting."""
        raise NotImplementedError

    def _run(self, value: Any, config: Any) -> Out:
        result: Out = self._driven(self._plan(value), config)
        return result

    async def _arun(self, value: Any, config: Any) -> Out:
        result: Out = await self._adriven(self._plan(value), config)
        return result

    def _driven(self, plan: Plan[Any], config: Any) -> Any:
        def answer(asked: tuple[ModelCall, Any]) -> str | None:
            call, request = asked
            try:
                return call.ask(request, config)
            except Exception as error:  # noqa: BLE001 - a model may fail in any way
                self._failed(error)
                return None

        return driven(plan, answer)

    async def _adriven(self, plan: Plan[Any], config: Any) -> Any:
        async def answer(asked: tuple[ModelCall, Any]) -> str | None:
            call, request = asked
            try:
                return await call.aask(request, config)
            except Exception as error:  # noqa: BLE001 - a model may fail in any way
                self._failed(error)
                return None

        return await adriven(plan, answer)

    def _failed(self, error: Exception) -> None:
        report_degradation(
            self.step, "the model failed", error=error, on_event=self.on_event, strict=self._strict
        )

    @property
    def _strict(self) -> bool:
        return self.on_error == "raise"

    @property
    def _reading(self) -> dict[str, Any]:
        """How a reply is read."""
        return {"strict": self._strict, "on_event": self.on_event}

    def _asked(self, value: Any) -> Asked:
        return asked_in(value, input_key=self.input_key, history_key=self.history_key)

    def _request(self, prompt: Any, asked: Asked) -> LanguageModelInput:
        """Word the request of a prompt of the core that takes question and history."""
        return self._prompting.request(
            prompt.messages(asked.question, asked.history),
            prompt.variables(asked.question, asked.history),
            asked.question,
            prompt.window(asked.question, asked.history),
        )
