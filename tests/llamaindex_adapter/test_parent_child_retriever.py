"""ParentChildRetriever: small nodes searched, the large ones that hold them returned."""

from __future__ import annotations

import copy
import json

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import get_leaf_nodes, get_root_nodes
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from easyrag_core import ChunkNotFoundError, HybridConfig, InMemoryChunkStore
from llamaindex_easyrag import (
    BM25Retriever,
    DocumentNodeParser,
    HybridRetriever,
    MarkdownSectionNodeParser,
    ParentChildNodeParser,
    ParentChildRetriever,
)
from tests.llamaindex_adapter._nodes import document, ids_of
from tests.llamaindex_adapter._parts import BrokenEmbedding, Canned, WordEmbedding, facts, ids

TEXT = "\n\n".join(f"Part {i} is here. It says this. 第{i}段在这里。它这样说。" for i in range(30))
PARSER = ParentChildNodeParser(DocumentNodeParser(120, 0), DocumentNodeParser(40, 0))
NODES = PARSER([document(TEXT, metadata={"tenant": "A"})])
LEAVES, ROOTS = get_leaf_nodes(NODES), get_root_nodes(NODES)
QUERY = "第7段在这里"


def parents_of(found: list[NodeWithScore]) -> list[str]:
    return list(dict.fromkeys(one.node.parent_node.node_id for one in found))


def docstore_of(nodes=NODES) -> SimpleDocumentStore:
    store = SimpleDocumentStore()
    store.add_documents(nodes)
    return store


def index_of(nodes=LEAVES) -> VectorStoreIndex:
    return VectorStoreIndex(nodes, embed_model=WordEmbedding())


def test_it_is_a_retriever():
    """Query engines, tools and routers take it."""
    assert BaseRetriever in ParentChildRetriever.__mro__


def test_words_find_children_and_parents_are_returned():
    """The parents of BM25's children, each once, with the best child's score and the spans."""
    retriever = ParentChildRetriever(NODES, similarity_top_k=3)
    found = retriever.retrieve(QUERY)
    children = BM25Retriever(LEAVES, similarity_top_k=retriever.child_k).retrieve(QUERY)
    assert ids(found) == parents_of(children)[:3]
    assert found[0].score == children[0].score
    told = facts(found[0])["children"]
    assert told[0]["id"] == children[0].node.node_id
    assert all(TEXT[c["start_index"] : c["end_index"]] in found[0].node.text for c in told)
    assert facts(found[0])["channels"]["bm25"]["rank"] == 1
    json.dumps([facts(one) for one in found])


def test_words_and_meaning_together():
    """With a model the children are found by both, fused first and expanded then."""
    retriever = ParentChildRetriever(NODES, embed_model=WordEmbedding(), similarity_top_k=3)
    both = HybridRetriever(LEAVES, embed_model=WordEmbedding(), similarity_top_k=retriever.child_k)
    found = retriever.retrieve(QUERY)
    assert ids(found) == parents_of(both.retrieve(QUERY))[:3]
    assert {"bm25", "vector"} == set(facts(found[0])["channels"])


def test_a_vector_side_of_the_callers():
    """Any vector retriever or index of the children beside BM25."""
    for side in (index_of(), index_of().as_retriever(similarity_top_k=20)):
        retriever = ParentChildRetriever(NODES, vector_retriever=side, similarity_top_k=3)
        found = retriever.retrieve(QUERY)
        assert len(found) == 3
        assert set(ids(found)) <= set(ids_of(ROOTS))


def test_a_retriever_of_children_and_a_store_of_parents():
    """Any retriever or index of children; parents in a docstore, a context or a ChunkStore."""
    chunks = InMemoryChunkStore()
    ParentChildRetriever(NODES, store=chunks)  # puts the parents in
    context = StorageContext.from_defaults(docstore=docstore_of())
    index = index_of()
    expected = parents_of(index.as_retriever(similarity_top_k=32).retrieve(QUERY))[:4]
    for place in ({"docstore": docstore_of()}, {"storage_context": context}, {"store": chunks}):
        for child in (index, index.as_retriever(similarity_top_k=32)):
            retriever = ParentChildRetriever(child_retriever=child, **place)
            assert ids(retriever.retrieve(QUERY)) == expected


def test_as_many_parents_as_wanted_although_families_are_large():
    """However many children of one parent are found first, the next parents come too."""
    text = "\n\n".join("\n".join(f"word {i} {j} 词" for j in range(12)) for i in range(6))
    parser = ParentChildNodeParser(
        DocumentNodeParser(170, 0, boundary="paragraph"), DocumentNodeParser(13, 0)
    )
    nodes = parser([document(text)])
    assert len(get_root_nodes(nodes)) == 6
    for retriever in (
        ParentChildRetriever(nodes, similarity_top_k=5),
        ParentChildRetriever(
            child_retriever=index_of(get_leaf_nodes(nodes)),
            docstore=docstore_of(nodes),
            similarity_top_k=5,
        ),
    ):
        assert len(retriever.retrieve("word 词")) == 5
        retriever.similarity_top_k = 6
        assert len(retriever.retrieve("word 词")) == 6


async def test_going_deeper_works_in_async_too():
    """The async path asks an index for more children as the sync one does."""
    retriever = ParentChildRetriever(
        child_retriever=index_of(), docstore=docstore_of(), similarity_top_k=len(ROOTS)
    )
    found = await retriever.aretrieve(QUERY)
    assert ids(found) == ids(retriever.retrieve(QUERY))
    assert set(ids(found)) == set(ids_of(ROOTS))


def test_child_k_is_a_limit():
    """`child_k` children are looked at, and no more."""
    retriever = ParentChildRetriever(NODES, child_k=2, similarity_top_k=10)
    assert sum(len(facts(one)["children"]) for one in retriever.retrieve(QUERY)) == 2
    retriever = ParentChildRetriever(child_retriever=index_of(), docstore=docstore_of(), child_k=3)
    assert sum(len(facts(one)["children"]) for one in retriever.retrieve(QUERY)) == 3


def test_no_parents_wanted():
    """`similarity_top_k=0` gives none; a query without words gives none."""
    assert ParentChildRetriever(NODES, similarity_top_k=0).retrieve(QUERY) == []
    assert ParentChildRetriever(NODES).retrieve("!?") == []
    assert ParentChildRetriever([]).retrieve(QUERY) == []


def test_filters_hold_for_children():
    """Only children that pass are searched."""
    other = PARSER([document(TEXT, id_="other", metadata={"tenant": "B"})])
    filters = MetadataFilters(filters=[MetadataFilter(key="tenant", value="B")])
    found = ParentChildRetriever([*NODES, *other], filters=filters).retrieve(QUERY)
    assert {one.node.ref_doc_id for one in found} == {"other"}


async def test_async_uses_the_childs_async_method():
    """LI-49: the child's `_aretrieve` and the store's async methods; each gets its own bundle."""
    child = Canned([NodeWithScore(node=LEAVES[0], score=0.9)])
    retriever = ParentChildRetriever(child_retriever=child, docstore=docstore_of())
    bundle = QueryBundle("q")
    found = await retriever.aretrieve(bundle)
    assert child.asked == ["async"]
    assert bundle.embedding is None
    assert found == retriever.retrieve(bundle)
    assert bundle.embedding is None


async def test_sync_and_async_are_the_same():
    """The same nodes, scores and facts both ways, with each kind of children."""
    for settings in (
        {"nodes": NODES},
        {"nodes": NODES, "embed_model": WordEmbedding()},
        {"nodes": NODES, "vector_retriever": index_of()},
        {"child_retriever": index_of(), "docstore": docstore_of()},
    ):
        retriever = ParentChildRetriever(**settings)
        assert await retriever.aretrieve(QUERY) == retriever.retrieve(QUERY)


def test_a_missing_parent_keeps_its_children(caplog):
    """LI-50: a warning, the children stay; `strict=True` raises."""
    child = Canned([NodeWithScore(node=LEAVES[0], score=0.9)])
    place = {"child_retriever": child, "docstore": docstore_of([])}
    (one,) = ParentChildRetriever(**place).retrieve("q")
    assert one.node.node_id == LEAVES[0].node_id
    assert LEAVES[0].parent_node.node_id in caplog.text
    with pytest.raises(ChunkNotFoundError):
        ParentChildRetriever(**place, strict=True).retrieve("q")


def test_a_failing_side_is_told(caplog):
    """A model that is down leaves the words; `strict=True` raises its error."""
    retriever = ParentChildRetriever(NODES, embed_model=BrokenEmbedding())
    found = retriever.retrieve(QUERY)
    assert len(found) == 4
    assert "down" in facts(found[0])["failed"]["vector"]
    assert "down" in caplog.text
    strict = ParentChildRetriever(NODES, embed_model=BrokenEmbedding(), strict=True)
    with pytest.raises(RuntimeError, match="down"):
        strict.retrieve(QUERY)


async def test_nodes_can_be_added():
    """New documents are found, larger families make more room, and nothing is embedded twice."""
    model = WordEmbedding()
    retriever = ParentChildRetriever(NODES, embed_model=model)
    small = retriever.child_k
    more = ParentChildNodeParser(DocumentNodeParser(400, 0), DocumentNodeParser(30, 0))(
        [document("Fresh news here. 新的消息在这里。" * 20, id_="new")]
    )
    embedded = sum(count for what, count in model.calls if what == "texts")
    await retriever.aadd_nodes([*NODES, *more])
    again = sum(count for what, count in model.calls if what == "texts") - embedded
    assert again == len(get_leaf_nodes(more))
    assert retriever.child_k > small
    assert retriever.retrieve("新的消息")[0].node.ref_doc_id == "new"
    foreign = ParentChildRetriever(child_retriever=index_of(), docstore=docstore_of())
    with pytest.raises(ValueError, match="child_retriever"):
        foreign.add_nodes(more)


def test_inputs_and_stores_stay_as_they_are():
    """Neither nodes nor what the store holds are changed by a search."""
    nodes, store = copy.deepcopy(NODES), docstore_of()
    retriever = ParentChildRetriever(nodes, docstore=store)
    first = retriever.retrieve(QUERY)
    first[0].node.metadata["tenant"] = "changed"
    assert nodes == NODES
    assert store.get_node(first[0].node.node_id).metadata["tenant"] == "A"
    assert retriever.retrieve(QUERY)[0].node.metadata["tenant"] == "A"


def test_titles_lead_to_parents():
    """What is embedded beside a child is searched too: a title finds the section under it."""
    text = f"# 手册\n\n## 安装\n\n{'Run this now. ' * 20}\n\n## Uninstall\n\n{'Stop it. ' * 20}"
    parser = ParentChildNodeParser(MarkdownSectionNodeParser(400), MarkdownSectionNodeParser(100))
    retriever = ParentChildRetriever(parser([document(text)]), similarity_top_k=1)
    (one,) = retriever.retrieve("安装")
    assert one.node.metadata["heading_path"][-1] == "安装"
    assert one.node.get_content(MetadataMode.LLM) == one.node.text


def test_in_a_query_engine():
    """The LLM reads the parents' text and none of the facts."""
    response = RetrieverQueryEngine.from_args(
        ParentChildRetriever(NODES, similarity_top_k=1), llm=MockLLM()
    ).query(QUERY)
    assert set(ids(response.source_nodes)) <= set(ids_of(ROOTS))
    assert response.source_nodes[0].node.text in str(response)
    assert "easyrag" not in str(response)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        pytest.param({}, "nodes", id="nothing"),
        pytest.param({"nodes": NODES, "child_retriever": index_of()}, "nodes", id="both"),
        pytest.param({"child_retriever": index_of()}, "docstore", id="no-place"),
        pytest.param(
            {"child_retriever": "x", "docstore": docstore_of()},
            "child_retriever",
            id="no-retriever",
        ),
        pytest.param(
            {"child_retriever": Canned([]), "docstore": docstore_of(), "child_k": 3},
            "child_k",
            id="child_k-of-another",
        ),
        pytest.param(
            {"child_retriever": Canned([]), "docstore": docstore_of(), "filters": 1},
            "filters",
            id="filters-of-another",
        ),
        pytest.param({"nodes": NODES, "similarity_top_k": -1}, "similarity_top_k", id="top_k"),
        pytest.param({"nodes": NODES, "child_k": 0}, "child_k", id="child_k"),
        pytest.param({"nodes": NODES, "config": HybridConfig()}, "config", id="config-alone"),
        pytest.param(
            {"nodes": NODES, "docstore": docstore_of(), "store": InMemoryChunkStore()},
            "docstore",
            id="two-places",
        ),
    ],
)
def test_wrong_settings_are_refused_at_once(settings, name):
    """At construction, as a ValueError with the parameter's name."""
    with pytest.raises(ValueError, match=name):
        ParentChildRetriever(**settings)
