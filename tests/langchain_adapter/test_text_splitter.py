"""`DocumentTextSplitter`: what LangChain asks of a splitter, and DESIGN 1."""

from __future__ import annotations

import inspect
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_classic.retrievers import ParentDocumentRetriever
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import TextSplitter

from easyrag_core import DocumentChunker, EasyRAGError, SQLiteChunkStore
from easyrag_core.text import is_grapheme_boundary
from langchain_easyrag import ChunkDocstore, DocumentTextSplitter, chunk_key
from tests.langchain_adapter.samples import LoopGate, WordEmbeddings, ids, snapshot, ticking
from tests.strategies import nasty_texts, paragraphs

PLACE = {"document_id", "chunk_index", "start_index", "end_index", "start_line", "end_line"}
BOUNDARIES = ("character", "word", "sentence", "paragraph")


def words(text):
    """Counts words: a length function that is not additive."""
    return len(text.split())


def with_marks(text):
    """Counts words as a tokenizer does that adds a mark at each end."""
    return len(text.split()) + 2 if text else 0


sizes = st.integers(min_value=1, max_value=60).flatmap(
    lambda size: st.tuples(st.just(size), st.integers(0, size - 1))
)


# DESIGN 1


@given(
    nasty_texts(),
    sizes,
    st.sampled_from(BOUNDARIES),
    st.sampled_from([len, words, with_marks]),
    st.booleans(),
)
def test_promises_hold_for_any_text(text, size_and_overlap, boundary, measure, strip):
    """DESIGN 1.1 to 1.3: true spans, nothing lost, size kept, graphemes whole."""
    size, overlap = size_and_overlap
    splitter = DocumentTextSplitter(
        size, overlap, length_function=measure, boundary=boundary, strip_whitespace=strip
    )
    chunks = splitter.create_documents([text])
    covered = set()
    last = 0
    for number, chunk in enumerate(chunks):
        place = chunk.metadata
        start, end = place["start_index"], place["end_index"]
        assert text[start:end] == chunk.page_content
        assert chunk.page_content.strip()
        assert start >= last
        assert place["chunk_index"] == number
        assert is_grapheme_boundary(text, start)
        assert is_grapheme_boundary(text, end)
        assert measure(chunk.page_content) <= size or _one_cluster(chunk.page_content)
        last = start
        covered.update(range(start, end))
    assert all(text[at].isspace() for at in set(range(len(text))) - covered)


def _one_cluster(text):
    stripped = text.strip()
    return not any(is_grapheme_boundary(stripped, at) for at in range(1, len(stripped)))


@given(nasty_texts())
def test_lines_are_those_that_a_reader_counts(text):
    r"""Lines end at \n, \r\n or \r, and count from 1."""
    for chunk in DocumentTextSplitter(40).create_documents([text]):
        place = chunk.metadata
        assert place["start_line"] == _line(text, place["start_index"])
        assert place["end_line"] == _line(text, place["end_index"] - 1)


def _line(text, position):
    before = text[:position]
    if before.endswith("\r") and text[position] == "\n":
        before = before[:-1]
    return before.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1


@given(nasty_texts(), st.sampled_from(BOUNDARIES))
def test_the_chunks_are_those_of_the_core(text, boundary):
    """DESIGN 1.10: ids, texts and places are the core's, for text, query and settings alike."""
    core = DocumentChunker(50, 10, boundary=boundary).chunk(text, "doc")
    ours = DocumentTextSplitter(50, 10, boundary=boundary).split_documents(
        [Document(text, id="doc")]
    )
    assert [
        (c.id, c.document_id, c.index, c.text, c.start, c.end, c.start_line, c.end_line)
        for c in core
    ] == [
        (
            d.id,
            d.metadata["document_id"],
            d.metadata["chunk_index"],
            d.page_content,
            d.metadata["start_index"],
            d.metadata["end_index"],
            d.metadata["start_line"],
            d.metadata["end_line"],
        )
        for d in ours
    ]


@given(st.lists(nasty_texts(max_fragments=10), max_size=4))
def test_inputs_stay_as_they_are_and_calls_do_not_meet(texts):
    """DESIGN 1.6: documents are deep-equal afterwards; a second call leaves the first alone."""
    documents = [Document(text, metadata={"list": [1, {"a": 2}]}) for text in texts]
    before = snapshot(documents)
    splitter = DocumentTextSplitter(30)
    first = splitter.split_documents(documents)
    kept = snapshot(first)
    for chunk in splitter.split_documents(documents):
        chunk.metadata.clear()
    assert snapshot(documents) == before
    assert snapshot(first) == kept


@given(paragraphs())
def test_split_text_gives_the_same_chunks(text):
    """`split_text` and `create_documents` agree."""
    splitter = DocumentTextSplitter(40, 10)
    chunks = splitter.create_documents([text])
    assert splitter.split_text(text) == [chunk.page_content for chunk in chunks]


# Metadata and ids


def test_metadata_are_the_sources_and_the_place():
    """S16: each chunk has a stable id, the source's metadata, and its place as plain JSON."""
    source = Document("One. Two. Three.", id="doc-1", metadata={"source": "a.md", "page": 3})
    chunks = DocumentTextSplitter(6, 0).split_documents([source])
    assert [chunk.page_content for chunk in chunks] == ["One.", "Two.", "Three."]
    for chunk in chunks:
        assert set(chunk.metadata) == PLACE | {"source", "page"}
        assert chunk.metadata["document_id"] == "doc-1"
        assert json.loads(json.dumps(chunk.metadata)) == chunk.metadata
        assert len(chunk.id) >= 32
        assert set(chunk.id) <= set("0123456789abcdef")
    assert len(set(ids(chunks))) == 3


def test_chunks_share_no_metadata():
    """What is written into one chunk's metadata stands in no other's, nor in the source's."""
    source = Document("One. Two. Three. 四。", metadata={"source": "a"})
    chunks = DocumentTextSplitter(chunk_size=6, chunk_overlap=0).split_documents([source])
    before = [dict(chunk.metadata) for chunk in chunks[1:]]
    chunks[0].metadata.update(source="changed", start_index=-1, new=1)
    assert len(chunks) > 2
    assert [chunk.metadata for chunk in chunks[1:]] == before
    assert source.metadata == {"source": "a"}


def test_ids_do_not_depend_on_the_position():
    """I1: what stands above may change, the ids below stay."""
    splitter = DocumentTextSplitter(24, 0)
    body = "First sentence here. Second sentence it. "
    one = splitter.split_documents([Document(body, id="d")])
    two = splitter.split_documents([Document("New heading line!!! " + body, id="d")])
    assert len(one) == 2
    assert ids(two)[-2:] == ids(one)
    assert two[-1].metadata["start_index"] == one[-1].metadata["start_index"] + 20


def test_equal_documents_without_ids_stay_apart():
    """Content and source make the id; exact repeats are counted, so no chunk id comes twice."""
    text = "Same sentence. Same sentence."
    documents = [
        Document(text, metadata={"source": "a.md"}),
        Document(text, metadata={"source": "b.md"}),
        Document(text, metadata={"source": "a.md"}),
        Document(text),
    ]
    splitter = DocumentTextSplitter(15, 0)
    chunks = splitter.split_documents(documents)
    assert len(chunks) == len(set(ids(chunks))) == 8
    assert len({chunk.metadata["document_id"] for chunk in chunks}) == 4
    assert ids(splitter.split_documents(documents)) == ids(chunks)
    alone = splitter.split_documents([documents[1]])
    assert ids(alone) == ids(chunks)[2:4]


def test_without_id_and_source_the_document_id_is_the_cores():
    """A bare text has the id that the core gives it."""
    (chunk,) = DocumentTextSplitter().create_documents(["检索增强生成。"])
    (core,) = DocumentChunker().chunk("检索增强生成。")
    assert (chunk.id, chunk.metadata["document_id"]) == (core.id, core.document_id)


def test_chunk_key_is_the_id_until_the_text_is_changed():
    """An edited chunk gets another key, although its id is the old one."""
    text = "Twice the same. Twice the same. Once."
    chunks = DocumentTextSplitter(16, 0).split_documents([Document(text, id="d")])
    assert [chunk_key(chunk) for chunk in chunks] == ids(chunks)
    edited = chunks[1].model_copy(update={"page_content": "Context. " + chunks[1].page_content})
    assert chunk_key(edited) not in ids(chunks)
    assert chunk_key(edited) == chunk_key(edited.model_copy(deep=True))


def test_chunk_key_of_any_document():
    """Without our metadata it depends on content and on id or source, not on the place."""
    base = Document("text", metadata={"source": "a", "start_index": 1})
    moved = Document("text", metadata={"source": "a", "start_index": 2})
    other = Document("text", metadata={"source": "b", "start_index": 1})
    assert chunk_key(base) == chunk_key(moved) != chunk_key(other)
    assert chunk_key(Document("text", id="a")) != chunk_key(Document("texts", id="a"))


# LangChain's contract


def test_it_is_a_text_splitter_and_shows_its_settings():
    """S18: generic code reads these attributes."""
    splitter = DocumentTextSplitter(100, 10, length_function=words)
    assert isinstance(splitter, TextSplitter)
    assert (splitter._chunk_size, splitter._chunk_overlap) == (100, 10)
    assert splitter._length_function is words
    assert splitter._add_start_index is True
    assert splitter._strip_whitespace is True
    assert DocumentTextSplitter()._chunk_overlap == DocumentChunker().chunk_overlap


def test_constructor_words_of_text_splitter_are_known():
    """What the base class takes for sizes and measures, ours takes by the same name."""
    base = set(inspect.signature(TextSplitter.__init__).parameters) - {"keep_separator"}
    assert base <= set(inspect.signature(DocumentTextSplitter.__init__).parameters)


def test_from_tiktoken_encoder(monkeypatch):
    """The inherited builder measures with the encoder, and the limit holds in tokens."""
    tiktoken = pytest.importorskip("tiktoken")

    class Letters:
        def encode(self, text, **_):
            return list(text[::2])

    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: Letters())
    splitter = DocumentTextSplitter.from_tiktoken_encoder("any", chunk_size=5, chunk_overlap=0)
    assert isinstance(splitter, DocumentTextSplitter)
    chunks = splitter.split_text("aaaa bbbb cccc dddd eeee")
    assert max(len(chunk[::2]) for chunk in chunks) <= 5
    assert len(chunks) > 1


def test_from_huggingface_tokenizer(monkeypatch):
    """The other inherited builder works as well."""
    from langchain_text_splitters import base

    if not hasattr(base, "_import_pretrained_tokenizer_base"):
        pytest.skip("this version looks for the tokenizer's class elsewhere")

    class Tokenizer:
        def tokenize(self, text):
            return text.split()

    monkeypatch.setattr(base, "_import_pretrained_tokenizer_base", lambda: Tokenizer)
    splitter = DocumentTextSplitter.from_huggingface_tokenizer(
        Tokenizer(), chunk_size=2, chunk_overlap=0
    )
    assert splitter.split_text("a b c d e") == ["a b", "c d", "e"]


@pytest.mark.parametrize(
    ("texts", "metadatas", "numbers"),
    [(["a", "b"], [{}], "1.*2"), (["a"], [{}, {}], "2.*1"), (["a"], [], "0.*1")],
)
def test_metadata_of_another_length(texts, metadatas, numbers):
    """A ValueError names both lengths."""
    with pytest.raises(ValueError, match=numbers):
        DocumentTextSplitter().create_documents(texts, metadatas)


def test_one_string_for_a_list_of_texts():
    """A string would be split letter by letter: refused."""
    with pytest.raises(EasyRAGError, match="list of texts"):
        DocumentTextSplitter().create_documents("abc")


@pytest.mark.parametrize(
    "wrong",
    [
        {"chunk_size": 0},
        {"chunk_size": -5},
        {"chunk_size": True},
        {"chunk_size": 10.0},
        {"chunk_size": 10, "chunk_overlap": 10},
        {"chunk_size": 10, "chunk_overlap": -1},
        {"boundary": "page"},
    ],
    ids=str,
)
def test_wrong_settings_are_refused_at_construction(wrong):
    """Typed, a ValueError as in LangChain; S8: overlap has to be below the size."""
    with pytest.raises(EasyRAGError) as refused:
        DocumentTextSplitter(**wrong)
    assert isinstance(refused.value, ValueError)


async def test_async_twins_give_the_same():
    """Each method has a twin with the same result."""
    splitter = DocumentTextSplitter(20)
    texts = ["One is here. Two is there. Three is gone.", "一在这里。二在那里。三不见了。"]
    documents = splitter.create_documents(texts)
    assert await splitter.asplit_text(texts[0]) == splitter.split_text(texts[0])
    assert await splitter.acreate_documents(texts, [{}, {}]) == documents
    sources = [Document(text) for text in texts]
    assert await splitter.asplit_documents(sources) == splitter.split_documents(sources)
    assert await splitter.atransform_documents(sources) == splitter.transform_documents(sources)


async def test_the_event_loop_goes_on_while_splitting():
    """Splitting runs in a thread: a length function may wait for the loop."""
    gate = LoopGate()

    def slow_length(text):
        gate()
        return len(text)

    splitter = DocumentTextSplitter(20, length_function=slow_length)
    async with ticking() as ticks:
        await splitter.asplit_documents([Document("One is here. Two is there. Three is gone.")])
    assert gate.passed > 0
    assert ticks[0] > 0


@pytest.mark.parametrize("with_parents", [False, True])
def test_in_parent_document_retriever(with_parents, tmp_path):
    """S18: as child and as parent splitter, with our own store for the parents."""
    text = "Cats sleep all day. They purr. \n\nDogs bark at night. They run. \n\nFish swim."
    retriever = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(WordEmbeddings()),
        docstore=(
            ChunkDocstore(SQLiteChunkStore(tmp_path / "parents.sqlite"))
            if with_parents
            else InMemoryStore()
        ),
        child_splitter=DocumentTextSplitter(20, 0),
        parent_splitter=DocumentTextSplitter(40, 0) if with_parents else None,
        search_kwargs={"k": 1},
    )
    retriever.add_documents([Document(text, id="animals", metadata={"source": "a.md"})])
    (found,) = retriever.invoke("dogs bark at night")
    assert "Dogs bark" in found.page_content
    assert found.metadata["source"] == "a.md"
    if with_parents:
        start = found.metadata["start_index"]
        assert text[start : found.metadata["end_index"]] == found.page_content
        assert found.metadata["document_id"] == "animals"
    else:
        assert found.page_content == text
