"""Each topic's questions to whoever answers them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableSerializable
from langchain_core.runnables.base import coerce_to_runnable
from langchain_core.runnables.utils import get_unique_config_specs
from pydantic import ConfigDict, Field
from typing_extensions import override

from easyrag_core import FilterPolicy, InvalidParameterError, arun_channels, run_channels
from easyrag_core.errors import check_choice, check_timeout
from langchain_easyrag._settings import check_settings
from langchain_easyrag.retrievers._children import request_size, unwrapped
from langchain_easyrag.retrievers.scoped import ScopedRetriever
from langchain_easyrag.runnables.intent_classifier import IntentClassifier

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langchain_core.runnables.utils import ConfigurableFieldSpec

    from easyrag_core import Clarification, IntentDecision, IntentNode

__all__ = ["IntentResult", "IntentRouter"]

_DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class IntentResult:
    """What became of a question.

    Attributes:
        decision: Which topics fit.
        outputs: Topic id to what its branch gave, best topic first; `default` where no topic
            fits.
        errors: Topic id to the error of a branch that failed while others answered.
    """

    decision: IntentDecision
    outputs: Mapping[str, Any] = field(default_factory=dict)
    errors: Mapping[str, Exception] = field(default_factory=dict)

    @property
    def output(self) -> Any:
        """What the best topic's branch gave; `None` when none ran."""
        return next(iter(self.outputs.values()), None)

    @property
    def clarification(self) -> Clarification | None:
        """What to ask the user; `None` when it is clear where to go on."""
        return self.decision.clarification if self.decision.outcome == "ask" else None


class IntentRouter(RunnableSerializable[Any, IntentResult]):
    """Send a question to the branches of the topics that fit, all at once.

    A branch is found by the topic's id, by the ids above it, by its tool, its collection, and
    last its kind. It may be any runnable. A retriever gets the question, with the topic's `k`
    and `filters`; a tool gets the question; anything else, such as a prompt with a model behind
    it, gets the input as a mapping with the question under `input`, and `intent`, `intent_prompt`
    and `intent_filters` of the topic; what it retrieves by itself is its own affair.

    Where two topics come close nothing is run: the result holds the clarification, and the next
    turn brings it back with the user's answer.

    Instantiate:
        ```python
        from langchain_easyrag import IntentClassifier, IntentRouter

        router = IntentRouter(
            IntentClassifier(llm, tree),
            {"hr": handbook_retriever, "orders": order_tool, "system": prompt | llm},
            default=retriever,
        )
        ```

    Ask:
        ```python
        result = router.invoke("How many days of leave do I have?")
        if result.clarification:
            print(result.clarification.text())
            result = router.invoke({"input": "2", "clarification": result.clarification})
        result.output
        ```
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    classifier: IntentClassifier
    """Who decides."""

    branches: dict[str, Runnable[Any, Any]]
    """Who answers, by topic id, tool, collection or kind."""

    default: Runnable[Any, Any] | None = None
    """Who answers what no topic fits, or a topic without a branch."""

    timeout: float | None = Field(default=None)
    """Seconds that each branch has; `None` waits for ever."""

    on_error: str = "fallback"
    """`"fallback"` leaves a failing branch out while others answer, `"raise"` raises its error."""

    def __init__(
        self, classifier: IntentClassifier, branches: Mapping[str, Any], **kwargs: Any
    ) -> None:
        """Check the settings.

        Args:
            classifier: Who decides.
            branches: Runnables, or what LangChain makes one of.
            **kwargs: The fields of this class.

        Raises:
            InvalidParameterError: A branch can never be reached, is no runnable, or a setting
                is not as above.
        """
        if not isinstance(classifier, IntentClassifier):
            raise InvalidParameterError("classifier", classifier, "give an IntentClassifier")
        check_settings(kwargs, known=type(self).model_fields)
        check_timeout(kwargs.get("timeout"))
        check_choice("on_error", kwargs.get("on_error", "fallback"), ("fallback", "raise"))
        if kwargs.get("default") is not None:
            kwargs["default"] = _runnable(_DEFAULT, kwargs["default"])
        known = {name for node in classifier.tree for name in _names(node)}
        named: Any = branches
        if not isinstance(named, Mapping) or not named.keys() <= known:
            allowed = "name them by a topic's id, tool, collection or kind"
            raise InvalidParameterError("branches", branches, allowed)
        runnables = {name: _runnable(name, branch) for name, branch in branches.items()}
        fields = {**kwargs, "classifier": classifier, "branches": runnables}
        super().__init__(**fields)

    @property
    @override
    def InputType(self) -> Any:
        """What the classifier takes."""
        return Any

    @property
    @override
    def OutputType(self) -> Any:
        """An `IntentResult`; a plain object, of which pydantic makes no schema."""
        return Any

    @property
    @override
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The configurable fields of classifier and branches."""
        asked = [self.classifier, *self.branches.values(), *filter(None, [self.default])]
        return get_unique_config_specs(spec for one in asked for spec in one.config_specs)

    @override
    def invoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> IntentResult:
        """Decide, and run the branches.

        Args:
            input: What the classifier takes.
            config: Goes on to classifier and branches, in child runs.
            **kwargs: None are taken.

        Returns:
            Decision, and what the branches gave.

        Raises:
            AllChannelsFailedError: Every branch failed.
            Exception: With `on_error="raise"`: what a branch raised.
        """
        return self._call_with_config(self._run, input, config, **kwargs)

    @override
    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> IntentResult:
        """Decide, and run the branches: the async twin of `invoke`."""
        return await self._acall_with_config(self._arun, input, config, **kwargs)

    def _run(self, value: Any, config: Any) -> IntentResult:
        decision = self.classifier.invoke(value, config)
        calls = {
            name: partial(branch.invoke, given, config, **size)
            for name, (branch, given, size) in self._branches_of(decision, value).items()
        }
        outcome = run_channels(calls, timeout=self.timeout, strict=self._strict)
        return IntentResult(decision, outcome.results, outcome.errors)

    async def _arun(self, value: Any, config: Any) -> IntentResult:
        decision = await self.classifier.ainvoke(value, config)
        calls = {
            name: partial(branch.ainvoke, given, config, **size)
            for name, (branch, given, size) in self._branches_of(decision, value).items()
        }
        outcome = await arun_channels(calls, timeout=self.timeout, strict=self._strict)
        return IntentResult(decision, outcome.results, outcome.errors)

    @property
    def _strict(self) -> bool:
        return self.on_error == "raise"

    def _branches_of(
        self, decision: IntentDecision, value: Any
    ) -> dict[str, tuple[Runnable[Any, Any], Any, dict[str, Any]]]:
        """Return by topic who is to be run, on what, with which arguments."""
        if decision.outcome not in ("route", "abstain"):
            return {}
        given = dict(value) if isinstance(value, Mapping) else {}
        given[self.classifier.input_key] = decision.question
        found, default = {}, self.default
        for node in decision.targets:
            branch = self._branch_of(node)
            if branch is None:
                # It answers once, for the best topic without a branch, held to that topic.
                branch, default = default, None
            if branch is not None:
                found[node.id] = _prepared(branch, node, decision.question, given)
        if not decision.targets and default is not None:
            found[_DEFAULT] = _prepared(default, None, decision.question, given)
        return found

    def _branch_of(self, node: IntentNode) -> Runnable[Any, Any] | None:
        above = [one.id for one in reversed(self.classifier.tree.path(node.id))]
        names = (*above, node.tool, node.collection, node.kind)
        return next((self.branches[name] for name in names if name in self.branches), None)


def _names(node: IntentNode) -> list[str]:
    return [name for name in (node.id, node.tool, node.collection, node.kind) if name]


def _runnable(name: str, branch: Any) -> Runnable[Any, Any]:
    try:
        runnable: Runnable[Any, Any] = coerce_to_runnable(branch)
    except TypeError as error:
        raise InvalidParameterError(name, branch, "give a runnable") from error
    return runnable


def _prepared(
    branch: Runnable[Any, Any], node: IntentNode | None, question: str, given: dict[str, Any]
) -> tuple[Runnable[Any, Any], Any, dict[str, Any]]:
    from langchain_core.tools import BaseTool  # noqa: PLC0415 - who has a tool has loaded it

    inner = unwrapped(branch)
    if isinstance(inner, BaseRetriever):
        return _retrieving(branch, node, question)
    if isinstance(inner, BaseTool):
        return branch, question, {}
    if node is None:
        return branch, given, {}
    facts = {"intent": node.id, "intent_prompt": node.prompt or "", "intent_filters": node.filters}
    return branch, {**given, **facts}, {}


def _retrieving(
    branch: Runnable[Any, Any], node: IntentNode | None, question: str
) -> tuple[Runnable[Any, Any], Any, dict[str, Any]]:
    """Hold a retriever to the topic's filters and ask it for the topic's number of documents."""
    if node is None:
        return branch, question, {}
    if node.filters is not None and isinstance(branch, ScopedRetriever):
        branch = branch.restricted_to(node.filters)
    elif node.filters is not None:
        branch = ScopedRetriever(retriever=branch, policy=FilterPolicy(system=node.filters))
    return branch, question, {} if node.k is None else request_size(branch, node.k)
