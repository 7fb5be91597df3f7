"""MMRPostprocessor: what it picks, where its vectors come from, what it leaves alone."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core import VectorStoreIndex
from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores.simple import SimpleVectorStore

from easyrag_core import InvalidParameterError
from llamaindex_easyrag import BM25Retriever, MMRPostprocessor
from tests.llamaindex_adapter._parts import (
    BrokenEmbedding,
    WordEmbedding,
    facts,
    ids,
    listening,
    scored,
)

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


CASE_37 = {
    "A": [0.90, 0.44, 0.0, 0.0],
    "dup": [0.88, 0.47, 0.0, 0.0],
    "B": [0.70, 0.0, 0.71, 0.0],
    "C": [0.65, 0.0, 0.0, 0.76],
}
AXIS = [1.0, 0.0, 0.0, 0.0]


def test_mmr_compares_with_all_that_is_picked():
    """LI-37: the near duplicate of the first pick stays out."""
    nodes = found(*CASE_37, vectors=CASE_37)
    picked = MMRPostprocessor(top_n=3, lambda_mult=0.5).postprocess_nodes(
        nodes, QueryBundle("q", embedding=AXIS)
    )
    assert ids(picked) == ["A", "B", "C"]
    assert [one.score for one in picked] == [1.0, 0.8, pytest.approx(0.7)]
    assert facts(picked[0])["mmr"]["relevance"] == pytest.approx(0.8984, abs=1e-4)


def test_divergence_stock_mmr_compares_with_the_last_pick():
    """Named divergence (LI-37): the stock function picks the duplicate."""
    _, picked = get_top_k_mmr_embeddings(
        AXIS,
        list(CASE_37.values()),
        similarity_top_k=3,
        embedding_ids=list(CASE_37),
        mmr_threshold=0.5,
    )
    assert picked == ["A", "B", "dup"]


def indexed(model, names=tuple(TEXTS)):
    nodes = [TextNode(text=TEXTS[name], id_=name) for name in names]
    return VectorStoreIndex(nodes, embed_model=model)


def test_mmr_behind_a_vector_retriever():
    """LI-39: nodes come without vectors; they are found in the store, the query is reused."""
    model = WordEmbedding()
    index = indexed(model)
    bundle = QueryBundle("the cat sat")
    nodes = index.as_retriever(similarity_top_k=5).retrieve(bundle)
    assert all(one.node.embedding is None for one in nodes)
    model.calls.clear()
    picked = MMRPostprocessor(top_n=2, lambda_mult=0.3, index=index).postprocess_nodes(
        nodes, bundle
    )
    assert ids(picked)[0] == ids(nodes)[0]
    assert "cat2" not in ids(picked)[1:] or "cat" not in ids(picked)[:1]
    assert model.calls == []  # the retriever left the query's vector in the bundle


def test_mmr_embeds_once():
    """Without a store: one batch for the nodes, one call for the query, and a cache."""
    model = WordEmbedding()
    mmr = MMRPostprocessor(top_n=2, embed_model=model)
    mmr.postprocess_nodes(found(), query_str="the cat")
    assert model.calls == [("texts", 5), ("query", 1)]
    mmr.postprocess_nodes(found("cat", "dog"), query_str="the dog")
    assert model.calls[2:] == [("query", 1)]


def test_mmr_reuses_the_bundles_vector():
    """A bundle that brings a vector costs no call and stays as it is."""
    model = WordEmbedding()
    bundle = QueryBundle("the cat", embedding=model.get_query_embedding("the cat"))
    before = copy.deepcopy(bundle)
    model.calls.clear()
    MMRPostprocessor(embed_model=model).postprocess_nodes(found(), bundle)
    assert model.calls == [("texts", 5)]
    assert bundle == before


class NodeStore(SimpleVectorStore):
    """Hands out nodes with vectors, as many vector stores do."""

    def get_nodes(self, node_ids=None, filters=None):
        return [TextNode(id_=i, embedding=self.data.embedding_dict[i]) for i in node_ids]


class ForeignStore:
    def __init__(self, store):
        self.get_nodes = store.get_nodes


@pytest.mark.parametrize("source", ["own", "simple", "get_nodes", "vector_index", "model"])
def test_mmr_finds_vectors_wherever_they_are(source):
    """SPEC 10: the picks are the same from every source."""
    from easyrag_core import VectorIndex

    model = WordEmbedding()
    vectors = {name: model._vector(text) for name, text in TEXTS.items()}
    store = NodeStore()
    store.add([TextNode(text=TEXTS[n], id_=n, embedding=v) for n, v in vectors.items()])
    rows = VectorIndex(64)
    rows.add(list(vectors), list(vectors.values()))
    given = {
        "own": {},
        "simple": {"vector_store": store},
        "get_nodes": {"vector_store": ForeignStore(store)},
        "vector_index": {"vector_store": rows},
        "model": {"embed_model": model},
    }[source]
    nodes = found(vectors=vectors if source == "own" else None)
    bundle = QueryBundle("the cat", embedding=model._vector("the cat"))
    picked = MMRPostprocessor(top_n=3, lambda_mult=0.4, **given).postprocess_nodes(nodes, bundle)
    own = MMRPostprocessor(top_n=3, lambda_mult=0.4).postprocess_nodes(
        found(vectors=vectors), bundle
    )
    assert ids(picked) == ids(own)


class SilentStore(SimpleVectorStore):
    """Cannot hand out anything."""

    def get_nodes(self, node_ids=None, filters=None):
        raise NotImplementedError


class BrokenStore:
    def get_nodes(self, node_ids):
        raise ConnectionError("no route")


@pytest.mark.parametrize("store", [None, ForeignStore(SilentStore()), BrokenStore()])
def test_mmr_compares_words_where_there_are_no_vectors(store):
    """Keyword results are made diverse too: the twin of the first pick comes later."""
    nodes = BM25Retriever(
        [TextNode(text=text, id_=name) for name, text in TEXTS.items()], similarity_top_k=5
    ).retrieve("the cat sat")
    assert ids(nodes)[:2] == ["cat", "cat2"]
    picked = MMRPostprocessor(top_n=2, lambda_mult=0.5, vector_store=store).postprocess_nodes(
        nodes, query_str="the cat sat"
    )
    assert ids(picked) == ["cat", "dog"]


def test_a_failing_model_is_no_failing_answer(caplog):
    """Words are compared instead, with a warning and an event; `strict` raises."""
    lazy = MMRPostprocessor(top_n=2, embed_model=BrokenEmbedding())
    with listening() as events:
        assert len(lazy.postprocess_nodes(found(), query_str="the cat")) == 2
    assert "the model is down" in caplog.text
    assert any(isinstance(event, ExceptionEvent) for event in events)
    strict = MMRPostprocessor(top_n=2, embed_model=BrokenEmbedding(), strict=True)
    with pytest.raises(RuntimeError, match="the model is down"):
        strict.postprocess_nodes(found(), query_str="the cat")


class Unusable(WordEmbedding):
    """Answers, but with nothing that can be compared, until it is mended."""

    nodes: list[float]
    query: list[float]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [list(self.nodes) for _ in texts]

    def _get_query_embedding(self, query: str) -> list[float]:
        return list(self.query)


NAN = float("nan")


@pytest.mark.parametrize("policy", ["append", "drop", "keep"])
@pytest.mark.parametrize("relevance", ["query", "score"])
@pytest.mark.parametrize(
    ("nodes", "query"),
    [
        pytest.param([NAN] * 4, [NAN] * 4, id="nan"),
        pytest.param([float("inf")] * 4, [1.0] * 4, id="infinite"),
        pytest.param([], [], id="empty"),
        pytest.param([NAN] * 4, [1.0] * 4, id="nodes"),
        pytest.param([1.0] * 4, [NAN] * 4, id="query"),
        pytest.param([1.0] * 4, [1.0] * 3, id="lengths"),
    ],
)
def test_a_model_of_unusable_vectors_is_as_one_that_fails(nodes, query, relevance, policy, caplog):
    """Words are compared instead, with a warning and an event; `strict` raises."""
    settings = {"top_n": 3, "relevance": relevance, "missing_vectors": policy}
    model = Unusable(nodes=nodes, query=query)
    compares_query = nodes != [1.0] * 4 or relevance == "query"
    words = MMRPostprocessor(**settings).postprocess_nodes(found(), query_str="the cat")
    with listening() as events:
        mmr = MMRPostprocessor(embed_model=model, **settings)
        picked = mmr.postprocess_nodes(found(), query_str="the cat")
    assert len(picked) == 3
    if compares_query:
        assert ids(picked) == ids(words)
        assert "words are compared" in caplog.text
        assert any(isinstance(event, ExceptionEvent) for event in events)
        strict = MMRPostprocessor(embed_model=model, strict=True, **settings)
        with pytest.raises(InvalidParameterError, match="finite"):
            strict.postprocess_nodes(found(), query_str="the cat")


def test_unusable_vectors_are_not_remembered(caplog):
    """A model that is well again is asked again."""
    model = Unusable(nodes=[NAN] * 4, query=[1.0] * 4)
    mmr = MMRPostprocessor(top_n=3, embed_model=model)
    mmr.postprocess_nodes(found(), query_str="the cat")
    assert "words are compared" in caplog.text
    caplog.clear()
    model.nodes = [1.0] * 4
    assert len(mmr.postprocess_nodes(found(), query_str="the cat")) == 3
    assert "words are compared" not in caplog.text


def test_an_empty_vector_that_comes_first_is_no_measure():
    """One node's empty vector does not make the others' unusable."""
    vectors = {"dup": [], **{name: CASE_37[name] for name in CASE_37 if name != "dup"}}
    nodes = found(*vectors, vectors=vectors, scores=[4.0, 3.0, 2.0, 1.0])
    picked = MMRPostprocessor(top_n=4, missing_vectors="drop").postprocess_nodes(nodes)
    assert sorted(ids(picked)) == sorted(set(CASE_37) - {"dup"})


@pytest.mark.parametrize("broken", [[float("nan")] * 4, [1.0, 2.0]], ids=["PE-44-nan", "length"])
@pytest.mark.parametrize(
    ("policy", "expected"), [("append", ["A", "B", "C", "dup"]), ("drop", ["A", "B", "C"])]
)
@pytest.mark.parametrize("query", [QueryBundle("q", embedding=AXIS), None])
def test_a_broken_vector_costs_its_own_node_the_place(broken, policy, expected, query):
    """PE-44: a node with a broken vector is last, or left out; the others are picked as ever."""
    nodes = found(*CASE_37, vectors={**CASE_37, "dup": broken}, scores=[4.0, 3.0, 2.0, 1.0])
    picked = MMRPostprocessor(top_n=4, missing_vectors=policy).postprocess_nodes(nodes, query)
    assert sorted(ids(picked)) == sorted(expected)
    assert policy == "drop" or ids(picked)[-1] == "dup"


VECTORS = {name: [1.0, i / 7, (i * i) % 5 / 5] for i, name in enumerate("abcdefg")}


@given(st.permutations("abcdefg"), st.integers(0, 7))
def test_mmr_of_relevance_alone_is_the_order_of_relevance(order, k):
    """PE-44: lambda 1 sorts by relevance: by scores where these are asked for."""
    scores = [float(ord(name)) for name in order]
    nodes = found(*order, vectors=VECTORS, scores=scores)
    mmr = MMRPostprocessor(top_n=k, lambda_mult=1.0, relevance="score")
    assert ids(mmr.postprocess_nodes(nodes, query_str="q")) == sorted(order, reverse=True)[:k]


def test_mmr_scores_are_normalised_unless_asked_not_to():
    """Fused scores are tiny: raw, they would leave diversity alone to decide."""
    scores = [0.0328, 0.0325, 0.0161, 0.0]
    nodes = found(*CASE_37, vectors=CASE_37, scores=scores)
    settings = {"top_n": 4, "lambda_mult": 0.7, "relevance": "score"}
    scaled = MMRPostprocessor(**settings).postprocess_nodes(nodes)
    raw = MMRPostprocessor(**settings, normalize_relevance=False).postprocess_nodes(nodes)
    assert facts(scaled[0])["mmr"]["gain"] == pytest.approx(0.7)
    assert facts(raw[0])["mmr"]["gain"] == pytest.approx(0.7 * 0.0328)


def test_mmr_without_scores_takes_the_order():
    """No query vector and a score missing: what came first is the most relevant."""
    nodes = scored(("x", None), ("y", 3.0))
    assert ids(MMRPostprocessor(lambda_mult=1.0).postprocess_nodes(nodes)) == ["x", "y"]


def test_mmr_keeps_earlier_facts():
    """What a retriever told about its channels stays beside gain and relevance."""
    nodes = BM25Retriever([TextNode(text="apple", id_="x")]).retrieve("apple")
    picked = MMRPostprocessor().postprocess_nodes(nodes, query_str="apple")
    assert facts(picked[0])["channels"] == facts(nodes[0])["channels"]
    assert set(facts(picked[0])) == {"score", "rank", "channels", "mmr"}
