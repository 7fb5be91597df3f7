"""`ParentChildTextSplitter`: two sizes, linked, both with true places."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore

from easyrag_core import (
    DocumentChunker,
    EasyRAGError,
    HybridIndex,
    InMemoryChunkStore,
    SQLiteChunkStore,
)
from easyrag_core.chunking.parent_child import ParentChildChunker
from langchain_easyrag import (
    ChunkDocstore,
    DocumentTextSplitter,
    MarkdownSectionTextSplitter,
    ParentChildTextSplitter,
)
from tests.langchain_adapter.markdown_samples import GUIDE, places
from tests.langchain_adapter.samples import ids
from tests.strategies import nasty_texts, paragraphs

TEXT = "One is here. Two is there. Three is gone. Four is back.\n\n" * 4


def small(**settings):
    return ParentChildTextSplitter(30, 0, parent_chunk_size=120, **settings)


@given(nasty_texts(), st.integers(min_value=10, max_value=60))
def test_parents_hold_their_children(text, size):
    """True places for both; a child lies within its parent, which lists it."""
    splitter = ParentChildTextSplitter(size, 0, parent_chunk_size=3 * size)
    chunks = splitter.create_documents([text])
    assert [chunk.page_content for chunk in chunks] == places(chunks, text)
    parents = {chunk.id: chunk.metadata for chunk in chunks if "child_ids" in chunk.metadata}
    for chunk in chunks:
        parent = parents.get(chunk.metadata.get("parent_id"))
        assert (parent is None) == ("parent_id" not in chunk.metadata)
        if parent is not None:
            assert chunk.id in parent["child_ids"]
            assert parent["start_index"] <= chunk.metadata["start_index"]
            assert chunk.metadata["end_index"] <= parent["end_index"]
    assert len(set(ids(chunks))) == len(chunks)


@given(paragraphs())
def test_the_chunks_are_those_of_the_core(text):
    """DESIGN 1.10: ids, links and places are the core's."""
    core = ParentChildChunker(DocumentChunker(120, 0), DocumentChunker(30, 0)).chunk(text, "d")
    ours = small().split_documents([Document(text, id="d")])
    assert [(c.id, c.text, c.start, c.end, c.parent_id) for c in core] == [
        (
            d.id,
            d.page_content,
            d.metadata["start_index"],
            d.metadata["end_index"],
            d.metadata.get("parent_id"),
        )
        for d in ours
    ]
    assert small().split_text(text) == [d.page_content for d in ours]


@pytest.mark.parametrize(
    "make",
    [InMemoryChunkStore, ChunkDocstore, HybridIndex, InMemoryStore, "sqlite"],
    ids=str,
)
def test_parents_go_into_any_store(make, tmp_path):
    """With a store, only children come back; the store holds each parent by its id."""
    store = SQLiteChunkStore(tmp_path / "parents.sqlite") if make == "sqlite" else make()
    source = Document(TEXT, id="d", metadata={"source": "a.md"})
    children = small(store=store).split_documents([source])
    everything = small().split_documents([source])
    parents = [chunk for chunk in everything if "child_ids" in chunk.metadata]
    assert [child for child in everything if child not in parents] == children
    names = [parent.id for parent in parents]
    if isinstance(store, ChunkDocstore | InMemoryStore):
        assert store.mget(names) == parents
    else:
        assert [chunk.text for chunk in store.get_many(names)] == [p.page_content for p in parents]


def test_split_text_stores_nothing():
    """It has no metadata to lead back to a parent, and gives what is embedded."""
    store = InMemoryStore()
    texts = small(store=store).split_text(TEXT)
    assert list(store.yield_keys()) == []
    assert texts == [child.page_content for child in small(store=store).create_documents([TEXT])]


def test_other_splitters_make_parents_and_children():
    """Ours by their chunkers, or chunkers of the core; headings reach parents and children."""
    splitter = ParentChildTextSplitter(
        parent_splitter=MarkdownSectionTextSplitter(150, merge_small=False),
        child_splitter=DocumentChunker(40, 0),
    )
    chunks = splitter.create_documents([GUIDE])
    under = [c for c in chunks if c.metadata.get("heading_path") == ["Guide", "Install"]]
    assert any("child_ids" in chunk.metadata for chunk in under)
    assert any("parent_id" in chunk.metadata for chunk in under)
    assert splitter._chunk_size == 40


def test_prefix_headings_says_what_a_page_content_is():
    """With it, what is embedded; without, a slice of the source."""
    text = "# Guide\n\n## Install\n\n" + "Run the installer now. " * 12
    settings = {
        "parent_splitter": MarkdownSectionTextSplitter(150),
        "child_splitter": MarkdownSectionTextSplitter(70),
    }
    prefixed = ParentChildTextSplitter(**settings).create_documents([text])
    assert any(chunk.page_content.startswith("[Guide > Install]") for chunk in prefixed)
    plain = ParentChildTextSplitter(prefix_headings=False, **settings).create_documents([text])
    assert [chunk.page_content for chunk in plain] == places(plain, text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"chunk_size": 0},
        {"chunk_size": 100, "parent_chunk_size": 50},
        {"parent_splitter": "markdown"},
        {"child_splitter": DocumentTextSplitter(3000), "parent_chunk_size": 2000},
        {"store": {}},
    ],
    ids=str,
)
def test_wrong_settings_are_refused_at_construction(wrong):
    """Typed, and a ValueError as in LangChain."""
    with pytest.raises(EasyRAGError) as refused:
        ParentChildTextSplitter(**wrong)
    assert isinstance(refused.value, ValueError)
