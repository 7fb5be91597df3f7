"""`IntentSelector`: which tools a question goes to, whatever a model says."""

from __future__ import annotations

import asyncio
import json

import pytest
from llama_index.core.base.base_selector import BaseSelector
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine, RouterQueryEngine
from llama_index.core.retrievers import RouterRetriever
from llama_index.core.tools import QueryEngineTool, RetrieverTool, ToolMetadata

from easyrag_core import IntentTree, InvalidParameterError
from llamaindex_easyrag import IntentSelector, QueryStepEvent
from tests.llamaindex_adapter._models import ScriptedLLM
from tests.llamaindex_adapter._parts import Canned, ids, listening, scored

TOOLS = [
    ToolMetadata(name="hr", description="Leave, pay and contracts."),
    ToolMetadata(name="it", description="Laptops and passwords."),
    ToolMetadata(name="law", description="Contracts with customers."),
]
TREE = IntentTree.from_dicts(
    [
        {
            "id": "people",
            "name": "People",
            "children": [
                {"id": "leave", "name": "Leave", "collection": "hr"},
                {"id": "pay", "name": "Pay", "collection": "hr"},
            ],
        },
        {"id": "it", "name": "Machines", "children": [{"id": "laptop", "name": "Laptops"}]},
    ]
)


def scores(**given):
    return json.dumps([{"id": name, "score": score} for name, score in given.items()])


def in_turn(*replies):
    """A model that says one after the other, or raises it."""
    left = iter(replies)

    def say(_):
        reply = next(left)
        if isinstance(reply, Exception):
            raise reply
        return reply

    return say


CLEAR = scores(hr=0.9, law=0.1)
JUDGED = scores(law=0.9, hr=0.65)
CLOSE = scores(law=0.9, hr=0.85)


def both(selector, query="How many days off?", tools=TOOLS):
    """What the sync and the async form choose: the same."""
    first = selector.select(tools, query)
    assert asyncio.run(selector.aselect(tools, query)) == first
    return first.inds


def test_the_tool_that_fits_is_chosen():
    """By name and description; the reason tells the score."""
    selector = IntentSelector(ScriptedLLM(says=scores(hr=0.9, it=0.1)))
    assert both(selector) == [0]
    assert selector.select(TOOLS, "days off?").reasons == ["hr: 0.90"]


def test_several_tools_may_fit():
    """Near scores choose both; with `multi=False` the best."""
    llm = ScriptedLLM(says=scores(law=0.9, hr=0.85))
    assert both(IntentSelector(llm)) == [2, 0]
    assert both(IntentSelector(llm, multi=False)) == [2]
    decision = IntentSelector(llm).decide(TOOLS, "contracts")
    assert decision.outcome == "ask"
    assert [option.id for option in decision.clarification.options] == ["law", "hr"]


@pytest.mark.parametrize(
    ("replies", "calls", "chosen"),
    [
        ([CLEAR], 1, [0]),
        ([CLOSE], 1, [2, 0]),
        ([JUDGED, '{"ask": false, "id": "hr"}'], 2, [0]),
        ([JUDGED, '{"ask": true}'], 2, [2, 0]),
        ([JUDGED, "who knows"], 2, [2, 0]),
        ([JUDGED, '{"ask": false, "id": "root"}'], 2, [2, 0]),
        ([JUDGED, RuntimeError("down")], 2, [2, 0]),
    ],
)
def test_a_judge_is_asked_only_where_topics_come_close(replies, calls, chosen):
    """One call when clear or too close; where the judge cannot tell, both tools."""
    for form in ("select", "aselect"):
        llm = ScriptedLLM(says=in_turn(*replies))
        selector = IntentSelector(llm)
        if form == "select":
            result = selector.select(TOOLS, "Whose contract is it?")
        else:
            result = asyncio.run(selector.aselect(TOOLS, "Whose contract is it?"))
        assert result.inds == chosen
        assert len(llm.asked) == calls


def test_another_model_may_judge_in_words_of_its_own():
    """It is shown the question and the two topics, and nothing else."""
    llm, judge = ScriptedLLM(says=JUDGED), ScriptedLLM(says='{"ask": false, "id": "hr"}')
    prompt = PromptTemplate("Which? {query_str} {topics}")
    selector = IntentSelector(llm, judge=judge, judge_prompt=prompt)
    assert selector.select(TOOLS, "Whose contract is it?").inds == [0]
    assert (len(llm.asked), len(judge.asked)) == (1, 1)
    [asked] = judge.asked
    assert "Which? Whose contract is it? " in asked
    assert '"law"' in asked
    assert '"it"' not in asked
    assert {"judge_prompt_en", "judge_prompt_zh", "intent_prompt_en"} <= set(selector.get_prompts())
    selector.update_prompts({"judge_prompt": PromptTemplate("Or? {query_str} {topics}")})
    selector.select(TOOLS, "Whose contract is it?")
    assert "Or? Whose" in judge.asked[-1]
    with pytest.raises(InvalidParameterError, match="topics"):
        selector.update_prompts({"judge_prompt": PromptTemplate("Or? {query_str}")})
    with pytest.raises(InvalidParameterError, match="judge"):
        IntentSelector(llm, judge="gpt")


@pytest.mark.parametrize(
    "reply",
    [
        "0",
        "7",
        "[]",
        "",
        "I would go for the third one.",
        scores(root=1.0),
        '[{"id": "hr", "score": 9}]',
        '[{"choice": 3, "reason": "?"}]',
        RuntimeError("down"),
    ],
)
def test_case_64_what_is_not_there_is_never_followed(reply):
    """An answer 0, 7, prose or an empty list: all tools, never silently the last."""
    llm = ScriptedLLM(says=reply)
    assert both(IntentSelector(llm)) == [0, 1, 2]
    assert both(IntentSelector(llm, on_abstain="first")) == [0]
    with pytest.raises(InvalidParameterError):
        IntentSelector(llm, on_abstain="raise").select(TOOLS, "q")


def test_topics_of_a_tree_lead_to_tools():
    """By collection, by tool, by a node above; of two topics of one tool the tool is asked once."""
    tools = [ToolMetadata(name=name, description="") for name in ("it", "hr")]
    llm = ScriptedLLM(says=scores(leave=0.9, pay=0.8, laptop=0.5))
    assert both(IntentSelector(llm, TREE), tools=tools) == [1, 0]
    llm = ScriptedLLM(says=scores(laptop=0.9))
    assert both(IntentSelector(llm, TREE), tools=tools) == [0]


def test_no_model_is_asked_without_need():
    """One tool, thanks, a blank question: counted; one call otherwise."""
    llm = ScriptedLLM(says=scores(hr=0.9))
    selector = IntentSelector(llm)
    assert both(selector, tools=TOOLS[:1]) == [0]
    assert both(selector, query="thank you!") == [0, 1, 2]
    assert llm.asked == []
    with listening() as heard:
        selector.select(TOOLS, "days off?")
    assert [(e.step, e.result, e.calls) for e in heard if isinstance(e, QueryStepEvent)] == [
        ("intent", ["hr"], 1)
    ]


def test_tools_without_a_name_are_numbered():
    """The framework allows plain texts as choices."""
    llm = ScriptedLLM(says='[{"id": "2", "score": 0.9}]')
    assert both(IntentSelector(llm), tools=["about cats", "about dogs"]) == [1]


def test_on_error_raise_raises_the_models_own_error():
    """In both forms."""
    selector = IntentSelector(ScriptedLLM(says=RuntimeError("down")), on_error="raise")
    with pytest.raises(RuntimeError, match="down"):
        selector.select(TOOLS, "q")
    with pytest.raises(RuntimeError, match="down"):
        asyncio.run(selector.aselect(TOOLS, "q"))


def children():
    return {tool.name: Canned(scored((tool.name, 1.0))) for tool in TOOLS}


def test_in_a_router_retriever():
    """Sync and async; the tools chosen are asked, the others are not."""
    made = children()
    tools = [RetrieverTool(made[tool.name], tool) for tool in TOOLS]
    llm = ScriptedLLM(says=scores(hr=0.9, law=0.85))
    router = RouterRetriever(IntentSelector(llm), tools, llm=llm)
    assert ids(router.retrieve("contracts")) == ["hr", "law"]
    assert ids(asyncio.run(router.aretrieve("contracts"))) == ["hr", "law"]
    assert made["it"].asked == []
    assert "selector:intent_prompt_en" in router.get_prompts()


def test_in_a_router_query_engine():
    """Sync and async."""
    llm = ScriptedLLM(says=scores(it=0.9))
    answering = ScriptedLLM(says="from it")
    tools = [
        QueryEngineTool(RetrieverQueryEngine.from_args(child, llm=answering), tool)
        for child, tool in zip(children().values(), TOOLS, strict=True)
    ]
    engine = RouterQueryEngine(IntentSelector(llm), tools, llm=answering)
    assert ids(engine.query("my laptop").source_nodes) == ["it"]
    assert ids(asyncio.run(engine.aquery("my laptop")).source_nodes) == ["it"]


def test_it_is_a_selector():
    """It can stand wherever a selector may; misuse is refused."""
    assert issubclass(IntentSelector, BaseSelector)
    for settings in ({"on_abstain": "last"}, {"candidates": 0}, {"tree": "x"}, {"llm": "gpt"}):
        with pytest.raises(InvalidParameterError):
            IntentSelector(**settings)
