"""Chooses among retrievers or query engines by what a question is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection

from easyrag_core import (
    IntentDecision,
    IntentNode,
    IntentPrompt,
    IntentTree,
    InvalidParameterError,
    JudgePrompt,
    is_small_talk,
    parse_intents,
    parse_judgement,
)
from easyrag_core.errors import check_choice
from llamaindex_easyrag._prompting import QUESTION, Prompting, core_wording
from llamaindex_easyrag._step import QueryStep, Request, checked_llm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.base.llms.base import BaseLLM
    from llama_index.core.prompts import BasePromptTemplate
    from llama_index.core.schema import QueryBundle
    from llama_index.core.tools.types import ToolMetadata

    from easyrag_core import IntentRules
    from easyrag_core.events import EventHandler
    from llamaindex_easyrag._step import Plan

__all__ = ["IntentSelector"]


class IntentSelector(QueryStep, BaseSelector):
    """Chooses the tools of a `RouterRetriever` or a `RouterQueryEngine`.

    Without a tree the tools' names and descriptions are the topics. With one, a topic leads to
    the tool that it, or a node above it, names as `tool` or `collection`, or whose id is the
    tool's name. One call lists the topics that fit; a second one, by a judge, is made only where
    two come close; none is made for a single tool. Where the judge cannot tell, or two topics
    come closer still, the tools of all that fit are chosen. Replies that name what is not there
    are never followed: where no topic fits, or the model fails, all tools are chosen, or as
    `on_abstain` says.
    """

    step: ClassVar[str] = "intent"

    def __init__(
        self,
        llm: BaseLLM | None = None,
        tree: IntentTree | None = None,
        prompt: Any = None,
        *,
        multi: bool = True,
        rules: IntentRules | None = None,
        candidates: int = 40,
        judge: BaseLLM | None = None,
        judge_prompt: Any = None,
        on_abstain: str = "all",
        on_error: str = "fallback",
        on_event: EventHandler | None = None,
    ) -> None:
        """Check the settings.

        Args:
            llm: Who is asked; by default `Settings.llm`, when there is something to ask.
            tree: Topics; by default the tools are the topics.
            prompt: A template of the framework or of `easyrag_core`, with `{topics}` and
                `{questions}`; ours, if not given.
            multi: Whether more than one tool may be chosen where several topics fit.
            rules: From scores to a decision.
            candidates: The most topics that a model is shown.
            judge: Who decides between two topics that come close; `llm`, if not given.
            judge_prompt: The judge's template, with `{topics}`, and `{question}` or `{query_str}`.
            on_abstain: Where no topic fits: `"all"` chooses every tool, `"first"` the first,
                `"raise"` raises a `ValueError`.
            on_error: `"fallback"` goes on without the model, `"raise"` raises its error.
            on_event: Hears when the selector goes on without the model.

        Raises:
            InvalidParameterError: A setting is not as above, or the prompt lacks a placeholder.
        """
        super().__init__(llm, on_error=on_error, on_event=on_event)
        self._wording: dict[str, Any] = {
            "template": core_wording(prompt),
            "candidates": candidates,
        }
        known = IntentPrompt(IntentTree() if tree is None else tree, **self._wording)
        self._prompting = Prompting(
            "intent_prompt", known.templates, prompt, ("questions",), ("topics",)
        )
        self._judge = checked_llm("judge", judge)
        self._verdict = {"template": core_wording(judge_prompt)}
        verdict = JudgePrompt(IntentTree(), **self._verdict)
        self._judging = Prompting(
            "judge_prompt", verdict.templates, judge_prompt, QUESTION, ("topics",)
        )
        self._tree = tree
        self._multi = multi
        self._rules = rules
        self._on_abstain = check_choice("on_abstain", on_abstain, ("all", "first", "raise"))

    def decide(self, choices: Sequence[ToolMetadata], query: str) -> IntentDecision:
        """Return the decision: matches with scores, and what to ask the user in doubt.

        Args:
            choices: The tools.
            query: The question.

        Returns:
            The decision; a topic's id is its tool's name, or its number where it has none.

        Raises:
            Exception: With `on_error="raise"`: what the model raised, or `OutputParseError`.
        """
        return self._drive(self._plan(self._topics(choices), query), query)

    async def adecide(self, choices: Sequence[ToolMetadata], query: str) -> IntentDecision:
        """Return the decision: the async twin of `decide`."""
        return await self._adrive(self._plan(self._topics(choices), query), query)

    def _select(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> SelectorResult:
        if len(choices) == 1:
            return _selected({0: "the only choice"})
        return self._result(choices, self.decide(choices, query.query_str))

    async def _aselect(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> SelectorResult:
        if len(choices) == 1:
            return _selected({0: "the only choice"})
        return self._result(choices, await self.adecide(choices, query.query_str))

    def _topics(self, choices: Sequence[ToolMetadata]) -> IntentTree:
        if self._tree is not None:
            return self._tree
        named = enumerate(_names(choices))
        return IntentTree(
            IntentNode(name, name, description=choices[at].description or "") for at, name in named
        )

    def _plan(self, tree: IntentTree, question: str) -> Plan[IntentDecision]:
        if not tree.leaves or not question.strip() or is_small_talk(question):
            return IntentDecision(question)
        told = IntentPrompt(tree, **self._wording).variables([question])
        reply = yield Request(self._prompting, question, told)
        if reply is None:
            return IntentDecision(question)
        found = parse_intents(reply, tree, [question], rules=self._rules, **self._reading)
        return (yield from self._judged(tree, found[0]))

    def _judged(self, tree: IntentTree, decision: IntentDecision) -> Plan[IntentDecision]:
        if decision.outcome != "judge":
            return decision
        told = JudgePrompt(tree, **self._verdict).variables(decision)
        told["query_str"] = decision.question
        reply = yield Request(self._judging, decision.question, told, self._judge)
        return parse_judgement(reply, decision, tree, **self._reading)

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        return self._prompting.shown() | self._judging.shown()

    def _update_prompts(self, prompts: dict[str, Any]) -> None:
        of_judge = {name: told for name, told in prompts.items() if name.startswith("judge_prompt")}
        self._judging.update(of_judge)
        super()._update_prompts({n: told for n, told in prompts.items() if n not in of_judge})

    def _told(self, result: IntentDecision) -> list[str]:
        return [match.node.id for match in result.matches]

    def _result(self, choices: Sequence[ToolMetadata], decision: IntentDecision) -> SelectorResult:
        tree, names = self._topics(choices), _names(choices)
        chosen: dict[int, str] = {}
        for match in decision.matches:
            led = _led(tree, match.node.id)
            found = next((names.index(name) for name in led if name in names), None)
            if found is not None:
                chosen.setdefault(found, f"{tree.label(match.node.id)}: {match.score:.2f}")
        if not chosen:
            return self._abstained(len(choices), decision.question)
        return _selected(chosen if self._multi else dict([next(iter(chosen.items()))]))

    def _abstained(self, number: int, question: str) -> SelectorResult:
        if self._on_abstain == "raise" or not number:
            raise InvalidParameterError("query", question, "ask about what some tool is for")
        chosen = range(number) if self._on_abstain == "all" else range(1)
        return _selected(dict.fromkeys(chosen, "no topic fits"))


def _names(choices: Sequence[ToolMetadata]) -> list[str]:
    """A name for each tool, all different: its own, or its number."""
    names: list[str] = []
    for number, choice in enumerate(choices, start=1):
        name = (getattr(choice, "name", None) or "").strip() or str(number)
        while name in names:
            name = f"{name} ({number})"
        names.append(name)
    return names


def _led(tree: IntentTree, id_: str) -> list[str]:
    """What a topic and those above it name, the narrowest first."""
    path = tree.path(id_)[::-1]
    return [name for node in path for name in (node.tool, node.collection, node.id) if name]


def _selected(chosen: dict[int, str]) -> SelectorResult:
    return SelectorResult(
        selections=[SingleSelection(index=at, reason=why) for at, why in chosen.items()]
    )
