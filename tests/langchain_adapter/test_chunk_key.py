"""`chunk_key` and the text of a chunk: indexing again embeds what changed, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_easyrag import (
    BM25Retriever,
    ChunkDocstore,
    CodeTextSplitter,
    DocumentTextSplitter,
    HybridRetriever,
    MarkdownSectionTextSplitter,
    ParentChildTextSplitter,
    chunk_key,
)
from langchain_easyrag._convert import chunk_of_document, document_of_chunk
from tests.langchain_adapter.markdown_samples import GUIDE, markdown_texts, places
from tests.langchain_adapter.samples import WordEmbeddings, ids

PROSE = "".join(f"Sentence number {n} has its own words. " for n in range(12))
CODE = "\n\n".join(f"def function_{n}(value):\n    return value + {n}" for n in range(20))
MARKDOWN = "Read this first.\n\n# Guide\n\n" + "\n\n".join(
    f"## Part {n}\n\nThe part number {n} has text of its own. 第{n}部分有自己的文字。"
    for n in range(12)
)

SPLITTERS = pytest.mark.parametrize(
    ("splitter", "text"),
    [
        pytest.param(DocumentTextSplitter(40, 0), PROSE, id="prose"),
        pytest.param(MarkdownSectionTextSplitter(90), MARKDOWN, id="markdown"),
        pytest.param(
            MarkdownSectionTextSplitter(90, prefix_headings=False), MARKDOWN, id="markdown-plain"
        ),
        pytest.param(CodeTextSplitter(150, 0), CODE, id="code"),
        pytest.param(ParentChildTextSplitter(60, 0, parent_chunk_size=120), MARKDOWN, id="family"),
    ],
)
WITH_AND_WITHOUT_ID = pytest.mark.parametrize("id_", ["doc", None], ids=["id", "no-id"])


def _indexed(documents, records, store, **settings):
    result = index(
        documents,
        records,
        store,
        cleanup="scoped_full",
        source_id_key="source",
        key_encoder=chunk_key,
        **settings,
    )
    return {name: count for name, count in result.items() if count}


@SPLITTERS
@WITH_AND_WITHOUT_ID
def test_i1_only_what_changed_is_embedded_again(splitter, text, id_):
    """I1, I3: a real `index()` run; two characters above, and all chunks below stay."""
    model = WordEmbeddings()
    store, records = InMemoryVectorStore(model), InMemoryRecordManager("test")
    records.create_schema()

    def split(content):
        return splitter.split_documents([Document(content, id=id_, metadata={"source": "a"})])

    first = split(text)
    assert len(first) > 9
    assert _indexed(first, records, store, batch_size=4) == {"num_added": len(first)}
    assert _indexed(first, records, store, batch_size=4) == {"num_skipped": len(first)}
    assert sum(map(len, model.batches)) == len(first)
    model.batches.clear()

    second = split("x " + text)
    counts = _indexed(second, records, store, batch_size=4)
    embedded = [content for batch in model.batches for content in batch]
    old = set(places(first, text))
    changed = [own for own in places(second, "x " + text) if own not in old]
    assert len(embedded) == counts["num_added"] == len(changed) < len(second) / 2
    assert all(own in content for own, content in zip(changed, embedded, strict=True))
    kept = {document["text"] for document in store.store.values()}
    assert len(store.store) == len(second)
    assert all(any(own in content for content in kept) for own in places(second, "x " + text))


def test_a_cut_tables_new_header_is_embedded():
    """A piece of a table is embedded with the header, so a new header is a new key."""
    splitter = MarkdownSectionTextSplitter(120)
    rows = "\n".join(f"| {number} | value {number} |" for number in range(20))

    def keys(header):
        text = f"# T\n\n| {header} | b |\n|---|---|\n{rows}"
        chunks = splitter.split_documents([Document(text, id="t")])
        assert len(chunks) > 2
        return [chunk_key(chunk) for chunk in chunks]

    assert keys("a") == keys("a")
    assert set(keys("a")).isdisjoint(keys("c"))


def test_what_the_index_kept_has_a_key_that_stays():
    """`index()` gives a document its key as id: the key of that one is the same."""
    splitter = MarkdownSectionTextSplitter(120)
    for chunk in splitter.split_documents([Document(GUIDE * 2, id="g")]):
        key = chunk_key(chunk)
        assert chunk_key(chunk.model_copy(update={"id": key})) == key


def test_equal_chunks_have_keys_of_their_own():
    """Twins of one document are told apart, with an id and without."""
    text = "# A\n\nsame\n\n# A\n\nsame\n\n# A\n\nsame"
    splitter = MarkdownSectionTextSplitter(14, merge_small=False)
    for id_ in ("doc", None):
        chunks = splitter.split_documents([Document(text, id=id_, metadata={"source": "a"})])
        assert len(chunks) == len({chunk_key(chunk) for chunk in chunks}) == 3


def test_a_changed_chunk_has_another_key():
    """Context that someone put in front of a chunk is to be embedded."""
    (*_, chunk) = MarkdownSectionTextSplitter(120).split_documents([Document(GUIDE, id="g")])
    for edited in ("Context.\n\n" + chunk.page_content, chunk.page_content + "!", "other"):
        copy = chunk.model_copy(update={"page_content": edited})
        assert chunk_key(copy) != chunk_key(chunk)


@given(markdown_texts(), st.integers(20, 100), st.sampled_from(["md", "code", "family"]))
def test_the_own_text_of_a_chunk_is_found_again(text, size, kind):
    """`page_content` is what is indexed; the id proves which part of it is the source's."""
    splitter = {
        "md": MarkdownSectionTextSplitter(size),
        "code": CodeTextSplitter(3 * size, language="python"),
        "family": ParentChildTextSplitter(
            size, 0, parent_splitter=MarkdownSectionTextSplitter(2 * size)
        ),
    }[kind]
    chunks = splitter.split_documents([Document(text, id="d")])
    for document, own in zip(chunks, places(chunks, text), strict=True):
        chunk = chunk_of_document(document, document.id)
        assert (chunk.text, chunk.embedding_text) == (own, document.page_content)
        assert chunk.text == text[chunk.start : chunk.end]
        assert list(chunk.heading_path) == document.metadata.get("heading_path", [])
        assert document_of_chunk(chunk) == document


def test_retrievers_index_the_titles_and_keep_the_text_apart():
    """A title that stands only above a chunk finds it; other rooms read the chunk's own text."""
    text = "# Guide\n\n## Installation\n\n" + "Run it now, please. " * 12
    chunks = MarkdownSectionTextSplitter(90).split_documents([Document(text, id="d")])
    last = chunks[-1]
    own = text[last.metadata["start_index"] : last.metadata["end_index"]]
    assert "Installation" not in own
    hybrid = HybridRetriever.from_documents(chunks, WordEmbeddings(), k=20)
    for retriever in (BM25Retriever.from_documents(chunks, k=20), hybrid):
        found = {document.id: document for document in retriever.invoke("Installation")}
        assert found[last.id].page_content == last.page_content
    (kept,) = hybrid.index.get_many([last.id])
    assert (kept.text, kept.embedding_text) == (own, last.page_content)
    store = ChunkDocstore()
    store.mset([("key", last)])
    assert store.mget(["key"]) == [last]


def test_ids_are_the_same_in_any_order_of_documents():
    """Chunks of a document without id do not depend on what else is split with it."""
    sources = [Document(GUIDE, metadata={"source": name}) for name in ("a.md", "b.md")]
    splitter = MarkdownSectionTextSplitter(100)
    both = ids(splitter.split_documents(sources))
    assert both == ids(splitter.split_documents(sources[:1])) + ids(
        splitter.split_documents(sources[1:])
    )
    assert len(set(both)) == len(both)
