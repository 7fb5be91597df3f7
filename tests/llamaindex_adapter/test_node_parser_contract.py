"""DocumentNodeParser: true places, nothing lost, complete links, whatever comes in."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    MarkdownNodeParser,
    MetadataAwareTextSplitter,
    NodeParser,
    SentenceSplitter,
    TextSplitter,
    get_leaf_nodes,
    get_root_nodes,
)
from llama_index.core.schema import (
    Document,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)

from easyrag_core.text import is_grapheme_boundary
from llamaindex_easyrag import DocumentNodeParser
from tests.llamaindex_adapter._parts import Gate
from tests.strategies import nasty_texts, paragraphs

CAT = "the cat sat. " * 200
MARKDOWN = "# A\n\nalpha one. alpha two.\n\n# B\n\nbeta one. beta two.\n\n# C\n\n甲一。甲二。\n"


def document(text: str, **fields) -> Document:
    return Document(text=text, **{"id_": "doc", **fields})


def covered(text: str, nodes: list[TextNode]) -> bool:
    """Whether every non-blank character is in a node."""
    kept = set()
    for node in nodes:
        kept.update(range(node.start_char_idx, node.end_char_idx))
    return all(place in kept or character.isspace() for place, character in enumerate(text))


def check_links(nodes: list[TextNode]) -> None:
    """Both ways between neighbours of one document, never beyond, with the targets' hashes."""
    for before, after in pairwise(nodes):
        if before.ref_doc_id == after.ref_doc_id:
            assert before.next_node.node_id == after.node_id
            assert after.prev_node.node_id == before.node_id
            assert before.next_node.hash == after.hash
            assert after.prev_node.hash == before.hash
            assert before.next_node.metadata == after.prev_node.metadata == {}
        else:
            assert before.next_node is None
            assert after.prev_node is None
    if nodes:
        assert nodes[0].prev_node is None
        assert nodes[-1].next_node is None


def test_it_is_what_the_framework_asks_for():
    """`Settings.text_splitter`, CitationQueryEngine and node parser maps take it."""
    bases = DocumentNodeParser.__mro__
    assert {NodeParser, TextSplitter, MetadataAwareTextSplitter} <= set(bases)
    assert DocumentNodeParser.class_name() == "DocumentNodeParser"
    assert "chunk_size" in DocumentNodeParser.__init__.__doc__


@given(
    text=nasty_texts(),
    size=st.integers(1, 80),
    boundary=st.sampled_from(["character", "word", "sentence", "paragraph"]),
    strip=st.booleans(),
)
def test_promises_hold_on_any_text(text, size, boundary, strip):
    """Spans are true and in order, nothing is lost, the limit holds, links are complete."""
    parser = DocumentNodeParser(size, size // 3, boundary=boundary, strip=strip)
    nodes = parser.get_nodes_from_documents([document(text)])
    for node in nodes:
        assert text[node.start_char_idx : node.end_char_idx] == node.text
        assert node.text.strip()
        one_cluster = not any(
            is_grapheme_boundary(node.text, place) for place in range(1, len(node.text))
        )
        assert len(node.text) <= size or one_cluster
    assert covered(text, nodes)
    assert [n.start_char_idx for n in nodes] == sorted(n.start_char_idx for n in nodes)
    check_links(nodes)


def test_repeated_sentences_have_true_places():
    """LI-1: all of the text is covered, and the last node ends where the text does."""
    parser = DocumentNodeParser(50, 10, length="tiktoken:cl100k_base")
    nodes = parser.get_nodes_from_documents([document(CAT)])
    assert all(CAT[n.start_char_idx : n.end_char_idx] == n.text for n in nodes)
    assert covered(CAT, nodes)
    assert nodes[-1].end_char_idx == len(CAT.rstrip())
    assert all(after.start_char_idx < before.end_char_idx for before, after in pairwise(nodes))


def test_divergence_the_stock_splitter_reports_other_places():
    """Named divergence (LI-1): SentenceSplitter leaves most of the text uncovered."""
    theirs = SentenceSplitter(chunk_size=50, chunk_overlap=10)([document(CAT)])
    assert not covered(CAT, theirs)


@given(text=paragraphs(), size=st.integers(5, 60))
def test_after_another_parser_places_are_the_roots(text, size):
    """Chained parsers: offsets, lines and links are those of the root document."""
    root = document(text)
    first = DocumentNodeParser(size * 3, size)([root])
    nodes = DocumentNodeParser(size, size // 4)(first)
    for node in nodes:
        assert text[node.start_char_idx : node.end_char_idx] == node.text
        assert node.metadata["start_line"] == 1 + text.count("\n", 0, node.start_char_idx)
        assert node.metadata["end_line"] == 1 + text.count("\n", 0, node.end_char_idx - 1)
        assert node.ref_doc_id == "doc"
    check_links(nodes)
    assert len({node.node_id for node in nodes}) == len(nodes)


def test_after_the_markdown_parser():
    """LI-2: sections keep their places, and neighbours are linked across sections."""
    root = document(MARKDOWN, metadata={"f": "x"})
    nodes = DocumentNodeParser(38, 0)(MarkdownNodeParser()([root]))
    assert len(nodes) > 3
    assert all(MARKDOWN[n.start_char_idx : n.end_char_idx] == n.text for n in nodes)
    assert [n.metadata["chunk_index"] for n in nodes] == list(range(len(nodes)))
    check_links(nodes)


def test_divergence_the_stock_chain_loses_places_and_links():
    """Named divergence (LI-2, LI-4): the stock splitter after the stock Markdown parser."""
    root = document(MARKDOWN, metadata={"f": "x"})
    theirs = SentenceSplitter(chunk_size=40, chunk_overlap=0)(MarkdownNodeParser()([root]))
    assert any(n.start_char_idx is None for n in theirs)
    assert all(n.next_node is None for n in theirs)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"start_char_idx": None}, id="no-start"),
        pytest.param({"end_char_idx": 3}, id="text-of-another-length"),
    ],
)
def test_an_unknown_place_stays_unknown(changed):
    """A node that has lost its place gives nodes without one, not with a wrong one."""
    fields = {"text": "one two three four", "start_char_idx": 5, "end_char_idx": 23, **changed}
    source = TextNode(
        **fields,
        metadata={"start_line": 7, "end_line": 7},
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="root")},
    )
    nodes = DocumentNodeParser(60, 0)([source])
    assert [(n.start_char_idx, n.end_char_idx) for n in nodes] == [(None, None)]
    assert not {"start_line", "end_line"} & nodes[0].metadata.keys()
    assert nodes[0].ref_doc_id == "root"


def test_a_node_without_source_is_its_own_root():
    """A hand-made node is the document of its pieces."""
    source = TextNode(text="one two three four", id_="made")
    nodes = DocumentNodeParser(9, 0)([source])
    assert [source.text[n.start_char_idx : n.end_char_idx] for n in nodes] == [
        n.text for n in nodes
    ]
    assert {n.ref_doc_id for n in nodes} == {"made"}


def test_links_stay_inside_a_document():
    """LI-4: several documents, links with right hashes, none across."""
    documents = [document(f"Text {i} one. Text {i} two.", id_=str(i)) for i in range(3)]
    nodes = DocumentNodeParser(14, 0)(documents)
    assert len(nodes) == 6
    check_links(nodes)


def test_links_can_be_left_out():
    """`include_prev_next_rel=False` gives nodes with their source alone."""
    nodes = DocumentNodeParser(14, 0, include_prev_next_rel=False)([document(CAT)])
    assert all(set(n.relationships) == {NodeRelationship.SOURCE} for n in nodes)


@pytest.mark.parametrize("text", ["", " ", "  \n", "\u3000\r\n\t"], ids=repr)
def test_a_blank_document_gives_no_node(text):
    """LI-13: neither an empty nor a blank document becomes a node."""
    assert DocumentNodeParser()([document(text)]) == []


def test_split_text_follows_the_framework():
    """LI-13: the empty text gives itself, a blank one nothing, as the stock splitters do."""
    parser = DocumentNodeParser(20, 0)
    assert parser.split_text("") == SentenceSplitter().split_text("") == [""]
    assert parser.split_text("   ") == SentenceSplitter().split_text("   ") == []
    assert parser.split_text_metadata_aware("", "k: v") == [""]
    assert parser.split_texts(["One is. Two is.", "三在这里。"]) == [
        "One is. Two is.",
        "三在这里。",
    ]


def test_an_oversized_character_is_a_node_of_its_own():
    """LI-7: a grapheme over the limit is kept whole, and the rest is split."""
    parser = DocumentNodeParser(1, 0, length="tiktoken:cl100k_base")
    assert parser.split_text("龘") == ["龘"]
    parser = DocumentNodeParser(2, 0, length="tiktoken:cl100k_base")
    assert parser.split_text("👨‍👩‍👧‍👦 hello") == ["👨‍👩‍👧‍👦", "hello"]


def test_divergence_the_stock_splitter_fails_on_a_large_character():
    """Named divergence (LI-7): SentenceSplitter raises."""
    with pytest.raises(ValueError, match="exceeded"):
        SentenceSplitter(chunk_size=1, chunk_overlap=0).split_text("龘")


def test_chinese_sentences_are_sentences():
    """LI-9: cuts fall behind `。！？`, and a closing quote stays with its sentence."""
    text = "今天天气很好。我们去公园玩吧！你觉得怎么样？“好的，没问题。”他说。"
    pieces = DocumentNodeParser(16, 0).split_text(text)
    assert "".join(pieces) == text
    assert all(piece.endswith(("。", "！", "？", "”")) for piece in pieces)
    assert not any(piece.startswith("”") for piece in pieces)


# Identity


def test_ids_do_not_depend_on_the_position():
    """LI-18: the same document gives the same ids; what is inserted above changes none below."""
    parser = DocumentNodeParser(30, 0)
    below = "Second paragraph is here.\n\nThird paragraph is here."
    before = parser([document(f"First paragraph is here.\n\n{below}")])
    after = parser([document(f"A new beginning for all.\n\nFirst paragraph is here.\n\n{below}")])
    assert [n.node_id for n in before] == [
        n.node_id for n in parser([document(f"First paragraph is here.\n\n{below}")])
    ]
    assert [n.node_id for n in before] == [n.node_id for n in after][-3:]
    assert all(set(n.node_id) <= set("0123456789abcdef") for n in before)


def test_ids_do_not_depend_on_the_position_in_a_chain_either():
    """The stock Markdown parser gives random ids; ours after it are stable all the same."""
    chain = [MarkdownNodeParser(), DocumentNodeParser(45, 0)]

    def run(text):
        nodes = [document(text)]
        for parser in chain:
            nodes = parser(nodes)
        return [node.node_id for node in nodes]

    assert run(MARKDOWN) == run(MARKDOWN)
    assert run(f"# New\n\nnew text.\n\n{MARKDOWN}")[-len(run(MARKDOWN)) :] == run(MARKDOWN)


def test_ids_differ_between_equal_texts():
    """Equal chunks and equal sections of one document are counted, those of two are told apart."""
    parser = DocumentNodeParser(20, 0)
    nodes = parser([document("the cat sat. " * 5), document("the cat sat. " * 5, id_="other")])
    assert len({n.text for n in nodes}) == 1
    assert len({n.node_id for n in nodes}) == len(nodes) == 10
    sections = MarkdownNodeParser()([document("# A\n\nsame.\n\n# A\n\nsame.\n")])
    pieces = DocumentNodeParser(30, 0)(sections)
    assert len({n.node_id for n in pieces}) == len(pieces) > 1


def test_ids_are_the_same_in_another_process():
    """No hash seed, clock or counter is in an id."""
    code = (
        "from llama_index.core.schema import Document\n"
        "from llamaindex_easyrag import DocumentNodeParser\n"
        "import json\n"
        f"nodes = DocumentNodeParser(40, 5)([Document(text={MARKDOWN!r}, id_='doc')])\n"
        "print(json.dumps([node.node_id for node in nodes]))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert json.loads(told) == [n.node_id for n in DocumentNodeParser(40, 5)([document(MARKDOWN)])]


def test_ids_of_the_callers_own():
    """`id_func` gets the number in its document and the document; uuids are to be had too."""
    parser = DocumentNodeParser(14, 0, id_func=lambda i, doc: f"{doc.node_id}-{i}")
    documents = [document("Text one. Text two.", id_="a"), document("Text one.", id_="b")]
    assert [n.node_id for n in parser(documents)] == ["a-0", "a-1", "b-0"]
    random = DocumentNodeParser(14, 0, id_scheme="uuid")
    assert {n.node_id for n in random(documents)}.isdisjoint(n.node_id for n in random(documents))


# Sync and async


async def test_async_gives_the_same_and_the_loop_goes_on():
    """`acall` and `aget_nodes_from_documents` work in a thread."""
    sources = [document(MARKDOWN)]
    gate = Gate(len)
    parser = DocumentNodeParser(40, 5, length_function=gate, length="gate")
    assert await gate.run(parser.acall(sources)) == parser(sources)
    again = await parser.aget_nodes_from_documents(sources)
    assert again == parser.get_nodes_from_documents(sources)


# Inside the framework's own parsers


def test_as_levels_of_the_hierarchical_parser():
    """All levels have places in the root, and parents know their children."""
    parsers = {str(size): DocumentNodeParser(size, 0) for size in (120, 40)}
    hierarchy = HierarchicalNodeParser.from_defaults(
        node_parser_ids=["120", "40"], node_parser_map=parsers
    )
    text = "One is here. Two is there. 三在这里。 " * 9
    nodes = hierarchy.get_nodes_from_documents([document(text)])
    assert all(text[n.start_char_idx : n.end_char_idx] == n.text for n in nodes)
    assert len({n.node_id for n in nodes}) == len(nodes)
    leaves, roots = get_leaf_nodes(nodes), get_root_nodes(nodes)
    assert len(leaves) + len(roots) == len(nodes)
    assert {leaf.parent_node.node_id for leaf in leaves} == {root.node_id for root in roots}


def test_equal_parents_with_random_ids_have_children_of_different_ids():
    """Under a stock parser each parent comes in a call of its own: children still differ."""
    parsers = {
        "stock": SentenceSplitter(chunk_size=20, chunk_overlap=0),
        "ours": DocumentNodeParser(30, 0),
    }
    hierarchy = HierarchicalNodeParser.from_defaults(
        node_parser_ids=["stock", "ours"], node_parser_map=parsers
    )
    leaves = get_leaf_nodes(hierarchy.get_nodes_from_documents([document(CAT)]))
    assert len({n.node_id for n in leaves}) == len(leaves)
