"""Topics and their branches: one call, clarifications, retrievers, tools and prompts."""

from __future__ import annotations

import json

import pytest
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool

from easyrag_core import (
    AllChannelsFailedError,
    Condition,
    FilterPolicy,
    IntentRules,
    IntentTree,
    InvalidParameterError,
)
from langchain_easyrag import BM25Retriever, IntentClassifier, IntentRouter, ScopedRetriever
from tests.core.intent_samples import labelled_questions, large_tree
from tests.langchain_adapter.query_samples import TALK, TREE, WAYS, AllRuns, ScriptedModel
from tests.langchain_adapter.samples import ListRetriever, corpus, ids

EACH_WAY = pytest.mark.parametrize("way", WAYS)


def scores(**by_id):
    return json.dumps([{"id": id_, "score": score} for id_, score in by_id.items()])


LEAVE = scores(leave=0.9)
CLOSE = scores(leave=0.9, travel=0.85)
JUDGED = scores(leave=0.9, travel=0.65)


def classifier(*replies, **settings):
    model = ScriptedModel(*replies)
    return IntentClassifier(model, settings.pop("tree", TREE), **settings), model


@tool
def order_status(question: str) -> str:
    """Look an order up."""
    return f"on its way: {question}"


# The classifier


@EACH_WAY
def test_a_judge_is_asked_only_when_topics_are_close(way):
    """One call when clear, two when a judge decides, one when the user is asked."""
    for replies, calls, outcome in (
        ([LEAVE], 1, "route"),
        ([CLOSE], 1, "ask"),
        ([JUDGED, '{"ask": false, "id": "travel"}'], 2, "route"),
        ([JUDGED, '{"ask": true}'], 2, "ask"),
        ([JUDGED, ConnectionError("gone")], 2, "ask"),
        ([JUDGED, "who knows"], 2, "ask"),
        (["[]"], 1, "abstain"),
        (['[{"id": "boss", "score": 1}]'], 1, "abstain"),
    ):
        steps, model = classifier(*replies)
        assert WAYS[way](steps, "How many days?").outcome == outcome
        assert model.calls == calls


def test_another_model_can_judge():
    """`judge` gets the second call."""
    judge = ScriptedModel('{"ask": false, "id": "travel"}')
    steps, model = classifier(JUDGED, judge=judge)
    assert steps.invoke("How many days?").best.id == "travel"
    assert (model.calls, judge.calls) == (1, 1)


@EACH_WAY
@pytest.mark.parametrize("as_dict", [False, True])
def test_the_next_turn_understands_the_answer(way, as_dict):
    """A number chooses; a question of its own is classified anew."""
    steps, model = classifier(CLOSE, LEAVE)
    asked = WAYS[way](steps, "How many days?").clarification
    kept = asked.to_dict() if as_dict else asked
    decision = WAYS[way](steps, {"input": "2", "clarification": kept})
    assert (decision.best.id, decision.question) == ("travel", "How many days?")
    assert model.calls == 1
    other = WAYS[way](steps, {"input": "How do I book a flight?", "clarification": kept})
    assert other.question == "How do I book a flight?"
    assert model.calls == 2


@EACH_WAY
def test_sub_questions_share_one_call(way):
    """All in one request; decisions in the order of the questions."""
    matched = [{"question": 1, "id": "leave", "score": 0.9}]
    matched += [{"question": 2, "id": "orders", "score": 0.8}]
    reply = json.dumps(matched)
    steps, model = classifier(reply)
    questions = ["How many days?", "Where is my order?"]
    if way == "sync":
        found = steps.classify(questions)
    else:
        import asyncio

        found = asyncio.run(steps.aclassify(questions))
    assert [decision.best.id for decision in found] == ["leave", "orders"]
    assert model.calls == 1
    for wrong in ("one text", 5, None, ["one", None]):
        with pytest.raises(InvalidParameterError, match="questions"):
            steps.classify(wrong)


def test_three_hundred_leaves_make_a_bounded_prompt():
    """The prompt lists at most 40 of them, and the right one is mostly among these."""
    tree = large_tree()
    steps, model = classifier("[]", tree=tree)
    held = 0
    questions = labelled_questions()[::6]
    for question, topic in questions:
        steps.invoke(question)
        assert model.asked.count('{"id": "t') <= 40
        held += f"{topic}" in model.asked
    assert held >= 0.9 * len(questions)


@pytest.mark.parametrize(
    "wrong",
    [{"tree": "x"}, {"rules": 3}, {"candidates": 0}, {"judge": "gpt"}, {"judge_prompt": "x"}],
)
def test_bad_settings_are_refused(wrong):
    """At construction."""
    with pytest.raises(InvalidParameterError):
        classifier("[]", **wrong)


# The router


@EACH_WAY
def test_a_retriever_gets_the_topic_k_and_filters(way):
    """Two documents as the topic says, and only those that pass its filters."""
    tree = IntentTree.from_dicts(
        [
            {
                "id": "ranking",
                "name": "Ranking",
                "k": 2,
                "filters": {"field": "number", "operator": "gt", "value": 0},
            },
            {"id": "other", "name": "Other"},
        ]
    )
    bm25 = BM25Retriever.from_documents(corpus())
    steps, _ = classifier(scores(ranking=0.9), tree=tree)
    assert set(ids(bm25.invoke("ranking rankings"))) == {"rrf", "mmr", "bm25"}
    result = WAYS[way](IntentRouter(steps, {"ranking": bm25}), "ranking rankings")
    assert set(ids(result.output)) == {"mmr", "bm25"}
    policy = FilterPolicy(system=Condition("number", "lt", 2))
    scoped = ScopedRetriever(retriever=bm25, policy=policy)
    result = WAYS[way](IntentRouter(steps, {"ranking": scoped}), "ranking rankings")
    assert ids(result.output) == ["mmr"]


@EACH_WAY
def test_filters_hold_for_the_default_branch_too(way):
    """A topic without a branch of its own: the default retriever is held to its filters."""
    tree = IntentTree.from_dicts(
        [
            {
                "id": id_,
                "name": id_,
                "filters": {"field": "number", "operator": "eq", "value": number},
            }
            for number, id_ in enumerate("abc")
        ]
    )
    bm25 = BM25Retriever.from_documents(corpus())
    steps, _ = classifier(scores(b=0.9, c=0.5), tree=tree)
    result = WAYS[way](IntentRouter(steps, {}, default=bm25), "ranking rankings")
    assert {name: ids(found) for name, found in result.outputs.items()} == {"b": ["mmr"]}
    seen = []
    router = IntentRouter(steps, {"b": RunnableLambda(seen.append)})
    WAYS[way](router, "ranking rankings")
    assert seen[0]["intent_filters"] == Condition("number", "eq", 1)


@EACH_WAY
def test_a_tool_gets_the_question(way):
    """By the topic's tool name."""
    steps, _ = classifier(scores(orders=0.9))
    router = IntentRouter(steps, {"order_status": order_status})
    assert WAYS[way](router, "Where is 7?").output == "on its way: Where is 7?"


@EACH_WAY
def test_a_prompt_gets_the_input_with_the_topic(way):
    """History and all other keys go on; the question is the one that was classified."""
    tree = IntentTree.from_dicts([{"id": "help", "name": "Help", "prompt": "Be kind."}])
    steps, _ = classifier(scores(help=1), tree=tree)
    prompt = ChatPromptTemplate.from_messages(
        [("system", "{intent_prompt}"), ("placeholder", "{chat_history}"), ("human", "{input}")]
    )
    model = ScriptedModel("hello")
    router = IntentRouter(steps, {"help": prompt | model})
    answer = WAYS[way](router, {"input": "What can you do?", "chat_history": TALK}).output
    assert answer.content == "hello"
    assert [m.content for m in model.seen[0]] == [
        "Be kind.",
        *(m.content for m in TALK),
        "What can you do?",
    ]


@EACH_WAY
def test_branches_are_found_from_the_topic_upwards(way):
    """Its id, the ids above it, its tool, its collection, its kind, else the default."""
    steps, _ = classifier(LEAVE)
    echo = {name: RunnableLambda(lambda _, name=name: name) for name in "abcde"}
    names = ["leave", "hr", "handbook", "knowledge"]
    branches = {name: echo[letter] for name, letter in zip(names, "abcd", strict=True)}
    for at, letter in enumerate("abcde"):
        left = {name: branches[name] for name in names[at:]}
        router = IntentRouter(steps, left, default=echo["e"])
        assert WAYS[way](router, "How many days?").output == letter


@EACH_WAY
def test_nothing_runs_while_the_user_is_asked(way):
    """The result is the clarification; the answer of the next turn runs the branch."""
    steps, _ = classifier(CLOSE)
    seen = []
    router = IntentRouter(
        steps, {"hr": RunnableLambda(seen.append)}, default=RunnableLambda(seen.append)
    )
    first = WAYS[way](router, "How many days?")
    assert (first.output, seen) == (None, [])
    assert "2. " in first.clarification.text()
    second = WAYS[way](router, {"input": "2", "clarification": first.clarification})
    assert second.clarification is None
    (given,) = seen
    assert (given["input"], given["intent"]) == ("How many days?", "travel")


@EACH_WAY
def test_what_no_topic_fits_goes_to_the_default(way):
    """Without one there is no output; abstaining is an answer."""
    steps, _ = classifier("[]")
    bm25 = BM25Retriever.from_documents(corpus())
    assert ids(WAYS[way](IntentRouter(steps, {}, default=bm25), "ranking").output) == ids(
        bm25.invoke("ranking")
    )
    nothing = WAYS[way](IntentRouter(steps, {}), "ranking")
    assert (nothing.output, nothing.clarification, nothing.decision.outcome) == (
        None,
        None,
        "abstain",
    )


@EACH_WAY
def test_one_collection_is_asked_once_and_a_failing_branch_is_left_out(way):
    """Several topics at once; errors are told; when every branch fails it raises."""
    steps, _ = classifier(scores(leave=0.9, orders=0.5), rules=IntentRules())
    broken = RunnableLambda(lambda _: 1 / 0)
    router = IntentRouter(steps, {"leave": broken, "orders": order_status})
    result = WAYS[way](router, "both of it")
    assert result.outputs == {"orders": "on its way: both of it"}
    assert isinstance(result.errors["leave"], ZeroDivisionError)
    strict = IntentRouter(steps, {"leave": broken, "orders": order_status}, on_error="raise")
    with pytest.raises(ZeroDivisionError):
        WAYS[way](strict, "both of it")
    with pytest.raises(AllChannelsFailedError):
        WAYS[way](IntentRouter(steps, {"leave": broken}), "both of it")


@EACH_WAY
def test_runs_are_nested(way):
    """Classifier and branch are child runs of the router, with the caller's tags."""
    steps, _ = classifier(LEAVE)
    runs = AllRuns()
    router = IntentRouter(steps, {"hr": ListRetriever(documents=corpus())})
    WAYS[way](router, "How many days?", {"callbacks": [runs], "tags": ["t"]})
    (outer,) = runs.named("IntentRouter")
    assert runs.parent_of("IntentClassifier") == outer["run_id"]
    assert runs.parent_of("ListRetriever") == outer["run_id"]
    assert "t" in runs.named("ListRetriever")[0]["tags"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"branches": {"boss": order_status}},
        {"branches": {"hr": 3}},
        {"branches": [order_status]},
        {"default": 3},
        {"timeout": 0},
        {"on_error": "x"},
        {"classifier": ScriptedModel("x")},
    ],
)
def test_bad_settings_of_the_router_are_refused(wrong):
    """A branch that no topic reaches is a slip of the pen, and told as one."""
    steps, _ = classifier(LEAVE)
    with pytest.raises(InvalidParameterError):
        IntentRouter(**{"classifier": steps, "branches": {}, **wrong})


def test_a_router_can_be_described():
    """Servers and graphs ask for schemas of what goes in and comes out."""
    router = IntentRouter(IntentClassifier(ScriptedModel("[]"), TREE), {})
    assert router.get_output_jsonschema() == {"title": "IntentRouterOutput"}
    assert router.get_graph().to_json()["nodes"]
