"""One call of a model, whose reply comes as a text whatever form it has."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable

from easyrag_core import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_core.language_models import LanguageModelInput
    from langchain_core.runnables import RunnableConfig

__all__ = ["STRUCTURED", "ModelCall", "check_model", "check_structured"]

_logger = logging.getLogger(__name__)

STRUCTURED: Final = (False, True, "json_schema", "function_calling", "json_mode")
"""Plain text; what the model does by itself, or plain text; one of LangChain's methods."""

# A model may lack the method, refuse it, know fewer arguments; fallbacks lose a name on the way.
_LACKING: Final = (AttributeError, NotImplementedError, NameError, TypeError, ValueError)


def check_model(llm: Any, name: str = "llm") -> Runnable[Any, Any]:
    """Refuse what is no model.

    Args:
        llm: What was given.
        name: The argument's name.

    Returns:
        The same.

    Raises:
        InvalidParameterError: It is no runnable.
    """
    if not isinstance(llm, Runnable):
        raise InvalidParameterError(name, llm, "give a chat model, or another model of LangChain")
    return llm


def check_structured(given: Any) -> None:
    """Refuse what is no form of a reply.

    Args:
        given: What was given.

    Raises:
        InvalidParameterError: It is none of `STRUCTURED`.
    """
    if not isinstance(given, bool | str) or given not in STRUCTURED:
        raise InvalidParameterError("structured", given, f"give one of {STRUCTURED}")


class ModelCall:
    """A model as one step asks it."""

    def __init__(
        self, llm: Runnable[Any, Any], schema: Mapping[str, Any], *, structured: bool | str
    ) -> None:
        """Bind the form of the reply.

        Args:
            llm: A chat model, or any runnable that takes its place.
            schema: The reply as JSON Schema.
            structured: One of `STRUCTURED`.

        Raises:
            InvalidParameterError: The model does not take the method named.
        """
        check_structured(structured)
        # OpenAI's API wants the word in the messages; other models want to know the shape.
        shape = json.dumps(dict(schema), ensure_ascii=False)
        self._told = f"\n\nJSON Schema: {shape}" if structured == "json_mode" else ""
        self._model = _bound(llm, schema, structured=structured) if structured else llm

    def ask(self, request: LanguageModelInput, config: RunnableConfig) -> str:
        """Call the model once.

        Args:
            request: Messages, or a prompt's value.
            config: Of the step's run.

        Returns:
            The reply's text; a structured one as JSON.
        """
        return _text_of(self._model.invoke(self._shaped(request), config))

    async def aask(self, request: LanguageModelInput, config: RunnableConfig) -> str:
        """Call the model once: the async twin of `ask`."""
        return _text_of(await self._model.ainvoke(self._shaped(request), config))

    def _shaped(self, request: LanguageModelInput) -> LanguageModelInput:
        if not self._told:
            return request
        # Requests are made by `Prompting`: messages, or a value that gives them.
        given: Any = request.to_messages() if isinstance(request, PromptValue) else request
        *messages, last = convert_to_messages(given)
        return [*messages, last.model_copy(update={"content": f"{last.text}{self._told}"})]


def _bound(llm: Any, schema: Mapping[str, Any], *, structured: bool | str) -> Runnable[Any, Any]:
    method = {} if structured is True else {"method": structured}
    try:
        bound: Runnable[Any, Any] = llm.with_structured_output(
            dict(schema), include_raw=True, **method
        )
    except _LACKING as error:
        if structured is not True:
            allowed = f"this model refuses it ({error!r}); give True or False"
            raise InvalidParameterError("structured", structured, allowed) from error
        _logger.warning("The model has no structured output: it is asked for plain text.")
        bound = llm
    return bound


def _text_of(reply: Any) -> str:
    if isinstance(reply, dict) and {"raw", "parsed"} <= reply.keys():
        if reply["parsed"] is None:
            return _raw_text(reply["raw"])
        reply = reply["parsed"]
    if isinstance(reply, BaseMessage):
        return str(reply.text)
    return reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)


def _raw_text(raw: Any) -> str:
    """What a model said that kept to no schema: its text, or what it wrote for a tool."""
    if isinstance(raw, AIMessage) and not raw.text and raw.invalid_tool_calls:
        return raw.invalid_tool_calls[0]["args"] or ""
    return _text_of(raw)
