"""What to do with a question, out of the scores that a model gave."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from easyrag_core.errors import InvalidParameterError, check_count, check_number, check_texts
from easyrag_core.query._degradation import report_degradation
from easyrag_core.query._reply import read_json, visible_text
from easyrag_core.query.history import text_key
from easyrag_core.query.intent._clarification import Clarification, IntentOption

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from easyrag_core.events import EventHandler
    from easyrag_core.query.intent._node import IntentNode
    from easyrag_core.query.intent._tree import IntentTree

__all__ = [
    "IntentDecision",
    "IntentMatch",
    "IntentOutcome",
    "IntentRules",
    "cap_decisions",
    "parse_intents",
    "parse_judgement",
    "resolve_clarification",
]

IntentOutcome: TypeAlias = Literal["route", "judge", "ask", "abstain"]
"""Go on with the matches; let a judge decide; ask the user; no topic fits."""

_ID_KEYS: Final = ("id", "intent_id", "intent", "topic", "topic_id", "node_id", "主题")
_SCORE_KEYS: Final = ("score", "confidence", "probability", "分数", "得分")
_PLACE_KEYS: Final = ("question", "q")
_LIST_KEYS: Final = ("intents", "results", "topics", "matches", "结果")
_PERCENT: Final = re.compile(r"\s*(\d{1,3}(?:\.\d{1,6})?)\s*%\s*")


@dataclass(frozen=True, slots=True)
class IntentRules:
    """From scores to a decision.

    Attributes:
        min_score: Matches below are dropped.
        max_intents: The most matches of one question.
        max_total: The most matches of all sub-questions together; each keeps its best.
        judge_ratio: From this share of the best score on, the second makes a judge decide.
        ask_ratio: From this share on, the user is asked.
        max_options: The most options that the user is shown.

    Raises:
        InvalidParameterError: For values out of range.
    """

    min_score: float = 0.35
    max_intents: int = 3
    max_total: int = 3
    judge_ratio: float = 0.65
    ask_ratio: float = 0.8
    max_options: int = 6

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        for name in ("min_score", "judge_ratio", "ask_ratio"):
            if not 0 <= check_number(name, getattr(self, name)) <= 1:
                raise InvalidParameterError(name, getattr(self, name), "give a number from 0 to 1")
        if self.judge_ratio > self.ask_ratio:
            allowed = f"it must not be above ask_ratio={self.ask_ratio}"
            raise InvalidParameterError("judge_ratio", self.judge_ratio, allowed)
        for name in ("max_intents", "max_total"):
            check_count(name, getattr(self, name), minimum=1)
        check_count("max_options", self.max_options, minimum=2)


@dataclass(frozen=True, slots=True)
class IntentMatch:
    """A topic that fits.

    Attributes:
        node: The leaf.
        score: From 0 to 1.
    """

    node: IntentNode
    score: float


@dataclass(frozen=True, slots=True)
class IntentDecision:
    """What to do with one question.

    Attributes:
        question: The question.
        outcome: `route`, `judge`, `ask` or `abstain`.
        matches: Topics that fit, best first; none when no topic does.
        clarification: For `judge` and `ask`: what to ask the user.
    """

    question: str
    outcome: IntentOutcome = "abstain"
    matches: tuple[IntentMatch, ...] = ()
    clarification: Clarification | None = None

    @property
    def best(self) -> IntentNode | None:
        """The topic that fits best; `None` when none does."""
        return self.matches[0].node if self.matches else None

    @property
    def targets(self) -> tuple[IntentNode, ...]:
        """The topics to go on with; of those that share collection and tool only the best.

        Two topics of one collection would let its hits vote twice.
        """
        targets: dict[tuple[Any, ...], IntentNode] = {}
        for match in self.matches:
            node = match.node
            shared = node.collection is not None or node.tool is not None
            place = (node.kind, node.collection, node.tool, node.filters, "" if shared else node.id)
            targets.setdefault(place, node)
        return tuple(targets.values())


def parse_intents(
    reply: str,
    tree: IntentTree,
    questions: Sequence[str],
    *,
    rules: IntentRules | None = None,
    strict: bool = False,
    on_event: EventHandler | None = None,
) -> list[IntentDecision]:
    """Read topics and scores from a model's reply, and decide for each question.

    Ids that the tree does not have as leaves and scores out of range are dropped. Abstaining is
    an answer: an empty list, or nothing usable, gives `abstain`.

    Args:
        reply: The model's text.
        tree: Whose leaves count.
        questions: As they were asked, in order.
        rules: `IntentRules()` if not given.
        strict: Raise for a reply without scores.
        on_event: Hears `easyrag.query.intent` for a reply without scores.

    Returns:
        One decision per question.

    Raises:
        InvalidParameterError: For one text instead of a list.
        OutputParseError: In strict mode, for an unusable reply.

    >>> from easyrag_core.query import IntentTree
    >>> tree = IntentTree.from_dicts([{"id": "a", "name": "A"}, {"id": "b", "name": "B"}])
    >>> parse_intents('[{"id": "a", "score": 0.9}, {"id": "x", "score": 1}]', tree, ["?"])[
    ...     0
    ... ].best.id
    'a'
    >>> parse_intents("I do not know", tree, ["?"])[0].outcome
    'abstain'
    """
    questions = check_texts("questions", questions)
    rules = rules or IntentRules()
    leaves = {leaf.id: leaf for leaf in tree.leaves}
    value = read_json(visible_text(reply), lambda found: _has_scores(found, leaves))
    if value is None:
        report_degradation("intent", "no JSON", raw=reply, on_event=on_event, strict=strict)
    scores: list[dict[str, float]] = [{} for _ in questions]
    for at, id_, score in _scored(value, leaves):
        place = 0 if len(questions) == 1 else at - 1
        if id_ in leaves and 0 <= place < len(questions):
            scores[place][id_] = max(score, scores[place].get(id_, 0.0))
    decisions = [
        _decided(question, _matches(found, leaves, rules), tree, rules)
        for question, found in zip(questions, scores, strict=True)
    ]
    return cap_decisions(decisions, rules=rules)


def _has_scores(value: Any, leaves: Mapping[str, IntentNode]) -> bool:
    if isinstance(value, list):
        return all(isinstance(one, dict) for one in value)
    return isinstance(value, dict) and (
        _id(value) is not None
        or any(isinstance(value.get(key), list) for key in _LIST_KEYS)
        or any(key in leaves for key in value)
    )


def _scored(
    value: Any, leaves: Mapping[str, IntentNode], at: int = 1, depth: int = 0
) -> Iterator[tuple[int, str, float]]:
    """Walk over question number, id and score, in the shapes that models choose."""
    if isinstance(value, list):
        for one in value:
            yield from _scored(one, leaves, at, depth)
    if not isinstance(value, dict) or depth > 2:
        return
    placed = next((value[key] for key in _PLACE_KEYS if key in value), None)
    number = str(placed).strip()
    at = int(number) if number.isdecimal() and len(number) < 4 else at
    id_ = _id(value)
    score = _score(next((value[key] for key in _SCORE_KEYS if key in value), None))
    if id_ is not None and score is not None:
        yield at, id_, score
    for key in _LIST_KEYS:
        if isinstance(value.get(key), list):
            yield from _scored(value[key], leaves, at, depth + 1)
    # Beside an id or a question's number a score is the one of that, whatever leaves are called.
    taken = _ID_KEYS if id_ is None and placed is None else (*_ID_KEYS, *_SCORE_KEYS, *_PLACE_KEYS)
    for key, given in value.items():
        if key in leaves and key not in taken and (score := _score(given)) is not None:
            yield at, key, score


def _id(value: Mapping[str, Any]) -> str | None:
    found = next((value[key] for key in _ID_KEYS if key in value), None)
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    return found.strip() if isinstance(found, str) else None


def _score(value: Any) -> float | None:
    if isinstance(value, str):
        percent = _PERCENT.fullmatch(value)
        try:
            value = float(percent[1]) / 100 if percent else float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        return None
    return None if math.isnan(value) else float(value)


def _matches(
    scores: Mapping[str, float], leaves: Mapping[str, IntentNode], rules: IntentRules
) -> list[IntentMatch]:
    kept = [IntentMatch(leaves[id_], score) for id_, score in scores.items()]
    kept = [match for match in kept if match.score >= rules.min_score]
    return sorted(kept, key=lambda match: -match.score)


def _decided(
    question: str, matches: list[IntentMatch], tree: IntentTree, rules: IntentRules
) -> IntentDecision:
    if not matches:
        return IntentDecision(question)
    near = [match for match in matches if match.score >= rules.judge_ratio * matches[0].score]
    named = _named_domains(question, near, tree) if len(near) > 1 else set()
    if len(named) == 1:
        matches = [match for match in matches if tree.domain_of(match.node.id).id in named]
    best = tuple(matches[: rules.max_intents])
    if len(near) < 2 or len(named) == 1:
        return IntentDecision(question, "route", best)
    options = [IntentOption(match.node.id, tree.label(match.node.id)) for match in near]
    clarification = Clarification(question, tuple(options[: rules.max_options]))
    asks = near[1].score >= rules.ask_ratio * near[0].score
    return IntentDecision(question, "ask" if asks else "judge", best, clarification)


def _named_domains(question: str, matches: Iterable[IntentMatch], tree: IntentTree) -> set[str]:
    domains = {(domain := tree.domain_of(match.node.id)).id: domain.name for match in matches}
    return {id_ for id_, name in domains.items() if _names(question, name)}


def _names(question: str, name: str) -> bool:
    if not name.isascii():
        return text_key(name) in text_key(question)
    plain = re.escape(name.strip().casefold())
    return re.search(rf"(?<![a-z0-9]){plain}(?![a-z0-9])", question.casefold()) is not None


def cap_decisions(
    decisions: Sequence[IntentDecision], *, rules: IntentRules | None = None
) -> list[IntentDecision]:
    """Keep the best matches over all sub-questions; each question keeps at least its best.

    Args:
        decisions: One per sub-question.
        rules: `max_total` is used.

    Returns:
        As many decisions, with fewer matches.

    >>> cap_decisions([IntentDecision("?")])
    [IntentDecision(question='?', outcome='abstain', matches=(), clarification=None)]
    """
    total = (rules or IntentRules()).max_total
    rest = sorted(
        (-match.score, at, rank)
        for at, decision in enumerate(decisions)
        for rank, match in enumerate(decision.matches)
        if rank > 0
    )
    first = sum(bool(decision.matches) for decision in decisions)
    kept = {(at, rank) for _, at, rank in rest[: max(0, total - first)]}
    return [
        replace(
            decision,
            matches=tuple(
                match
                for rank, match in enumerate(decision.matches)
                if rank == 0 or (at, rank) in kept
            ),
        )
        for at, decision in enumerate(decisions)
    ]


def parse_judgement(
    reply: str | None,
    decision: IntentDecision,
    tree: IntentTree,
    *,
    strict: bool = False,
    on_event: EventHandler | None = None,
) -> IntentDecision:
    """Read a judge's verdict; whatever is unclear asks the user.

    Args:
        reply: The model's text; `None` when the judge's call failed.
        decision: The one whose outcome is `judge`; another is returned as it is.
        tree: The tree of the decision.
        strict: Raise for an unusable reply.
        on_event: Hears `easyrag.query.intent` for an unusable reply.

    Returns:
        A decision to route to one topic, or to ask.

    Raises:
        OutputParseError: In strict mode, for an unusable reply.

    >>> from easyrag_core.query import IntentTree
    >>> tree = IntentTree.from_dicts([{"id": "a", "name": "A"}, {"id": "b", "name": "B"}])
    >>> reply = '[{"id": "a", "score": 1}, {"id": "b", "score": 0.7}]'
    >>> decision = parse_intents(reply, tree, ["?"])[0]
    >>> decision.outcome, parse_judgement('{"ask": false, "id": "b"}', decision, tree).best.id
    ('judge', 'b')
    """
    if decision.outcome != "judge" or decision.clarification is None:
        return decision
    if reply is None:
        return replace(decision, outcome="ask")
    value = read_json(visible_text(reply), lambda found: isinstance(found, dict) and "ask" in found)
    options = {option.id for option in decision.clarification.options}
    clear = value is not None and str(value["ask"]).strip().casefold() in ("false", "0", "no", "否")
    if clear and (chosen := _id(value)) in options and chosen in tree:
        scores = {match.node.id: match.score for match in decision.matches}
        match = IntentMatch(tree.node(chosen), scores.get(chosen, decision.matches[-1].score))
        return IntentDecision(decision.question, "route", (match,))
    if value is None:
        report_degradation("intent", "no verdict", raw=reply, on_event=on_event, strict=strict)
    return replace(decision, outcome="ask")


def resolve_clarification(
    clarification: Clarification, reply: str, tree: IntentTree
) -> IntentDecision | None:
    """Turn the user's reply to a clarification into a decision for the question asked before.

    Args:
        clarification: What the user was asked.
        reply: What the user typed next.
        tree: The tree of the options.

    Returns:
        A decision to route, or to abstain when the user wants none of them; `None` when the
        reply is a question of its own.

    >>> from easyrag_core.query import IntentTree
    >>> tree = IntentTree.from_dicts([{"id": "a", "name": "A"}, {"id": "b", "name": "B"}])
    >>> asked = Clarification("?", (IntentOption("a", "A"), IntentOption("b", "B")))
    >>> resolve_clarification(asked, "第二个", tree).best.id
    'b'
    """
    chosen = clarification.read(reply)
    if chosen is None:
        return None
    matches = tuple(IntentMatch(tree.node(id_), 1.0) for id_ in chosen if id_ in tree)
    return IntentDecision(clarification.question, "route" if matches else "abstain", matches)
