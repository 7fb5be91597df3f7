"""The nodes of DocumentNodeParser: their class, their metadata, and the room it takes."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.node_parser import MarkdownNodeParser, SentenceSplitter
from llama_index.core.schema import (
    Document,
    ImageDocument,
    ImageNode,
    IndexNode,
    MediaResource,
    MetadataMode,
    Node,
    TextNode,
)

from easyrag_core import DocumentChunker
from easyrag_core.text import is_grapheme_boundary
from llamaindex_easyrag import DocumentNodeParser
from llamaindex_easyrag._convert import chunks_from_nodes, node_from_chunk
from tests.strategies import nasty_texts

CAT = "the cat sat. " * 200
MARKDOWN = "# A\n\nalpha one.\n\n# B\n\nbeta one. beta two.\n\n# C\n\n甲一。甲二。\n"


def document(text: str, **fields) -> Document:
    return Document(text=text, **{"id_": "doc", **fields})


def test_image_documents_stay_images():
    """ImageDocument, a node with an image, and ImageNode give image nodes with the same image."""
    picture = ImageDocument(text="One is. Two is.", image="aGVsbG8=", id_="i")
    node = ImageNode(text="One is. Two is.", image_url="http://x.test/a.png", image_mimetype="a/b")
    general = Node(
        text_resource=MediaResource(text="One is. Two is."),
        image_resource=MediaResource(path="a.png"),
    )
    for source, field, value in [
        (picture, "image", picture.image),
        (node, "image_url", "http://x.test/a.png"),
        (node, "image_mimetype", "a/b"),
        (general, "image_path", "a.png"),
    ]:
        nodes = DocumentNodeParser(8, 0)([source])
        assert [n.text for n in nodes] == ["One is.", "Two is."]
        assert all(type(n) is ImageNode and getattr(n, field) == value for n in nodes)


def test_index_nodes_stay_index_nodes():
    """The index id and the object behind it go to every piece."""
    target = TextNode(text="target")
    nodes = DocumentNodeParser(8, 0)([IndexNode(text="One is. Two is.", index_id="x", obj=target)])
    assert [(type(n), n.index_id, n.obj) for n in nodes] == [(IndexNode, "x", target)] * 2


def test_an_image_without_words_is_kept():
    """There is nothing to cut, and nothing is lost: one image node without text."""
    nodes = DocumentNodeParser()([ImageDocument(image="aGVsbG8=", id_="i")])
    assert [(type(n), n.text, n.image, n.ref_doc_id) for n in nodes] == [
        (ImageNode, "", "aGVsbG8=", "i")
    ]


def test_metadata_of_the_source_and_of_ours():
    """Source metadata is copied, ours beside it, and no model reads ours."""
    source = document(
        "One is.\nTwo is.",
        metadata={"title": "T", "path": "p"},
        excluded_embed_metadata_keys=["path"],
        excluded_llm_metadata_keys=["title"],
        metadata_template="{key}={value}",
        metadata_separator="|",
        text_template="[{metadata_str}] {content}",
        embedding=[1.0, 2.0],
    )
    nodes = DocumentNodeParser(24, 0, metadata_reserve="none")([source])
    assert nodes[0].metadata == {
        "title": "T",
        "path": "p",
        "chunk_index": 0,
        "start_line": 1,
        "end_line": 2,
    }
    assert nodes[0].get_content(MetadataMode.EMBED) == "[title=T] One is.\nTwo is."
    assert nodes[0].get_content(MetadataMode.LLM) == "[path=p] One is.\nTwo is."
    assert nodes[0].embedding is None
    assert nodes[0].source_node.metadata == {}
    nodes[0].metadata["title"] = "changed"
    assert source.metadata["title"] == "T"


def test_without_metadata():
    """`include_metadata=False` gives bare nodes, as in the framework."""
    nodes = DocumentNodeParser(include_metadata=False)([document("One.", metadata={"a": 1})])
    assert nodes[0].metadata == {}


def test_metadata_is_stored_once():
    """LI-68: a kilobyte of metadata does not come again in every relationship."""
    source = document(CAT, metadata={"m": "x" * 1000})
    node = DocumentNodeParser(1400, 0)([source])[1]
    stock = SentenceSplitter(chunk_size=500, chunk_overlap=0)([source])[1]
    size = len(node.to_json()) - len(node.text)
    assert size < 2500 < len(stock.to_json()) - len(stock.text)


def test_nodes_seen_as_chunks_are_the_chunks_that_made_them():
    """Id, document, text and place survive the way from chunk to node and back, twice."""
    chunks = DocumentChunker(45, 0).chunk(MARKDOWN, "doc")
    nodes = DocumentNodeParser(45, 0)([document(MARKDOWN)])
    assert chunks_from_nodes(nodes) == chunks
    assert chunks_from_nodes(node_from_chunk(chunk) for chunk in chunks) == chunks


def test_inputs_stay_as_they_are():
    """Neither documents nor nodes are changed by being parsed."""
    root = document(MARKDOWN, metadata={"k": ["v"]})
    sections = MarkdownNodeParser()([root])
    before = copy.deepcopy([root, *sections])
    DocumentNodeParser(50, 5)([root, *sections])
    assert [root, *sections] == before


# Room for metadata


@given(text=nasty_texts(), title=st.text(max_size=20), words=st.booleans())
def test_the_limit_holds_for_what_is_embedded(text, title, words):
    """Metadata and text together fit, measured by the caller's own function."""

    def measure(shown: str) -> int:
        return len(shown.split()) + len(shown) // 7 if words else len(shown)

    parser = DocumentNodeParser(40, 8, length_function=measure, length="mine")
    source = document(text, metadata={"title": title, "secret": "s" * 99})
    source.excluded_embed_metadata_keys = source.excluded_llm_metadata_keys = ["secret"]
    for node in parser([source]):
        whole = measure(node.get_content(MetadataMode.EMBED))
        places = range(1, len(node.text))
        one_cluster = not any(is_grapheme_boundary(node.text, place) for place in places)
        assert whole <= 40 or one_cluster


def test_the_limit_holds_where_lengths_do_not_add_up():
    """Measured is the whole of metadata and text, not the sum of its parts."""

    def squared(shown: str) -> int:
        return len(shown) ** 2 // 20

    parser = DocumentNodeParser(80, 0, length_function=squared)
    nodes = parser([document(CAT, metadata={"title": "T"})])
    assert max(squared(node.get_content(MetadataMode.EMBED)) for node in nodes) <= 80
    assert nodes[0].text == "the cat sat. the cat sat."


LONG = {"note": "word " * 60}


def test_metadata_as_long_as_the_chunk_is_refused():
    """LI-6: the message says both lengths, in the words that other code looks for."""
    parser = DocumentNodeParser(20, 0, length="tiktoken:cl100k_base")
    with pytest.raises(ValueError, match=r"Metadata length \(\d+\).*chunk size \(20\)"):
        parser([document("One is. Two is.", metadata=LONG)])
    with pytest.raises(ValueError, match="Metadata length"):
        parser.split_text_metadata_aware("One is.", LONG["note"])


@pytest.mark.parametrize(
    ("settings", "excluded"),
    [
        pytest.param({"include_metadata": False}, [], id="LI-6-without-metadata"),
        pytest.param({"metadata_reserve": "none"}, [], id="reserve-none"),
        pytest.param({}, ["note"], id="LI-6-excluded-keys"),
    ],
)
def test_what_is_not_shown_takes_no_room(settings, excluded):
    """LI-6: nothing is reserved for metadata that no node carries or no model reads."""
    source = document(CAT, metadata=LONG)
    source.excluded_embed_metadata_keys = source.excluded_llm_metadata_keys = excluded
    nodes = DocumentNodeParser(50, 0, **settings)([source])
    assert [n.text for n in nodes] == DocumentNodeParser(50, 0).split_text(CAT)


def test_divergence_the_stock_splitter_reserves_for_nothing():
    """Named divergence (LI-6): without metadata SentenceSplitter makes room for it all the same."""
    bare = SentenceSplitter(chunk_size=100, chunk_overlap=0, include_metadata=False)
    with_metadata = bare([document(CAT, metadata={"note": "word " * 45})])
    assert len(with_metadata) > len(bare([document(CAT)]))


def test_room_for_embedding_alone():
    """`metadata_reserve="embed"` does not count what only the LLM reads."""
    source = document(CAT, metadata={"note": "x" * 30}, excluded_embed_metadata_keys=["note"])
    narrow, wide = (
        DocumentNodeParser(60, 0, metadata_reserve=reserve)([source])
        for reserve in ("longest", "embed")
    )
    assert len(narrow) > len(wide)
    assert all(len(n.get_content(MetadataMode.EMBED)) <= 60 for n in wide)
    assert all(len(n.get_content(MetadataMode.LLM)) <= 60 for n in narrow)


def test_the_reserve_can_be_capped(caplog):
    """LI-6: with `"cap"` half of the size is left for the text, and a warning says so."""
    parser = DocumentNodeParser(40, 8, metadata_overflow="cap")
    nodes = parser([document(CAT, metadata=LONG)])
    assert all(len(n.text) <= 20 for n in nodes)
    assert nodes[-1].end_char_idx == len(CAT.rstrip())
    assert "half of it is reserved" in caplog.text
