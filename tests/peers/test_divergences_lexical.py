"""Where the peers' keyword search is wrong, what they give, and what is right."""

from __future__ import annotations

import math

import pytest

from easyrag_core.index.bm25 import BM25Index

POEM = ("床前明月光", "疑是地上霜", "举头望明月", "低头思故乡")


def found(texts, query, k=10, **options):
    """Return what BM25Index finds among texts: positions and scores."""
    index = BM25Index()
    index.add([str(number) for number in range(len(texts))], texts)
    return {int(hit.id): hit.score for hit in index.search(query, k, **options)}


def test_rank_bm25_gives_no_weight_to_half_the_corpus():
    """rank_bm25 scores a word that is in one of two documents 0; it should count ln 2."""
    rank_bm25 = pytest.importorskip("rank_bm25")
    peer = rank_bm25.BM25Okapi([["cat"], ["dog"]])
    assert peer.get_scores(["cat"]).tolist() == [0, 0]
    assert found(("cat", "dog"), "cat") == {0: pytest.approx(math.log(2))}


def test_rank_bm25_dies_of_an_empty_corpus():
    """rank_bm25 divides by zero without documents; an empty corpus has an empty answer."""
    rank_bm25 = pytest.importorskip("rank_bm25")
    with pytest.raises(ZeroDivisionError):
        rank_bm25.BM25Okapi([])
    assert found((), "cat") == {}


def test_langchain_community_returns_documents_without_a_match():
    """The community retriever fills up with documents that hold none of the words."""
    pytest.importorskip("rank_bm25")
    community = pytest.importorskip("langchain_community.retrievers")
    texts = ["深度学习是机器学习的一种方法。", "今天天气很好", "苹果是水果", "x", "y"]
    peer = community.BM25Retriever.from_texts(texts, k=2)
    assert texts[0] not in [document.page_content for document in peer.invoke("机器学习")]
    assert list(found(texts, "机器学习", 2)) == [0]


def test_bm25s_does_not_cut_chinese_and_loses_c_plus_plus():
    """bm25s keeps a Chinese clause as one word and drops `C++` and `C#`."""
    bm25s = pytest.importorskip("bm25s")
    text = "检索增强生成 RAG，C++ 和 C# 与 a1"
    [tokens] = bm25s.tokenize([text], return_ids=False, show_progress=False, stopwords=None)
    assert tokens == ["检索增强生成", "rag", "a1"]
    for query in ("检索", "C++", "c#", "a1", "rag"):
        assert list(found((text, "none of it"), query)) == [0]


def test_bm25s_refuses_k_above_n_and_answers_without_a_match():
    """bm25s raises for ten of five, and ranks documents that hold no word of the query."""
    bm25s = pytest.importorskip("bm25s")
    texts = ["apple", "pear", "plum", "fig", "apple pie"]
    peer = bm25s.BM25()
    peer.index([text.split() for text in texts], show_progress=False)
    with pytest.raises(ValueError, match="k"):
        peer.retrieve([["apple"]], k=10, show_progress=False)
    documents, scores = peer.retrieve([["zebra"]], k=2, show_progress=False)
    assert documents.size == 2
    assert not scores.any()
    assert list(found(texts, "apple", 10)) == [0, 4]
    assert found(texts, "zebra", 2) == {}


def llamaindex_retriever(texts, **options):
    """Build LlamaIndex's own BM25 retriever over texts."""
    module = pytest.importorskip("llama_index.retrievers.bm25")
    from llama_index.core.schema import TextNode

    nodes = [TextNode(id_=str(number), text=text) for number, text in enumerate(texts)]
    return module.BM25Retriever.from_defaults(nodes=nodes, **options)


@pytest.mark.filterwarnings("default")
def test_llamaindex_finds_no_chinese_word():
    """LlamaIndex gives every document 0 for a Chinese word inside a line; one line has it."""
    peer = llamaindex_retriever(POEM, similarity_top_k=4)
    assert {node.score for node in peer.retrieve("故乡")} == {0.0}
    assert list(found(POEM, "故乡")) == [3]


@pytest.mark.filterwarnings("default")
def test_llamaindex_answers_without_a_match():
    """LlamaIndex returns as many nodes as asked for, with score 0, when nothing matches."""
    texts = ("apple", "pear", "plum")
    peer = llamaindex_retriever(texts, similarity_top_k=2)
    assert [node.score for node in peer.retrieve("zebra")] == [0.0, 0.0]
    assert found(texts, "zebra", 2) == {}
