"""Several questions in one, taken apart."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from easyrag_core import (
    DecomposePrompt,
    Decomposition,
    is_small_talk,
    parse_decomposition,
    split_questions,
)
from llamaindex_easyrag._prompting import HISTORY, QUESTION, Prompting, core_wording
from llamaindex_easyrag._step import Request
from llamaindex_easyrag.query_transforms._transform import (
    ModelTransform,
    transformed,
    with_history,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.base.llms.base import BaseLLM
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import BaseMemory
    from llama_index.core.schema import QueryBundle

    from easyrag_core import Message
    from easyrag_core.events import EventHandler
    from llamaindex_easyrag._step import Plan

__all__ = ["QueryDecomposeTransform"]


class QueryDecomposeTransform(ModelTransform):
    """Makes a question complete and takes it apart, in one call of a model.

    As a transform it sets the complete question as the query and lets the mean of its parts be
    embedded. To search each part, give it to a `MultiQueryRetriever`. Where the model fails,
    the question's punctuation takes it apart.
    """

    step: ClassVar[str] = "decomposition"

    def __init__(
        self,
        llm: BaseLLM | None = None,
        prompt: Any = None,
        *,
        memory: BaseMemory | None = None,
        max_questions: int = 4,
        history_turns: int = 4,
        keep_query_str: bool = False,
        on_error: str = "fallback",
        on_event: EventHandler | None = None,
    ) -> None:
        """Check the settings.

        Args:
            llm: Who is asked; by default `Settings.llm`, when there is something to ask.
            prompt: A template of the framework or of `easyrag_core`, with `{history}` or
                `{chat_history}`, and `{question}` or `{query_str}`, and `{count}` if wanted;
                ours, if not given.
            memory: Where the conversation is when a call brings none.
            max_questions: The most sub-questions.
            history_turns: How many messages of user and assistant the model sees.
            keep_query_str: Leave the question as the user typed it.
            on_error: `"fallback"` goes on without the model, `"raise"` raises its error.
            on_event: Hears when the transform goes on without the model.

        Raises:
            InvalidParameterError: A setting is not as above, or the prompt lacks a placeholder.
        """
        super().__init__(llm, memory=memory, on_error=on_error, on_event=on_event)
        self._splitting = DecomposePrompt(
            core_wording(prompt), max_questions=max_questions, history_turns=history_turns
        )
        self._prompting = Prompting(
            "decompose_prompt",
            self._splitting.templates,
            prompt,
            QUESTION,
            HISTORY,
            optional=("count",),
        )
        self._keep_query_str = keep_query_str

    def decompose(
        self, query: str | QueryBundle, chat_history: Sequence[ChatMessage] | None = None
    ) -> Decomposition:
        """Return the complete question and its parts.

        Args:
            query: The question.
            chat_history: The conversation before it, oldest first; `None` takes the memory's.

        Returns:
            Rewrite and sub-questions, at least one.

        Raises:
            Exception: With `on_error="raise"`: what the model raised, or `OutputParseError`.
        """
        found: Decomposition = self._result(query, chat_history)
        return found

    async def adecompose(
        self, query: str | QueryBundle, chat_history: Sequence[ChatMessage] | None = None
    ) -> Decomposition:
        """Return the complete question and its parts: the async twin of `decompose`."""
        found: Decomposition = await self._aresult(query, chat_history)
        return found

    def queries(self, query: str | QueryBundle) -> list[str]:
        """Return what to search: the sub-questions.

        Args:
            query: The question.

        Returns:
            At least one.
        """
        return list(self.decompose(query).questions)

    async def aqueries(self, query: str | QueryBundle) -> list[str]:
        """Return what to search: the async twin of `queries`."""
        return list((await self.adecompose(query)).questions)

    def _run(self, query_bundle: QueryBundle, metadata: dict[str, Any]) -> QueryBundle:
        return self._transform(query_bundle, metadata)

    def _plan(self, question: str, history: Sequence[Message]) -> Plan[Decomposition]:
        prompt = self._splitting
        if not question.strip() or is_small_talk(question):
            return Decomposition(question, (question,))
        window = prompt.window(question, history)
        told = with_history(prompt.variables(question, history), question, window)
        reply = yield Request(self._prompting, question, told)
        most = prompt.max_questions
        if reply is None:
            parts = split_questions(question, max_questions=most)
            return Decomposition(question, tuple(parts), "the model failed")
        return parse_decomposition(
            reply, question, history=window, max_questions=most, **self._reading
        )

    def _told(self, result: Decomposition) -> list[str]:
        return list(result.questions)

    def _bundle(self, query_bundle: QueryBundle, result: Decomposition) -> QueryBundle:
        question = query_bundle.query_str
        if (result.rewrite, result.questions) == (question, (question,)):
            return replace(query_bundle)
        query = question if self._keep_query_str else result.rewrite
        return transformed(query_bundle, query, result.questions)
