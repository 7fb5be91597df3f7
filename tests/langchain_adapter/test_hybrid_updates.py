"""`HybridRetriever`: adding, replacing, deleting and keeping documents."""

from __future__ import annotations

from dataclasses import replace

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

from easyrag_core import BM25Index, EasyRAGError, HybridIndex
from langchain_easyrag import HybridRetriever
from tests.langchain_adapter.samples import BrokenEmbeddings, WordEmbeddings, corpus, ids
from tests.langchain_adapter.test_hybrid_retriever import QUERY, SIDES, facts, own


@SIDES
def test_add_and_delete(build):
    """What is added is found, what is deleted is not, on both sides."""
    retriever = build()
    new = Document("An entirely new ranking paragraph.", id="new")
    assert retriever.add_documents([new]) == ["new"]
    assert "new" in ids(retriever.invoke("entirely new ranking"))
    assert retriever.delete(["new", "never there"]) == 1
    assert "new" not in ids(retriever.invoke("entirely new ranking"))
    with pytest.raises(EasyRAGError):
        retriever.delete("new")


def test_an_update_replaces_text_and_vector():
    """The same id with another text is found by the new one only."""
    retriever = own()
    retriever.add_documents([Document("Dogs bark at night.", id="cat")])
    told = dict(facts(retriever.invoke("dogs bark at night")))
    assert told["cat"]["channels"]["bm25"]["rank"] == 1
    assert told["cat"]["channels"]["vector"]["rank"] == 1
    assert all("bm25" not in t["channels"] for _, t in facts(retriever.invoke("mat")))


def test_a_failing_model_leaves_nothing_behind():
    """All or nothing: no half of a document is in the index."""
    retriever = HybridRetriever(embeddings=BrokenEmbeddings())
    with pytest.raises(RuntimeError):
        retriever.add_documents(corpus())
    assert retriever.index.get_many(["cat"]) == [None]


def test_a_store_that_is_full_already_is_left_alone():
    """`add_to_vector_store=False` fills our index only."""
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_documents(corpus())
    batches = len(store.embedding.batches)
    retriever = HybridRetriever.from_documents(
        corpus(), vector_store=store, add_to_vector_store=False
    )
    assert len(store.embedding.batches) == batches
    assert {"bm25", "vector"} in [set(t["channels"]) for _, t in facts(retriever.invoke(QUERY))]


def test_persist_and_load_give_the_same_answers(tmp_path):
    """One folder holds words, vectors and content."""
    retriever = own()
    retriever.persist(tmp_path / "index")
    loaded = HybridRetriever.from_persist_dir(tmp_path / "index", WordEmbeddings())
    assert loaded.invoke(QUERY) == retriever.invoke(QUERY)


async def test_a_failing_index_leaves_nothing_in_the_store():
    """All or nothing: what the vector store got already is taken back, sync and async."""

    def no_terms(text):
        raise ValueError("no terms")

    store = InMemoryVectorStore(WordEmbeddings())
    index = HybridIndex(bm25=BM25Index(analyzer=no_terms))
    retriever = HybridRetriever(index=index, vector_store=store)
    with pytest.raises(ValueError, match="no terms"):
        retriever.add_documents(corpus())
    assert store.store == {}
    with pytest.raises(ValueError, match="no terms"):
        await retriever.aadd_documents(corpus())
    assert store.store == {}


def test_only_what_changed_is_embedded_again():
    """A second add of the same documents costs no call to the model."""
    model = WordEmbeddings()
    retriever = HybridRetriever.from_documents(corpus(), model)
    retriever.add_documents([*corpus()[:3], Document("An entirely new passage.", id="mmr")])
    assert [len(batch) for batch in model.batches] == [len(corpus()), 1]


def test_settings_are_kept_with_the_index(tmp_path):
    """What a new retriever was built with is what a loaded one has."""
    built = HybridRetriever.from_documents(
        corpus(), WordEmbeddings(), fusion="score", weights={"vector": 2.0}, channel_timeout=None
    )
    built.persist(tmp_path / "index")
    loaded = HybridRetriever.from_persist_dir(tmp_path / "index", WordEmbeddings(), bm25_k=3)
    assert loaded.settings == replace(built.settings, bm25_k=3)
    assert loaded.settings.fusion == "score"
