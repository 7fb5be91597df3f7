"""What a model is asked about topics."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from easyrag_core.errors import InvalidParameterError, check_count, check_texts
from easyrag_core.query._schemas import array_of, object_of, text
from easyrag_core.query._scripts import prompt_language
from easyrag_core.query._wording import CLASSIFY, JUDGE
from easyrag_core.query.intent._tree import IntentTree
from easyrag_core.query.prompts import quoted, templates_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from easyrag_core.query._schemas import JSONSchema
    from easyrag_core.query._scripts import Language
    from easyrag_core.query.intent._decision import IntentDecision
    from easyrag_core.query.prompts import Message, PromptTemplate, TemplateChoice

__all__ = ["IntentPrompt", "JudgePrompt"]

_LONGEST_TEXT: Final = 160
_LONGEST_EXAMPLE: Final = 80
_EXAMPLES: Final = 2


class IntentPrompt:
    """Builds the messages that ask which topics questions are about: one call for all of them.

    >>> tree = IntentTree.from_dicts([{"id": "leave", "name": "Leave"}])
    >>> IntentPrompt(tree).messages(["How many days?"])[1].content.splitlines()[1]
    '{"id": "leave", "name": "Leave"}'
    >>> IntentPrompt(IntentTree()).messages(["How many days?"])
    []
    """

    def __init__(
        self, tree: IntentTree, template: TemplateChoice = None, *, candidates: int = 40
    ) -> None:
        """Choose tree, wording and size.

        Args:
            tree: Its leaves are listed.
            template: With `{topics}` and `{questions}`. Ours, by the first question's language,
                if not given.
            candidates: The most leaves that are listed.

        Raises:
            InvalidParameterError: For a template without its placeholders, or a bad number.
        """
        if not isinstance(tree, IntentTree):
            raise InvalidParameterError("tree", tree, "give an IntentTree")
        needed = frozenset({"topics", "questions"})
        self._templates = templates_of(template, CLASSIFY, needed=needed)
        self._tree = tree
        self._candidates = check_count("candidates", candidates, minimum=1)

    @property
    def templates(self) -> dict[Language, PromptTemplate]:
        """The wording for each language, for a prompt of a framework's own kind."""
        return dict(self._templates)

    @property
    def reply_schema(self) -> JSONSchema:
        """The reply as JSON Schema; `parse_intents` reads it."""
        match = object_of(
            question={"type": "integer"},
            id=text("Of a topic."),
            score={"type": "number", "minimum": 0, "maximum": 1},
        )
        return object_of("Intents", "Topics that fit.", intents=array_of(match))

    def variables(self, questions: Sequence[str]) -> dict[str, str]:
        """Return what fills the placeholders, for a prompt of a framework's own kind."""
        listed = self._tree.candidates(questions, self._candidates)
        told = [
            f'{{"question": {at}, "text": {quoted(asked)}}}'
            for at, asked in enumerate(questions, 1)
        ]
        return {
            "topics": _topics(self._tree, [leaf.id for leaf in listed]),
            "questions": _lines(told),
        }

    def messages(self, questions: Sequence[str]) -> list[Message]:
        """Return the messages for the model.

        Args:
            questions: One question, or the sub-questions of one, made complete.

        Returns:
            A system message and a user message; nothing for an empty tree or no question: no
            call is needed.

        Raises:
            InvalidParameterError: For one text instead of a list.
        """
        questions = check_texts("questions", questions)
        if not self._tree.leaves or not questions:
            return []
        return self._templates[prompt_language(questions[0])].messages(self.variables(questions))


class JudgePrompt:
    """Builds the messages that ask whether a question is clear enough between a few topics."""

    def __init__(self, tree: IntentTree, template: TemplateChoice = None) -> None:
        """Choose tree and wording.

        Args:
            tree: The tree of the decision.
            template: With `{topics}` and `{question}`. Ours, by the question's language, if not
                given.

        Raises:
            InvalidParameterError: For a template without its placeholders.
        """
        needed = frozenset({"topics", "question"})
        self._templates = templates_of(template, JUDGE, needed=needed)
        self._tree = tree

    @property
    def reply_schema(self) -> JSONSchema:
        """The reply as JSON Schema; `parse_judgement` reads it."""
        told = "Whether to ask back, or which topic is meant."
        return object_of("Judgement", told, ask={"type": "boolean"}, id=text("Of the topic."))

    @property
    def templates(self) -> dict[Language, PromptTemplate]:
        """The wording for each language, for a prompt of a framework's own kind."""
        return dict(self._templates)

    def variables(self, decision: IntentDecision) -> dict[str, str]:
        """Return what fills the placeholders, for a prompt of a framework's own kind."""
        options = decision.clarification.options if decision.clarification else ()
        topics = _topics(self._tree, [option.id for option in options])
        return {"topics": topics, "question": quoted(decision.question)}

    def messages(self, decision: IntentDecision) -> list[Message]:
        """Return the messages for the model; nothing when there is nothing to judge.

        Args:
            decision: One whose outcome is `judge`.

        Returns:
            A system message and a user message, or nothing.
        """
        if decision.outcome != "judge":
            return []
        template = self._templates[prompt_language(decision.question)]
        return template.messages(self.variables(decision))


def _topics(tree: IntentTree, ids: Iterable[str]) -> str:
    return _lines([_told(tree, id_) for id_ in ids])


def _lines(lines: list[str]) -> str:
    return "\n".join(lines) or "[]"


def _told(tree: IntentTree, id_: str) -> str:
    node = tree.node(id_)
    told: dict[str, Any] = {"id": node.id, "name": tree.label(id_)[-_LONGEST_TEXT:]}
    if node.description:
        told["description"] = node.description[:_LONGEST_TEXT]
    if node.examples:
        told["examples"] = [example[:_LONGEST_EXAMPLE] for example in node.examples[:_EXAMPLES]]
    return json.dumps(told, ensure_ascii=False)
