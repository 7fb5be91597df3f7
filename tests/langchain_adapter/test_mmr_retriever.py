"""`MMRRetriever`: any retriever's results, made diverse."""

from __future__ import annotations

import pytest
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from easyrag_core import EasyRAGError
from langchain_easyrag import (
    BM25Retriever,
    FusionRetriever,
    HybridRetriever,
    MMRCompressor,
    MMRRetriever,
)
from tests.langchain_adapter.samples import ListRetriever, WordEmbeddings, corpus, ids

QUERY = "ranking"


def filled_store():
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_documents(corpus())
    return store


def test_same_picks_as_the_stores_own_mmr():
    """Over a vector store it gives what the store's own MMR search gives."""
    store = filled_store()
    theirs = store.max_marginal_relevance_search(QUERY, k=4, fetch_k=6, lambda_mult=0.4)
    retriever = MMRRetriever(retriever=store.as_retriever(), k=4, fetch_k=6, lambda_mult=0.4)
    assert ids(retriever.invoke(QUERY)) == ids(theirs)


def test_candidates_and_settings_per_call():
    """`fetch_k` candidates are asked for; `k` and `lambda_mult` can change per call."""
    asked = []

    class Counting(ListRetriever):
        def _get_relevant_documents(self, query, *, run_manager, k=None):
            asked.append(k)
            return super()._get_relevant_documents(query, run_manager=run_manager, k=k)

    retriever = MMRRetriever(retriever=Counting(documents=corpus()), fetch_k=5, k=2)
    assert len(retriever.invoke(QUERY)) == 2
    assert len(retriever.invoke(QUERY, k=6)) == 6
    assert asked == [5, 6]
    assert retriever.invoke(QUERY, lambda_mult=1.0) != retriever.invoke(QUERY, lambda_mult=0.0)
    with pytest.raises(EasyRAGError):
        retriever.invoke(QUERY, lambda_mult=2.0)


def test_any_runnable_in_a_retrievers_place():
    """One without `k` gives what it gives, and `fetch_k` cuts it."""
    retriever = MMRRetriever(retriever=RunnableLambda(lambda _: corpus()), fetch_k=3, k=3)
    assert set(ids(retriever.invoke(QUERY))) == {"rrf", "mmr", "bm25"}


def _sources():
    hybrid = HybridRetriever.from_documents(corpus(), WordEmbeddings())
    store = filled_store().as_retriever(search_kwargs={"k": 7})
    return {
        "vector-store": store,
        "configured": store.with_config(tags=["t"]),
        "hybrid": hybrid,
        "fusion": FusionRetriever(retrievers=[BM25Retriever.from_documents(corpus()), store]),
    }


@pytest.mark.parametrize("kind", ["vector-store", "configured", "hybrid", "fusion"])
def test_the_retrievers_own_vectors_are_found(kind):
    """Nothing is embedded but the query, since a part of the retriever holds the vectors."""
    retriever = MMRRetriever(retriever=_sources()[kind], k=3)
    compressor = retriever.compressor
    model = compressor.embeddings or compressor.vector_store.embeddings
    before = len(model.batches)
    found = retriever.invoke(QUERY)
    assert len(found) == 3
    assert len(model.batches) == before
    assert QUERY in model.queries


def test_options_of_the_compressor():
    """What `MMRCompressor` takes can be given here, and wins over what is found."""
    model = WordEmbeddings()
    retriever = MMRRetriever(
        retriever=filled_store().as_retriever(), embeddings=model, relevance="query", strict=True
    )
    retriever.invoke(QUERY)
    assert model.queries == [QUERY]
    assert retriever.compressor.strict is True


def test_a_compressor_of_ones_own():
    """It is used as it is, with this retriever's `k`; options beside it are refused."""
    compressor = MMRCompressor(k=1, missing_vectors="keep", embeddings=WordEmbeddings())
    base = filled_store().as_retriever()
    retriever = MMRRetriever(retriever=base, compressor=compressor, k=2)
    assert len(retriever.invoke(QUERY)) == 2
    assert retriever.compressor is compressor
    with pytest.raises(EasyRAGError, match="compressor"):
        MMRRetriever(retriever=base, compressor=compressor, strict=True)


async def test_the_retriever_async():
    """DESIGN 1.9: the same documents."""
    retriever = MMRRetriever(retriever=filled_store().as_retriever(), k=3)
    assert await retriever.ainvoke(QUERY, k=2) == retriever.invoke(QUERY, k=2)
