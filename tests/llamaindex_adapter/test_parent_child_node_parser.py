"""ParentChildNodeParser: two sizes of exact slices, linked in every direction."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    NodeParser,
    SentenceSplitter,
    get_child_nodes,
    get_deeper_nodes,
    get_leaf_nodes,
    get_root_nodes,
)
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.schema import Document, MetadataMode, NodeRelationship, NodeWithScore
from llama_index.core.storage.docstore import SimpleDocumentStore

from easyrag_core import DocumentChunker
from easyrag_core.chunking.parent_child import ParentChildChunker
from llamaindex_easyrag import (
    CodeLineNodeParser,
    DocumentNodeParser,
    HybridRetriever,
    MarkdownSectionNodeParser,
    ParentChildNodeParser,
)
from tests.llamaindex_adapter._nodes import check_links, check_places, covered, document, ids_of
from tests.llamaindex_adapter._parts import Canned, Gate, WordEmbedding
from tests.strategies import nasty_texts

TEXT = "\n\n".join(f"Part {i} is here. It says this. 第{i}段在这里。它这样说。" for i in range(12))


def parser_of(parent: int = 120, child: int = 40, **settings) -> ParentChildNodeParser:
    return ParentChildNodeParser(
        DocumentNodeParser(parent, 0), DocumentNodeParser(child, 0), **settings
    )


def hit(node, score: float) -> NodeWithScore:
    return NodeWithScore(node=node, score=score)


def check_families(nodes) -> None:
    """PARENT and CHILD in both directions, with right hashes, in order, within the spans."""
    by_id = {node.node_id: node for node in nodes}
    assert len(by_id) == len(nodes)
    for node in nodes:
        for child in node.child_nodes or []:
            target = by_id[child.node_id]
            assert (child.hash, child.metadata) == (target.hash, {})
            assert target.parent_node.node_id == node.node_id
            assert node.start_char_idx <= target.start_char_idx
            assert target.end_char_idx <= node.end_char_idx
        if node.parent_node is not None:
            parent = by_id[node.parent_node.node_id]
            assert (node.parent_node.hash, node.parent_node.metadata) == (parent.hash, {})
            assert node.node_id in [child.node_id for child in parent.child_nodes]
        if node.child_nodes:
            places = [by_id[child.node_id].start_char_idx for child in node.child_nodes]
            assert places == sorted(places)


def test_it_is_a_node_parser_with_defaults():
    """Without settings: parents of 2000 characters, children of 400 with an overlap of 50."""
    parser = ParentChildNodeParser()
    assert isinstance(parser, NodeParser)
    assert (parser.parent.chunk_size, parser.parent.chunk_overlap) == (2000, 0)
    assert (parser.child.chunk_size, parser.child.chunk_overlap) == (400, 50)
    assert ParentChildNodeParser.from_defaults() == parser


@given(text=nasty_texts(), child=st.integers(8, 60), factor=st.integers(1, 4))
def test_promises_hold_on_any_text(text, child, factor):
    """Both sizes are true slices, both cover the text, families and neighbours are linked."""
    nodes = parser_of(child * factor, child)([document(text)])
    leaves, roots = get_leaf_nodes(nodes), get_root_nodes(nodes)
    check_places(text, nodes)
    check_families(nodes)
    check_links(leaves)
    assert covered(text, leaves)
    assert covered(text, roots)
    assert {node.ref_doc_id for node in nodes} <= {"doc"}


@given(text=nasty_texts())
def test_nodes_are_the_chunks_of_the_core(text):
    """Ids, places and families are those of the core's chunks."""
    chunker = ParentChildChunker(DocumentChunker(90, 0), DocumentChunker(30, 0))
    nodes = parser_of(90, 30)([document(text)])
    for node, chunk in zip(nodes, chunker.chunk(text, "doc"), strict=True):
        assert (node.node_id, node.text) == (chunk.id, chunk.text)
        assert (node.parent_node and node.parent_node.node_id) == chunk.parent_id
        told = [child.node_id for child in node.child_nodes or []]
        assert told == chunk.metadata.get("child_ids", [])
        assert "child_ids" not in node.metadata


def test_the_frameworks_helpers_understand_the_nodes():
    """Leaves, roots, children and depths are what the framework's own functions find."""
    nodes = parser_of()([document(TEXT)])
    roots, leaves = get_root_nodes(nodes), get_leaf_nodes(nodes)
    assert len(roots) > 2
    assert len(leaves) > 2 * len(roots)
    assert get_child_nodes(roots, nodes) == leaves == get_deeper_nodes(nodes, 1)
    check_links(roots)
    assert [n.metadata["chunk_index"] for n in nodes] == list(range(len(nodes)))


def test_a_small_document_is_one_node():
    """SPEC 5: a parent whose only child would be itself is given once."""
    (node,) = ParentChildNodeParser()([document("One is here. 一在这里。")])
    assert set(node.relationships) == {NodeRelationship.SOURCE}


def test_divergence_the_stock_parser_says_it_at_every_level():
    """Named divergence: HierarchicalNodeParser gives a short document three times."""
    stock = HierarchicalNodeParser.from_defaults()([Document(text="One is here.")])
    assert [node.text for node in stock] == ["One is here."] * 3


def test_lonely_parents_stand_among_the_leaves():
    """A node that is parent and leaf in one is a neighbour of leaves; others are no neighbours."""
    around = ("One is here. " * 8).strip()
    text = f"{around}\n\n{'x' * 60}\n\n{around}"
    parser = ParentChildNodeParser(
        DocumentNodeParser(110, 0, boundary="paragraph"), DocumentNodeParser(70, 0)
    )
    nodes = parser([document(text)])
    lonely = [n for n in nodes if n.parent_node is None and not n.child_nodes]
    assert [n.text for n in lonely] == ["x" * 60]
    check_links(get_leaf_nodes(nodes))
    assert all(n.next_node is None for n in nodes if n.child_nodes)


def test_markdown_parents_with_prose_children():
    """Titles of a parent are embedded with its children, whose size counts them."""
    text = "# Guide\n\n## 安装\n\n" + "Run pip now. 运行。 " * 20
    parser = ParentChildNodeParser(MarkdownSectionNodeParser(300), DocumentNodeParser(80, 0))
    nodes = parser([document(text)])
    check_places(text, nodes)
    check_families(nodes)
    leaves = get_leaf_nodes(nodes)
    assert {tuple(n.metadata["heading_path"]) for n in leaves[1:]} == {("Guide", "安装")}
    assert all("context" not in n.get_content(MetadataMode.LLM) for n in nodes)


def test_code_inside_code():
    """The path of the document reaches both sizes."""
    code = "".join(f"def f{i}():\n    return {i}\n\n\n" for i in range(30))
    parser = ParentChildNodeParser(CodeLineNodeParser(500, 0), CodeLineNodeParser(150, 0))
    nodes = parser([document(code, metadata={"file_path": "a.py"})])
    check_places(code, nodes)
    check_families(nodes)
    assert {node.metadata["language"] for node in nodes} == {"Python"}


def test_room_for_metadata_at_both_sizes():
    """What is embedded fits at each size; without metadata nothing is reserved."""
    source = document(TEXT, metadata={"note": "x" * 20})
    nodes = parser_of()([source])
    for size, some in ((120, get_root_nodes(nodes)), (40, get_leaf_nodes(nodes))):
        assert max(len(n.get_content(MetadataMode.EMBED)) for n in some) <= size
    bare = parser_of(include_metadata=False)([source])
    assert [n.text for n in bare] == [n.text for n in parser_of()([document(TEXT)])]
    assert all(n.metadata == {} for n in bare)


def test_after_another_parser():
    """Chained: root offsets, unique ids, families within each input."""
    first = SentenceSplitter(chunk_size=60, chunk_overlap=0)([document(TEXT)])
    nodes = parser_of(60, 30)(first)
    check_places(TEXT, nodes, lines=False)
    check_families(nodes)
    again = parser_of(60, 30)(SentenceSplitter(chunk_size=60, chunk_overlap=0)([document(TEXT)]))
    assert ids_of(again) == ids_of(nodes)


def test_ids_and_links_of_the_callers_own():
    """`id_func` names parents and children alike, and all links follow."""
    parser = parser_of(id_func=lambda i, doc: f"{doc.node_id}-{i}")
    nodes = parser([document(TEXT)])
    assert ids_of(nodes) == [f"doc-{i}" for i in range(len(nodes))]
    check_families(nodes)


def test_several_documents():
    """Documents do not mix."""
    nodes = parser_of()([document(TEXT), document(TEXT, id_="other")])
    check_families(nodes)
    for level in (get_leaf_nodes(nodes), get_root_nodes(nodes)):
        check_links(level)


def test_no_links_between_neighbours():
    """`include_prev_next_rel=False` leaves families alone."""
    nodes = parser_of(include_prev_next_rel=False)([document(TEXT)])
    check_families(nodes)
    assert all(n.next_node is None and n.prev_node is None for n in nodes)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        pytest.param({"parent": SentenceSplitter()}, "parent", id="stock-parser"),
        pytest.param({"child": 400}, "child", id="number"),
        pytest.param(
            {"parent": DocumentNodeParser(100), "child": DocumentNodeParser(200)},
            "child",
            id="child-above-parent",
        ),
        pytest.param({"id_scheme": "mine"}, "id_scheme", id="ids-without-function"),
    ],
)
def test_wrong_settings_are_refused_at_once(settings, name):
    """At construction, as a ValueError with the parameter's name."""
    with pytest.raises(ValueError, match=name):
        ParentChildNodeParser(**settings)


# Sync and async


async def test_a_pipeline_run_asynchronously():
    """LI-37b: `arun` and `aget_nodes_from_documents` give the nodes of their sync twins."""
    parser = parser_of()
    pipeline = IngestionPipeline(transformations=[parser], disable_cache=True)
    expected = parser([document(TEXT)])
    assert await pipeline.arun(documents=[document(TEXT)]) == expected
    assert pipeline.run(documents=[document(TEXT)]) == expected
    assert await parser.aget_nodes_from_documents([document(TEXT)]) == expected


async def test_divergence_the_stock_parser_is_lost_in_async():
    """Named divergence (LI-37b): HierarchicalNodeParser returns the document unsplit."""
    (node,) = await HierarchicalNodeParser.from_defaults().acall([document(TEXT * 20)])
    assert isinstance(node, Document)


async def test_the_loop_goes_on():
    """`acall` works in a thread."""
    gate = Gate(len)
    parser = ParentChildNodeParser(
        DocumentNodeParser(120, 0),
        DocumentNodeParser(40, 0, length_function=gate, length="gate"),
    )
    assert await gate.run(parser.acall([document(TEXT)])) == parser([document(TEXT)])


# With the framework's own retriever


def merging(nodes, hits) -> AutoMergingRetriever:
    store = SimpleDocumentStore()
    store.add_documents(nodes)
    context = StorageContext.from_defaults(docstore=store)
    return AutoMergingRetriever(Canned(hits), context)


def test_auto_merging_replaces_most_of_a_family_by_its_parent():
    """The stock AutoMergingRetriever finds our parents and counts our children."""
    nodes = parser_of()([document(TEXT)])
    parent = get_root_nodes(nodes)[1]
    family = [n for n in nodes if n.parent_node and n.parent_node.node_id == parent.node_id]
    hits = [hit(node, 0.9 - i / 10) for i, node in enumerate(family)]
    found = merging(nodes, hits).retrieve("q")
    assert [one.node.node_id for one in found] == [parent.node_id]


def test_auto_merging_fills_in_the_node_between():
    """LI-52: A and C hit, B between is filled in, also where the document has metadata."""
    nodes = parser_of(400, 40)([document(TEXT, metadata={"f": "x"})])
    family = get_leaf_nodes(nodes)
    hits = [hit(family[0], 0.9), hit(family[2], 0.7)]
    found = merging(nodes, hits).retrieve("q")
    assert {one.node.node_id for one in found} == set(ids_of(family[:3]))


def test_divergence_the_stock_parser_is_not_filled_in():
    """Named divergence (LI-52): nodes of HierarchicalNodeParser have no NEXT to fill in."""
    stock = HierarchicalNodeParser.from_defaults(chunk_sizes=[400, 40], chunk_overlap=0)
    nodes = stock([document(TEXT)])
    family = get_leaf_nodes(nodes)
    found = merging(nodes, [hit(family[0], 0.9), hit(family[2], 0.7)]).retrieve("q")
    assert len(found) == 2


def test_auto_merging_over_a_vector_index():
    """Leaves in a vector index, all nodes in the docstore: the usual way, end to end."""
    nodes = parser_of()([document(TEXT)])
    context = StorageContext.from_defaults()
    context.docstore.add_documents(nodes)
    index = VectorStoreIndex(
        get_leaf_nodes(nodes), storage_context=context, embed_model=WordEmbedding()
    )
    retriever = AutoMergingRetriever(index.as_retriever(similarity_top_k=20), context)
    found = retriever.retrieve("第3段在这里")
    assert any(one.node.child_nodes for one in found)


def test_a_hybrid_index_of_all_nodes_searches_the_children():
    """Parents beside their children are not embedded, and are no candidates."""
    nodes = parser_of()([document(TEXT)])
    model = WordEmbedding()
    retriever = HybridRetriever(nodes, embed_model=model, similarity_top_k=50)
    leaves = get_leaf_nodes(nodes)
    assert sum(count for what, count in model.calls if what == "texts") == len(leaves)
    found = retriever.retrieve("第3段在这里")
    assert {one.node.node_id for one in found} <= set(ids_of(leaves))
