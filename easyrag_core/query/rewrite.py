"""A follow-up made complete: when to ask a model, what to ask, and what to believe."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from easyrag_core.errors import check_count, check_text
from easyrag_core.query._degradation import report_degradation
from easyrag_core.query._guards import fault_of_rewrite
from easyrag_core.query._json_queries import named_text, only_text
from easyrag_core.query._json_text import holds_json, json_start, whole_json
from easyrag_core.query._reply import (
    fenced,
    has_label,
    is_heading,
    read_json,
    unlabelled,
    unmarked,
    unmarked_alone,
    unquoted,
    visible_text,
)
from easyrag_core.query._schemas import object_of, text
from easyrag_core.query._scripts import prompt_language
from easyrag_core.query._small_talk import is_small_talk
from easyrag_core.query._wording import REWRITE
from easyrag_core.query.history import history_window, text_key
from easyrag_core.query.prompts import Message, message_lines, quoted, templates_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from easyrag_core.events import EventHandler
    from easyrag_core.query._schemas import JSONSchema
    from easyrag_core.query._scripts import Language
    from easyrag_core.query.prompts import PromptTemplate, TemplateChoice

__all__ = ["Rewrite", "RewritePrompt", "needs_rewrite", "parse_rewrite", "query_in", "rewritten"]

_REMARK: Final = re.compile(
    r"(?:\*\*)?[(（\[]?\s*(?:explanation|notes?|reason(?:ing)?|rationale|why|original|context"
    r"|changes?|解释|说明|注意?|备注|理由|原因|原问题|原始问题|改写(?:理由|说明|原因))\s*(?:\*\*)?\s*[:：]",
    re.IGNORECASE,
)

_REPLY: Final = re.compile(r"(?:answer|response|回答|答案?)\s*[:：]", re.IGNORECASE)
# A remark behind the question's end; brackets before it belong to the question.
_ASIDE: Final = re.compile(r"(?<=[?？])\s*[(（]([^()（）]*)[)）][\s.。]*\Z")


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What a question became.

    Attributes:
        query: What to search: the model's text, or the question itself.
        reason: Why the model's text is not used; `None` when it is.
    """

    query: str
    reason: str | None = None


def needs_rewrite(
    question: str,
    history: Sequence[Message],
    *,
    history_turns: int = 4,
    skip_empty_history: bool = True,
) -> bool:
    """Say whether a model should be asked to complete a question.

    Args:
        question: As the user typed it.
        history: The conversation before it, oldest first.
        history_turns: How many messages of user and assistant count.
        skip_empty_history: Whether a question without history is left alone.

    Returns:
        False for blank text, for greetings, thanks and feedback, and without history.

    Raises:
        InvalidParameterError: The question is no text, or the history holds no messages.

    >>> talk = [Message("user", "What is Redis?"), Message("assistant", "A store.")]
    >>> [needs_rewrite(said, talk) for said in ("And its price?", "thanks, that's clear")]
    [True, False]
    >>> needs_rewrite("And its price?", [])
    False
    """
    check_text("question", question)
    if not question.strip() or is_small_talk(question):
        return False
    window = history_window(history, question, history_turns=history_turns)
    return bool(window) or not skip_empty_history


class RewritePrompt:
    """Builds the messages that ask for a standalone question.

    >>> talk = [Message("user", "Redis 是什么"), Message("assistant", "键值数据库")]
    >>> RewritePrompt().messages("它支持哪些功能？", talk)[1].content.splitlines()[-3]
    '最后一个问题："它支持哪些功能？"'
    """

    def __init__(
        self,
        template: TemplateChoice = None,
        *,
        history_turns: int = 4,
        skip_empty_history: bool = True,
    ) -> None:
        """Choose wording and window.

        Args:
            template: With `{history}` and `{question}`; both are filled in as JSON. Ours, by
                the question's language, if not given.
            history_turns: How many messages of user and assistant the model sees.
            skip_empty_history: Whether a question without history is left alone.

        Raises:
            InvalidParameterError: For a template without its placeholders, or a negative number.
        """
        needed = frozenset({"history", "question"})
        self._templates = templates_of(template, REWRITE, needed=needed)
        self._history_turns = check_count("history_turns", history_turns)
        self._skip_empty_history = skip_empty_history

    def needed(self, question: str, history: Sequence[Message]) -> bool:
        """Say whether to ask at all: `needs_rewrite` with these settings."""
        return needs_rewrite(
            question,
            history,
            history_turns=self._history_turns,
            skip_empty_history=self._skip_empty_history,
        )

    @property
    def templates(self) -> dict[Language, PromptTemplate]:
        """The wording for each language, for a prompt of a framework's own kind."""
        return dict(self._templates)

    @property
    def reply_schema(self) -> JSONSchema:
        """The reply as JSON Schema, as `parse_rewrite` reads it."""
        return object_of("Rewrite", "A question made standalone.", rewrite=text("The query."))

    def window(self, question: str, history: Sequence[Message]) -> list[Message]:
        """Return the messages that the model sees, for `parse_rewrite`."""
        return history_window(history, question, history_turns=self._history_turns)

    def variables(self, question: str, history: Sequence[Message]) -> dict[str, str]:
        """Return what fills the placeholders, for a prompt of a framework's own kind."""
        window = self.window(question, history)
        return {"history": message_lines(window), "question": quoted(question)}

    def messages(self, question: str, history: Sequence[Message]) -> list[Message]:
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


def parse_rewrite(
    reply: str,
    question: str,
    *,
    history: Sequence[Message] = (),
    strict: bool = False,
    on_event: EventHandler | None = None,
) -> Rewrite:
    r"""Read a standalone question from a model's reply, or fall back to the question.

    Reasoning, fences, quotes, labels, preambles and explanations are removed. What is empty, too
    long (over 4 times the longer of the question and 200 characters), in another script, a
    refusal, an answer, a copy of what was said before, JSON that names no query, or about
    something else is not used.

    Args:
        reply: The model's text.
        question: As the user typed it.
        history: The messages that the model saw.
        strict: Raise instead of falling back.
        on_event: Hears `easyrag.query.rewrite` when the reply is not used.

    Returns:
        The query, and why it is the question itself.

    Raises:
        OutputParseError: In strict mode, for an unusable reply.

    >>> parse_rewrite('<think>…</think>Sure! Rewritten query: "Price of Redis"', "Its price?")
    Rewrite(query='Price of Redis', reason=None)
    >>> parse_rewrite("", "Its price?")
    Rewrite(query='Its price?', reason='empty')
    """
    said = "\n".join([question, *(message.content for message in history)])
    query = query_in(reply, said)
    reason = fault_of_rewrite(query, question, history)
    if reason is None:
        return Rewrite(query)
    report_degradation("rewrite", reason, raw=reply, on_event=on_event, strict=strict)
    return Rewrite(question, reason)


def rewritten(value: Any) -> str | None:
    """Return the rewritten question in a JSON object or a list of one, if there is one.

    >>> rewritten({"query": " Redis price "}), rewritten({"answer": 3})
    ('Redis price', None)
    """
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return " ".join(value[0].split())
    return named_text(value)


def query_in(reply: str, said: str = "") -> str:
    r"""Return the one query in a reply, without what stands around it.

    Args:
        reply: The model's text.
        said: Question and history: JSON that the user asks about is no wrapper of a query, and
            what was said in brackets is no remark.

    Returns:
        One line; JSON itself when it names no query.

    >>> query_in("Standalone question: Redis price\n\nThis keeps the topic.")
    'Redis price'
    """
    visible = visible_text(reply, said)
    inside = fenced(visible)
    if (query := _json_query(visible, inside, said)) is not None:
        return query
    lines = [line.strip() for line in inside.splitlines()]
    lines = [line for line in lines if not is_heading(line)] or lines
    labelled = next((at for at, line in enumerate(lines) if has_label(line)), 0)
    paragraph = _first_paragraph(lines[labelled:])
    query = unquoted(paragraph, said)
    is_list = sum(unmarked(line)[1] for line in lines) > 1
    query = unquoted(unmarked(query)[0] if is_list else unmarked_alone(query, said), said)
    aside = _ASIDE.search(query)
    if aside is None or ((key := text_key(aside[1])) and key in text_key(said)):
        # What the user put in brackets narrows the question.
        return query
    return query[: aside.start()]


def _json_query(visible: str, inside: str, said: str) -> str | None:
    """Return what JSON names as the query, or the JSON itself when it names none."""
    start = json_start(inside)
    if start is not None and holds_json(inside[start:], said):
        value = whole_json(inside[start:])
        query = rewritten(value)
        if query is None and (query := only_text(value)) is None and value is not None:
            query = inside[start:]
        return query
    if holds_json(said):
        return None
    return rewritten(read_json(visible, lambda found: rewritten(found) is not None, nested=False))


def _first_paragraph(lines: Sequence[str]) -> str:
    """Join the first lines that say something, up to a blank one, a remark or a second mark."""
    said: list[str] = []
    for line in lines:
        rest = unlabelled(line)
        ends = not line or _REMARK.match(line) or _REPLY.match(line) or unmarked(line)[1]
        if said and ends:
            break
        if rest and not (said == [] and _REMARK.match(line)):
            said.append(rest)
    return " ".join(said)
