"""Follow-ups made complete before retrieval."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from easyrag_core import RewritePrompt, parse_rewrite
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

__all__ = ["QueryRewriteTransform"]


class QueryRewriteTransform(ModelTransform):
    """Turns the last question of a conversation into one that can be searched alone.

    The conversation comes with each call as `metadata={"chat_history": messages}`, or from a
    memory. Without one, for greetings and thanks, the model is not asked; a reply that is empty,
    an answer, a refusal, in another language or about something else is not used. Where the
    model fails the question itself goes on, with a warning and events.

    Behind our `TransformRetriever` and `TransformQueryEngine` the answer is still written for
    the question as the user typed it.
    """

    step: ClassVar[str] = "rewrite"

    def __init__(
        self,
        llm: BaseLLM | None = None,
        prompt: Any = None,
        *,
        memory: BaseMemory | None = None,
        history_turns: int = 4,
        skip_empty_history: bool = True,
        keep_query_str: bool = False,
        on_error: str = "fallback",
        on_event: EventHandler | None = None,
    ) -> None:
        """Check the settings.

        Args:
            llm: Who is asked; by default `Settings.llm`, when there is something to ask.
            prompt: A template of the framework or of `easyrag_core`, with `{history}` or
                `{chat_history}`, and `{question}` or `{query_str}`; ours, if not given.
            memory: Where the conversation is when a call brings none.
            history_turns: How many messages of user and assistant the model sees.
            skip_empty_history: Whether a question without history is left alone.
            keep_query_str: Put the rewrite into `custom_embedding_strs` alone: for vector
                retrievers inside engines that answer what they retrieve with.
            on_error: `"fallback"` goes on without the model, `"raise"` raises its error.
            on_event: Hears when the transform goes on without the model.

        Raises:
            InvalidParameterError: A setting is not as above, or the prompt lacks a placeholder.
        """
        super().__init__(llm, memory=memory, on_error=on_error, on_event=on_event)
        self._rewrite = RewritePrompt(
            core_wording(prompt),
            history_turns=history_turns,
            skip_empty_history=skip_empty_history,
        )
        self._prompting = Prompting(
            "rewrite_prompt", self._rewrite.templates, prompt, QUESTION, HISTORY
        )
        self._keep_query_str = keep_query_str

    def rewrite(
        self, query: str | QueryBundle, chat_history: Sequence[ChatMessage] | None = None
    ) -> str:
        """Return the standalone question.

        Args:
            query: The last question.
            chat_history: The conversation before it, oldest first; `None` takes the memory's.

        Returns:
            What to search.

        Raises:
            Exception: With `on_error="raise"`: what the model raised, or `OutputParseError`.
        """
        found: str = self._result(query, chat_history)
        return found

    async def arewrite(
        self, query: str | QueryBundle, chat_history: Sequence[ChatMessage] | None = None
    ) -> str:
        """Return the standalone question: the async twin of `rewrite`."""
        found: str = await self._aresult(query, chat_history)
        return found

    def _run(self, query_bundle: QueryBundle, metadata: dict[str, Any]) -> QueryBundle:
        return self._transform(query_bundle, metadata)

    def _plan(self, question: str, history: Sequence[Message]) -> Plan[str]:
        prompt = self._rewrite
        if not prompt.needed(question, history):
            return question
        window = prompt.window(question, history)
        told = with_history(prompt.variables(question, history), question, window)
        reply = yield Request(self._prompting, question, told)
        if reply is None:
            return question
        return parse_rewrite(reply, question, history=window, **self._reading).query

    def _told(self, result: str) -> list[str]:
        return [result]

    def _bundle(self, query_bundle: QueryBundle, result: str) -> QueryBundle:
        if result == query_bundle.query_str:
            return replace(query_bundle)
        query = query_bundle.query_str if self._keep_query_str else result
        return transformed(query_bundle, query, [result])
