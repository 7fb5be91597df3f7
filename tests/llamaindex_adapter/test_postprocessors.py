"""What RRFPostprocessor and MMRPostprocessor share, and what RRF lifts."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.callbacks import CallbackManager, CBEventType
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode

from easyrag_core import InvalidParameterError
from llamaindex_easyrag import MMRPostprocessor, RRFPostprocessor
from tests.llamaindex_adapter._parts import (
    CallbackEar,
    Gate,
    facts,
    ids,
    listening,
)

BOTH = [RRFPostprocessor, MMRPostprocessor]
TEXTS = {
    "cat": "the cat sat on the mat",
    "cat2": "the cat sat on a mat",
    "dog": "a dog ran in the park",
    "月": "床前明月光",
    "乡": "低头思故乡",
}


def found(*names, scores=None, vectors=None) -> list[NodeWithScore]:
    names = names or tuple(TEXTS)
    return [
        NodeWithScore(
            node=TextNode(
                text=TEXTS.get(name, name), id_=name, embedding=(vectors or {}).get(name)
            ),
            score=scores[i] if scores else 1.0 - i / 10,
        )
        for i, name in enumerate(names)
    ]


# Both


@pytest.mark.parametrize("kind", BOTH)
def test_it_is_a_postprocessor(kind):
    """The framework's base class, a class name, settings that come back, pickling."""
    assert BaseNodePostprocessor in kind.__mro__
    assert kind.class_name() == kind.__name__
    one = kind(top_n=3)
    assert kind.from_dict(one.to_dict()) == one
    assert kind.from_json(one.to_json()) == one
    assert pickle.loads(pickle.dumps(one)) == one
    assert kind(top_n=4) != one


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("query", [None, "", "the cat", "明月"])
def test_odd_lists(kind, query):
    """No nodes, nodes without scores, a node twice, k of 0 and k beyond the list."""
    one = kind(top_n=9)
    ask = {} if query is None else {"query_str": query}
    assert one.postprocess_nodes([], **ask) == []
    bare = found(scores=[None] * 5)
    assert sorted(ids(one.postprocess_nodes(bare, **ask))) == sorted(TEXTS)
    assert sorted(ids(one.postprocess_nodes([*bare, *bare], **ask))) == sorted(TEXTS)
    assert kind(top_n=0).postprocess_nodes(bare, **ask) == []
    assert len(kind(top_n=2).postprocess_nodes(bare, **ask)) == 2


@pytest.mark.parametrize("kind", BOTH)
def test_of_a_node_that_comes_twice_the_first_counts(kind):
    """Its place and its score are those of its first appearance."""
    twice = [*found("cat", "dog", scores=[9.0, 5.0]), *found("cat", scores=[0.5])]
    result = kind().postprocess_nodes(twice)
    assert ids(result) == ["cat", "dog"]
    known = facts(result[0])
    assert (
        known["channels"]["given"]["score"] == 9.0
        if kind is RRFPostprocessor
        else (result[0].score == known["score"] == 9.0)
    )


@pytest.mark.parametrize("kind", BOTH)
def test_the_input_stays_as_it_is(kind):
    """Nodes, scores, list and query bundle are as before; results are copies without text."""
    nodes, bundle = found(vectors={name: [1.0, 2.0] for name in TEXTS}), QueryBundle("the cat")
    before = copy.deepcopy((nodes, bundle))
    result = kind(top_n=3).postprocess_nodes(nodes, bundle)
    assert (nodes, bundle) == before
    for one in result:
        original = next(n for n in nodes if n.node_id == one.node_id)
        assert one.node is not original.node
        assert one.node.hash == original.node.hash
        for mode in (MetadataMode.EMBED, MetadataMode.LLM):
            assert one.get_content(mode) == original.get_content(mode)


@pytest.mark.parametrize("kind", BOTH)
async def test_async_gives_the_same_and_the_loop_goes_on(kind):
    """LI-49: the work is done in a thread."""
    nodes = found()
    gate = Gate(list)
    slow = kind(top_n=3, analyzer=gate)
    result = await gate.run(slow.apostprocess_nodes(nodes, query_str="明月"))
    assert result == slow.postprocess_nodes(nodes, query_str="明月")


@pytest.mark.parametrize("kind", BOTH)
def test_threads_do_not_disturb_each_other(kind):
    """One instance in many threads gives what it gives alone."""
    one = kind(top_n=3)
    queries = ["the cat", "明月", "park", "故乡"] * 8
    expected = [one.postprocess_nodes(found(), query_str=query) for query in queries]
    with ThreadPoolExecutor(4) as pool:
        results = pool.map(lambda query: one.postprocess_nodes(found(), query_str=query), queries)
        assert list(results) == expected


@pytest.mark.parametrize("kind", BOTH)
def test_events_are_those_of_a_reranker(kind):
    """ReRankStart and ReRankEnd on the dispatcher, RERANKING on the callback manager."""
    ear = CallbackEar()
    one = kind(top_n=2)
    one.callback_manager = CallbackManager([ear])  # as query engines do
    with listening() as events:
        result = one.postprocess_nodes(found(), query_str="the cat")
    start, end = (
        next(e for e in events if isinstance(e, what))
        for what in (ReRankStartEvent, ReRankEndEvent)
    )
    assert (start.top_n, start.model_name, len(start.nodes)) == (2, kind.__name__, 5)
    assert end.nodes == result
    assert [(when, what) for when, what, _ in ear.heard] == [
        ("start", CBEventType.RERANKING),
        ("end", CBEventType.RERANKING),
    ]


@pytest.mark.parametrize(
    ("kind", "settings", "name"),
    [
        (RRFPostprocessor, {"top_n": -1}, "top_n"),
        (RRFPostprocessor, {"weights": [1]}, "weights"),
        (RRFPostprocessor, {"weights": [0, 0]}, "weights"),
        (RRFPostprocessor, {"rank_constant": float("inf")}, "rank_constant"),
        (MMRPostprocessor, {"top_n": 1.5}, "top_n"),
        (MMRPostprocessor, {"lambda_mult": 1.1}, "lambda_mult"),
        (MMRPostprocessor, {"lambda_mult": float("nan")}, "lambda_mult"),
        (MMRPostprocessor, {"relevance": "cosine"}, "relevance"),
        (MMRPostprocessor, {"missing_vectors": "raise"}, "missing_vectors"),
    ],
)
def test_wrong_settings_are_refused_at_once(kind, settings, name):
    """PE-44: at construction, with the parameter's name."""
    with pytest.raises(InvalidParameterError) as told:
        kind(**settings)
    assert told.value.name == name


# RRF


def test_rrf_lifts_what_names_the_query():
    """Ranks 5 and 1 beat ranks 1 and none; both ranks are told."""
    result = RRFPostprocessor().postprocess_nodes(found(), query_str="故乡")
    assert ids(result)[0] == "乡"
    assert result[0].score == pytest.approx(1 / 65 + 1 / 61)
    channels = facts(result[0])["channels"]
    assert (channels["given"]["rank"], channels["bm25"]["rank"]) == (5, 1)
    assert ids(result)[1:] == ["cat", "cat2", "dog", "月"]
    assert set(facts(result[1])["channels"]) == {"given"}


def test_rrf_weights():
    """Weight 0 for the words keeps the given order, for the order it keeps the words' hits."""
    nodes = found()
    kept = RRFPostprocessor(weights=[1, 0]).postprocess_nodes(nodes, query_str="故乡")
    assert ids(kept) == ids(nodes)
    words = RRFPostprocessor(weights=[0, 1]).postprocess_nodes(nodes, query_str="cat")
    assert ids(words) == ["cat", "cat2"]


@given(st.permutations(list(TEXTS)), st.sampled_from([None, "", "zebra"]))
def test_rrf_keeps_the_order_where_words_say_nothing(order, query):
    """Without a query, or without a match, the given order stays."""
    bundle = None if query is None else QueryBundle(query)
    assert ids(RRFPostprocessor().postprocess_nodes(found(*order), bundle)) == order
