"""`MarkdownSectionTextSplitter`: true places under a heading path, and DESIGN 1."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_text_splitters import MarkdownHeaderTextSplitter

from easyrag_core import EasyRAGError
from easyrag_core.chunking.markdown import MarkdownChunker
from easyrag_core.text import is_grapheme_boundary
from langchain_easyrag import MarkdownSectionTextSplitter
from tests.langchain_adapter.markdown_samples import GUIDE, markdown_texts, places, sized, words
from tests.langchain_adapter.samples import ids, snapshot

SIZES = st.integers(min_value=12, max_value=120)


@given(markdown_texts(), SIZES, st.sampled_from([len, sized]), st.booleans())
def test_promises_hold_for_any_markdown(text, size, measure, prefix):
    """DESIGN 1.1 to 1.3: true spans, nothing lost but front matter, size kept on the whole."""
    splitter = MarkdownSectionTextSplitter(size, prefix_headings=prefix, length_function=measure)
    chunks = splitter.create_documents([text])
    covered, last = set(), 0
    for number, (chunk, own) in enumerate(zip(chunks, places(chunks, text), strict=True)):
        place = chunk.metadata
        assert own.strip()
        assert own in chunk.page_content
        assert prefix or own == chunk.page_content
        assert place["chunk_index"] == number
        assert place["start_index"] >= last
        assert place["start_line"] <= place["end_line"]
        last = place["start_index"]
        covered.update(range(place["start_index"], place["end_index"]))
        assert measure(chunk.page_content) <= size or _one_cluster(own)
    lost = {at for at in set(range(len(text))) - covered if not text[at].isspace()}
    # Front matter stands before the first chunk, and in its metadata.
    matter = chunks[0].metadata.get("front_matter") if chunks else text.strip("-+ \n\r")
    assert not lost or (matter is not None and max(lost) < (min(covered) if covered else len(text)))


def _one_cluster(text):
    stripped = text.strip()
    return not any(is_grapheme_boundary(stripped, at) for at in range(1, len(stripped)))


@given(markdown_texts(), SIZES, st.booleans())
def test_the_chunks_are_those_of_the_core(text, size, prefix):
    """DESIGN 1.10: ids, places, paths and texts are the core's."""
    where = "embedding_text" if prefix else "metadata"
    core = MarkdownChunker(size, heading_path_in=where).chunk(text, "doc")
    splitter = MarkdownSectionTextSplitter(size, prefix_headings=prefix)
    ours = splitter.split_documents([Document(text, id="doc")])
    assert [
        (c.id, c.index, c.embedding_text if prefix else c.text, c.start, c.end, c.start_line)
        for c in core
    ] == [
        (
            d.id,
            d.metadata["chunk_index"],
            d.page_content,
            d.metadata["start_index"],
            d.metadata["end_index"],
            d.metadata["start_line"],
        )
        for d in ours
    ]
    assert [list(c.heading_path) for c in core] == [
        d.metadata.get("heading_path", []) for d in ours
    ]
    assert splitter.split_text(text) == [d.page_content for d in ours]


@given(st.lists(markdown_texts(max_fragments=8), max_size=3))
def test_inputs_stay_as_they_are_and_calls_do_not_meet(texts):
    """DESIGN 1.6, M20: documents are deep-equal afterwards, results of two calls are apart."""
    documents = [Document(text, metadata={"list": [1, {"a": 2}]}) for text in texts]
    before = snapshot(documents)
    splitter = MarkdownSectionTextSplitter(40, header_keys=True)
    first = splitter.split_documents(documents)
    kept = snapshot(first)
    for chunk in splitter.split_documents(documents):
        chunk.metadata.clear()
    assert snapshot(documents) == before
    assert snapshot(first) == kept


def test_the_path_stands_above_what_does_not_say_it_itself():
    """`page_content` is what is embedded; the places are those of the text alone."""
    text = "# Guide\n\n## Install\n\n" + "Run the installer now. " * 6
    chunks = MarkdownSectionTextSplitter(100).create_documents([text])
    assert len(chunks) > 1
    for chunk, own in zip(chunks[1:], places(chunks, text)[1:], strict=True):
        assert chunk.page_content == f"[Guide > Install]\n\n{own}"
        assert chunk.metadata["heading_path"] == ["Guide", "Install"]
    plain = MarkdownSectionTextSplitter(100, prefix_headings=False).create_documents([text])
    assert [chunk.page_content for chunk in plain] == places(plain, text)
    assert plain[-1].metadata["heading_path"] == ["Guide", "Install"]


def test_metadata_are_plain_json_and_hold_the_sources():
    """Places, path, front matter and the source's own values; a shallow copy."""
    nested = [1]
    source = Document(GUIDE, id="g", metadata={"source": "g.md", "nested": nested})
    chunks = MarkdownSectionTextSplitter(100).split_documents([source])
    for chunk in chunks:
        assert chunk.metadata["nested"] is nested
        assert chunk.metadata["front_matter"] == "title: Guide"
        assert chunk.metadata["document_id"] == "g"
        assert json.loads(json.dumps(chunk.metadata)) == chunk.metadata
    assert len(set(ids(chunks))) == len(chunks)


def test_front_matter_of_the_callers_own_stays():
    """What the loader put under the same key counts."""
    source = Document(GUIDE, metadata={"front_matter": {"title": "parsed"}})
    (chunk, *_) = MarkdownSectionTextSplitter().split_documents([source])
    assert chunk.metadata["front_matter"] == {"title": "parsed"}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (False, [{}, {}, {}]),
        (
            True,
            [
                {"Header 2": "A"},
                {"Header 2": "A", "Header 4": "B"},
                {"Header 1": "T"},
            ],
        ),
        ([("#", "title"), ("####", "part")], [{}, {"part": "B"}, {"title": "T"}]),
    ],
    ids=["none", "all", "own"],
)
def test_header_keys_are_those_of_langchain(keys, expected):
    """For users of MarkdownHeaderTextSplitter: a title under the key of its level."""
    text = "## A\n\none is here\n\n#### B\n\ntwo is there\n\n# T\n\nthree is gone"
    splitter = MarkdownSectionTextSplitter(40, merge_small=False, header_keys=keys)
    chunks = splitter.create_documents([text])
    titles = [
        {k: v for k, v in c.metadata.items() if k.startswith("Header") or k in ("title", "part")}
        for c in chunks
    ]
    assert titles == expected


def test_header_keys_are_what_their_splitter_gives():
    """On a plain document both say the same, section by section."""
    text = "# A\n\nintro\n\n## B\n\nbody\n\n### C\n\ndeep\n\n## D\n\nlast"
    levels = [("#" * level, f"Header {level}") for level in range(1, 7)]
    theirs = MarkdownHeaderTextSplitter(levels).split_text(text)
    ours = MarkdownSectionTextSplitter(merge_small=False, header_keys=levels)
    found = [
        {key: value for key, value in chunk.metadata.items() if key.startswith("Header")}
        for chunk in ours.create_documents([text])
    ]
    assert found == [chunk.metadata for chunk in theirs]


def test_a_deeper_heading_than_the_deepest_is_text():
    """`max_heading_level` counts for the keys as well."""
    text = "# A\n\none\n\n## B\n\ntwo"
    splitter = MarkdownSectionTextSplitter(max_heading_level=1, header_keys=True)
    (chunk,) = splitter.create_documents([text])
    assert chunk.metadata["heading_path"] == ["A"]
    assert "Header 2" not in chunk.metadata


@pytest.mark.parametrize(
    "wrong",
    [
        {"chunk_size": 0},
        {"chunk_size": 10, "chunk_overlap": 10},
        {"chunk_size": 10, "min_chunk_size": 11},
        {"max_heading_level": 7},
        {"horizontal_rule": "never"},
        {"header_keys": "#"},
        {"header_keys": [("#", 1)]},
        {"header_keys": [("h1", "Header 1")]},
        {"header_keys": [("#######", "Header 7")]},
        {"header_keys": 3},
    ],
    ids=str,
)
def test_wrong_settings_are_refused_at_construction(wrong):
    """Typed, and a ValueError as in LangChain."""
    with pytest.raises(EasyRAGError) as refused:
        MarkdownSectionTextSplitter(**wrong)
    assert isinstance(refused.value, ValueError)


def test_sizes_hold_in_words():
    """The limit counts the path, the table's header and the fence, in the caller's unit."""
    chunks = MarkdownSectionTextSplitter(24, length_function=words).create_documents([GUIDE])
    assert max(words(chunk.page_content) for chunk in chunks) <= 24
    assert len(chunks) > 2
