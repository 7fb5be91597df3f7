"""MarkdownSectionNodeParser: CommonMark's headings, true places, a limit that holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core import VectorStoreIndex
from llama_index.core.node_parser import MarkdownNodeParser, MetadataAwareTextSplitter
from llama_index.core.schema import MetadataMode
from llama_index.core.vector_stores.utils import node_to_metadata_dict

from easyrag_core.chunking.markdown import MarkdownChunker
from llamaindex_easyrag import DocumentNodeParser, MarkdownSectionNodeParser
from llamaindex_easyrag._context import beside_text
from llamaindex_easyrag._convert import chunks_from_nodes, node_from_chunk
from tests.llamaindex_adapter._nodes import (
    check_links,
    check_places,
    covered,
    document,
    ids_of,
    is_one_cluster,
)
from tests.llamaindex_adapter._parts import Gate, WordEmbedding
from tests.strategies import nasty_texts

GUIDE = (
    "# Guide\n\nIntro.\n\n## Install\n\n"
    + "Run pip now. " * 12
    + "\n\n```python\n"
    + "".join(f"x{i} = {{{i}}}\n" for i in range(40))
    + "```\n\n| a | b |\n|---|---|\n"
    + "".join(f"| {i} | {{{i}}} |\n" for i in range(40))
    + "\n## 使用\n\n先建索引。然后提问。\n"
)


def embedded(node) -> str:
    return node.get_content(MetadataMode.EMBED)


def markdown_texts() -> st.SearchStrategy[str]:
    heading = st.builds(
        lambda level, title: f"\n{'#' * level} {title}\n\n",
        st.integers(1, 4),
        st.sampled_from(["Guide", "安装", "A {b}", "C > D"]),
    )
    block = st.sampled_from(
        ["```py\nx = 1\ny = 2\n```\n", "| a | b |\n|---|---|\n| 1 | 2 |\n", "- one\n- two\n"]
    )
    part = st.one_of(heading, block, nasty_texts(max_fragments=6))
    return st.lists(part, max_size=12).map("".join)


def test_it_is_what_the_framework_asks_for():
    """It is a text splitter that knows of metadata, with a documented constructor."""
    assert issubclass(MarkdownSectionNodeParser, MetadataAwareTextSplitter)
    assert MarkdownSectionNodeParser.class_name() == "MarkdownSectionNodeParser"
    assert "max_heading_level" in MarkdownSectionNodeParser.__init__.__doc__


@given(text=markdown_texts(), size=st.integers(20, 120), words=st.booleans())
def test_promises_hold_on_any_text(text, size, words):
    """Spans are true, nothing is lost, the limit holds for what is embedded, links are complete."""

    def measure(shown: str) -> int:
        return len(shown.split()) + len(shown) // 7 if words else len(shown)

    parser = MarkdownSectionNodeParser(size, length_function=measure, length="mine")
    nodes = parser([document(text, metadata={"t": "x"})])
    bare = parser([document(text)])
    for shown in (nodes, bare):
        check_places(text, shown)
        check_links(shown)
        matter = "front_matter" in shown[0].metadata if shown else "---" in text or "+++" in text
        assert matter or covered(text, shown)
        for node in shown:
            assert measure(embedded(node)) <= size or is_one_cluster(node.text)
            assert "[" not in node.get_content(MetadataMode.LLM).removesuffix(node.text)


@given(text=markdown_texts(), size=st.integers(20, 200))
def test_nodes_are_the_chunks_of_the_core(text, size):
    """Ids, texts, places, titles and what is embedded are those of the core's chunks."""
    chunks = MarkdownChunker(size).chunk(text, "doc")
    nodes = MarkdownSectionNodeParser(size)([document(text)])
    for node, chunk in zip(nodes, chunks, strict=True):
        assert (node.node_id, node.text) == (chunk.id, chunk.text)
        assert (node.start_char_idx, node.end_char_idx) == (chunk.start, chunk.end)
        assert tuple(node.metadata.get("heading_path", ())) == chunk.heading_path
        before, after = beside_text(chunk.text, chunk.embedding_text)
        # Where nothing stands before the text, there is no place for a fence's end.
        whole = chunk.text if not before.strip() else f"{before}{chunk.text}{after}".strip()
        assert embedded(node) == whole
        assert node.get_content(MetadataMode.LLM) == chunk.text


def test_titles_are_embedded_and_not_shown():
    """EMBED mode begins with the path, the LLM and the reader have the plain slice."""
    nodes = MarkdownSectionNodeParser(120)([document(GUIDE)])
    inside = next(node for node in nodes if node.text.startswith("Run pip"))
    assert embedded(inside) == f"[Guide > Install]\n\n{inside.text}"
    assert inside.get_content(MetadataMode.LLM) == inside.text
    assert inside.metadata["heading_path"] == ["Guide", "Install"]


def test_cut_fences_and_tables_are_embedded_with_their_frame():
    """SPEC 3: the fence of cut code, closed again, and a cut table's header; braces too."""
    nodes = MarkdownSectionNodeParser(120)([document(GUIDE)])
    code = [node for node in nodes if node.text.startswith("x2")]
    assert embedded(code[0]) == f"[Guide > Install]\n\n```python\n{code[0].text}\n```"
    rows = [embedded(node) for node in nodes if node.text.startswith("| 3")]
    assert all("| a | b |\n|---|---|\n| 3" in text and "{3" in text for text in rows)


def test_beside_the_callers_metadata():
    """The titles are one more entry of what is embedded, in the source's own templates."""
    source = document(GUIDE, metadata={"title": "T"}, excluded_llm_metadata_keys=["title"])
    node = MarkdownSectionNodeParser(120)([source])[1]
    assert embedded(node) == f"title: T\ncontext: [Guide > Install]\n\n{node.text}"
    assert node.get_content(MetadataMode.LLM) == node.text
    shown = node.model_copy(update={"excluded_llm_metadata_keys": ["title"]})
    assert "context: [Guide > Install]" in shown.get_content(MetadataMode.LLM)


def test_an_extractors_template_keeps_the_titles():
    """The framework's extractors set another text template: the context outlives it."""
    node = MarkdownSectionNodeParser(120)([document(GUIDE)])[1]
    node.text_template = "[Excerpt]\n{metadata_str}\n-----\n{content}\n-----\n"
    assert "[Guide > Install]" in embedded(node)


def test_without_metadata():
    """`include_metadata=False`: bare nodes, nothing reserved, nothing embedded but the text."""
    nodes = MarkdownSectionNodeParser(120, include_metadata=False)([document(GUIDE)])
    assert all(node.metadata == {} and embedded(node) == node.text for node in nodes)
    assert covered(GUIDE, nodes)


def test_titles_in_the_metadata_alone():
    """`heading_path_in="metadata"` embeds no titles; a separator makes the path one text."""
    parser = MarkdownSectionNodeParser(
        120, heading_path_in="metadata", heading_path_separator=" > "
    )
    nodes = parser([document(GUIDE)])
    assert "Guide > Install" in {node.metadata.get("heading_path") for node in nodes}
    assert not any("[Guide" in embedded(node) for node in nodes)
    for node in nodes:  # what a store of flat metadata asks for
        node_to_metadata_dict(node, flat_metadata=True)


CASES = [
    pytest.param("# A\n~~~\n# not a header\n~~~\ntext", [["A"]], id="LI-20"),
    pytest.param(
        "# A\n````md\n```\n# x\n```\n````\n# B\nb", [["A"], ["B"]], id="LI-21-longer-fence"
    ),
    pytest.param("---\ntitle: x\n# comment\n---\n# A\nt", [["A"]], id="LI-23-front-matter"),
    pytest.param(
        "Title\n=====\n\ntext\n\nSub\n---\nmore", [["Title"], ["Title", "Sub"]], id="LI-25-setext"
    ),
    pytest.param("# A\r\ntext\r\n## B\r\nx", [["A"], ["A", "B"]], id="LI-27-crlf"),
    pytest.param(
        "# A\n\na\n\n### C\n\nc\n\n## B\n\nb", [["A"], ["A", "C"], ["A", "B"]], id="LI-29"
    ),
    pytest.param("# 一\n\n甲。\n\n## 二/三\n\n乙。", [["一"], ["一", "二/三"]], id="LI-chinese"),
]


@pytest.mark.parametrize(("text", "paths"), CASES)
def test_sections_are_those_of_commonmark(text, paths):
    """The heading paths of the nodes, without packing small sections together."""
    nodes = MarkdownSectionNodeParser(merge_small=False)([document(text)])
    assert [node.metadata["heading_path"] for node in nodes] == paths
    check_places(text, nodes)


@pytest.mark.parametrize("text", [case.values[0] for case in CASES[:5]], ids=range(20, 25))
def test_divergence_the_stock_parser_has_other_sections(text):
    """Named divergence (LI-20 to LI-27): another number of nodes, or a path with line ends."""
    theirs = MarkdownNodeParser()([document(text)])
    ours = MarkdownSectionNodeParser(merge_small=False)([document(text)])
    path = theirs[-1].metadata["header_path"]
    assert len(theirs) != len(ours) or "\r" in path


def test_front_matter_is_metadata():
    """LI-23: it is in the metadata, where no model reads it, and in no node's text."""
    text = "---\ntitle: x\n# comment\n---\n# A\nt"
    (node,) = MarkdownSectionNodeParser()([document(text)])
    assert node.metadata["front_matter"] == "title: x\n# comment"
    assert (node.text, embedded(node)) == ("# A\nt", "# A\nt")


def test_sections_have_places_and_neighbours():
    """LI-2, LI-4: root offsets, NEXT and PREVIOUS with right hashes, documents apart."""
    text = "# A\n\nalpha one.\n\n# B\n\nbeta one.\n"
    nodes = MarkdownSectionNodeParser()([document(text), document(text, id_="other")])
    assert len(nodes) == 4
    check_links(nodes)
    check_places(text, nodes)


def test_a_long_section_keeps_the_limit():
    """LI-30: every node fits, its path is embedded, table rows stay whole."""
    rows = "".join(f"| row {i} | {'cell ' * 6}|\n" for i in range(600))
    text = f"# Big\n\n## Table\n\n| a | b |\n|---|---|\n{rows}"
    parser = MarkdownSectionNodeParser(200, length="tiktoken:cl100k_base")
    nodes = parser([document(text)])
    measure = parser._measure()
    assert max(measure(embedded(node)) for node in nodes) <= 200
    assert all(embedded(node).startswith(("[Big > Table]", "# Big")) for node in nodes)
    assert all(line.endswith("|") for n in nodes for line in n.text.splitlines() if "row" in line)


def test_divergence_the_stock_parser_has_no_limit():
    """Named divergence (LI-30): a section of any size is one node."""
    (node,) = MarkdownNodeParser()([document("# A\n\n" + "word " * 50_000)])
    assert len(node.text) > 200_000


def test_after_the_stock_parser_and_before_another():
    """Chains: root offsets all the way, titles embedded by whoever cuts last."""
    root = document(GUIDE)
    first = MarkdownSectionNodeParser(400)([root])
    nodes = DocumentNodeParser(100, 0)(first)
    check_places(GUIDE, nodes)
    check_links(nodes)
    inner = [node for node in nodes if node.metadata["heading_path"] == ["Guide", "Install"]]
    assert all(len(embedded(node)) <= 100 for node in nodes)
    assert any(embedded(node).startswith("[Guide > Install]\n\n") for node in inner)
    after = MarkdownSectionNodeParser(100)(MarkdownNodeParser()([root]))
    check_places(GUIDE, after, lines=False)  # the stock parser does not tell them
    check_links(after)


def test_a_chain_of_two_of_ours_joins_the_titles():
    """Titles above a node stay above its pieces, once."""
    first = MarkdownSectionNodeParser(300, merge_small=False)([document(GUIDE)])
    nodes = MarkdownSectionNodeParser(110)(first)
    paths = {tuple(node.metadata["heading_path"]) for node in nodes}
    assert paths == {("Guide",), ("Guide", "Install"), ("Guide", "使用")}
    assert all(len(embedded(node)) <= 110 for node in nodes)


def test_ids_do_not_depend_on_the_position():
    """LI-18: what is inserted above changes no id below."""
    parser = MarkdownSectionNodeParser(120)
    nodes = parser([document(GUIDE)])
    shifted = parser([document(f"x\n\n{GUIDE}")])
    assert ids_of(shifted)[-len(nodes) :] == ids_of(nodes)


def test_metadata_longer_than_the_chunk_is_refused():
    """LI-6: the message says both lengths, in the words that other code looks for."""
    source = document(GUIDE, metadata={"note": "word " * 60})
    with pytest.raises(ValueError, match=r"Metadata length \(\d+\).*chunk size \(120\)"):
        MarkdownSectionNodeParser(120)([source])
    capped = MarkdownSectionNodeParser(120, metadata_overflow="cap")([source])
    assert covered(GUIDE, capped)


@pytest.mark.parametrize("bad", [-1, None, 1.5])
@pytest.mark.parametrize("metadata", [{}, {"k": "v"}], ids=["bare", "metadata"])
def test_a_length_that_is_none_is_refused(bad, metadata):
    """The error names the length function, with and without metadata around the text."""
    parser = MarkdownSectionNodeParser(120, length_function=lambda text: bad if "#" in text else 0)
    with pytest.raises(ValueError, match="length_function"):
        parser([document("# A\n\nb", metadata=metadata)])


async def test_async_gives_the_same_and_the_loop_goes_on():
    """LI-37b: `acall` works in a thread and gives the nodes of the sync call."""
    gate = Gate(len)
    parser = MarkdownSectionNodeParser(200, length_function=gate, length="gate")
    assert await gate.run(parser.acall([document(GUIDE)])) == parser([document(GUIDE)])


def test_nodes_seen_as_chunks_and_back():
    """Titles, places and what is embedded survive the way to chunks and back to nodes."""
    chunks = MarkdownChunker(120).chunk(GUIDE, "doc")
    nodes = MarkdownSectionNodeParser(120)([document(GUIDE)])
    seen = chunks_from_nodes(nodes)
    for chunk, again in zip(chunks, seen, strict=True):
        assert again.embedding_text == chunk.embedding_text
        assert (again.id, again.text, again.heading_path) == (
            chunk.id,
            chunk.text,
            chunk.heading_path,
        )
        assert embedded(node_from_chunk(chunk)) == chunk.embedding_text


def test_retrieved_nodes_still_embed_their_titles():
    """What a vector store keeps of a node is enough to embed it again."""
    index = VectorStoreIndex.from_documents(
        [document(GUIDE)],
        transformations=[MarkdownSectionNodeParser(120)],
        embed_model=WordEmbedding(),
    )
    for one in index.as_retriever(similarity_top_k=9).retrieve("pip"):
        path = one.node.metadata.get("heading_path", [])
        assert not path or path[-1] in embedded(one.node)


def test_linear_in_the_number_of_sections():
    """LI-69: what is measured grows with the text, not with its square."""
    seen = []
    for sections in (40, 160):
        measured: list[int] = []

        def measure(text: str, measured=measured) -> int:
            measured.append(len(text))
            return len(text)

        text = "".join(f"# T {i}\n\nSome words. 一些话。\n\n" for i in range(sections))
        MarkdownSectionNodeParser(200, length_function=measure)([document(text)])
        seen.append(sum(measured) / len(text))
    assert seen[1] < 1.5 * seen[0]
