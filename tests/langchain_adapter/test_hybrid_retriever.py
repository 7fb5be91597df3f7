"""`HybridRetriever`: words and meaning, together and alone."""

from __future__ import annotations

import json
import logging
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from easyrag_core import AllChannelsFailedError, EasyRAGError, reciprocal_rank_fusion
from langchain_easyrag import BM25Retriever, HybridRetriever
from tests.langchain_adapter.samples import (
    WAIT,
    BrokenEmbeddings,
    ListRetriever,
    LoopGate,
    WordEmbeddings,
    corpus,
    hanging,
    ids,
    snapshot,
    ticking,
)
from tests.strategies import paragraphs

QUERY = "ranking of a query"


def own():
    return HybridRetriever.from_documents(corpus(), WordEmbeddings())


def with_store():
    store = InMemoryVectorStore(WordEmbeddings())
    return HybridRetriever.from_documents(corpus(), vector_store=store)


def with_retriever():
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_documents(corpus())
    return HybridRetriever.from_documents(
        corpus(), vector_retriever=store.as_retriever(search_kwargs={"k": 10})
    )


SIDES = pytest.mark.parametrize("build", [own, with_store, with_retriever])


def facts(documents):
    return [(document.id, document.metadata["easyrag"]) for document in documents]


# Both sides


def test_any_vector_side_gives_the_same_ranking():
    """One embedding model: own index, vector store and retriever agree on ranks and scores."""
    found = [build().invoke(QUERY, k=5) for build in (own, with_store, with_retriever)]
    ranked = [[(d.id, d.metadata["easyrag"]["score"]) for d in documents] for documents in found]
    assert ranked[0] == ranked[1] == ranked[2]
    assert len(ranked[0]) == 5


@SIDES
def test_the_result_is_the_fusion_of_both_sides(build):
    """Scores are those of reciprocal rank fusion over what each side gives."""
    retriever = build()
    words = BM25Retriever.from_documents(corpus(), k=10).invoke(QUERY)
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_documents(corpus())
    near = store.similarity_search(QUERY, k=10)
    items = reciprocal_rank_fusion([ids(words), ids(near)], k=10)
    found = retriever.invoke(QUERY)
    assert [(d.id, d.metadata["easyrag"]["score"]) for d in found] == [i[:2] for i in items]


@SIDES
def test_facts_per_side(build):
    """Rank and raw score per side, as plain JSON under one key."""
    for document in build().invoke(QUERY, k=3):
        told = document.metadata["easyrag"]
        assert json.loads(json.dumps(told)) == told
        assert set(told["channels"]) <= {"bm25", "vector"}
        assert document.metadata["source"] == f"{document.id}.md"
    (first, *_) = build().invoke(QUERY)
    assert first.metadata["easyrag"]["channels"]["bm25"]["score"] > 0


def test_sync_equals_core_index():
    """DESIGN 1.10: the ranking is the one of the index itself."""
    retriever = own()
    vector = WordEmbeddings().embed_query(QUERY)
    hits = retriever.index.search(QUERY, vector, 5)
    found = retriever.invoke(QUERY, k=5)
    assert [(d.id, d.metadata["easyrag"]["score"]) for d in found] == [
        (hit.id, hit.score) for hit in hits
    ]


def test_documents_come_back_as_they_were():
    """Content, metadata and id; a document without an id has one that does not change."""
    documents = [Document("no id", metadata={"deep": {"n": [1]}}), Document("an id", id="x")]
    before = snapshot(documents)
    retriever = HybridRetriever.from_documents(documents)
    found = {d.page_content: d for d in retriever.invoke("id")}
    assert found["no id"].metadata["deep"] == {"n": [1]}
    assert found["an id"].id == "x"
    again = HybridRetriever.from_documents(documents)
    assert found["no id"].id == again.invoke("no id")[0].id
    assert snapshot(documents) == before


def test_the_query_is_embedded_once():
    """One call to the model per request, and documents in batches at indexing."""
    model = WordEmbeddings()
    retriever = HybridRetriever.from_documents(corpus(), model)
    assert sum(map(len, model.batches)) == len(corpus())
    retriever.invoke(QUERY)
    assert model.queries == [QUERY]
    store = InMemoryVectorStore(WordEmbeddings())
    HybridRetriever.from_documents(corpus(), vector_store=store).invoke(QUERY)
    assert store.embedding.queries == [QUERY]


def test_both_sides_run_at_once():
    """Each side waits for the other one, which only works in parallel."""
    together = threading.Barrier(2, timeout=WAIT)

    def slow_terms(text):
        if text == QUERY:
            together.wait()
        return text.split()

    def slow_vectors(_):
        together.wait()
        return corpus()[:1]

    from easyrag_core import BM25Index, HybridIndex

    retriever = HybridRetriever(
        index=HybridIndex(bm25=BM25Index(analyzer=slow_terms)),
        vector_retriever=RunnableLambda(slow_vectors),
    )
    retriever.add_documents(corpus())
    channels = [set(told["channels"]) for _, told in facts(retriever.invoke(QUERY))]
    assert {"bm25"} in channels
    assert any("vector" in names for names in channels)


# One side


def test_without_a_vector_side_it_is_bm25_alone_and_says_so(caplog):
    """The same documents in the same order as BM25, and a warning."""
    with caplog.at_level(logging.WARNING):
        retriever = HybridRetriever.from_documents(corpus(), weights={"vector": 2})
    assert "BM25 alone" in caplog.text
    found = retriever.invoke(QUERY, k=3)
    assert ids(found) == ids(BM25Retriever.from_documents(corpus(), k=3).invoke(QUERY))
    assert all(set(told["channels"]) == {"bm25"} for _, told in facts(found))


def test_a_failing_vector_side_is_left_out(caplog):
    """F4: the words still answer."""
    good = own()
    retriever = HybridRetriever(index=good.index, embeddings=BrokenEmbeddings())
    with caplog.at_level(logging.WARNING):
        found = retriever.invoke(QUERY)
    assert ids(found) == ids(BM25Retriever.from_documents(corpus(), k=10).invoke(QUERY))
    assert "vector" in caplog.text
    assert "embedding service is down" in caplog.text


def test_a_hanging_vector_side_is_left_out():
    """F4: the words do not wait longer than the timeout."""
    late = hanging()
    retriever = HybridRetriever.from_documents(corpus(), vector_retriever=late, channel_timeout=0.5)
    try:
        assert retriever.invoke(QUERY)
        assert late.asked.wait(WAIT)
    finally:
        late.release.set()


async def test_strict_and_all_failed():
    """`strict=True` raises the side's own error; no side at all is one error for all."""
    retriever = HybridRetriever(index=own().index, embeddings=BrokenEmbeddings(), strict=True)
    with pytest.raises(RuntimeError, match="down"):
        retriever.invoke(QUERY)
    with pytest.raises(RuntimeError, match="down"):
        await retriever.ainvoke(QUERY)

    from easyrag_core import BM25Index, HybridIndex

    def no_terms(text):
        if text == QUERY:
            raise ValueError("no terms")
        return text.split()

    index = HybridIndex(bm25=BM25Index(analyzer=no_terms))
    broken = HybridRetriever(index=index, embeddings=BrokenEmbeddings())
    with pytest.raises(AllChannelsFailedError):
        broken.invoke(QUERY)


# Settings


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": -1},
        {"bm25": 10},
        {"bm25_k": 1.5},
        {"vector_k": "10"},
        {"fusion": "sum"},
        {"rank_constant": float("nan")},
        {"weights": {"images": 1.0}},
        {"weights": [1.0]},
        {"weights": "12"},
        {"channel_timeout": -1},
    ],
    ids=str,
)
def test_wrong_settings_are_refused_at_construction(wrong):
    """Typed, a ValueError."""
    with pytest.raises(EasyRAGError) as refused:
        HybridRetriever(**wrong)
    assert isinstance(refused.value, ValueError)


def test_two_vector_sides_are_refused():
    """A store and a retriever at once would be a silent choice."""
    store = InMemoryVectorStore(WordEmbeddings())
    with pytest.raises(EasyRAGError, match="vector_store"):
        HybridRetriever(vector_store=store, vector_retriever=store.as_retriever())


def test_more_results_than_candidates_can_be_asked_for():
    """`k` above `bm25_k` and `vector_k` raises these."""
    retriever = HybridRetriever.from_documents(
        corpus(), WordEmbeddings(), bm25_k=1, vector_k=1, k=1
    )
    assert len(retriever.invoke(QUERY, k=6)) == 6


def test_weights_and_score_fusion():
    """A weight of 0 silences a side; scores can be fused in place of ranks."""
    words = HybridRetriever.from_documents(corpus(), WordEmbeddings(), weights={"vector": 0})
    assert all(set(told["channels"]) == {"bm25"} for _, told in facts(words.invoke(QUERY)))
    pair = HybridRetriever.from_documents(corpus(), WordEmbeddings(), weights=[1, 0])
    assert pair.invoke(QUERY) == words.invoke(QUERY)
    scores = HybridRetriever.from_documents(corpus(), WordEmbeddings(), fusion="score")
    assert max(told["score"] for _, told in facts(scores.invoke(QUERY))) > 1


@pytest.mark.parametrize("distances", [False, True])
def test_distances_and_similarities_of_a_store(distances):
    """Higher is better in our facts, whichever a store returns."""

    class Store(InMemoryVectorStore):
        def similarity_search_with_score(self, query, k=4, **kwargs):
            pairs = super().similarity_search_with_score(query, k, **kwargs)
            return [(d, 1 - s if distances else s) for d, s in pairs]

    retriever = HybridRetriever.from_documents(
        corpus(), vector_store=Store(WordEmbeddings()), fusion="score", weights={"bm25": 0}
    )
    scores = [told["channels"]["vector"]["score"] for _, told in facts(retriever.invoke(QUERY))]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[-1]


def test_search_kwargs_reach_the_store():
    """A store's own filter is passed on; a store without scores is taken by its ranks."""

    class NoScores(InMemoryVectorStore):
        def similarity_search_with_score(self, query, k=4, **kwargs):
            raise NotImplementedError

        def similarity_search(self, query, k=4, **kwargs):
            pairs = InMemoryVectorStore.similarity_search_with_score(self, query, k, **kwargs)
            return [document for document, _ in pairs]

    for store in (InMemoryVectorStore(WordEmbeddings()), NoScores(WordEmbeddings())):
        retriever = HybridRetriever.from_documents(
            corpus(),
            vector_store=store,
            search_kwargs={"filter": lambda document: document.id == "cat", "k": 2},
        )
        near = [id_ for id_, told in facts(retriever.invoke(QUERY)) if "vector" in told["channels"]]
        assert near == ["cat"]


# Async and the rest


@SIDES
async def test_sync_equals_async(build):
    """DESIGN 1.9: indexing, searching and deleting."""
    one, two = build(), build()
    assert await two.aadd_documents([Document("new", id="n")]) == one.add_documents(
        [Document("new", id="n")]
    )
    assert await two.ainvoke(QUERY, k=4) == one.invoke(QUERY, k=4)
    assert await two.adelete(["n"]) == one.delete(["n"])
    assert await two.ainvoke("new") == one.invoke("new")


async def test_the_builders_have_twins():
    """`afrom_documents` builds what `from_documents` builds."""
    built = await HybridRetriever.afrom_documents(corpus(), WordEmbeddings())
    assert built.invoke(QUERY) == own().invoke(QUERY)
    texts = HybridRetriever.from_texts(
        [d.page_content for d in corpus()],
        WordEmbeddings(),
        [d.metadata for d in corpus()],
        ids=ids(corpus()),
    )
    assert texts.invoke(QUERY) == own().invoke(QUERY)


async def test_the_event_loop_goes_on_while_searching():
    """Neither a sync model nor our own search blocks it."""
    gate = LoopGate()

    class Slow(WordEmbeddings):
        def embed_query(self, text):
            gate()
            return super().embed_query(text)

    retriever = HybridRetriever.from_documents(corpus(), Slow())
    async with ticking() as ticks:
        assert await retriever.ainvoke(QUERY)
    assert gate.passed == 1
    assert ticks[0] > 0


def test_configurable_k_keeps_the_index():
    """R1: a configurable field changes `k` without building anything anew."""
    retriever = own()
    configurable = retriever.configurable_fields(k=ConfigurableField(id="k"))
    assert len(configurable.invoke(QUERY, {"configurable": {"k": 2}})) == 2
    prepared, _ = configurable.prepare({"configurable": {"k": 2}})
    assert prepared.index is retriever.index


@given(st.lists(paragraphs(), min_size=1, max_size=6))
def test_inputs_stay_as_they_are(texts):
    """DESIGN 1.6: nothing that was given is changed, nor an earlier result."""
    documents = [Document(text, metadata={"list": [1]}) for text in texts]
    before = snapshot(documents)
    child = ListRetriever(documents=documents)
    retriever = HybridRetriever.from_documents(documents, vector_retriever=child)
    first = retriever.invoke("fused by rank")
    kept = snapshot(first)
    for document in retriever.invoke("fused by rank"):
        document.metadata["new"] = 1
    assert snapshot(documents) == before
    assert snapshot(first) == kept
