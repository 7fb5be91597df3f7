"""`ChunkDocstore`: documents in any chunk store."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_tests.integration_tests.base_store import BaseStoreAsyncTests, BaseStoreSyncTests

from easyrag_core import CachedChunkStore, DocumentChunker, InMemoryChunkStore, SQLiteChunkStore
from langchain_easyrag import ChunkDocstore, DocumentTextSplitter
from tests.strategies import nasty_texts

VALUES = (
    Document("foo", id="1", metadata={"n": 1, "deep": {"list": [1, None]}}),
    Document("检索增强生成", metadata={"source": "a.md"}),
    Document("", id="another id"),
)


def stores(tmp_path):
    return {
        "memory": InMemoryChunkStore(),
        "sqlite": SQLiteChunkStore(tmp_path / "chunks.sqlite"),
        "cached": CachedChunkStore(InMemoryChunkStore()),
    }


STORES = pytest.mark.parametrize("kind", ["memory", "sqlite", "cached"])


class TestMemory(BaseStoreSyncTests[Document]):
    """LangChain's conformance suite over a store in memory."""

    @pytest.fixture
    def kv_store(self):
        return ChunkDocstore()

    @pytest.fixture
    def three_values(self):
        return VALUES


class TestMemoryAsync(BaseStoreAsyncTests[Document]):
    """The async suite over a store in memory."""

    @pytest.fixture
    async def kv_store(self):
        return ChunkDocstore()

    @pytest.fixture
    def three_values(self):
        return VALUES


class TestSQLite(BaseStoreSyncTests[Document]):
    """The suite over SQLite."""

    @pytest.fixture
    def kv_store(self, tmp_path):
        return ChunkDocstore(SQLiteChunkStore(tmp_path / "chunks.sqlite"))

    @pytest.fixture
    def three_values(self):
        return VALUES


class TestSQLiteAsync(BaseStoreAsyncTests[Document]):
    """The async suite over SQLite."""

    @pytest.fixture
    async def kv_store(self, tmp_path):
        return ChunkDocstore(SQLiteChunkStore(tmp_path / "chunks.sqlite"))

    @pytest.fixture
    def three_values(self):
        return VALUES


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
documents = st.builds(
    Document,
    nasty_texts(max_fragments=5),
    id=st.none() | st.text(min_size=1, max_size=5),
    metadata=st.dictionaries(
        st.sampled_from(
            ["source", "start_index", "end_index", "document_id", "parent_id", "chunk_index", "x"]
        ),
        json_values,
    ),
)


@given(st.lists(documents, max_size=4))
def test_documents_come_back_equal(given_documents):
    """Whatever the id, the key and the metadata, also under our own keys."""
    docstore = ChunkDocstore()
    docstore.mset([(str(number), document) for number, document in enumerate(given_documents)])
    keys = [str(number) for number in range(len(given_documents))]
    assert docstore.mget(keys) == given_documents


@STORES
def test_chunks_of_the_splitter_survive(kind, tmp_path):
    """Place and source come back from every store."""
    chunks = DocumentTextSplitter(12, 0).split_documents(
        [Document("One. Two. Three.\nFour.", id="d", metadata={"source": "a.md"})]
    )
    docstore = ChunkDocstore(stores(tmp_path)[kind])
    docstore.mset([(chunk.id, chunk) for chunk in chunks])
    assert docstore.mget([chunk.id for chunk in chunks]) == chunks


@STORES
def test_chunks_of_the_core_come_as_documents_with_their_place(kind, tmp_path):
    """A store that the core filled serves LangChain as it is, with the splitter's metadata."""
    store = stores(tmp_path)[kind]
    text, metadata = "One. Two. Three.\nFour.", {"source": "a.md"}
    store.put_many(DocumentChunker(12, 0).chunk(text, "d", metadata=metadata))
    docstore = ChunkDocstore(store)
    expected = DocumentTextSplitter(12, 0).split_documents(
        [Document(text, id="d", metadata=metadata)]
    )
    keys = list(docstore.yield_keys())
    assert docstore.mget(keys) == expected


@STORES
def test_the_core_sees_the_documents_as_chunks(kind, tmp_path):
    """The other way round: places are fields of the chunk."""
    store = stores(tmp_path)[kind]
    (chunk,) = DocumentTextSplitter().split_documents([Document("\n\nOne.", id="d")])
    ChunkDocstore(store).mset([("key", chunk)])
    (seen,) = store.get_many(["key"])
    assert (seen.id, seen.document_id, seen.text) == ("key", "d", "One.")
    assert (seen.start, seen.end, seen.start_line) == (2, 6, 3)
    assert store.delete_document("d") == ["key"]


def test_what_is_handed_out_is_the_callers():
    """To change a document that came out does not change the store."""
    docstore = ChunkDocstore()
    document = Document("a", metadata={"n": [1]})
    docstore.mset([("k", document)])
    docstore.mget(["k"])[0].metadata["n"].append(2)
    document.metadata["n"].append(3)
    assert docstore.mget(["k"])[0].metadata == {"n": [1]}
