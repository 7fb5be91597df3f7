"""Children merged into their parents by both frameworks: any retriever, any store, any level."""

from __future__ import annotations

import logging

import pytest
from langchain_classic.storage import create_kv_docstore
from langchain_core.documents import Document
from langchain_core.stores import InMemoryByteStore, InMemoryStore
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore

import langchain_easyrag as lc
import llamaindex_easyrag as li
from easyrag_core import (
    Chunk,
    ChunkNotFoundError,
    InMemoryChunkStore,
    InvalidParameterError,
    SQLiteChunkStore,
)
from tests.parity.frameworks import MODES

modes = pytest.mark.parametrize("ask", MODES.values(), ids=MODES)

# Three levels: `root` holds `p` and `q`; `p` holds four leaves, `q` two.
PARENT = {"p": "root", "q": "root"} | dict.fromkeys("abcd", "p") | dict.fromkeys("xy", "q")
CHILDREN = {"root": ["p", "q"], "p": list("abcd"), "q": list("xy")}


def document(id_):
    metadata = {"parent_id": PARENT[id_]} if id_ in PARENT else {}
    if id_ in CHILDREN:
        metadata["child_ids"] = CHILDREN[id_]
    return Document(f"text of {id_}", id=id_, metadata={**metadata, "start_index": 3})


def node(id_):
    links = {}
    if id_ in PARENT:
        links[NodeRelationship.PARENT] = RelatedNodeInfo(node_id=PARENT[id_])
    if id_ in CHILDREN:
        links[NodeRelationship.CHILD] = [RelatedNodeInfo(node_id=c) for c in CHILDREN[id_]]
    return TextNode(text=f"text of {id_}", id_=id_, relationships=links, start_char_idx=3)


def chunk(id_, *, listed=True):
    known = {"child_ids": CHILDREN[id_]} if listed and id_ in CHILDREN else {}
    index = [*CHILDREN, *PARENT].index(id_)
    return Chunk(
        id_, "doc", index, f"text of {id_}", 0, 9, parent_id=PARENT.get(id_), metadata=known
    )


ALL = dict.fromkeys([*CHILDREN, *PARENT])


def chunk_store(make, **settings):
    store = make()
    store.put_many([chunk(id_, **settings) for id_ in ALL])
    return store


def filled(store, *, without=()):
    store.mset([(id_, document(id_)) for id_ in CHILDREN if id_ not in without])
    return store


def docstore(*, without=()):
    store = SimpleDocumentStore()
    store.add_documents([node(id_) for id_ in CHILDREN if id_ not in without])
    return store


STORES = {
    "the frameworks' own": lambda _=None: (filled(InMemoryStore()), docstore()),
    "bytes": lambda _=None: (filled(create_kv_docstore(InMemoryByteStore())), docstore()),
    "chunks": lambda _=None: (chunk_store(InMemoryChunkStore),) * 2,
    "chunks that list no children": lambda _=None: (
        (chunk_store(InMemoryChunkStore, listed=False),) * 2
    ),
    "a file": lambda folder: (chunk_store(lambda: SQLiteChunkStore(folder / "chunks")),) * 2,
    "chunks as documents": lambda _=None: (filled(lc.ChunkDocstore()), docstore()),
}


def plugs(stores, **settings):
    by_document, by_node = stores
    named = {"store": by_node} if isinstance(by_node, InMemoryChunkStore | SQLiteChunkStore) else {}
    k = settings.pop("k", None)
    return (
        lc.AutoMergingCompressor(store=by_document, k=k, **settings),
        li.AutoMergingPostprocessor(**(named or {"docstore": by_node}), top_n=k, **settings),
    )


def found(ask, pair, *hits):
    """Ids, scores and facts of what both give; hits are ids with scores, best first."""
    documents = [
        document(id_).model_copy(
            update={"metadata": {**document(id_).metadata, "easyrag": {"score": s}}}
        )
        for id_, s in hits
    ]
    nodes = [NodeWithScore(node=node(id_), score=s) for id_, s in hits]
    before = [d.model_copy(deep=True) for d in documents], [n.model_copy(deep=True) for n in nodes]
    left = ask(pair[0], "compress_documents", documents, "q")
    right = ask(pair[1], "postprocess_nodes", nodes)
    assert (documents, nodes) == before
    first = [(d.id, d.page_content, _facts(d.metadata["easyrag"])) for d in left]
    second = [(n.node.node_id, n.node.text, _facts(n.node.metadata["easyrag"])) for n in right]
    assert first == second
    assert [n.score for n in right] == [facts["score"] for _, _, facts in first]
    return first


def _facts(facts):
    children = [(c["id"], c["rank"], c["score"]) for c in facts.get("children", ())]
    return {
        "score": facts["score"],
        "rank": facts["rank"],
        "ratio": facts.get("ratio"),
        "children": children,
    }


LEAVES = [("a", 0.9), ("x", 0.8), ("free", 0.7), ("b", 0.6)]


@modes
@pytest.mark.parametrize("stores", STORES.values(), ids=STORES)
def test_several_levels_in_any_store(ask, stores, tmp_path):
    """Half of `p` and half of `q` are hit: both merge, and then the root of both."""
    merged = found(ask, plugs(stores(tmp_path)), *LEAVES)
    assert [(id_, text) for id_, text, _ in merged] == [
        ("root", "text of root"),
        ("free", "text of free"),
    ]
    assert merged[0][2] == {
        "score": 0.9,
        "rank": 1,
        "ratio": 1.0,
        "children": [("a", 1, 0.9), ("b", 4, 0.6), ("x", 2, 0.8)],
    }


@modes
@pytest.mark.parametrize(
    ("threshold", "ids"),
    [(0.5, ["root", "free"]), (0.51, ["a", "x", "free", "b"]), (1.0, ["a", "x", "free", "b"])],
)
def test_the_share_that_must_be_hit(ask, threshold, ids):
    """At the threshold it merges, under it the leaves stay where they are."""
    pair = plugs(STORES["the frameworks' own"](), merge_threshold=threshold)
    assert [id_ for id_, _, _ in found(ask, pair, *LEAVES)] == ids


@modes
@pytest.mark.parametrize(("score", "value"), [("best", 0.9), ("mean", 0.75), ("sum", 1.5)])
def test_the_score_of_a_parent(ask, score, value):
    """Of its children that were hit."""
    pair = plugs(STORES["chunks"](), score=score)
    merged = found(ask, pair, ("a", 0.9), ("b", 0.6))
    assert [id_ for id_, _, _ in merged] == ["root"]
    assert merged[0][2]["score"] == pytest.approx(value)


@modes
def test_the_answer_is_cut_after_merging(ask):
    """`k` counts what is left, so that four leaves do not crowd out the rest."""
    pair = plugs(STORES["chunks"](), k=2)
    assert [id_ for id_, _, _ in found(ask, pair, *LEAVES)] == ["root", "free"]


@modes
def test_nothing_found_nothing_read(ask):
    """An empty list comes back as one."""
    assert found(ask, plugs(STORES["chunks"]())) == []


@modes
def test_a_parent_that_was_hit_itself(ask):
    """It takes its children in, at the better place."""
    pair = plugs(STORES["the frameworks' own"](), merge_threshold=0.5)
    merged = found(ask, pair, ("y", 0.9), ("q", 0.5))
    assert [id_ for id_, _, _ in merged] == ["root"]


@modes
@pytest.mark.parametrize("missing", ["p", "root"])
def test_a_missing_parent_leaves_its_children(ask, missing, caplog):
    """LI-50: one that is gone costs no answer: children stay, with a warning; strict raises."""
    stores = lambda: (filled(InMemoryStore(), without=[missing]), docstore(without=[missing]))  # noqa: E731
    with caplog.at_level(logging.WARNING):
        merged = found(ask, plugs(stores()), *LEAVES)
    ids = [id_ for id_, _, _ in merged]
    assert ids == (["a", "root", "free", "b"] if missing == "p" else ["p", "q", "free"])
    assert f"Parent '{missing}'" in caplog.text
    if missing == "p":
        strict = plugs(stores(), strict=True)
        with pytest.raises(ChunkNotFoundError):
            ask(strict[0], "compress_documents", [document("a")], "q")
        with pytest.raises(ChunkNotFoundError):
            ask(strict[1], "postprocess_nodes", [NodeWithScore(node=node("a"), score=1.0)])


class Broken(InMemoryChunkStore):
    """Cannot be read."""

    def get_many(self, ids):
        raise ConnectionError("gone")


@modes
def test_a_failing_store_leaves_the_children(ask, caplog):
    """What was found comes back, with a warning; strict raises the store's own error."""
    with caplog.at_level(logging.WARNING):
        merged = found(ask, plugs((Broken(), Broken())), *LEAVES)
    assert [id_ for id_, _, _ in merged] == ["a", "x", "free", "b"]
    assert "gone" in caplog.text
    strict = plugs((Broken(), Broken()), strict=True)
    with pytest.raises(ConnectionError):
        ask(strict[0], "compress_documents", [document("a")], "q")
    with pytest.raises(ConnectionError):
        ask(strict[1], "postprocess_nodes", [NodeWithScore(node=node("a"), score=1.0)])


# Round trips


class CountingStore(InMemoryStore):
    """LangChain's, counted."""

    calls = 0

    def mget(self, keys):
        self.calls += 1
        return super().mget(keys)

    async def amget(self, keys):
        self.calls += 1
        return super().mget(keys)


class CountingDocstore(SimpleDocumentStore):
    """LlamaIndex's, counted."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def get_nodes(self, *given, **told):
        self.calls += 1
        return super().get_nodes(*given, **told)

    async def aget_nodes(self, *given, **told):
        self.calls += 1
        return super().get_nodes(*given, **told)


class CountingChunks(InMemoryChunkStore):
    """The core's, counted."""

    calls = 0

    def get_many(self, ids):
        self.calls += 1
        return super().get_many(ids)


@modes
@pytest.mark.parametrize(("hits", "levels"), [(LEAVES, 2), ([("a", 1.0)], 1), ([("free", 1.0)], 0)])
def test_one_round_trip_per_level(ask, hits, levels):
    """However many parents a level has; a level that is not reached is not read."""
    documents, nodes, chunks = CountingStore(), CountingDocstore(), CountingChunks()
    filled(documents)
    nodes.add_documents([node(id_) for id_ in CHILDREN])
    chunks.put_many([chunk(id_) for id_ in ALL])
    found(ask, plugs((documents, nodes)), *hits)
    assert (documents.calls, nodes.calls) == (levels, levels)
    found(ask, plugs((chunks, chunks)), *hits)
    assert chunks.calls == 2 * levels  # both frameworks


@modes
def test_expansion_is_one_round_trip(ask):
    """Parents of any number of children are looked up at once, by both frameworks."""
    documents, nodes = CountingStore(), CountingDocstore()
    filled(documents)
    nodes.add_documents([node(id_) for id_ in CHILDREN])
    left = ask(
        lc.ParentExpansionCompressor(store=documents),
        "compress_documents",
        [document(id_) for id_ in "axby"],
        "q",
    )
    right = ask(
        li.ParentExpansionPostprocessor(nodes),
        "postprocess_nodes",
        [NodeWithScore(node=node(id_), score=1.0) for id_ in "axby"],
    )
    assert [d.id for d in left] == [n.node.node_id for n in right] == ["p", "q"]
    assert (documents.calls, nodes.calls) == (1, 1)


# Settings, and the line


@pytest.mark.parametrize(
    "settings",
    [{"merge_threshold": 0}, {"merge_threshold": 1.5}, {"score": "max"}, {"k": -1}],
    ids=repr,
)
def test_both_refuse_the_same_settings(settings):
    """At construction."""
    given = dict(settings)
    k = given.pop("k", None)
    with pytest.raises(InvalidParameterError):
        lc.AutoMergingCompressor(store=InMemoryStore(), **settings)
    with pytest.raises(InvalidParameterError):
        li.AutoMergingPostprocessor(SimpleDocumentStore(), top_n=k, **given)


def test_no_store_is_refused():
    """By both, at construction."""
    with pytest.raises(InvalidParameterError):
        lc.AutoMergingCompressor(store={})
    with pytest.raises(InvalidParameterError):
        li.AutoMergingPostprocessor()


@modes
def test_behind_any_retriever_in_the_line(ask):
    """As the last stage of a pipeline over BM25: the same in both, and noted."""
    leaves = list("abxy")
    by_document = lc.BM25Retriever.from_documents([document(id_) for id_ in leaves])
    by_node = li.BM25Retriever([node(id_) for id_ in leaves], similarity_top_k=4)
    pair = plugs(STORES["the frameworks' own"]())
    left = ask(
        lc.PipelineRetriever(retrievers=[by_document], postprocessors=[pair[0]]), "run", "text"
    )
    right = ask(li.PipelineRetriever([by_node], node_postprocessors=[pair[1]]), "run", "text")
    assert [d.id for d in left.hits] == [n.node.node_id for n in right.hits] == ["root"]
    for result in (left, right):
        (stage,) = [s for s in result.stages if s.name.startswith("AutoMerging")]
        assert stage.notes == {"root": "stands for 4 children"}
