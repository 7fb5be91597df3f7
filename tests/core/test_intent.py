"""Intent trees: checked when built, bounded when asked, careful when read."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core.errors import InvalidParameterError, OutputParseError
from easyrag_core.filters import Condition
from easyrag_core.query import (
    Clarification,
    IntentDecision,
    IntentNode,
    IntentOption,
    IntentPrompt,
    IntentRules,
    IntentTree,
    JudgePrompt,
    PromptTemplate,
    cap_decisions,
    parse_intents,
    parse_judgement,
    resolve_clarification,
)
from tests.core.intent_samples import labelled_questions, large_tree

DATA = [
    {
        "id": "hr",
        "name": "HR",
        "children": [
            {
                "id": "leave",
                "name": "Leave",
                "collection": "hr-docs",
                "k": 3,
                "filters": {"field": "lang", "operator": "eq", "value": "en"},
            },
            {"id": "pay", "name": "Pay", "collection": "hr-docs", "examples": ["When is payday?"]},
        ],
    },
    {
        "id": "it",
        "name": "IT",
        "children": [{"id": "vpn", "name": "VPN"}, {"id": "wifi", "name": "Wi-Fi"}],
    },
    {"id": "hello", "name": "Greeting", "kind": "system", "prompt": "Greet back."},
    {
        "id": "财务",
        "name": "财务",
        "children": [{"id": "报销", "name": "报销", "kind": "tool", "tool": "expense"}],
    },
]
TREE = IntentTree.from_dicts(DATA)


def decided(question="How?", **scores):
    rows = [{"id": id_, "score": score} for id_, score in scores.items()]
    return parse_intents(json.dumps(rows), TREE, [question])[0]


def test_a_tree_is_built_from_nested_mappings_and_from_rows():
    """Both give the same nodes; levels follow the depth."""
    rows = [
        {"id": "vpn", "name": "VPN", "parent_id": "it"},
        {"id": "it", "name": "IT", "parent_id": None},
        {"id": "wifi", "name": "Wi-Fi", "parent_id": "it"},
    ]
    tree = IntentTree.from_rows(rows)
    assert tree.node("it").children == TREE.node("it").children
    assert [leaf.id for leaf in TREE.leaves] == ["leave", "pay", "vpn", "wifi", "hello", "报销"]
    assert [node.level for node in TREE.path("vpn")] == ["domain", "category"]
    assert TREE.label("vpn") == "IT / VPN"
    assert TREE.domain_of("leave").id == "hr"
    assert TREE.node("leave").filters == Condition("lang", "eq", "en")
    assert (len(TREE), "vpn" in TREE, "x" in TREE) == (9, True, False)
    assert len(list(TREE)) == 9


def _cyclic():
    node = {"id": "a", "name": "A"}
    node["children"] = [node]
    return [node]


def _deep(levels):
    node = {"id": "0", "name": "0"}
    for at in range(1, levels):
        node = {"id": str(at), "name": str(at), "children": [node]}
    return [node]


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (lambda: IntentTree.from_dicts([{"id": "a", "name": "A"}] * 2), "id of its own"),
        (lambda: IntentTree.from_rows([{"id": "a", "name": "A"}] * 2), "id of its own"),
        (lambda: IntentTree.from_dicts(_cyclic()), "cycle"),
        (lambda: IntentTree.from_dicts(_deep(4)), "three deep"),
        (lambda: IntentTree.from_rows([{"id": "a", "name": "A", "parent_id": "b"}]), "another row"),
        (lambda: IntentTree.from_rows([{"id": "a", "name": "A", "parent_id": "a"}]), "cycle"),
        (
            lambda: IntentTree.from_rows(
                [
                    {"id": "r", "name": "R"},
                    {"id": "a", "name": "A", "parent_id": "b"},
                    {"id": "b", "name": "B", "parent_id": "a"},
                ]
            ),
            "cycle",
        ),
        (lambda: IntentTree.from_rows([{"id": ["a"], "name": "x"}]), "id=.*give a text"),
        (lambda: IntentTree.from_rows([{"id": {"a": 1}, "name": "x"}]), "id=.*give a text"),
        (lambda: IntentTree.from_rows([{"id": None, "name": "x"}]), "id=.*give a text"),
        (
            lambda: IntentTree.from_rows([{"id": "a", "name": "x", "parent_id": ["b"]}]),
            "parent_id=.*give a text",
        ),
        (
            lambda: IntentTree.from_rows([{"id": "a", "name": "x", "parent_id": {"b": 1}}]),
            "parent_id=.*give a text",
        ),
        (lambda: IntentTree.from_dicts([{"id": "a"}]), "id, name"),
        (lambda: IntentTree.from_dicts([{"id": "a", "name": "A", "exmaples": []}]), "examples"),
        (lambda: IntentTree.from_dicts([{"id": "a", "name": "A", "children": "b"}]), "list"),
        (lambda: IntentTree.from_dicts({"id": "a", "name": "A"}), "list"),
        (lambda: IntentTree([{"id": "a"}]), "IntentNodes"),
        (lambda: IntentNode("a", " "), "content"),
        (lambda: IntentNode(3, "A"), "text"),
        (lambda: IntentNode("a", "A", kind="other"), "knowledge"),
        (lambda: IntentNode("a", "A", level="leaf"), "domain"),
        (lambda: IntentNode("a", "A", k=0), "at least 1"),
        (lambda: IntentNode("a", "A", examples="one"), "list"),
        (lambda: IntentNode("a", "A", filters={"a": 1}), "Filter"),
        (lambda: IntentNode("a", "A", tool=""), "content"),
        (
            lambda: IntentTree(
                [IntentNode("a", "A", "topic", children=[IntentNode("b", "B", "domain")])]
            ),
            "narrower",
        ),
        (lambda: TREE.node("x"), "this tree"),
        (lambda: TREE.candidates(["a"], 0), "at least 1"),
        (lambda: IntentPrompt(DATA), "IntentTree"),
        (lambda: IntentPrompt(TREE, PromptTemplate("", "{topics}")), "questions"),
        (lambda: IntentPrompt(TREE).messages("one"), "list"),
        (lambda: parse_intents("[]", TREE, "one"), "list"),
        (lambda: IntentRules(min_score=2), "0 to 1"),
        (lambda: IntentRules(judge_ratio=0.9), "ask_ratio"),
        (lambda: IntentRules(max_options=1), "at least 2"),
        (lambda: Clarification.from_dict({"question": "a"}), "to_dict"),
    ],
)
def test_misuse_is_refused(build, told):
    """Cycles, orphans, duplicates and typos, before any question comes."""
    with pytest.raises(InvalidParameterError, match=told):
        build()


def test_what_the_caller_gave_is_not_changed():
    """The mapping stays as it was."""
    before = json.dumps(DATA)
    IntentTree.from_dicts(DATA)
    assert json.dumps(DATA) == before


def test_an_empty_tree_needs_no_call():
    """Nor does no question."""
    assert IntentPrompt(IntentTree()).messages(["How?"]) == []
    assert IntentPrompt(TREE).messages([]) == []
    assert parse_intents("[]", IntentTree(), ["How?"]) == [IntentDecision("How?")]


def test_the_prompt_of_a_large_tree_is_bounded():
    """300 leaves and 10 make prompts of about the same size, whatever the texts."""
    tree = large_tree()
    assert len(tree.leaves) == 300
    content = IntentPrompt(tree).messages(["How do I reset my password?"])[1].content
    assert content.count('{"id": ') == 40
    assert len(content) < 8000
    wordy = IntentTree(
        [
            IntentNode(str(at), "n", description="d" * 9999, examples=["e" * 9999] * 99)
            for at in range(300)
        ]
    )
    assert len(IntentPrompt(wordy).messages(["xyz"])[1].content) < 20_000


def test_the_right_leaf_is_among_the_candidates():
    """For at least 95 % of the labelled questions, in English and in Chinese."""
    tree, questions = large_tree(), labelled_questions()
    ids = {leaf.name: leaf.id for leaf in tree.leaves}
    assert len(questions) >= 60
    missed = [
        question
        for question, topic in questions
        if ids[topic] not in {leaf.id for leaf in tree.candidates([question])}
    ]
    assert len(missed) <= 0.05 * len(questions), missed


def test_each_question_has_its_turn_among_the_candidates():
    """Four sub-questions about different things all find theirs within one limit."""
    tree, questions = large_tree(), labelled_questions()[:4]
    found = {leaf.name for leaf in tree.candidates([text for text, _ in questions], 20)}
    assert {topic for _, topic in questions} <= found
    assert len(tree.candidates(["zzz"], 20)) == 20


READ = [
    ('[{"id": "vpn", "score": 0.9}]', [("vpn", 0.9)]),
    ('{"results": [{"id": "vpn", "score": 0.9}]}', [("vpn", 0.9)]),
    ('{"intents": [{"intent_id": "vpn", "confidence": "0.9"}]}', [("vpn", 0.9)]),
    ('{"vpn": 0.9, "x": 1}', [("vpn", 0.9)]),
    ('{"id": "vpn", "score": "90%"}', [("vpn", 0.9)]),
    ('[{"question": 1, "intents": [{"id": "vpn", "score": 0.9}]}]', [("vpn", 0.9)]),
    (
        '<think>[{"id": "pay", "score": 1}]</think>```json\n[{"id": "vpn", "score": 0.9}]\n```',
        [("vpn", 0.9)],
    ),
    ('经过分析 [1]，结果如下：[{"id": "报销", "score": 0.95}]。', [("报销", 0.95)]),
    ('[{"id": "vpn", "score": 0.5}, {"id": "vpn", "score": 0.9}]', [("vpn", 0.9)]),
    ('[{"id": " vpn ", "score": 1}, {"id": "nope", "score": 1}]', [("vpn", 1.0)]),
    ('[{"id": "it", "score": 1}]', []),
    ('[{"id": "vpn", "score": 0.34}]', []),
    ('[{"id": "vpn", "score": 0.35}]', [("vpn", 0.35)]),
    ('[{"id": "vpn", "score": 7}, {"id": "wifi", "score": -1}, {"id": "pay", "score": true}]', []),
    ('[{"id": "vpn", "score": NaN}, {"id": "wifi", "score": null}, {"id": "pay"}]', []),
    ('[{"id": ["vpn"], "score": 1}, {"id": null, "score": 1}, {"score": 1}]', []),
    ("[]", []),
    ("{}", []),
]


@pytest.mark.parametrize(("reply", "matches"), READ)
def test_scores_are_read_in_any_shape(reply, matches):
    """Unknown ids, inner nodes, low and impossible scores are dropped; nothing abstains."""
    decision = parse_intents(reply, TREE, ["How?"])[0]
    assert [(match.node.id, match.score) for match in decision.matches] == matches
    assert decision.outcome == ("route" if matches else "abstain")
    assert (decision.best is None) == (not matches)


@pytest.mark.parametrize("reply", ["", "It is about VPN.", "[1, 2]", "<think>[]", "[" * 3000])
def test_prose_abstains_and_is_told(reply):
    """Abstaining is an answer; strict raises."""
    heard = []
    assert parse_intents(reply, TREE, ["How?"], on_event=heard.append)[0].outcome == "abstain"
    assert [event.name for event in heard] == ["easyrag.query.intent"]
    with pytest.raises(OutputParseError):
        parse_intents(reply, TREE, ["How?"], strict=True)


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        (0.9, 0.5, "route"),
        (1.0, 0.649, "route"),
        (1.0, 0.65, "judge"),
        (1.0, 0.79, "judge"),
        (1.0, 0.8, "ask"),
        (0.5, 0.5, "ask"),
    ],
)
def test_the_ratio_of_the_scores_decides(first, second, outcome):
    """Far apart routes, close asks, in between a judge decides."""
    decision = decided(vpn=first, leave=second)
    assert decision.outcome == outcome
    options = decision.clarification and [option.id for option in decision.clarification.options]
    assert options == (None if outcome == "route" else ["vpn", "leave"])


def test_a_question_that_names_one_domain_does_not_ask():
    """Its matches are kept, the others dropped; a name within a word does not count."""
    decision = decided("Who in HR knows?", vpn=0.9, leave=0.9)
    assert (decision.outcome, [m.node.id for m in decision.matches]) == ("route", ["leave"])
    assert decided("HR or IT?", vpn=0.9, leave=0.9).outcome == "ask"
    assert decided("How is it with 3hr?", wifi=0.9, leave=0.9).outcome == "route"  # "it"
    assert decided("three thr", vpn=0.9, leave=0.9).outcome == "ask"
    assert decided("财务的报销", leave=0.9, 报销=0.9).best.id == "报销"


def test_matches_are_capped():
    """Three per question; over sub-questions each keeps its best, the best of the rest follow."""
    assert len(decided("HR", leave=1, pay=0.6, vpn=0.5, wifi=0.4, hello=0.4).matches) == 3
    rows = [
        {"question": at, "id": id_, "score": score}
        for at, id_, score in [(1, "vpn", 1), (1, "wifi", 0.6), (2, "leave", 1), (2, "pay", 0.61)]
    ]
    first, second = parse_intents(json.dumps(rows), TREE, ["a", "b"])
    assert [len(first.matches), len(second.matches)] == [1, 2]
    many = cap_decisions([decided(vpn=1, wifi=0.5)] * 5)
    assert [len(decision.matches) for decision in many] == [1] * 5
    rules = IntentRules(max_intents=1)
    reply = '[{"id": "vpn", "score": 1}, {"id": "pay", "score": 0.5}]'
    assert len(parse_intents(reply, TREE, ["?"], rules=rules)[0].matches) == 1


def test_two_topics_of_one_collection_are_one_target():
    """Its hits would vote twice; other filters make another target."""
    tree = IntentTree([IntentNode(c, c, collection="docs") for c in "ab"] + [IntentNode("c", "c")])
    reply = '[{"id": "a", "score": 1}, {"id": "b", "score": 0.5}, {"id": "c", "score": 0.5}]'
    decision = parse_intents(reply, tree, ["?"])[0]
    assert [node.id for node in decision.targets] == ["a", "c"]
    assert [node.id for node in decided(leave=1, pay=0.5).targets] == ["leave", "pay"]


@pytest.mark.parametrize("id_", ["score", "confidence", "probability", "得分", "question", "q"])
def test_a_leaf_may_be_called_as_a_key_of_the_reply(id_):
    """It is matched by its id, not by every score, and by a mapping of scores."""
    tree = IntentTree([IntentNode(id_, "Odd"), IntentNode("vpn", "VPN")])
    key = id_ if id_ not in ("question", "q") else "score"
    for row in ({"question": 1, "id": "vpn", key: 0.9}, {"q": 1, "id": "vpn", key: 0.9}):
        decision = parse_intents(json.dumps([row]), tree, ["?"])[0]
        assert [(match.node.id, match.score) for match in decision.matches] == [("vpn", 0.9)]
    decision = parse_intents(json.dumps([{"id": id_, "score": 0.9}]), tree, ["?"])[0]
    assert [match.node.id for match in decision.matches] == [id_]


def test_a_mapping_of_scores_may_hold_such_a_leaf():
    """Without an id beside it, the key is the leaf."""
    tree = IntentTree([IntentNode("score", "Odd"), IntentNode("vpn", "VPN")])
    decision = parse_intents('{"score": 0.9, "vpn": 0.4}', tree, ["?"])[0]
    assert [match.node.id for match in decision.matches] == ["score", "vpn"]


def test_options_are_at_most_six():
    """Of ten equal topics six are shown."""
    tree = IntentTree([IntentNode(str(at), f"Topic {at}") for at in range(10)])
    reply = json.dumps([{"id": str(at), "score": 0.9} for at in range(10)])
    decision = parse_intents(reply, tree, ["?"])[0]
    assert len(decision.clarification.options) == 6
    assert decision.clarification.text().count("\n") == 6


@pytest.mark.parametrize(
    ("reply", "outcome", "best"),
    [
        ('{"ask": false, "id": "leave"}', "route", "leave"),
        ('```json\n{"ask": "false", "id": "vpn"}\n```', "route", "vpn"),
        ('{"ask": true}', "ask", "vpn"),
        ('{"ask": true, "id": "vpn"}', "ask", "vpn"),
        ('{"ask": false}', "ask", "vpn"),
        ('{"ask": false, "id": "pay"}', "ask", "vpn"),
        ('{"ask": false, "id": "nope"}', "ask", "vpn"),
        ("", "ask", "vpn"),
        ("Ask!", "ask", "vpn"),
    ],
)
def test_whatever_a_judge_leaves_open_asks(reply, outcome, best):
    """Only a clear verdict for one of the options routes."""
    decision = decided(vpn=1, leave=0.7)
    assert "IT / VPN" in JudgePrompt(TREE).messages(decision)[1].content
    judged = parse_judgement(reply, decision, TREE)
    assert (judged.outcome, judged.best.id) == (outcome, best)


def test_only_open_decisions_are_judged():
    """Others need no call and stay."""
    decision = decided(vpn=1)
    assert JudgePrompt(TREE).messages(decision) == []
    assert parse_judgement('{"ask": true}', decision, TREE) is decision
    with pytest.raises(OutputParseError):
        parse_judgement("Ask!", decided(vpn=1, leave=0.7), TREE, strict=True)


ASKED = Clarification(
    "天数？",
    (
        IntentOption("leave", "HR / Annual leave"),
        IntentOption("travel", "Finance / Travel days"),
        IntentOption("假", "人力资源 / 年假"),
    ),
)
ANSWERS = [
    *((text, "leave") for text in ("1", "1.", "#1", "the first", "First one please", "option 1")),
    *(
        (text, "leave")
        for text in ("第一个", "第1个", "选1", "我选第一个", "１", "前者", "a", "1st", "one")
    ),
    *((text, "leave") for text in ("annual leave", "HR / Annual leave", "I mean annual leave")),
    *((text, "travel") for text in ("2", "(2)", "the second", "第二个", "第二个吧", "number two")),
    *((text, "travel") for text in ("Travel days.", "2号", "选项2", "the 2nd one", "二", "No. 2")),
    *(
        (text, "假")
        for text in ("3", "the last one", "最后一个", "年假", "年假的", "我想问年假", "third!")
    ),
]
SEVERAL = [
    *(
        (text, ["leave", "travel", "假"])
        for text in ("all", "全部", "All of them", "都要", "所有的")
    ),
    *(
        (text, ["leave", "travel"])
        for text in ("1 and 2", "1,2", "1、2", "1和2", "第一个和第二个", "1 2")
    ),
    *((text, []) for text in ("none", "None of them", "都不是", "以上都不是", "neither")),
]
OTHER = [
    *(
        "4",
        "0",
        "9",
        "How do I book the second flight?",
        "第二个月怎么算？",
        "What is annual leave?",
    ),
    *("", "   ", "1 and 7", "hello there my friend", "年假和病假有什么区别？", "12", "1.5", "-1"),
]


@pytest.mark.parametrize(("reply", "chosen"), ANSWERS)
def test_an_answer_chooses_one_option(reply, chosen):
    """Numbers, ordinals and names, in both languages."""
    assert ASKED.read(reply) == (chosen,)


@pytest.mark.parametrize(("reply", "chosen"), SEVERAL)
def test_an_answer_chooses_several_or_none(reply, chosen):
    """Lists, all, and none of them."""
    assert ASKED.read(reply) == tuple(chosen)


@pytest.mark.parametrize("reply", OTHER)
def test_a_question_of_its_own_is_no_answer(reply):
    """Nor is a number that no option has."""
    assert ASKED.read(reply) is None


TRIP = Clarification(
    "x?",
    (
        IntentOption("b", "Finance / Booking"),
        IntentOption("t", "HR / Travel"),
        IntentOption("z", "人事 / 出差"),
    ),
)


@pytest.mark.parametrize(
    "reply",
    [
        *("not travel", "anything but travel", "no travel", "isn't travel", "never travel"),
        *("except travel", "travel? no", "Not Booking", "don't mean travel", "travel, not booking"),
        *("without booking", "travel isn't it", "other than travel", "not the travel one"),
        *(
            "不是出差",
            "除了出差",
            "不要出差",
            "非出差",
            "别选出差",
            "出差除外",
            "出差以外的",
            "没出差",
            "不想问出差",
        ),
        *(
            "ok",
            "in",
            "on",
            "king",
            "book",
            "ravel",
            "avel",
            "not",
            "is",
            "fin",
            "OK.",
            "好",
            "是的",
        ),
        *("Who approves travel", "cancel travel", "how travel works", "book travel", "Travel how"),
        *(
            "谁审批出差",
            "取消出差",
            "出差怎么报销",
            "出差吗",
            "如何出差",
            "出差还是订票",
            "申请出差",
            "出差多少天",
        ),
    ],
)
def test_a_name_that_is_negated_asked_about_or_hidden_is_no_answer(reply):
    """Nor are letters inside a name, or words that say nothing."""
    assert TRIP.read(reply) is None


@pytest.mark.parametrize(
    ("reply", "chosen"),
    [
        *((text, "t") for text in ("travel", "I mean travel", "Travel please", "the travel one")),
        *((text, "t") for text in ("it's about travel", "HR", "hr travel", "travel expenses")),
        *((text, "t") for text in ("No, travel", "probably travel", "travel, thanks", "HR/Travel")),
        *((text, "b") for text in ("finance", "booking", "the booking", "booking I think")),
        *(
            (text, "z")
            for text in (
                "出差",
                "出差吧",
                "我问的是出差",
                "应该是出差",
                "出差相关的",
                "人事",
                "出差报销",
            )
        ),
        *((text, "z") for text in ("关于出差的问题", "不是，出差", "就出差", "选出差")),
    ],
)
def test_a_name_among_words_that_only_choose_is_an_answer(reply, chosen):
    """Fillers before and after, the words of the path, one word more behind it."""
    assert TRIP.read(reply) == (chosen,)


def asked_of(*labels):
    return Clarification("x?", tuple(IntentOption(label, label) for label in labels))


TEAMS = ("HR", "IT", "Finance / Booking")
DEEDS = ("Delete account", "Cancel order", "Do not disturb")
LEAVE = ("HR / Annual leave", "Finance / Travel")
CHINESE = ("人事 / 年假", "取消订单", "非全日制用工")


@pytest.mark.parametrize(
    ("labels", "reply", "at"),
    [
        *((TEAMS, text, 1) for text in ("it's IT", "I think it's it", "IT dept please", "IT team")),
        *((TEAMS, text, 2) for text in ("booking of finance", "booking in finance")),
        *((TEAMS, text, 0) for text in ("let's do HR", "HR department", "could be HR")),
        *((DEEDS, text, 0) for text in ("delete", "delete account please", "account")),
        *((DEEDS, text, 1) for text in ("cancel", "I want cancel order")),
        *((DEEDS, text, 2) for text in ("not disturb", "do not disturb please")),
        *((CHINESE, text, 0) for text in ("人事的年假", "年假，人事的", "我问的是人事的年假")),
        *((CHINESE, text, 1) for text in ("取消", "取消订单吧")),
        *((CHINESE, text, 2) for text in ("非全日制", "非全日制用工")),
        *((LEAVE, text, 0) for text in ("how about annual leave", "could be annual leave")),
        *((LEAVE, text, 0) for text in ("annual leave sounds right", "annual leave would be good")),
        *((LEAVE, text, 0) for text in ("i'm after annual leave", "annual leave days please")),
    ],
)
def test_a_name_is_understood_in_other_words(labels, reply, at):
    """Pronouns beside it, its own words behind it, negations and orders that it holds itself."""
    assert asked_of(*labels).read(reply) == (labels[at],)


@pytest.mark.parametrize(
    ("labels", "reply"),
    [
        *((TEAMS, text) for text in ("it's fine", "it sounds good", "it would be good", "not IT")),
        *((DEEDS, text) for text in ("not", "not delete account", "cancel delete account", "do")),
        *((CHINESE, text) for text in ("不是年假", "不取消订单", "取消年假", "人事的年假吗")),
        *((LEAVE, text) for text in ("how annual leave works", "could annual leave")),
    ],
)
def test_other_words_are_no_name(labels, reply):
    """A pronoun is no department, and what negates or orders elsewhere still does."""
    assert asked_of(*labels).read(reply) is None


def test_a_clarification_goes_over_a_turn():
    """Kept as plain data, read in the next turn, decided for the question asked before."""
    decision = decided("How many?", vpn=1, leave=0.9)
    assert decision.clarification.text().splitlines() == [
        "Which one do you mean? (number, name, or “all”)",
        "1. IT / VPN",
        "2. HR / Leave",
    ]
    kept = Clarification.from_dict(json.loads(json.dumps(decision.clarification.to_dict())))
    chosen = resolve_clarification(kept, "2", TREE)
    assert (chosen.question, chosen.outcome, chosen.best.id) == ("How many?", "route", "leave")
    assert resolve_clarification(kept, "none", TREE).outcome == "abstain"
    assert resolve_clarification(kept, "How do I print?", TREE) is None
    assert ASKED.text().startswith("您指的是")


SHAPES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.sampled_from(["vpn", "x"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["id", "score", "question", "intents", "vpn"]), inner),
    ),
    max_leaves=8,
)


@given(st.one_of(SHAPES.map(json.dumps), st.text(max_size=50)), st.integers(1, 3))
def test_no_reply_raises_or_invents(reply, count):
    """Each question gets a decision, of known leaves alone, within the rules."""
    decisions = parse_intents(reply, TREE, ["?"] * count)
    assert len(decisions) == count
    for decision in decisions:
        assert all(0.35 <= match.score <= 1 for match in decision.matches)
        assert {match.node.id for match in decision.matches} <= {leaf.id for leaf in TREE.leaves}
    parse_judgement(reply, decided(vpn=1, leave=0.7), TREE)
    ASKED.read(reply)


@pytest.mark.parametrize("gap", [" ", "\t", "\u3000"])
def test_a_reply_full_of_blanks_is_read_in_linear_time(gap):
    """What a user pastes costs no more than its length."""
    started = time.process_time()
    assert ASKED.read("1" + gap * 50_000 + "x") == ASKED.read("1" + gap + "x")
    assert ASKED.read("1" + gap * 50_000 + "和 2") == ASKED.read("1和2")
    assert time.process_time() - started < 3.0
