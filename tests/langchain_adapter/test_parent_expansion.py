"""`ParentExpansionCompressor`: after any retriever, out of any store."""

from __future__ import annotations

import logging

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever, ParentDocumentRetriever
from langchain_classic.storage import create_kv_docstore
from langchain_core.documents import Document
from langchain_core.stores import InMemoryByteStore, InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore

from easyrag_core import (
    CachedChunkStore,
    ChunkNotFoundError,
    EasyRAGError,
    HybridIndex,
    InMemoryChunkStore,
    SQLiteChunkStore,
)
from langchain_easyrag import (
    BM25Retriever,
    ChunkDocstore,
    DocumentTextSplitter,
    FusionRetriever,
    ParentChildTextSplitter,
    ParentExpansionCompressor,
)
from tests.langchain_adapter.samples import ListRetriever, WordEmbeddings, ids, snapshot

TEXT = (
    "Cats sleep all day. They purr at night. Cats climb trees.\n\n"
    "Dogs bark at night. They run all day. 狗会看家。"
)


def family(store):
    splitter = ParentChildTextSplitter(24, 0, parent_chunk_size=64, store=store)
    return splitter.split_documents([Document(TEXT, id="animals", metadata={"source": "a"})])


STORES = pytest.mark.parametrize(
    "make",
    [
        InMemoryChunkStore,
        ChunkDocstore,
        HybridIndex,
        InMemoryStore,
        lambda: create_kv_docstore(InMemoryByteStore()),
        lambda: CachedChunkStore(InMemoryChunkStore()),
    ],
    ids=["chunks", "docstore", "index", "langchain", "bytes", "cached"],
)


@STORES
async def test_any_store_of_parents(make):
    """Each parent once, at its best child's place; sync and async alike."""
    store = make()
    children = family(store)
    compressor = ParentExpansionCompressor(store=store)
    found = compressor.compress_documents([children[-1], *children[:2]], "q")
    assert [document.page_content[:4] for document in found] == ["Dogs", "Cats"]
    assert [document.metadata["easyrag"]["rank"] for document in found] == [1, 2]
    told = found[1].metadata["easyrag"]["children"]
    assert [child["rank"] for child in told] == [2, 3]
    assert [TEXT[child["start_index"] : child["end_index"]] for child in told] == [
        child.page_content for child in children[:2]
    ]
    assert await compressor.acompress_documents([children[-1], *children[:2]], "q") == found


def test_sqlite_store(tmp_path):
    """The same from disk."""
    store = SQLiteChunkStore(tmp_path / "parents.sqlite")
    children = family(store)
    (found,) = ParentExpansionCompressor(store=store).compress_documents(children[:2], "q")
    assert found.page_content.startswith("Cats")


def test_the_best_childs_score_and_channels():
    """Scores are ours; of two children the higher counts, whichever comes first."""
    store = ChunkDocstore()
    documents = family(store)
    scores = {documents[0].id: 0.5, documents[1].id: 0.9}
    hits = [
        d.model_copy(
            update={
                "metadata": {**d.metadata, "easyrag": {"score": scores[d.id], "channels": {"x": 1}}}
            }
        )
        for d in documents[:2]
    ]
    (found,) = ParentExpansionCompressor(store=store).compress_documents(hits, "q")
    facts = found.metadata["easyrag"]
    assert facts["score"] == 0.9
    assert facts["channels"] == {"x": 1}
    assert [child["score"] for child in facts["children"]] == [0.5, 0.9]


@pytest.mark.parametrize("fused", [False, True])
def test_behind_any_retriever(fused):
    """In LangChain's own wrapper, over BM25 or over a fusion of two retrievers."""
    store = ChunkDocstore()
    children = family(store)
    bm25 = BM25Retriever.from_documents(children, k=9)
    vectors = InMemoryVectorStore(WordEmbeddings())
    vectors.add_documents(children)
    both = FusionRetriever(retrievers=[bm25, vectors.as_retriever()], k=9)
    wrapped = ContextualCompressionRetriever(
        base_retriever=both if fused else bm25,
        base_compressor=ParentExpansionCompressor(store=store, k=1),
    )
    (found,) = wrapped.invoke("dogs bark at night")
    assert found.page_content.startswith("Dogs bark at night")
    assert found.metadata["source"] == "a"


def test_children_of_langchains_own_retriever():
    """`parent_key="doc_id"` reads what ParentDocumentRetriever writes."""
    vectors, parents = InMemoryVectorStore(WordEmbeddings()), InMemoryStore()
    ParentDocumentRetriever(
        vectorstore=vectors,
        docstore=parents,
        child_splitter=DocumentTextSplitter(24, 0),
    ).add_documents([Document(TEXT)])
    compressor = ParentExpansionCompressor(store=parents, parent_key="doc_id")
    (found,) = compressor.compress_documents(vectors.similarity_search("dogs", k=4), "dogs")
    assert found.page_content == TEXT


def test_a_store_that_knows_the_links_is_asked():
    """Children that carry no parent's id are looked up by their own."""
    store = InMemoryChunkStore()
    chunks = ParentChildTextSplitter(24, 0, parent_chunk_size=64).chunker.chunk(TEXT, "animals")
    store.put_many(chunks)
    hits = [Document(chunk.text, id=chunk.id) for chunk in chunks if chunk.parent_id]
    found = ParentExpansionCompressor(store=store).compress_documents(hits, "q")
    assert ids(found) == [chunk.id for chunk in chunks if chunk.kind == "parent"]


def test_documents_without_parent_stay_and_nothing_is_changed():
    """Copies with a rank; what was given and what is kept stay as they are."""
    store = ChunkDocstore()
    children = family(store)
    lone = Document("alone", metadata={"easyrag": {"score": 3.0}})
    given = [lone, *children, Document("twin"), Document("twin")]
    before = snapshot(given)
    found = ParentExpansionCompressor(store=store).compress_documents(given, "q")
    assert found[0].page_content == "alone"
    assert found[0].metadata["easyrag"] == {"score": 3.0, "rank": 1}
    assert [document.page_content for document in found[-2:]] == ["twin", "twin"]
    found[1].metadata.clear()
    assert snapshot(given) == before
    again = ParentExpansionCompressor(store=store).compress_documents(given, "q")
    assert again[1].metadata["document_id"] == "animals"


def test_a_parent_that_was_hit_itself_takes_its_children_in():
    """Even if the store has lost it: its content is at hand."""
    everything = ParentChildTextSplitter(24, 0, parent_chunk_size=64).split_documents(
        [Document(TEXT, id="animals")]
    )
    parent, child, *_ = everything
    compressor = ParentExpansionCompressor(store=InMemoryStore())
    (found,) = compressor.compress_documents([child, parent], "q")
    assert (found.id, found.page_content) == (parent.id, parent.page_content)
    assert [told["id"] for told in found.metadata["easyrag"]["children"]] == [child.id]


def test_missing_parents_warn_or_raise(caplog):
    """The other documents are not touched by it."""
    store = ChunkDocstore()
    children = family(store)
    store.mdelete([children[0].metadata["parent_id"]])
    with caplog.at_level(logging.WARNING):
        found = ParentExpansionCompressor(store=store).compress_documents(children, "q")
    assert "missing" in caplog.text
    assert found[0].page_content == children[0].page_content
    assert found[-1].page_content.startswith("Dogs")
    strict = ParentExpansionCompressor(store=store, strict=True)
    with pytest.raises(ChunkNotFoundError):
        strict.compress_documents(children, "q")


def test_nothing_gives_nothing_and_k_cuts():
    """Empty in, empty out; `k` counts parents."""
    store = ChunkDocstore()
    children = family(store)
    assert ParentExpansionCompressor(store=store).compress_documents([], "q") == []
    assert len(ParentExpansionCompressor(store=store, k=1).compress_documents(children, "q")) == 1


@pytest.mark.parametrize("store", [None, {}, "docstore"], ids=str)
def test_a_store_that_is_none_is_refused(store):
    """Typed, at construction."""
    with pytest.raises(EasyRAGError, match="store"):
        ParentExpansionCompressor(store=store)


def test_a_store_of_bytes_is_named():
    """It needs a wrapper that makes documents of them; the message says which."""
    store = InMemoryByteStore()
    (child, *_) = family(ChunkDocstore())
    store.mset([(child.metadata["parent_id"], b"{}")])
    with pytest.raises(EasyRAGError, match="create_kv_docstore"):
        ParentExpansionCompressor(store=store).compress_documents([child], "q")


def test_behind_a_retriever_of_lists():
    """Documents of one id that come twice are one hit."""
    store = ChunkDocstore()
    (child, *_) = family(store)
    found = ListRetriever(documents=[child, child]).invoke("q")
    (parent,) = ParentExpansionCompressor(store=store).compress_documents(found, "q")
    assert len(parent.metadata["easyrag"]["children"]) == 1
