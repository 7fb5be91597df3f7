"""`FusionRetriever` and `fuse_documents`: EnsembleRetriever's arguments, one vote per list."""

from __future__ import annotations

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from easyrag_core import EasyRAGError, reciprocal_rank_fusion
from langchain_easyrag import BM25Retriever, FusionRetriever, fuse_documents
from langchain_easyrag._fusing import fused_with_facts
from tests.langchain_adapter.samples import (
    ListRetriever,
    corpus,
    ids,
    snapshot,
)


def named(*names, source=None):
    metadata = {} if source is None else {"source": source}
    return [Document(name, id=name, metadata=metadata) for name in names]


def lists(*rankings):
    return [ListRetriever(documents=ranking) for ranking in rankings]


def fused(*rankings, **settings_):
    return FusionRetriever(retrievers=lists(*rankings), **settings_)


# The fusion itself


@pytest.mark.parametrize(
    ("rankings", "weights", "expected"),
    [
        pytest.param(
            ["AB", "BA"], None, {"A": 0.032522, "B": 0.032522}, id="spec-10-ranks-1-2-and-2-1"
        ),
        pytest.param(["xxA", "xxxxA"], None, {"A": 0.031258}, id="spec-10-ranks-3-5"),
        pytest.param(["123456789A", "B"], None, {"A": 0.014286}, id="spec-10-rank-10"),
        pytest.param(["AB", "CB"], [1, 0], {"A": 0.016393, "B": 0.016129}, id="peers-41"),
    ],
)
def test_scores_are_those_of_the_formula(rankings, weights, expected):
    """Ranks count from 1; a weight of 0 leaves a list out."""
    documents = [
        [Document(name, id=f"{name}{at}" if name == "x" else name) for at, name in enumerate(row)]
        for row in rankings
    ]
    named = {str(number): ranking for number, ranking in enumerate(documents)}
    fused = fused_with_facts(named, weights=weights)
    found = {document.id: document.metadata["easyrag"]["score"] for document in fused}
    assert {name: round(found[name], 6) for name in expected} == expected
    if weights == [1, 0]:
        assert "C" not in found


documents_ = st.sampled_from([Document(f"text {n}", id=f"id{n}") for n in range(12)])
rankings_ = st.lists(st.lists(documents_, max_size=10), min_size=1, max_size=4)


@given(rankings_, st.sampled_from([None, 1, 3]), st.data())
def test_fusing_documents_is_fusing_their_ids(rankings, k, data):
    """The room adds nothing to the core's fusion; the document is one that was ranked best."""
    votes = st.lists(st.sampled_from([0, 1]), min_size=len(rankings), max_size=len(rankings))
    weights = data.draw(st.none() | votes)
    # Each ranking hands out copies of its own.
    rankings = [[document.model_copy() for document in ranking] for ranking in rankings]
    fused = fuse_documents(rankings, weights=weights, k=k)
    core = reciprocal_rank_fusion([ids(ranking) for ranking in rankings], weights=weights, k=k)
    assert ids(fused) == [item.key for item in core]
    for document, item in zip(fused, core, strict=True):
        rank, number = min((r, n) for n, r in enumerate(item.ranks) if r is not None)
        assert document is rankings[number][rank - 1]


def test_f1_one_vote_per_list():
    """F1: five chunks of one source do not outvote what both lists rank first."""
    one = [Document("S", metadata={"src": "s"})]
    one += [Document(f"L{n}", metadata={"src": "l"}) for n in range(5)]
    two = [Document("S", metadata={"src": "s"})]
    theirs = EnsembleRetriever(retrievers=lists(one, two), id_key="src")
    assert theirs.invoke("q")[0].page_content == "L0"
    found = fused(one, two, id_key="src").invoke("q")
    assert [document.page_content for document in found] == ["S", "L0"]
    assert found[0].metadata["easyrag"]["score"] == pytest.approx(2 / 61)
    assert found[1].metadata["easyrag"]["score"] == pytest.approx(1 / 62)


def test_f2_equal_texts_of_two_sources_stay_apart():
    """F2: content alone does not make two documents one; EnsembleRetriever drops one of them."""
    one = [Document("same", metadata={"source": "a"})]
    two = [Document("same", metadata={"source": "b"})]
    assert len(EnsembleRetriever(retrievers=lists(one, two)).invoke("q")) == 1
    assert [d.metadata["source"] for d in fused(one, two).invoke("q")] == ["a", "b"]
    one[0].id, two[0].id = "1", "2"
    assert ids(fused(one, two).invoke("q")) == ["1", "2"]


def test_collapsing_is_opt_in_and_keeps_the_provenance():
    """With an `id_key` one document stands for all; what each list said is told."""
    one = [Document("v1", id="1", metadata={"url": "u"})]
    two = [Document("other", id="9"), Document("v2", id="2", metadata={"url": "u"})]
    found = fused(one, two, id_key="url").invoke("q")
    assert ids(found) == ["1", "9"]
    places = found[0].metadata["easyrag"]["channels"]
    assert [place["rank"] for place in places.values()] == [1, 2]


def test_a_document_without_id_is_the_one_with_an_id_and_equal_content():
    """A store that gives ids and a retriever that gives none still vote together."""
    with_id = [Document("same", id="uuid", metadata={"source": "a"})]
    without = [Document("same", metadata={"source": "a"}), Document("same")]
    found = fused(without, with_id).invoke("q")
    assert ids(found) == [None, None]
    assert [len(d.metadata["easyrag"]["channels"]) for d in found] == [2, 1]


def test_a_missing_id_key_is_no_error():
    """EnsembleRetriever raises KeyError; here the id stands in."""
    one = [Document("a", id="1", metadata={"key": 5}), Document("b", id="2")]
    with pytest.raises(KeyError):
        EnsembleRetriever(retrievers=lists(one), id_key="key").invoke("q")
    assert ids(fused(one, id_key="key").invoke("q")) == ["1", "2"]


def test_ties_follow_best_rank_then_first_appearance():
    """DESIGN 1.7: never by hash order."""
    found = fused(named("a", "b", "c"), named("c", "b", "a"), named("d")).invoke("q")
    assert ids(found) == ["a", "c", "b", "d"]
    assert ids(fused(named("x"), named("y"), named("z")).invoke("q")) == ["x", "y", "z"]


def test_the_payload_comes_from_the_list_that_ranks_it_best():
    """SPEC 10: also when it is not the first list."""
    one = [Document("other", id="o"), Document("old", id="x")]
    two = [Document("new", id="x")]
    found = fused(one, two).invoke("q")
    assert found[0].page_content == "new"


# Scores


def test_fusion_by_score():
    """SPEC 10: scores are brought to [0, 1] per list and added."""
    bm25 = BM25Retriever.from_documents(corpus(), k=3)
    other = RunnableLambda(
        lambda _: [
            Document("m", id="mmr", metadata={"my_score": 0.9}),
            Document("c", id="cat", metadata={"my_score": 0.1}),
        ]
    )
    retriever = FusionRetriever(retrievers=[bm25, other], fusion="score", score_key="my_score")
    found = {d.id: d.metadata["easyrag"]["score"] for d in retriever.invoke("ranking")}
    assert found["cat"] == 0.0
    assert found["mmr"] >= 1.0
    assert max(found.values()) <= 2.0


def test_a_list_without_scores_is_taken_by_its_ranks(caplog):
    """It is not lost under `fusion="score"`; a warning says so."""
    with caplog.at_level(logging.WARNING):
        found = fused(named("a", "b", "c"), fusion="score").invoke("q")
    assert ids(found) == ["a", "b", "c"]
    assert [d.metadata["easyrag"]["score"] for d in found] == [1.0, 0.5, 0.0]
    assert "ranks" in caplog.text


@pytest.mark.parametrize("fusion", ["rrf", "score"])
def test_peers_43_lone_and_equal_scores(fusion):
    """peers-43: a lone hit counts, and an empty list adds nothing."""
    scored = [Document("a", id="a", metadata={"s": 3.0})]
    found = fused(scored, [], fusion=fusion, score_key="s").invoke("q")
    expected = 1.0 if fusion == "score" else 1 / 61
    assert found[0].metadata["easyrag"]["score"] == pytest.approx(expected)


# Facts


def test_f7_facts_per_source():
    """F7: fused score, rank, and per retriever rank and raw score, as plain JSON."""
    bm25 = BM25Retriever.from_documents(corpus(), k=3)
    plain = ListRetriever(documents=corpus()).with_config(run_name="dense")
    found = FusionRetriever(retrievers=[bm25, plain], k=2).invoke("ranking")
    facts = found[0].metadata["easyrag"]
    assert json.loads(json.dumps(facts)) == facts
    assert facts["rank"] == 1
    assert list(facts["channels"]) == ["BM25Retriever", "dense"]
    own = bm25.invoke("ranking")
    rank = facts["channels"]["BM25Retriever"]["rank"]
    assert (
        facts["channels"]["BM25Retriever"]["score"] == (own[rank - 1].metadata["easyrag"]["score"])
    )
    assert facts["channels"]["dense"]["score"] is None


def test_retrievers_of_one_name_are_numbered():
    """Facts of two retrievers never overwrite each other."""
    facts = fused(named("a"), named("a")).invoke("q")[0].metadata["easyrag"]
    assert list(facts["channels"]) == ["ListRetriever", "ListRetriever 2"]


def test_inner_channels_are_told_too():
    """A fusion of fusions says what happened inside."""
    inner = fused(named("a"), named("a"))
    facts = FusionRetriever(retrievers=[inner]).invoke("q")[0].metadata["easyrag"]
    assert set(facts["channels"]["FusionRetriever"]["channels"]) == {
        "ListRetriever",
        "ListRetriever 2",
    }


@given(rankings_)
def test_inputs_stay_as_they_are(rankings):
    """DESIGN 1.6: the children's documents are deep-equal afterwards."""
    before = [snapshot(ranking) for ranking in rankings]
    retriever = fused(*rankings)
    for document in retriever.invoke("q"):
        document.metadata["changed"] = True
    assert [snapshot(ranking) for ranking in rankings] == before
    assert all("changed" not in d.metadata for d in retriever.invoke("q"))


# EnsembleRetriever's surface


def test_arguments_of_ensemble_retriever():
    """Its four arguments give its order where it is right."""
    rankings = (named("a", "b", "c"), named("c", "d"))
    arguments = {"retrievers": lists(*rankings), "weights": [0.3, 0.7], "c": 10}
    theirs, ours = EnsembleRetriever(**arguments), FusionRetriever(**arguments)
    assert ids(ours.invoke("q")) == ids(theirs.invoke("q"))
    assert ours.c == ours.rank_constant == 10
    assert set(EnsembleRetriever.model_fields) <= set(FusionRetriever.model_fields) | {"c"}


def test_plain_strings_become_documents():
    """Like EnsembleRetriever's: a child may give strings."""
    child = RunnableLambda(lambda _: ["one", "two"])
    found = FusionRetriever(retrievers=[child]).invoke("q")
    assert [document.page_content for document in found] == ["one", "two"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"retrievers": []},
        {"weights": [1.0]},
        {"weights": [1.0, -1.0]},
        {"weights": [0.0, 0.0]},
        {"weights": [float("nan"), 1.0]},
        {"rank_constant": -1},
        {"c": float("inf")},
        {"c": 60, "rank_constant": 60},
        {"fusion": "borda"},
        {"k": -1},
        {"k": True},
        {"wieghts": [1.0, 2.0]},
        {"channel_timeout": 0},
    ],
    ids=str,
)
def test_wrong_settings_are_refused_at_construction(wrong):
    """A typed ValueError, before any child is asked."""
    with pytest.raises(EasyRAGError) as refused:
        FusionRetriever(**{"retrievers": lists(named("a"), named("b")), **wrong})
    assert isinstance(refused.value, ValueError)


def test_k_in_constructor_and_call():
    """`None` gives all, a call decides for itself."""
    rankings = (named("a", "b"), named("c"))
    assert len(fused(*rankings).invoke("q")) == 3
    assert len(fused(*rankings, k=2).invoke("q")) == 2
    assert len(fused(*rankings, k=2).invoke("q", k=1)) == 1
    with pytest.raises(EasyRAGError):
        fused(*rankings).invoke("q", k=-1)
