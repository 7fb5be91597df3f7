"""The line as a whole: one set of claims, held by `run` and by `arun`."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core import (
    AutoMerge,
    Channel,
    ChannelScore,
    Chunk,
    Dedupe,
    Diversify,
    EvidenceGate,
    Hit,
    InMemoryChunkStore,
    InvalidParameterError,
    ParentExpansion,
    Rerank,
    RetrievalPipeline,
    ScoreThreshold,
    reciprocal_rank_fusion,
)

FORMS = {
    "sync": lambda pipeline, *given, **told: pipeline.run(*given, **told),
    "async": lambda pipeline, *given, **told: asyncio.run(pipeline.arun(*given, **told)),
}


@pytest.fixture(params=FORMS.values(), ids=FORMS)
def ask(request):
    return request.param


def hits(*pairs):
    return [Hit(id_, score, rank) for rank, (id_, score) in enumerate(pairs, start=1)]


def channel(name, *pairs, **settings):
    return Channel(name, lambda query, k: hits(*pairs), **settings)


WORDS = channel("words", ("a", 9.0), ("b", 4.0), ("c", 1.0))
MEANING = channel("meaning", ("b", 0.9), ("d", 0.5))


def ids(result):
    return [hit.id for hit in result.hits]


def stage(result, name):
    (found,) = [facts for facts in result.stages if facts.name == name]
    return found


# Fusion


def test_the_result_is_the_fusion_of_the_channels(ask):
    """Ids, scores and ranks are those of the kernel; each channel's rank and score is told."""
    result = ask(RetrievalPipeline([WORDS, MEANING]), "q")
    fused = reciprocal_rank_fusion([["a", "b", "c"], ["b", "d"]])
    assert [(hit.id, hit.score) for hit in result.hits] == [(f.key, f.score) for f in fused]
    assert [hit.rank for hit in result.hits] == [1, 2, 3, 4]
    assert result.hits[0].channels == {
        "words": ChannelScore(2, 4.0),
        "meaning": ChannelScore(1, 0.9),
    }
    assert result.errors == {}


def test_scores_can_be_fused_and_channels_weighed(ask):
    """`fusion="score"` and weights go to the kernel; a channel of weight 0 has no vote."""
    weighed = [channel("words", ("a", 9.0), ("b", 4.0), weight=0), MEANING]
    assert ids(ask(RetrievalPipeline(weighed), "q")) == ["b", "d"]
    by_score = RetrievalPipeline([WORDS, MEANING], fusion="score")
    assert [(h.id, h.score) for h in ask(by_score, "q").hits][:2] == [("b", 1.375), ("a", 1.0)]


def test_each_stage_tells_what_went_in_and_out(ask):
    """Channels, fusion, postprocessors and the cut, in this order, with ids and seconds."""
    pipeline = RetrievalPipeline([WORDS, MEANING], [Rerank(lambda q, h: [1, 2, 3, 4])], k=2)
    result = ask(pipeline, "q")
    assert [(facts.name, facts.taken, facts.given) for facts in result.stages] == [
        ("words", (), ("a", "b", "c")),
        ("meaning", (), ("b", "d")),
        ("fusion", ("a", "b", "c", "d"), ("b", "a", "d", "c")),
        ("rerank", ("b", "a", "d", "c"), ("c", "d", "a", "b")),
        ("top k", ("c", "d", "a", "b"), ("c", "d")),
    ]
    assert stage(result, "top k").dropped == ("a", "b")
    assert all(facts.seconds >= 0 and facts.error is None for facts in result.stages)


def test_the_channel_is_asked_for_its_budget(ask):
    """A channel is told how many are wanted: its own `k`, or more where a call wants more."""
    asked = []

    def search(query, k):
        asked.append((query, k))
        return hits(("a", 1.0))

    pipeline = RetrievalPipeline([Channel("c", search, k=7)])
    ask(pipeline, "q")
    ask(pipeline, "q", k=50)
    assert asked == [("q", 7), ("q", 50)]


def test_the_plans_own_k_raises_no_budget(ask):
    """A channel with a small budget keeps it, although more hits are wanted from all together."""
    many = [(f"id{n}", 1.0) for n in range(9)]
    pipeline = RetrievalPipeline([channel("c", *many, k=3), channel("d", *many[::-1], k=3)])
    assert pipeline.k == 6
    assert [len(stage(ask(pipeline, "q"), name).given) for name in "cd"] == [3, 3]


def test_a_query_that_is_no_text_is_refused(ask):
    """Before any channel is asked."""
    with pytest.raises(InvalidParameterError, match="give a text"):
        ask(RetrievalPipeline([WORDS]), None)


@pytest.mark.parametrize("k", [0, 1, 3, 100])
def test_k_of_a_call_is_how_many_come(ask, k):
    """As many as are wanted, as long as there are any."""
    assert len(ask(RetrievalPipeline([WORDS, MEANING], [Dedupe()]), "q", k=k).hits) == min(k, 4)


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=12), min_size=1, max_size=4))
def test_any_lists_give_what_the_kernel_gives(lists):
    """Repeats, empty lists, any overlap: the same ids and scores as the kernel alone."""
    channels = [channel(f"c{n}", *((id_, 1.0) for id_ in keys)) for n, keys in enumerate(lists)]
    result = RetrievalPipeline(channels).run("q")
    fused = reciprocal_rank_fusion(lists, k=10)
    assert [(hit.id, hit.score) for hit in result.hits] == [(f.key, f.score) for f in fused]


# Budgets


def test_the_default_budgets_are_20_40_10():
    """Recall 20 per channel, 40 candidates, 10 in the end; fewer where fewer can come."""
    two = RetrievalPipeline([WORDS, MEANING])
    assert ([c.k for c in two.channels], two.fetch_k, two.k) == ([20, 20], 40, 10)
    one = RetrievalPipeline([channel("c", k=5)])
    assert (one.fetch_k, one.k) == (5, 5)
    limited = RetrievalPipeline([WORDS, MEANING], [Rerank(len, candidate_limit=7)])
    assert limited.k == 7


@pytest.mark.parametrize(
    ("settings", "stages", "name"),
    [
        ({"fetch_k": 41}, [], "fetch_k"),
        ({"k": 41}, [], "k"),
        ({"fetch_k": 8, "k": 9}, [], "k"),
        ({"k": 10}, [Rerank(len, candidate_limit=9)], "k"),
        ({"fetch_k": 30}, [Rerank(len, candidate_limit=31)], "limit of 'rerank'"),
        ({}, [Rerank(len, candidate_limit=41)], "limit of 'rerank'"),
        (
            {},
            [Rerank(len, candidate_limit=10), Diversify(len, limit=11)],
            "limit of 'mmr'",
        ),
    ],
)
def test_budgets_that_grow_are_refused(settings, stages, name):
    """At construction, with the name of the one that is too large."""
    with pytest.raises(InvalidParameterError, match="do not grow along the line") as refused:
        RetrievalPipeline([WORDS, MEANING], stages, **settings)
    assert refused.value.name == name


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (lambda: RetrievalPipeline([]), "at least one Channel"),
        (lambda: RetrievalPipeline(["words"]), "at least one Channel"),
        (lambda: RetrievalPipeline([WORDS, WORDS]), "a name of its own"),
        (lambda: RetrievalPipeline([channel("fusion")]), "a name of its own"),
        (lambda: RetrievalPipeline([WORDS], fusion="votes"), "choose one of"),
        (lambda: RetrievalPipeline([WORDS], rank_constant=-1), "rank_constant"),
        (lambda: RetrievalPipeline([WORDS], [len]), "a name and a process"),
        (lambda: RetrievalPipeline([WORDS], "rerank"), "give a list"),
        (lambda: RetrievalPipeline([WORDS], k=True), "whole number"),
        (lambda: RetrievalPipeline([channel("c", weight=0)]), "not all of them may be 0"),
        (lambda: RetrievalPipeline([channel("c", weight=-1)]), "weights"),
        (lambda: channel(""), "not empty"),
        (lambda: channel("c", k=0), "at least 1"),
        (lambda: channel("c", timeout=0), "above 0"),
        (lambda: channel("c", weight=float("nan")), "finite number"),
        (lambda: Channel("c", "search"), "a function"),
        (lambda: Rerank("model"), "a function of a query"),
        (lambda: RetrievalPipeline([WORDS], [Rerank(object())]), "a function of a query"),
        (lambda: Rerank(len, candidate_limit=0), "at least 1"),
        (lambda: Rerank(len, min_score=float("nan")), "finite number"),
        (lambda: Rerank(len, timeout=-1), "above 0"),
        (lambda: EvidenceGate(float("inf")), "finite number"),
        (lambda: ScoreThreshold(None), "finite number"),
        (lambda: Diversify(len, lambda_mult=2), "from 0 to 1"),
        (lambda: Diversify(len, limit=0), "at least 1"),
        (lambda: AutoMerge(InMemoryChunkStore(), merge_threshold=0), r"in \(0, 1\]"),
        (lambda: ParentExpansion(InMemoryChunkStore(), limit=-1), "at least 1"),
    ],
)
def test_a_plan_that_cannot_work_is_refused(build, told):
    """At construction, before data flow."""
    with pytest.raises(InvalidParameterError, match=told):
        build()


def test_two_stages_of_one_name_are_told_apart(ask):
    """The second gets a number: both are seen in the facts."""
    stages = [ScoreThreshold(0.0), ScoreThreshold(0.01)]
    names = [facts.name for facts in ask(RetrievalPipeline([WORDS], stages), "q").stages]
    assert names == ["words", "fusion", "score threshold", "score threshold 2", "top k"]


# Postprocessors


class Reversing:
    """A postprocessor of the caller's, without an async twin."""

    name = "reversing"

    def __init__(self):
        self.threads = []

    def process(self, given, context):
        self.threads.append(threading.get_ident())
        context.notes[given[0].id] = "was first"
        return given[::-1]


def test_a_postprocessor_of_ones_own(ask):
    """A name and a `process` are enough; what it notes is in the facts and in the hit's reasons."""
    result = ask(RetrievalPipeline([WORDS], [Reversing()]), "q")
    assert ids(result) == ["c", "b", "a"]
    assert [hit.rank for hit in result.hits] == [1, 2, 3]
    assert stage(result, "reversing").notes == {"a": "was first"}
    assert result.hits[2].reasons[-1] == "reversing: was first"


def test_without_an_async_twin_it_runs_in_a_thread():
    """A postprocessor that takes its time does not hold the event loop."""
    stages = [Reversing()]
    FORMS["async"](RetrievalPipeline([WORDS], stages), "q")
    assert stages[0].threads != [threading.get_ident()]


def test_an_async_twin_is_awaited():
    """`aprocess` is used where there is one."""

    class Twin(Reversing):
        async def aprocess(self, given, context):
            await asyncio.sleep(0)
            return given[:1]

    assert ids(FORMS["async"](RetrievalPipeline([WORDS], [Twin()]), "q")) == ["a"]


class Broken:
    """Raises what it was given, or gives it."""

    name = "broken"

    def __init__(self, outcome):
        self.outcome = outcome

    def process(self, given, context):
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


@pytest.mark.parametrize("outcome", [RuntimeError("x"), None, 3, ["a"], "ab"], ids=repr)
def test_a_failing_postprocessor_is_skipped(ask, outcome, caplog):
    """What came to it goes on to the next; the error is told in the facts, with one warning."""
    pipeline = RetrievalPipeline([WORDS], [Broken(outcome), Reversing()])
    with caplog.at_level(logging.WARNING):
        result = ask(pipeline, "q")
    assert ids(result) == ["c", "b", "a"]
    assert list(result.errors) == ["broken"]
    assert stage(result, "broken").error == repr(result.errors["broken"])
    assert stage(result, "broken").given == ("a", "b", "c")
    assert len(caplog.records) == 1


def test_strict_raises_the_postprocessors_own_error(ask):
    """The very object, and nothing is logged."""
    failure = RuntimeError("x")
    with pytest.raises(RuntimeError) as raised:
        ask(RetrievalPipeline([WORDS], [Broken(failure)], strict=True), "q")
    assert raised.value is failure


def test_what_is_handed_to_a_postprocessor_cannot_be_changed(ask):
    """A postprocessor that sorts in place fails alone."""

    class Sorting:
        name = "sorting"

        def process(self, given, context):
            given.sort()
            return given

    assert ids(ask(RetrievalPipeline([WORDS], [Sorting()]), "q")) == ["a", "b", "c"]


# The stages of the core


def test_rerank_orders_by_the_new_scores(ask):
    """The final score is the reranker's; a candidate without one comes last; ties stay."""
    scores = {"a": 0.2, "b": None, "c": 0.7, "d": 0.2}
    rerank = Rerank(lambda query, given: [scores[hit.id] for hit in given])
    result = ask(RetrievalPipeline([WORDS, MEANING], [rerank]), "q")
    assert ids(result) == ["c", "a", "d", "b"]
    assert [hit.score for hit in result.hits[:3]] == [0.7, 0.2, 0.2]
    assert stage(result, "rerank").notes["b"] == "no score"


@pytest.mark.parametrize(
    ("min_score", "left"), [(None, "cab"), (0, "ca"), (0.0, "ca"), (0.5, "c"), (-5, "cab")]
)
def test_a_threshold_of_0_is_a_threshold(ask, min_score, left):
    """peers-45: `min_score` holds for the final score, and 0 does not switch it off."""
    scores = {"a": 0.0, "b": -2.0, "c": 0.96}
    rerank = Rerank(lambda query, given: [scores[h.id] for h in given], min_score=min_score)
    result = ask(RetrievalPipeline([WORDS], [rerank]), "q")
    assert ids(result) == list(left)


def test_the_threshold_does_not_look_at_the_score_before(ask):
    """peers-45: a candidate of 0.45 that ends at 0.96 is not lost to a threshold of 0.6."""
    weak = channel("c", ("strong in the end", 0.45), ("weak in the end", 0.9))
    rerank = Rerank(lambda query, given: [0.96, 0.1], min_score=0.6)
    assert ids(ask(RetrievalPipeline([weak], [rerank]), "q")) == ["strong in the end"]


def test_only_the_best_candidates_are_reranked(ask):
    """`candidate_limit` holds; what is not seen falls out, and that is noted."""
    seen = []

    def score(query, given):
        seen.extend(hit.id for hit in given)
        return [1.0] * len(given)

    result = ask(RetrievalPipeline([WORDS], [Rerank(score, candidate_limit=2)]), "q")
    assert seen == ids(result) == ["a", "b"]
    assert stage(result, "rerank").notes["c"] == "not among the best 2 candidates"


@pytest.mark.parametrize("scores", [[], [1.0], ["x"] * 3, RuntimeError("down")], ids=repr)
def test_a_reranker_that_fails_leaves_the_order(ask, scores):
    """Too few scores, none that are numbers, an error: the stage is skipped."""

    def score(query, given):
        if isinstance(scores, Exception):
            raise scores
        return scores

    result = ask(RetrievalPipeline([WORDS], [Rerank(score, min_score=0.5)]), "q")
    assert ids(result) == ["a", "b", "c"]
    assert list(result.errors) == ["rerank"]


def test_a_reranker_is_not_called_for_nothing(ask):
    """Nothing found, nothing to score."""
    rerank = Rerank(lambda query, given: 1 / 0)
    result = ask(RetrievalPipeline([channel("c")], [rerank]), "q")
    assert (result.hits, result.errors) == ([], {})


@pytest.mark.parametrize(
    ("best", "left"), [(0.3, "ab"), (0.2999, ""), (None, ""), (float("nan"), "")]
)
def test_the_evidence_gate(ask, best, left):
    """Weak evidence gives an empty answer, and the facts say why; at the threshold all pass."""
    gate = [Rerank(lambda query, given: [best, None]), EvidenceGate(0.3)]
    result = ask(RetrievalPipeline([channel("c", ("a", 1.0), ("b", 1.0))], gate), "q")
    assert ids(result) == list(left)
    if not left:
        assert "no evidence" in stage(result, "evidence gate").notes["a"]
        assert stage(result, "evidence gate").dropped == ("a", "b")


def test_the_score_threshold(ask):
    """Hits under it fall out with the reason."""
    result = ask(RetrievalPipeline([WORDS], [ScoreThreshold(1 / 62)]), "q")
    assert ids(result) == ["a", "b"]
    assert stage(result, "score threshold").notes["c"].startswith("left out: its score is 0.01587")


def test_dedupe_keeps_the_attribution(ask):
    """Of equal contents the best stays, with the channels of all, each at its best rank."""
    texts = {"a": "x", "b": "y", "c": "x", "d": "y"}
    dedupe = Dedupe(key=lambda hit: texts[hit.id])
    other = channel("other", ("c", 3.0), ("d", 2.0), ("b", 1.0))
    result = ask(RetrievalPipeline([WORDS, other], [dedupe]), "q")
    assert ids(result) == ["c", "b"]
    assert {name: place.rank for name, place in result.hits[0].channels.items()} == {
        "words": 1,
        "other": 1,
    }
    assert {name: place.rank for name, place in result.hits[1].channels.items()} == {
        "words": 2,
        "other": 2,
    }
    assert stage(result, "dedupe").notes["a"] == "says the same as c"


ROWS = {"a": [1.0, 0.0, 0.0], "b": [1.0, 0.01, 0.0], "c": [0.0, 1.0, 0.0]}


@pytest.mark.parametrize("asked", [[1.0, 1.0, 0.0], None])
def test_diversify_puts_a_twin_behind(ask, asked):
    """With and without the query's vector; the gain is noted, the fused score stays."""
    diversify = Diversify(lambda q, wanted: ([ROWS[i] for i in wanted], asked), lambda_mult=0.4)
    result = ask(RetrievalPipeline([WORDS], [diversify], k=2), "q")
    assert sorted(ids(result)) in (["a", "c"], ["b", "c"])
    assert "gain" in stage(result, "mmr").notes[ids(result)[0]]


@pytest.mark.parametrize("row", [None, [float("nan")] * 3, [], [1.0]], ids=repr)
def test_a_useless_vector_costs_its_hit_alone(ask, row):
    """NaN, none, of another length: that hit comes last, the others are as without it."""
    rows = {**ROWS, "b": row}
    diversify = Diversify(lambda q, wanted: ([rows[i] for i in wanted], [1.0, 0.5, 0.0]))
    assert ids(ask(RetrievalPipeline([WORDS], [diversify]), "q")) == ["a", "c", "b"]


def family():
    """Two levels: `root` holds `p` and `q`, which hold two leaves each."""
    store = InMemoryChunkStore()
    links = {"root": None, "p": "root", "q": "root", "a": "p", "b": "p", "c": "q", "d": "q"}
    children = {}
    for child, parent in links.items():
        children.setdefault(parent, []).append(child)
    store.put_many(
        Chunk(id_, "doc", n, id_, 0, 1, parent_id=up, metadata={"child_ids": children.get(id_, [])})
        for n, (id_, up) in enumerate(links.items())
    )
    return store


class Counting:
    """A store that counts its round trips."""

    def __init__(self, store):
        self.store = store
        self.calls = []

    def __getattr__(self, name):
        def call(*given):
            self.calls.append(name)
            return getattr(self.store, name)(*given)

        return call


def test_merging_goes_upward_with_one_read_per_level(ask):
    """All four leaves become the root: two levels, two reads, and one look at the leaves."""
    store = Counting(family())
    leaves = channel("c", ("a", 4.0), ("c", 3.0), ("b", 2.0), ("d", 1.0))
    result = ask(RetrievalPipeline([leaves], [AutoMerge(store)]), "q")
    assert ids(result) == ["root"]
    assert result.hits[0].score == pytest.approx(1 / 61)
    assert store.calls == ["parents_of", "get_many", "get_many"]
    assert "stands for 2 children (100%)" in result.hits[0].reasons[-1]
    assert stage(result, "auto merge").notes["a"] == "merged into root"


def test_merging_leaves_what_is_too_little(ask):
    """One of two leaves stays under a threshold of 0.6; a broken store costs the stage alone."""
    result = ask(RetrievalPipeline([WORDS], [AutoMerge(family(), merge_threshold=0.6)]), "q")
    assert ids(result) == ["p", "c"]
    assert ids(ask(RetrievalPipeline([WORDS], [AutoMerge(None)]), "q")) == ["a", "b", "c"]


def test_expansion_gives_each_parent_once(ask):
    """Each child's parent, at its best child's place, with its score."""
    result = ask(RetrievalPipeline([WORDS], [ParentExpansion(family())]), "q")
    assert ids(result) == ["p", "q"]
    assert [hit.score for hit in result.hits] == pytest.approx([1 / 61, 1 / 63])


# Events


def test_a_run_is_told_by_events(ask):
    """One per channel, fusion, postprocessor and run, with the names of the conventions."""
    heard = []
    pipeline = RetrievalPipeline(
        [WORDS, MEANING], [Rerank(lambda q, h: [1.0] * len(h))], k=2, on_event=heard.append
    )
    ask(pipeline, "what?")
    assert [event.name for event in heard] == [
        *("easyrag.channel", "easyrag.channel", "easyrag.fusion"),
        *("easyrag.postprocessor", "easyrag.postprocessor", "easyrag.retrieval"),
    ]
    whole = heard[-1].attributes
    assert whole["openinference.span.kind"] == "RETRIEVER"
    assert whole["input.value"] == whole["gen_ai.retrieval.query.text"] == "what?"
    assert whole["gen_ai.operation.name"] == "retrieval"
    assert whole["gen_ai.request.top_k"] == 2
    assert whole["retrieval.documents.0.document.id"] == "b"
    assert json.loads(whole["gen_ai.retrieval.documents"])[0]["id"] == "b"
    words = heard[0].attributes
    assert (words["gen_ai.data_source.id"], words["easyrag.hits.given"]) == ("words", 3)
    assert words["retrieval.documents.1.document.score"] == 4.0
    rerank = heard[3].attributes
    assert (rerank["openinference.span.kind"], rerank["reranker.query"]) == ("RERANKER", "what?")
    assert rerank["reranker.output_documents.0.document.id"] == "b"
    assert (rerank["easyrag.hits.taken"], rerank["easyrag.hits.given"]) == (4, 4)


def test_events_lie_within_the_run(ask):
    """Each began and ended while the run was on."""
    heard = []
    ask(RetrievalPipeline([WORDS, MEANING], [Dedupe()], on_event=heard.append), "q")
    whole = heard[-1]
    for event in heard[:-1]:
        assert whole.started_at - 0.05 <= event.started_at <= event.ended_at
        assert event.ended_at <= whole.ended_at + 0.05


def test_a_handler_that_fails_stops_nothing(ask, caplog):
    """The answer comes all the same."""

    def handler(event):
        raise RuntimeError("no disk")

    assert ids(ask(RetrievalPipeline([WORDS], on_event=handler), "q")) == ["a", "b", "c"]
    assert "no disk" in caplog.text


def test_of_an_id_that_comes_again_the_best_score_is_told():
    """Also where it is 0, which is a score like any other."""
    hits = [Hit("a", -1.0, 1), Hit("a", 0.0, 2), Hit("b", -2.0, 3)]
    line = RetrievalPipeline([Channel("v", lambda query, k: hits)], fusion="score")
    assert line.run("q").hits[0].channels["v"].score == 0.0


def test_events_are_json_whatever_the_scores_are():
    """Infinity has no word there."""
    seen = []
    hits = [Hit("a", math.inf, 1), Hit("b", 1.0, 2)]
    RetrievalPipeline([Channel("v", lambda query, k: hits)], on_event=seen.append).run("q")

    def refused(word):
        raise AssertionError(word)

    told = [each.attributes.get("gen_ai.retrieval.documents") for each in seen]
    parsed = [json.loads(each, parse_constant=refused) for each in told if each]
    assert parsed
    assert [one["id"] for one in parsed[0]] == ["a", "b"]
