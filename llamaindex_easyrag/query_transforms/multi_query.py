"""A question in other wordings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from easyrag_core import MultiQueryPrompt, is_small_talk, parse_queries
from llamaindex_easyrag._prompting import COUNT, QUESTION, Prompting, core_wording
from llamaindex_easyrag._step import Request
from llamaindex_easyrag.query_transforms._transform import ModelTransform, transformed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.base.llms.base import BaseLLM
    from llama_index.core.schema import QueryBundle

    from easyrag_core import Message
    from easyrag_core.events import EventHandler
    from llamaindex_easyrag._step import Plan

__all__ = ["MultiQueryTransform"]


class MultiQueryTransform(ModelTransform):
    """Asks a model for other wordings of a question; the question itself comes first.

    As a transform it leaves the question as it is and lets the mean of all wordings be embedded.
    To search each of them, give it to a `MultiQueryRetriever`.
    """

    step: ClassVar[str] = "expansion"

    def __init__(
        self,
        llm: BaseLLM | None = None,
        prompt: Any = None,
        *,
        count: int = 3,
        on_error: str = "fallback",
        on_event: EventHandler | None = None,
    ) -> None:
        """Check the settings.

        Args:
            llm: Who is asked; by default `Settings.llm`, when there is something to ask.
            prompt: A template of the framework or of `easyrag_core`, with `{question}` or
                `{query_str}`, and `{count}` or `{num_queries}` if wanted: how many other
                wordings. Ours, if not given.
            count: How many queries are wanted, the question itself included; for 1 nobody is
                asked.
            on_error: `"fallback"` goes on without the model, `"raise"` raises its error.
            on_event: Hears when the transform goes on without the model.

        Raises:
            InvalidParameterError: A setting is not as above, or the prompt lacks a placeholder.
        """
        super().__init__(llm, on_error=on_error, on_event=on_event)
        self._expansion = MultiQueryPrompt(core_wording(prompt), count=count)
        self._prompting = Prompting(
            "expansion_prompt", self._expansion.templates, prompt, QUESTION, optional=COUNT
        )

    def queries(self, query: str | QueryBundle) -> list[str]:
        """Return the queries, the question first.

        Args:
            query: The question.

        Returns:
            At least the question, at most `count`.

        Raises:
            Exception: With `on_error="raise"`: what the model raised, or `OutputParseError`.
        """
        found: list[str] = self._result(query, None)
        return found

    async def aqueries(self, query: str | QueryBundle) -> list[str]:
        """Return the queries: the async twin of `queries`."""
        found: list[str] = await self._aresult(query, None)
        return found

    def _run(self, query_bundle: QueryBundle, metadata: dict[str, Any]) -> QueryBundle:
        return self._transform(query_bundle, metadata)

    def _plan(self, question: str, history: Sequence[Message]) -> Plan[list[str]]:
        del history
        prompt = self._expansion
        if prompt.count == 1 or not question.strip() or is_small_talk(question):
            return [question]
        variables = prompt.variables(question)
        told = {**variables, "query_str": question, "num_queries": variables["count"]}
        reply = yield Request(self._prompting, question, told)
        if reply is None:
            return [question]
        return parse_queries(reply, question, count=prompt.count, **self._reading)

    def _told(self, result: list[str]) -> list[str]:
        return result

    def _bundle(self, query_bundle: QueryBundle, result: list[str]) -> QueryBundle:
        if len(result) == 1:
            return replace(query_bundle)
        return transformed(query_bundle, query_bundle.query_str, result)
