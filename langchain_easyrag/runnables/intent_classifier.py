"""Which topic a question is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from langchain_core.runnables import Runnable  # noqa: TC002 - pydantic reads it
from pydantic import Field, PrivateAttr
from typing_extensions import override

from easyrag_core import (
    Clarification,
    IntentDecision,
    IntentPrompt,
    IntentRules,
    IntentTree,
    InvalidParameterError,
    JudgePrompt,
    cap_decisions,
    is_small_talk,
    parse_intents,
    parse_judgement,
    resolve_clarification,
)
from easyrag_core.errors import check_texts
from langchain_easyrag.runnables._model_call import ModelCall, check_model
from langchain_easyrag.runnables._prompting import QUESTION, Prompting
from langchain_easyrag.runnables._step import QueryStep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.runnables import RunnableConfig

    from langchain_easyrag.runnables._step import Plan

__all__ = ["IntentClassifier"]


class IntentClassifier(QueryStep[IntentDecision]):
    """Match a question to the leaves of a tree of topics: route, ask the user, or abstain.

    One call lists the leaves that may fit, however large the tree is; a second one, by a judge,
    is made only where two topics come close. Where the model fails, no topic fits; where the
    judge fails, the user is asked. A mapping with a `clarification` holds the user's answer to
    it as its question, and needs no call.

    Instantiate:
        ```python
        from langchain_easyrag import IntentClassifier

        classifier = IntentClassifier(llm, IntentTree.from_dicts([...]))
        ```

    Ask, and understand the answer:
        ```python
        decision = classifier.invoke("How many days?")
        if decision.outcome == "ask":
            print(decision.clarification.text())
            classifier.invoke({"input": "2", "clarification": decision.clarification})
        ```
    """

    step: ClassVar[str] = "intent"

    tree: IntentTree
    """The topics."""

    rules: IntentRules = Field(default_factory=IntentRules)
    """From scores to a decision."""

    candidates: int = 40
    """The most leaves that the model is shown."""

    judge: Runnable[Any, Any] | None = None
    """Who decides between two topics that come close; `llm`, if not given."""

    judge_prompt: Any = None
    """The judge's prompt, with `{topics}`, and `{question}` or `{input}`."""

    clarification_key: str = "clarification"
    """Where in a mapping the clarification is that the question answers."""

    _intents: IntentPrompt = PrivateAttr()
    _verdict: JudgePrompt = PrivateAttr()
    _judging: Prompting = PrivateAttr()
    _judge_call: ModelCall = PrivateAttr()

    def __init__(self, llm: Runnable[Any, Any], tree: IntentTree, **kwargs: Any) -> None:
        """Check the settings.

        Args:
            llm: Who is asked.
            tree: The topics.
            **kwargs: The fields of this class. A prompt holds `{topics}` and `{questions}`.

        Raises:
            InvalidParameterError: A setting is not as above, a prompt lacks a placeholder, or
                the model does not take the method named.
        """
        IntentPrompt(tree)  # refuses what is no tree
        if kwargs.get("judge") is not None:
            check_model(kwargs["judge"], "judge")
        if not isinstance(kwargs.get("rules", IntentRules()), IntentRules):
            raise InvalidParameterError("rules", kwargs["rules"], "give IntentRules")
        super().__init__(llm, tree=tree, **kwargs)
        judge = llm if self.judge is None else self.judge
        self._prompting = Prompting.of(self.prompt, ("questions", "input"), ("topics",))
        self._judging = Prompting.of(self.judge_prompt, QUESTION, ("topics",))
        self._intents = IntentPrompt(tree, self._prompting.core, candidates=self.candidates)
        self._verdict = JudgePrompt(tree, self._judging.core)
        self._call = ModelCall(llm, self._intents.reply_schema, structured=self.structured)
        self._judge_call = ModelCall(judge, self._verdict.reply_schema, structured=self.structured)

    @property
    @override
    def OutputType(self) -> Any:
        """An `IntentDecision`; a plain object, of which pydantic makes no schema."""
        return Any

    def classify(
        self, questions: Sequence[str], config: RunnableConfig | None = None
    ) -> list[IntentDecision]:
        """Match the sub-questions of one question, in one call for all of them.

        Args:
            questions: Made complete; at least one.
            config: Goes on to the model, in a child run.

        Returns:
            One decision per question; all together keep the rules' `max_total`.

        Raises:
            InvalidParameterError: It is one text instead of a list.
            Exception: With `on_error="raise"`: what the model raised, or `OutputParseError`.
        """
        classified: Any = self._classified
        decisions: Any = self._call_with_config(classified, questions, config)
        return list(decisions)

    async def aclassify(
        self, questions: Sequence[str], config: RunnableConfig | None = None
    ) -> list[IntentDecision]:
        """Match sub-questions: the async twin of `classify`."""
        classified: Any = self._aclassified
        decisions: Any = await self._acall_with_config(classified, questions, config)
        return list(decisions)

    def _classified(self, questions: Any, config: RunnableConfig) -> Any:
        return self._driven(self._plan_of(questions), config)

    async def _aclassified(self, questions: Any, config: RunnableConfig) -> Any:
        return await self._adriven(self._plan_of(questions), config)

    @override
    def _plan(self, value: Any) -> Plan[IntentDecision]:
        asked = self._asked(value)
        if (answered := self._answered(asked.question, asked.given)) is not None:
            return answered
        (decision,) = yield from self._plan_of([asked.question])
        return decision

    def _answered(self, reply: str, given: Any) -> IntentDecision | None:
        """Read the user's answer to a clarification; `None` when there is none to answer."""
        clarification = given.get(self.clarification_key)
        if clarification is None:
            return None
        if not isinstance(clarification, Clarification):
            clarification = Clarification.from_dict(clarification)
        return resolve_clarification(clarification, reply, self.tree)

    def _plan_of(self, questions: Sequence[str]) -> Plan[list[IntentDecision]]:
        questions = check_texts("questions", questions)
        messages = self._intents.messages(questions)
        if not messages or all(not q.strip() or is_small_talk(q) for q in questions):
            return [IntentDecision(question) for question in questions]
        reply = yield (
            self._call,
            self._prompting.request(
                messages, self._intents.variables(questions), "\n".join(questions)
            ),
        )
        if reply is None:
            return [IntentDecision(question) for question in questions]
        decisions = parse_intents(reply, self.tree, questions, rules=self.rules, **self._reading)
        judged = []
        for decision in decisions:
            settled = yield from self._judged(decision)
            judged.append(settled)
        return cap_decisions(judged, rules=self.rules)

    def _judged(self, decision: IntentDecision) -> Plan[IntentDecision]:
        messages = self._verdict.messages(decision)
        if not messages:
            return decision
        reply = yield (
            self._judge_call,
            self._judging.request(messages, self._verdict.variables(decision), decision.question),
        )
        return parse_judgement(reply, decision, self.tree, **self._reading)
