"""Prompts of the user's own: LangChain's templates in the place of the core's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import get_buffer_string

from easyrag_core import InvalidParameterError
from langchain_easyrag.runnables._conversation import framework_messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.language_models import LanguageModelInput
    from langchain_core.prompts import BasePromptTemplate

    from easyrag_core import Message

__all__ = ["HISTORY", "QUESTION", "Prompting"]

QUESTION = ("question", "input")
HISTORY = ("history", "chat_history")


@dataclass(frozen=True, slots=True)
class Prompting:
    """Who words the request: the user's template, or the core.

    The core's placeholders are filled with JSON, in which no text can pose as an instruction.
    `input` and `chat_history`, the names that LangChain's chains use, are filled with the
    question and the messages as they are.

    Attributes:
        template: LangChain's; `None` where the core words the request.
        core: What the core's prompt takes as its template.
    """

    template: BasePromptTemplate[Any] | None = None
    core: Any = None

    @classmethod
    def of(cls, prompt: Any, *needed: tuple[str, ...], optional: tuple[str, ...] = ()) -> Prompting:
        """Check a prompt.

        Args:
            prompt: A template of LangChain, or what the core's prompt takes.
            *needed: Names of placeholders; of each group a template has at least one.
            optional: Names that it may have.

        Returns:
            Who words the request.

        Raises:
            InvalidParameterError: A placeholder is missing, or is one that nothing fills.
        """
        # With the module it would load two template engines, for those who have no prompt.
        from langchain_core.prompts import BasePromptTemplate  # noqa: PLC0415

        if not isinstance(prompt, BasePromptTemplate):
            return cls(core=prompt)
        found = {*prompt.input_variables, *prompt.optional_variables}
        known = {*optional, *(name for names in needed for name in names)}
        missing = [names for names in needed if not found.intersection(names)]
        if missing or found - known - set(prompt.optional_variables):
            wanted = ", ".join(" or ".join(f"{{{name}}}" for name in names) for names in needed)
            more = "".join(f", {{{name}}}" for name in optional)
            allowed = f"it must hold {wanted}" + (f" and may hold{more[1:]}" if more else "")
            raise InvalidParameterError("prompt", sorted(found), allowed)
        return cls(template=prompt)

    def request(
        self,
        messages: Sequence[Message],
        variables: Mapping[str, str],
        question: str,
        window: Sequence[Message] = (),
    ) -> LanguageModelInput:
        """Return what a model is asked.

        Args:
            messages: The request as the core words it.
            variables: The core's placeholders.
            question: As the user typed it.
            window: The messages that count.

        Returns:
            Messages, or a prompt's value.
        """
        if self.template is None:
            return framework_messages(messages)
        from langchain_core.prompts.chat import BaseChatPromptTemplate  # noqa: PLC0415 - as above

        said: Any = framework_messages(window)
        if not isinstance(self.template, BaseChatPromptTemplate):
            said = get_buffer_string(said)
        values = {**variables, "input": question, "chat_history": said}
        names = {*self.template.input_variables, *self.template.optional_variables}
        return self.template.format_prompt(**{name: values[name] for name in names & set(values)})
