"""Several questions in one: made complete and taken apart in one call."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from easyrag_core.errors import check_count, check_text
from easyrag_core.query._degradation import report_degradation
from easyrag_core.query._guards import fault_of_rewrite
from easyrag_core.query._json_queries import named_list
from easyrag_core.query._reply import read_json, unmarked, unquoted, visible_text
from easyrag_core.query._schemas import array_of, object_of, text
from easyrag_core.query._scripts import prompt_language
from easyrag_core.query._wording import DECOMPOSE
from easyrag_core.query.expansion import distinct_queries
from easyrag_core.query.history import history_window
from easyrag_core.query.prompts import message_lines, quoted, templates_of
from easyrag_core.query.rewrite import rewritten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from easyrag_core.events import EventHandler
    from easyrag_core.query._schemas import JSONSchema
    from easyrag_core.query._scripts import Language
    from easyrag_core.query.prompts import Message, PromptTemplate, TemplateChoice

__all__ = ["DecomposePrompt", "Decomposition", "parse_decomposition", "split_questions"]

_LISTS: Final = re.compile(r"(?:sub)?(?:questions|queries)|子问题(?:列表)?|问题列表|问题")
# Half-width marks also stand inside addresses and code: there no space follows.
_QUESTION_END: Final = re.compile(r"(?<=[？。；])|(?<=[?;])(?=\s|$|[^\x00-\x7f])|[\r\n]+")


@dataclass(frozen=True, slots=True)
class Decomposition:
    """A question made complete, and its parts.

    Attributes:
        rewrite: The whole question, understandable alone.
        questions: One to search for each thing asked; the rewrite alone when it is one thing.
        reason: Why the model's reply is not used as it is; `None` when it is.
    """

    rewrite: str
    questions: tuple[str, ...]
    reason: str | None = None


class DecomposePrompt:
    """Builds the messages that ask for rewrite and sub-questions in one JSON object.

    >>> DecomposePrompt().messages("A 是什么？B 呢？")[1].content.splitlines()[-1]
    'JSON：'
    """

    def __init__(
        self,
        template: TemplateChoice = None,
        *,
        max_questions: int = 4,
        history_turns: int = 4,
    ) -> None:
        """Choose wording, number and window.

        Args:
            template: With `{history}` and `{question}`, and `{count}` if wanted. Ours, by the
                question's language, if not given.
            max_questions: The most sub-questions.
            history_turns: How many messages of user and assistant the model sees.

        Raises:
            InvalidParameterError: For a template without its placeholders, or bad numbers.
        """
        needed = frozenset({"history", "question"})
        self._templates = templates_of(
            template, DECOMPOSE, needed=needed, optional=frozenset({"count"})
        )
        self._max_questions = check_count("max_questions", max_questions, minimum=1)
        self._history_turns = check_count("history_turns", history_turns)

    @property
    def max_questions(self) -> int:
        """The most sub-questions."""
        return self._max_questions

    @property
    def templates(self) -> dict[Language, PromptTemplate]:
        """The wording for each language, for a prompt of a framework's own kind."""
        return dict(self._templates)

    @property
    def reply_schema(self) -> JSONSchema:
        """The reply as JSON Schema; `parse_decomposition` reads it."""
        questions = array_of(text("A sub-question."), f"At most {self._max_questions}.")
        told = "A question made complete and taken apart."
        return object_of("Decomposition", told, rewrite=text("The whole."), questions=questions)

    def window(self, question: str, history: Sequence[Message]) -> list[Message]:
        """Return the messages that the model sees, for `parse_decomposition`."""
        return history_window(history, question, history_turns=self._history_turns)

    def variables(self, question: str, history: Sequence[Message] = ()) -> dict[str, str]:
        """Return what fills the placeholders, for a prompt of a framework's own kind."""
        return {
            "history": message_lines(self.window(question, history)),
            "question": quoted(question),
            "count": str(self._max_questions),
        }

    def messages(self, question: str, history: Sequence[Message] = ()) -> list[Message]:
        """Return the messages for the model.

        Args:
            question: As the user typed it.
            history: The conversation before it, oldest first.

        Returns:
            A system message and a user message.

        Raises:
            InvalidParameterError: The history holds something that is no `Message`.
        """
        template = self._templates[prompt_language(question)]
        return template.messages(self.variables(question, history))


def parse_decomposition(
    reply: str,
    question: str,
    *,
    history: Sequence[Message] = (),
    max_questions: int = 4,
    strict: bool = False,
    on_event: EventHandler | None = None,
) -> Decomposition:
    """Read rewrite and sub-questions, or take the question apart by its punctuation.

    Args:
        reply: The model's text, with a JSON object in it.
        question: As the user typed it.
        history: The messages that the model saw.
        max_questions: The most sub-questions.
        strict: Raise instead of falling back.
        on_event: Hears `easyrag.query.decomposition` when a part of the reply is not used.

    Returns:
        Rewrite and sub-questions; deduplicated, at least one.

    Raises:
        InvalidParameterError: The question is no text, or `max_questions` is below 1.
        OutputParseError: In strict mode, for an unusable reply.

    >>> reply = '{"rewrite": "What are A and B?", "questions": ["What is A?", "What is B?"]}'
    >>> parse_decomposition(reply, "What are A and B?").questions
    ('What is A?', 'What is B?')
    >>> parse_decomposition("no idea", "What is A? And B?").questions
    ('What is A?', 'And B?')
    """
    fallback = split_questions(question, max_questions=max_questions)
    said = "\n".join([question, *(message.content for message in history)])
    value = read_json(visible_text(reply, said), _is_decomposition)
    if value is None:
        report_degradation("decomposition", "no JSON", raw=reply, on_event=on_event, strict=strict)
        return Decomposition(question, tuple(fallback), "no JSON")
    rewrite = unquoted(rewritten(value) or "", said) or question
    reason = fault_of_rewrite(rewrite, question, history)
    if reason is not None:
        report_degradation("decomposition", reason, raw=reply, on_event=on_event, strict=strict)
        rewrite = question
    given = _parts(value, said)
    faults = [fault_of_rewrite(part, question, history, rewrite=rewrite) for part in given]
    parts = [part for part, fault in zip(given, faults, strict=True) if fault is None]
    if reason is None and (fault := next(filter(None, faults), None)) is not None:
        report_degradation("decomposition", fault, raw=reply, on_event=on_event, strict=strict)
    if len(parts) > 1:
        return Decomposition(rewrite, tuple(parts[:max_questions]), reason)
    if reason is None and (parts or len(given) < 2):
        return Decomposition(rewrite, (rewrite,))
    # What it was taken apart into is not used: the punctuation knows better.
    return Decomposition(
        rewrite, tuple(split_questions(rewrite, max_questions=max_questions)), reason
    )


def _is_decomposition(value: Any) -> bool:
    return isinstance(value, dict) and (
        rewritten(value) is not None or bool(named_list(value, _LISTS))
    )


def _parts(value: dict[str, Any], said: str) -> list[str]:
    return distinct_queries(
        unquoted(unmarked(found)[0], said) for found in named_list(value, _LISTS)
    )


def split_questions(question: str, *, max_questions: int = 4) -> list[str]:
    r"""Take a question apart at `？`, `?`, `。`, `；`, `;` and line ends, without a model.

    Half-width marks count only where a space, a Chinese character or the end follows. What
    exceeds the number stays together in the last part: nothing asked is lost.

    Args:
        question: As the user typed it.
        max_questions: The most parts.

    Returns:
        At least one part; the question itself when there is nothing to take apart.

    Raises:
        InvalidParameterError: The question is no text, or the number is below 1.

    >>> split_questions("年假有几天？怎么申请？"), split_questions("see http://a.b/?x=1;y")
    (['年假有几天？', '怎么申请？'], ['see http://a.b/?x=1;y'])
    """
    check_text("question", question)
    check_count("max_questions", max_questions, minimum=1)
    pieces = [piece.strip().rstrip(";；。").rstrip() for piece in _QUESTION_END.split(question)]
    parts = distinct_queries(piece for piece in pieces if any(map(str.isalnum, piece)))
    if len(parts) < 2:
        return [question]
    kept = parts[: max_questions - 1]
    rest = " ".join(parts[len(kept) :])
    return [*kept, rest] if rest else kept
