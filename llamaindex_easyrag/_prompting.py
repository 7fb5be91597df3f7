"""The wording of a request: templates of LlamaIndex, one for each language that we word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from llama_index.core.prompts import BasePromptTemplate, ChatPromptTemplate

from easyrag_core import InvalidParameterError
from easyrag_core.query import prompt_language
from llamaindex_easyrag._conversation import template_messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from llama_index.core.base.llms.base import BaseLLM
    from llama_index.core.base.llms.types import ChatMessage

    from easyrag_core.query import PromptTemplate

__all__ = ["COUNT", "HISTORY", "QUESTION", "Prompting", "core_wording"]

QUESTION: Final = ("question", "query_str")
HISTORY: Final = ("history", "chat_history")
COUNT: Final = ("count", "num_queries")


def core_wording(prompt: Any) -> Any:
    """Return what the core's prompt takes as its template: all but the framework's own."""
    return None if isinstance(prompt, BasePromptTemplate) else prompt


class Prompting:
    """Keeps the templates of one step, and lets them be shown and replaced.

    The core's placeholders are filled with JSON, in which no text can pose as an instruction.
    `query_str` and `chat_history`, the framework's names, are filled with the texts as they are.
    """

    def __init__(
        self,
        name: str,
        ours: Mapping[Any, PromptTemplate],
        given: Any,
        *needed: tuple[str, ...],
        optional: tuple[str, ...] = (),
    ) -> None:
        """Check the template.

        Args:
            name: The prompt's name in `get_prompts`.
            ours: What is used for each language where the framework's own is not given.
            given: A template of the framework for all languages; anything else is in `ours`.
            *needed: Names of placeholders; of each group a template has at least one.
            optional: Names that it may have.

        Raises:
            InvalidParameterError: A placeholder is missing, or is one that nothing fills.
        """
        self._name = name
        self._needed = needed
        self._optional = optional
        self._templates: dict[str, BasePromptTemplate] = {
            language: ChatPromptTemplate(template_messages(template))
            for language, template in ours.items()
        }
        if isinstance(given, BasePromptTemplate):
            self.update({name: given})

    def shown(self) -> dict[str, BasePromptTemplate]:
        """Return the templates by name and language."""
        return {f"{self._name}_{language}": told for language, told in self._templates.items()}

    def update(self, prompts: Mapping[str, Any]) -> None:
        """Replace templates.

        Args:
            prompts: By `<name>` for all languages, or by `<name>_en` and `<name>_zh`; names with
                a colon belong to others.

        Raises:
            InvalidParameterError: The name is another, or it is no template with its placeholders.
        """
        known = {f"{self._name}_{language}": [language] for language in self._templates}
        known[self._name] = list(self._templates)
        own = {key: template for key, template in prompts.items() if ":" not in key}
        for key, template in own.items():
            if key not in known:
                raise InvalidParameterError("prompts", key, f"give {', '.join(known)}")
            self._check(template)
        self._templates |= {place: told for key, told in own.items() for place in known[key]}

    def _check(self, template: Any) -> None:
        if not isinstance(template, BasePromptTemplate):
            raise InvalidParameterError("prompt", template, "give a prompt template")
        found = _placeholders(template)
        known = {*self._optional, *(name for names in self._needed for name in names)}
        missing = [names for names in self._needed if not found.intersection(names)]
        if missing or found - known:
            wanted = ", ".join(" or ".join(f"{{{n}}}" for n in names) for names in self._needed)
            more = "".join(f", {{{name}}}" for name in self._optional)
            allowed = f"it must hold {wanted}" + (f" and may hold{more[1:]}" if more else "")
            raise InvalidParameterError("prompt", sorted(found), allowed)

    def messages(
        self, question: str, variables: Mapping[str, str], llm: BaseLLM | None
    ) -> list[ChatMessage]:
        """Return what a model is asked.

        Args:
            question: Chooses the language.
            variables: A text for each placeholder.
            llm: Who is asked, for templates that depend on it.

        Returns:
            The messages.
        """
        template = self._templates[prompt_language(question)]
        return template.format_messages(llm=llm, **variables)


def _placeholders(template: BasePromptTemplate) -> set[str]:
    """The names that must be filled when asking, as the framework's user named them."""
    names = {theirs: ours for ours, theirs in (template.template_var_mappings or {}).items()}
    filled = {*template.kwargs, *(template.function_mappings or {})}
    return {names.get(name, name) for name in template.template_vars} - filled
