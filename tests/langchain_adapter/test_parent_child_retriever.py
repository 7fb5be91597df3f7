"""`ParentChildRetriever`: children are found, parents are read, both are kept up to date."""

from __future__ import annotations

import json

import pytest
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore

from easyrag_core import (
    ChunkNotFoundError,
    EasyRAGError,
    HybridIndex,
    InMemoryChunkStore,
    SQLiteChunkStore,
)
from langchain_easyrag import (
    ChunkDocstore,
    MarkdownSectionTextSplitter,
    ParentChildRetriever,
    ParentChildTextSplitter,
)
from tests.langchain_adapter.samples import LoopGate, WordEmbeddings, snapshot, ticking

ANIMALS = (
    "Cats sleep all day. They purr at night. Cats climb trees. They hunt mice.\n\n"
    "Dogs bark at night. They run all day. Dogs fetch sticks. They guard houses."
)
RAG = (
    "检索增强生成先检索再生成。它把片段交给大模型。\n\n"
    "排序由名次融合而成。名次越前越好。每个片段都有位置。"
)


def splitter(**settings):
    return ParentChildTextSplitter(24, 0, parent_chunk_size=80, **settings)


def sources():
    return [
        Document(ANIMALS, id="animals", metadata={"source": "animals.md"}),
        Document(RAG, id="rag", metadata={"source": "rag.md"}),
    ]


def bm25(**settings):
    return ParentChildRetriever.from_documents(sources(), splitter=splitter(), **settings)


def own_vectors(**settings):
    return bm25(embeddings=WordEmbeddings(), **settings)


def vector_store(**settings):
    return bm25(vector_store=InMemoryVectorStore(WordEmbeddings()), **settings)


BACKENDS = pytest.mark.parametrize("make", [bm25, own_vectors, vector_store])


@BACKENDS
@pytest.mark.parametrize("parents", [None, "chunks", "docstore", "langchain", "sqlite"])
def test_the_parent_comes_once_with_the_children_that_were_hit(make, parents, tmp_path):
    """P4: four hits of one parent are one document; it says which children, and where."""
    store = {
        None: lambda: None,
        "chunks": InMemoryChunkStore,
        "docstore": ChunkDocstore,
        "langchain": InMemoryStore,
        "sqlite": lambda: SQLiteChunkStore(tmp_path / "parents.sqlite"),
    }[parents]()
    retriever = make(parents=store, k=2)
    first, *rest = retriever.invoke("Dogs bark and fetch sticks at night")
    assert first.page_content == ANIMALS[ANIMALS.index("Dogs") :]
    assert all("Dogs" not in document.page_content for document in rest)
    facts = first.metadata["easyrag"]
    assert facts["rank"] == 1
    assert len(facts["children"]) > 1
    for child in facts["children"]:
        assert child["id"] in first.metadata["child_ids"]
        own = ANIMALS[child["start_index"] : child["end_index"]]
        assert own in first.page_content
    ranks = [child["rank"] for child in facts["children"]]
    assert ranks == sorted(ranks)
    assert facts["score"] == max(child["score"] for child in facts["children"])
    assert first.metadata["source"] == "animals.md"
    assert json.loads(json.dumps(first.metadata)) == first.metadata


@BACKENDS
async def test_async_gives_the_same(make):
    """Search, adding and deleting have twins with the same result."""
    retriever = make(k=3)
    query = "检索增强生成 dogs"
    assert await retriever.ainvoke(query) == retriever.invoke(query)
    other = type(retriever)(
        splitter=splitter(),
        embeddings=retriever.embeddings,
        vector_store=None if make is not vector_store else InMemoryVectorStore(WordEmbeddings()),
        k=3,
    )
    assert await other.aadd_documents(sources()) == ["animals", "rag"]
    assert await other.ainvoke(query) == retriever.invoke(query)
    assert await other.adelete(["rag", "unknown"]) == 1
    assert await other.ainvoke("检索增强生成", k=1) != retriever.invoke("检索增强生成", k=1)
    assert other.index.document_ids == ["animals"]


def stored(retriever):
    """Ids of everything that is kept anywhere."""
    kept = set(retriever.index.store.ids())
    if retriever.parents is not None:
        kept |= set(retriever.parents.yield_keys())
    if retriever.vector_store is not None:
        kept |= set(retriever.vector_store.store)
    return kept


@BACKENDS
@pytest.mark.parametrize("apart", [False, True], ids=["in-index", "apart"])
def test_p3_deleting_a_document_deletes_all_its_chunks(make, apart):
    """P3: children and parents, in the index and in the stores; unknown ids are ignored."""
    retriever = make(parents=ChunkDocstore() if apart else None)
    assert retriever.delete(["rag", "never there"]) == 1
    assert not any("检索" in d.page_content for d in retriever.invoke("检索增强生成", k=9))
    assert retriever.delete(["animals"]) == 1
    assert stored(retriever) == set()
    with pytest.raises(EasyRAGError, match="list of ids"):
        retriever.delete("rag")


@BACKENDS
@pytest.mark.parametrize("apart", [False, True], ids=["in-index", "apart"])
def test_p3_adding_a_document_again_replaces_it(make, apart):
    """P3: nothing of the old one is left, nothing comes twice."""
    retriever = make(parents=ChunkDocstore() if apart else None, k=9)
    before = stored(retriever)
    assert retriever.add_documents(sources()) == ["animals", "rag"]
    assert stored(retriever) == before
    changed = ANIMALS.replace("Dogs fetch sticks.", "Dogs dig holes.")
    retriever.add_documents([Document(changed, id="animals")])
    fresh = type(retriever).from_documents(
        [Document(changed, id="animals"), sources()[1]],
        splitter=splitter(),
        vector_store=retriever.vector_store and InMemoryVectorStore(WordEmbeddings()),
        parents=ChunkDocstore() if apart else None,
    )
    assert stored(retriever) == stored(fresh)
    assert not any("sticks" in d.page_content for d in retriever.invoke("fetch sticks dogs"))
    retriever.add_documents([Document("  ", id="animals")])
    assert retriever.index.document_ids == ["rag"]


@pytest.mark.parametrize("make", [own_vectors, vector_store])
async def test_an_update_embeds_only_what_is_new(make):
    """One sentence of one document changes: its child is embedded, the others are not."""
    retriever = make()
    model = retriever.embeddings or retriever.vector_store.embeddings
    model.batches.clear()
    retriever.add_documents(sources())
    await retriever.aadd_documents(sources())
    assert [batch for batch in model.batches if batch] == []
    changed = ANIMALS.replace("They purr at night.", "They purr loudly.")
    retriever.add_documents([Document(changed, id="animals")])
    assert [text for batch in model.batches for text in batch] == ["They purr loudly."]


def test_p1_parents_keep_the_ids_of_their_documents():
    """P1: documents with ids are cut into parents; each leads back to its document."""
    retriever = bm25(k=9)
    found = retriever.invoke("cats dogs night 检索 名次")
    assert {d.metadata["document_id"] for d in found} == {"animals", "rag"}
    assert len({d.id for d in found}) == len(found) > 2


def test_it_looks_deeper_until_there_are_enough_parents():
    """P4: the first hits are all children of one parent; two parents are wanted, two come."""
    many = "The fusion of rankings. " * 60
    documents = [Document(many, id="many"), Document("fusion once", id="once")]
    settings = {"splitter": ParentChildTextSplitter(24, 0, parent_chunk_size=2000)}
    retriever = ParentChildRetriever.from_documents(documents, k=2, **settings)
    query = "fusion of rankings"
    assert {d.metadata["document_id"] for d in retriever.invoke(query)} == {"many", "once"}
    # With a limit of the caller's own, the children that were looked at are all there is.
    limited = ParentChildRetriever(index=retriever.index, k=2, child_k=5, **settings)
    assert {d.metadata["document_id"] for d in limited.invoke(query)} == {"many"}
    assert len(limited.invoke(query, child_k=500)) == 2
    assert limited.invoke(query, k=0) == limited.invoke(query, child_k=0) == []


def test_one_side_alone_has_the_say():
    """`weights` leave out the words or the vectors."""
    query = "Dogs fetch sticks"
    meaning = own_vectors(weights=(0, 1)).invoke(query)
    assert all(set(d.metadata["easyrag"]["channels"]) == {"vector"} for d in meaning)
    words = own_vectors(weights=(1, 0)).invoke(query)
    assert all(set(d.metadata["easyrag"]["channels"]) == {"bm25"} for d in words)


def test_titles_are_searched_and_the_text_is_read():
    """`embedding_text` is indexed; the reader gets slices of the source."""
    text = "# Guide\n\n## Installation\n\n" + "Run it now, please. " * 12
    retriever = ParentChildRetriever.from_documents(
        [Document(text, id="d")],
        splitter=ParentChildTextSplitter(
            parent_splitter=MarkdownSectionTextSplitter(160),
            child_splitter=MarkdownSectionTextSplitter(80),
        ),
        k=9,
    )
    found = retriever.invoke("Guide")
    for document in found:
        place = document.metadata
        assert document.page_content == text[place["start_index"] : place["end_index"]]
    assert any("child_ids" in document.metadata for document in found)


def test_a_missing_parent_degrades_its_children_alone(caplog):
    """They stay, with a warning; `strict` raises instead."""
    parents = ChunkDocstore()
    retriever = bm25(parents=parents, k=9)
    whole = retriever.invoke("dogs bark")
    parents.mdelete([whole[0].id])
    found = retriever.invoke("dogs bark")
    assert "missing" in caplog.text
    assert all(len(document.page_content) <= 24 for document in found)
    strict = ParentChildRetriever(index=retriever.index, parents=parents, strict=True)
    with pytest.raises(ChunkNotFoundError):
        strict.invoke("dogs bark")


class BrokenStore(InMemoryStore):
    def mget(self, keys):
        raise ConnectionError("the parents are gone")


async def test_a_failing_store_of_parents_leaves_the_children(caplog):
    """Sync and async: the answer is less, not nothing."""
    broken = BrokenStore()
    retriever = bm25(parents=broken)
    found = retriever.invoke("dogs bark")
    assert found
    assert found == await retriever.ainvoke("dogs bark")
    assert "the parents are gone" in caplog.text
    strict = ParentChildRetriever(index=retriever.index, parents=broken, strict=True)
    with pytest.raises(ConnectionError):
        strict.invoke("dogs bark")


async def test_parents_are_there_before_the_children_that_lead_to_them():
    """When the parents cannot be written, no child is."""

    class Full(InMemoryStore):
        def mset(self, pairs):
            raise OSError("the disk is full")

    vectors = InMemoryVectorStore(WordEmbeddings())
    retriever = ParentChildRetriever(splitter=splitter(), parents=Full(), vector_store=vectors)
    with pytest.raises(OSError, match="full"):
        retriever.add_documents(sources())
    with pytest.raises(OSError, match="full"):
        await retriever.aadd_documents(sources())
    assert len(retriever.index) == len(vectors.store) == 0


def test_saved_and_loaded_it_answers_the_same(tmp_path):
    """Parents in the index are saved with it."""
    retriever = own_vectors(k=3)
    retriever.persist(tmp_path / "index")
    loaded = ParentChildRetriever.from_persist_dir(
        tmp_path / "index", WordEmbeddings(), splitter=splitter(), k=3
    )
    query = "cats purr 名次"
    assert loaded.invoke(query) == retriever.invoke(query)
    loaded.add_documents([Document("Cats purr softly.", id="animals")])
    assert loaded.index.document_ids == ["rag", "animals"]


def test_documents_stay_as_they_are():
    """DESIGN 1.6: adding and searching change nothing of the caller's, or of what is kept."""
    documents = sources()
    before = snapshot(documents)
    retriever = ParentChildRetriever.from_documents(documents, splitter=splitter())
    assert snapshot(documents) == before
    (found, *_) = retriever.invoke("cats purr")
    found.metadata.clear()
    assert retriever.invoke("cats purr")[0].metadata["document_id"] == "animals"


async def test_the_event_loop_goes_on_while_adding():
    """Cutting runs in a thread: a length function may wait for the loop."""
    gate = LoopGate()

    def slow_length(text):
        gate()
        return len(text)

    retriever = ParentChildRetriever(splitter=splitter(length_function=slow_length))
    async with ticking() as ticks:
        await retriever.aadd_documents(sources())
    assert gate.passed > 0
    assert ticks[0] > 0


@pytest.mark.parametrize(
    "wrong",
    [{"child_k": -1}, {"k": 1.5}, {"parents": {}}, {"child": 1}, {"weights": (1,)}],
    ids=str,
)
def test_wrong_settings_are_refused_at_construction(wrong):
    """Typed, and a ValueError as in LangChain."""
    with pytest.raises(EasyRAGError) as refused:
        ParentChildRetriever(**wrong)
    assert isinstance(refused.value, ValueError)


async def test_a_vector_store_that_gives_nothing_by_id():
    """Then all children of a document are embedded again, and the answer is the same."""

    class Plain(InMemoryVectorStore):
        def get_by_ids(self, ids):
            raise NotImplementedError

        async def aget_by_ids(self, ids):
            raise NotImplementedError

    retriever = bm25(vector_store=Plain(WordEmbeddings()))
    await retriever.aadd_documents(sources())
    assert retriever.invoke("dogs bark") == vector_store().invoke("dogs bark")


def test_an_index_of_the_cores_own_chunks():
    """What the core put into an index is found and expanded alike."""
    index = HybridIndex()
    index.add(splitter().chunker.chunk(ANIMALS, "animals"))
    (found, *_) = ParentChildRetriever(index=index).invoke("fetch sticks")
    assert found.page_content.startswith("Dogs bark")
