"""Relevant and different: LangChain's compressor and LlamaIndex's postprocessor pick the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore

from easyrag_core import (
    BM25Index,
    StandardAnalyzer,
    VectorIndex,
    lexical_vectors,
    maximal_marginal_relevance,
)
from langchain_easyrag import BM25Retriever as DocumentBM25
from langchain_easyrag import MMRCompressor
from llamaindex_easyrag import BM25Retriever as NodeBM25
from llamaindex_easyrag import MMRPostprocessor
from tests.parity.frameworks import (
    MODES,
    WordEmbedding,
    WordEmbeddings,
    documents,
    nodes,
    word_vector,
)
from tests.strategies import nasty_texts

PASSAGES = {
    "a": "Rankings are fused by rank.",
    "b": "Rankings are fused by their rank.",
    "c": "Rankings and scores: how they are fused.",
    "d": "排序由名次融合 rankings.",
    "e": "Every chunk knows its place; rankings do not.",
    "f": "Rankings are fused by rank.",
}
QUERY = "How are rankings fused?"

modes = pytest.mark.parametrize("ask", MODES.values(), ids=MODES)


def picked(ask, plugs, candidates, query):
    """Ids, gains and relevance that each plug tells of its picks, in order."""
    compressor, postprocessor = plugs
    by_document, by_node = candidates
    first = ask(compressor, "compress_documents", by_document, query)
    second = ask(postprocessor, "postprocess_nodes", by_node, query_str=query)
    return (
        [(one.id, *_told(one.metadata["easyrag"])) for one in first],
        [(one.node.node_id, *_told(one.node.metadata["easyrag"])) for one in second],
    )


def _told(facts):
    return facts["rank"], facts["mmr"]["gain"], facts["mmr"]["relevance"]


def same(first, second):
    """Equal picks; numbers equal but for the last bits."""
    assert [pick[:2] for pick in first] == [pick[:2] for pick in second]
    for one, other in zip(first, second, strict=True):
        assert one[2:] == pytest.approx(other[2:])


def plugs(k=4, *, model=True, **settings):
    """The two plugs, each with the settings by its own name for them."""
    missing = {"missing_vectors": "drop", **settings}
    return (
        MMRCompressor(k=k, embeddings=WordEmbeddings() if model else None, **missing),
        MMRPostprocessor(k, embed_model=WordEmbedding() if model else None, **missing),
    )


def bare(texts):
    """Candidates as they come from elsewhere: without vectors, scores or facts."""
    return documents(texts), [NodeWithScore(node=node) for node in nodes(texts)]


def searched(texts, query):
    """Candidates as our BM25 retrievers give them, with scores."""
    by_document = DocumentBM25.from_documents(documents(texts), k=10).invoke(query)
    return by_document, NodeBM25(nodes(texts), similarity_top_k=10).retrieve(query)


def core_picks(texts, vectors, relevance, k, lambda_mult, **settings):
    result = maximal_marginal_relevance(
        vectors, relevance, k=k, lambda_mult=lambda_mult, **settings
    )
    names = list(texts)
    return [
        (names[index], rank, gain, relevance[index])
        for rank, (index, gain) in enumerate(zip(*result, strict=True), start=1)
    ]


def cosines(vectors, query):
    rows = np.array(vectors, np.float64)
    norms = np.linalg.norm(rows, axis=1) * np.linalg.norm(query)
    return np.divide(rows @ np.array(query), norms, out=np.zeros(len(rows)), where=norms > 0)


@modes
@pytest.mark.parametrize("lambda_mult", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("k", [0, 1, 4, 20])
def test_with_a_model_the_picks_are_the_same(ask, lambda_mult, k):
    """By an embedding model: order, gains and relevance are the core's in both."""
    first, second = picked(ask, plugs(k, lambda_mult=lambda_mult), bare(PASSAGES), QUERY)
    same(first, second)
    vectors = [word_vector(text) for text in PASSAGES.values()]
    relevance = cosines(vectors, word_vector(QUERY))
    same(first, core_picks(PASSAGES, vectors, relevance, k, lambda_mult))


@modes
@pytest.mark.parametrize("lambda_mult", [0.0, 0.5, 1.0])
def test_without_a_model_the_words_decide_alike(ask, lambda_mult):
    """No vectors anywhere: the same lexical ones stand in, for the query too."""
    first, second = picked(ask, plugs(model=False, lambda_mult=lambda_mult), bare(PASSAGES), QUERY)
    same(first, second)
    rows = lexical_vectors([*PASSAGES.values(), QUERY], StandardAnalyzer())
    same(first, core_picks(PASSAGES, rows[:-1], cosines(rows[:-1], rows[-1]), 4, lambda_mult))


@modes
@pytest.mark.parametrize("normalize", [True, False])
def test_by_scores_the_picks_are_the_same(ask, normalize):
    """`relevance="score"` uses what the retrievers gave, brought to [0, 1] or raw."""
    settings = {"relevance": "score", "normalize_relevance": normalize}
    first, second = picked(ask, plugs(**settings), searched(PASSAGES, QUERY), QUERY)
    same(first, second)
    index = BM25Index()
    index.add(list(PASSAGES), list(PASSAGES.values()))
    hits = index.search(QUERY)
    assert [pick[3] for pick in first] == pytest.approx(
        [next(hit.score for hit in hits if hit.id == pick[0]) for pick in first]
    )


@modes
def test_with_vectors_of_a_store_the_picks_are_the_same(ask):
    """Vectors are looked up by id in the same index; only the query is embedded."""
    index = VectorIndex(32)
    index.add(list(PASSAGES), [word_vector(text) for text in PASSAGES.values()])
    first, second = picked(ask, plugs(vector_store=index), bare(PASSAGES), QUERY)
    same(first, second)
    same(first, picked(ask, plugs(), bare(PASSAGES), QUERY)[0])


@given(
    st.dictionaries(st.text("abcdef", min_size=1, max_size=3), nasty_texts(max_fragments=4)),
    nasty_texts(max_fragments=3).filter(str.strip).map(str.strip),
    st.booleans(),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.integers(0, 6),
)
def test_any_candidates_are_picked_alike(texts, query, model, lambda_mult, k):
    """Whatever the texts are, blank and equal ones too."""
    settings = {"model": model, "lambda_mult": lambda_mult}
    first, second = picked(MODES["sync"], plugs(k, **settings), bare(texts), query)
    same(first, second)
    assert len(first) == min(k, len(texts))


NAN = [float("nan")] * 32


class OneBadDocument(WordEmbeddings):
    """Gives no usable vector of the second passage."""

    def embed_documents(self, texts):
        return [NAN if text == PASSAGES["b"] else word_vector(text) for text in texts]


class OneBadNode(WordEmbedding):
    """Likewise."""

    def _get_text_embedding(self, text):
        return NAN if text == PASSAGES["b"] else word_vector(text)


@modes
@pytest.mark.parametrize(("missing", "left"), [("drop", 5), ("append", 6), ("keep", 6)])
def test_a_broken_vector_costs_both_the_same(ask, missing, left):
    """One NaN row: left out, put last, or kept, and the others are picked as without it."""
    pair = (
        MMRCompressor(k=9, embeddings=OneBadDocument(), missing_vectors=missing),
        MMRPostprocessor(9, embed_model=OneBadNode(), missing_vectors=missing),
    )
    first, second = picked(ask, pair, bare(PASSAGES), QUERY)
    same(first, second)
    assert len(first) == left
    others = {id_: text for id_, text in PASSAGES.items() if id_ != "b"}
    alone = picked(ask, plugs(9), bare(others), QUERY)[0]
    assert [pick[0] for pick in first if pick[0] != "b"] == [pick[0] for pick in alone]


class NoDocuments(WordEmbeddings):
    """Is down."""

    def embed_documents(self, texts):
        raise RuntimeError("down")


class NoNodes(WordEmbedding):
    """Is down."""

    def _get_text_embedding(self, text):
        raise RuntimeError("down")


@modes
def test_where_the_model_is_down_the_words_stand_in(ask, caplog):
    """Both warn and answer as they do without a model."""
    pair = (MMRCompressor(embeddings=NoDocuments()), MMRPostprocessor(4, embed_model=NoNodes()))
    first, second = picked(ask, pair, bare(PASSAGES), QUERY)
    same(first, second)
    assert (
        len([record for record in caplog.records if "RuntimeError('down')" in record.message]) == 2
    )
    same(first, picked(ask, plugs(model=False), bare(PASSAGES), QUERY)[0])


# Where they do not agree yet


@modes
def test_by_scores_and_words_the_picks_are_the_same(ask):
    """Relevance by score and no vectors: the query has no part in how rare a word is."""
    settings = {"relevance": "score", "model": False}
    same(*picked(ask, plugs(**settings), searched(PASSAGES, QUERY), QUERY))


@modes
@pytest.mark.parametrize("missing", ["drop", "append", "keep"])
def test_with_some_vectors_the_picks_are_the_same(ask, missing):
    """A store that knows four of six, and no model: `missing_vectors` says what becomes of two."""
    index = VectorIndex(32)
    index.add(list("abcd"), [word_vector(PASSAGES[id_]) for id_ in "abcd"])
    settings = {"vector_store": index, "missing_vectors": missing, "relevance": "score"}
    first, second = picked(ask, plugs(9, model=False, **settings), bare(PASSAGES), QUERY)
    same(first, second)


@modes
def test_a_candidate_that_comes_twice_is_picked_once(ask):
    """One id, one pick."""
    by_document, by_node = bare(PASSAGES)
    candidates = (by_document + by_document[:2], by_node + by_node[:2])
    same(*picked(ask, plugs(9), candidates, QUERY))


@modes
@pytest.mark.parametrize("query", ["", " \n"], ids=ascii)
def test_a_blank_query_is_no_measure(ask, query):
    """Without any text in the query the scores decide, as without a query vector."""
    first, second = picked(ask, plugs(), searched(PASSAGES, QUERY), query)
    same(first, second)


def test_the_defaults_are_the_same():
    """Settings that both have begin with one value."""
    names = ("lambda_mult", "relevance", "normalize_relevance", "missing_vectors", "strict")
    pair = (MMRCompressor(), MMRPostprocessor())
    first, second = ([getattr(plug, name) for name in names] for plug in pair)
    assert first == second


def test_sync_equals_async():
    """All four ways give one answer."""
    answers = [
        found
        for ask in MODES.values()
        for found in picked(ask, plugs(), searched(PASSAGES, QUERY), QUERY)
    ]
    for other in answers[1:]:
        same(answers[0], other)


@pytest.mark.parametrize(
    "settings",
    [
        {"k": -1},
        {"lambda_mult": 1.1},
        {"lambda_mult": float("nan")},
        {"relevance": "words"},
        {"missing_vectors": "guess"},
    ],
    ids=repr,
)
def test_both_refuse_the_same(settings):
    """A `ValueError` at construction, in both."""
    k = settings.pop("k", 3)
    with pytest.raises(ValueError, match="is not allowed"):
        MMRCompressor(k=k, **settings)
    with pytest.raises(ValueError, match="is not allowed"):
        MMRPostprocessor(k, **settings)
