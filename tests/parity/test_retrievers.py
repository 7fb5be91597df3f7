"""The same passages and query give the same ids, ranks and scores through both frameworks."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex

import langchain_easyrag as lc
import llamaindex_easyrag as li
from easyrag_core import BM25Index, BM25Params, Chunk, HybridConfig, HybridIndex
from tests.parity.frameworks import (
    MODES,
    WordEmbedding,
    WordEmbeddings,
    documents,
    found_documents,
    found_nodes,
    nodes,
    place_of_document,
    place_of_node,
    sources,
    word_vector,
)
from tests.parity.plugs import ASKED, PASSAGES, QUERIES, answers, bm25s, hybrids
from tests.strategies import nasty_texts

modes = pytest.mark.parametrize("ask", MODES.values(), ids=MODES)
queries = pytest.mark.parametrize("query", QUERIES)

corpora = st.dictionaries(
    st.text("abcdef0123", min_size=1, max_size=4),
    st.one_of(st.sampled_from(list(PASSAGES.values())), nasty_texts(max_fragments=4)),
    max_size=8,
)
asked = st.one_of(st.sampled_from(QUERIES), nasty_texts(max_fragments=3)).filter(str.strip)


def told(hits):
    """What both should say of the core's hits."""
    return [
        (h.id, h.score, h.rank, [{"rank": c.rank, "score": c.score} for c in h.channels.values()])
        for h in hits
    ]


def as_told(found):
    return [(one.id, one.score, one.rank, one.channels) for one in found]


# Words


@given(corpora, asked, st.integers(0, 10))
def test_bm25_is_the_same(texts, query, k):
    """Any corpus and query: LangChain's answer is LlamaIndex's, and the core's."""
    index = BM25Index()
    index.add(list(texts), list(texts.values()))
    plugs = bm25s(texts, k)
    by_document, by_node = answers(MODES["sync"], plugs, query)
    assert by_document == by_node
    assert as_told(by_document) == told(index.search(query, k))
    assert [one.text for one in by_document] == [texts[one.id] for one in by_document]


SETTINGS = {
    "defaults": {},
    "short": {"params": BM25Params.short_text()},
    "long": {"params": BM25Params.long_text()},
    "own words": {"analyzer": str.split},
}


@modes
@queries
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_bm25_is_the_same_under_any_settings(ask, query, settings):
    """Parameters and analyzer mean the same in both, sync and async."""
    by_document, by_node = answers(ask, bm25s(PASSAGES, 5, **settings), query)
    assert (
        by_document == by_node == answers(MODES["sync"], bm25s(PASSAGES, 5, **settings), query)[0]
    )


@modes
def test_bm25_after_changes_is_the_same(ask):
    """Replaced and removed passages, by each framework's own methods."""
    by_document, by_node = bm25s(PASSAGES, 9)
    new = {"fox": "A red hen is fused.", "hen": "Rankings of a hen."}
    ask(by_document, "upsert", documents(new))
    ask(by_node, "add_nodes", nodes(new))
    ask(by_document, "delete", ["fuse", "nobody"])
    ask(by_node, "delete_nodes", ["fuse", "nobody"])
    for query in (*QUERIES, "hen"):
        first, second = answers(ask, (by_document, by_node), query)
        assert first == second
        assert "fuse" not in [one.id for one in first]
    assert {one.id for one in first} == {"hen", "fox"}


# Words and meaning


def core_hits(texts, query, k, **settings):
    index = HybridIndex(HybridConfig(**settings))
    index.add(
        [Chunk(id_, id_, 0, text, 0, len(text)) for id_, text in texts.items()],
        np.array(list(map(word_vector, texts.values())), np.float32) if texts else None,
    )
    return index.search(query, word_vector(query), k)


HYBRIDS = {
    "rrf": {},
    "score": {"fusion": "score"},
    "weights": {"weights": {"bm25": 0.3, "vector": 2.0}},
    "no words": {"weights": {"bm25": 0.0}},
    "few": {"bm25_k": 2, "vector_k": 1, "rank_constant": 0},
}


@modes
@queries
@pytest.mark.parametrize("settings", HYBRIDS.values(), ids=HYBRIDS)
@pytest.mark.parametrize("k", [0, 3, 20])
def test_hybrid_is_the_same(ask, query, settings, k):
    """Ids, fused scores, and each side's rank and score are the core's in both frameworks."""
    by_document, by_node = answers(ask, hybrids(PASSAGES, k, **settings), query)
    assert by_document == by_node
    assert as_told(by_document) == told(core_hits(PASSAGES, query, k, **settings))


@given(corpora, asked.map(str.strip), st.sampled_from(list(HYBRIDS.values())))
def test_hybrid_is_the_same_over_any_corpus(texts, query, settings):
    """Also over corpora that are empty, have twins, or hold what breaks other analyzers."""
    by_document, by_node = answers(MODES["sync"], hybrids(texts, 6, **settings), query)
    assert by_document == by_node
    assert as_told(by_document) == told(core_hits(texts, query, 6, **settings))


@modes
def test_hybrid_is_the_same_with_blank_edges_around_the_query(ask):
    """What stands around a query does not change its meaning: frameworks' tools add line ends."""
    by_document, by_node = answers(ask, hybrids(PASSAGES, 5), f"\n {QUERIES[0]}\n")
    assert by_document == by_node == answers(ask, hybrids(PASSAGES, 5), QUERIES[0])[0]


@modes
@pytest.mark.parametrize("query", ["", " \n", "\u3000"], ids=ascii)
def test_hybrid_is_the_same_for_a_blank_query(ask, query):
    """A query without any text finds nothing: there is nothing to embed."""
    by_document, by_node = answers(ask, hybrids(PASSAGES, 5), query)
    assert by_document == by_node == []


@modes
@queries
def test_without_a_model_it_is_bm25_in_both(ask, query, caplog):
    """No embedding model: the words alone, and both say so in a warning."""
    with caplog.at_level(logging.WARNING):
        plugs = (
            lc.HybridRetriever.from_documents(documents(PASSAGES), k=5),
            li.HybridRetriever(nodes(PASSAGES), similarity_top_k=5),
        )
    assert sum("BM25 alone" in record.message for record in caplog.records) == 2
    by_document, by_node = answers(ask, plugs, query)
    assert by_document == by_node
    alone = answers(ask, bm25s(PASSAGES, 5), query)[0]
    assert [one.id for one in by_document] == [one.id for one in alone]


@modes
@pytest.mark.parametrize("query", QUERIES[:-1])
@pytest.mark.parametrize("fusion", ["rrf", "score"])
def test_with_the_frameworks_own_vectors_it_is_the_same(ask, query, fusion):
    """Each framework's in-memory vector store as the vector side: equal but for rounding."""
    texts = {id_: text for id_, text in PASSAGES.items() if id_ != "twin"}
    store = InMemoryVectorStore(WordEmbeddings())
    index = VectorStoreIndex(nodes(texts), embed_model=WordEmbedding())
    by_document = lc.HybridRetriever.from_documents(
        documents(texts), vector_store=store, k=4, fusion=fusion
    )
    by_node = li.HybridRetriever(
        nodes(texts),
        vector_retriever=index,
        similarity_top_k=4,
        config=HybridConfig(fusion=fusion),
    )
    first, second = answers(ask, (by_document, by_node), query)
    own = answers(ask, hybrids(texts, 4, fusion=fusion), query)[0]
    for found in (second, own):
        assert [one.id for one in found] == [one.id for one in first]
        assert [one.score for one in found] == pytest.approx([one.score for one in first])
        for one, other in zip(found, first, strict=True):
            assert [c["rank"] for c in one.channels] == [c["rank"] for c in other.channels]


class NoDocumentModel(WordEmbeddings):
    """Embeds documents, and is down when a query comes."""

    def embed_query(self, text):
        raise RuntimeError("down")


class NoNodeModel(WordEmbedding):
    """Likewise."""

    def _get_query_embedding(self, query):
        raise RuntimeError("down")

    async def _aget_query_embedding(self, query):
        raise RuntimeError("down")


def without_model(**settings):
    return (
        lc.HybridRetriever.from_documents(documents(PASSAGES), NoDocumentModel(), k=5, **settings),
        li.HybridRetriever(
            nodes(PASSAGES), embed_model=NoNodeModel(), similarity_top_k=5, **settings
        ),
    )


@modes
@queries
def test_a_failing_model_leaves_the_words_in_both(ask, query, caplog):
    """The vector side is left out with a warning each; the words answer as they do alone."""
    by_document, by_node = answers(ask, without_model(), query)
    assert by_document == by_node
    assert len([one for one in caplog.records if one.name == "easyrag_core.pipeline"]) == 2
    alone = answers(ask, bm25s(PASSAGES, 5), query)[0]
    assert [one.id for one in by_document] == [one.id for one in alone]


@modes
@pytest.mark.parametrize("side", [0, 1], ids=["langchain", "llamaindex"])
def test_a_failing_model_is_raised_by_both_under_strict(ask, side):
    """The model's own error."""
    with pytest.raises(RuntimeError, match="down"):
        ask(without_model(strict=True)[side], ASKED[side], QUERIES[0])


# From the text to the answer


SOURCES = ["\n\n".join(PASSAGES.values()), "\r\n\r\n".join(reversed(PASSAGES.values())) * 3]


def read_by_both(ask, kind, **settings):
    """Both frameworks cut the same documents and search their own chunks."""
    by_document, by_node = sources(SOURCES)
    chunks = ask(lc.DocumentTextSplitter(60, 10), "split_documents", by_document)
    pieces = ask(li.DocumentNodeParser(60, 10), "get_nodes_from_documents", by_node)
    if kind == "bm25":
        return (
            lc.BM25Retriever.from_documents(chunks, k=6),
            li.BM25Retriever(pieces, similarity_top_k=6),
        )
    return (
        lc.HybridRetriever.from_documents(chunks, WordEmbeddings(), k=6),
        li.HybridRetriever(pieces, embed_model=WordEmbedding(), similarity_top_k=6),
    )


@modes
@queries
@pytest.mark.parametrize("kind", ["bm25", "hybrid"])
def test_from_the_text_to_the_answer_it_is_the_same(ask, query, kind):
    """Cut, indexed and searched by each framework: the same passages, ids, places and scores."""
    plugs = read_by_both(ask, kind)
    by_document, by_node = (ask(plug, name, query) for plug, name in zip(plugs, ASKED, strict=True))
    assert found_documents(by_document) == found_nodes(by_node)
    places = [place_of_document(document) for document in by_document]
    assert places == [place_of_node(found.node) for found in by_node]
    for place in places:
        source = SOURCES[int(place.document_id.removeprefix("doc"))]
        assert source[place.start : place.end] == place.text
