"""What LangChain asks of any splitter, for each of ours."""

from __future__ import annotations

import inspect
from importlib.util import find_spec
from pathlib import Path

import pytest
from langchain_classic.retrievers import ParentDocumentRetriever
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import TextSplitter

from easyrag_core import EasyRAGError
from langchain_easyrag import (
    ChunkDocstore,
    CodeTextSplitter,
    DocumentTextSplitter,
    MarkdownSectionTextSplitter,
    ParentChildTextSplitter,
)
from tests.langchain_adapter.markdown_samples import GUIDE
from tests.langchain_adapter.samples import LoopGate, WordEmbeddings, ids, ticking

SPLITTERS = pytest.mark.parametrize(
    "splitter",
    [
        DocumentTextSplitter,
        MarkdownSectionTextSplitter,
        CodeTextSplitter,
        ParentChildTextSplitter,
    ],
)
PLACE = {"document_id", "chunk_index", "start_index", "end_index", "start_line", "end_line"}
ENCODING = "cl100k_base"


@SPLITTERS
def test_it_is_a_text_splitter_with_its_words(splitter):
    """A real subclass; sizes and measure go by the names of the base class."""
    made = splitter(50, 5, length_function=len, add_start_index=True)
    assert isinstance(made, TextSplitter)
    assert (made._chunk_size, made._chunk_overlap, made._length_function) == (50, 5, len)
    inexact = {"keep_separator", "strip_whitespace"}
    base = set(inspect.signature(TextSplitter.__init__).parameters) - inexact
    assert base <= set(inspect.signature(splitter.__init__).parameters)


@SPLITTERS
def test_each_chunk_has_its_place_and_an_id(splitter):
    """S16: always present, with or without `add_start_index`."""
    source = Document(GUIDE, id="g", metadata={"source": "g.md"})
    for add in (False, True):
        chunks = splitter(60, add_start_index=add).split_documents([source])
        assert len(chunks) > 2
        for chunk in chunks:
            assert set(chunk.metadata) >= PLACE | {"source"}
            assert chunk.metadata["document_id"] == "g"
        assert len(set(ids(chunks))) == len(chunks)


@SPLITTERS
@pytest.mark.parametrize("text", ["", " \n\u3000\r\n "], ids=["S19-empty", "S19-blank"])
def test_nothing_gives_nothing(splitter, text):
    """S19: empty and blank texts have no chunks."""
    assert splitter().split_text(text) == []
    assert splitter().create_documents([text]) == []


@SPLITTERS
def test_metadata_of_another_length(splitter):
    """A ValueError names both lengths; one string for a list of texts is refused."""
    with pytest.raises(ValueError, match=r"1.*2"):
        splitter().create_documents(["a", "b"], [{}])
    with pytest.raises(EasyRAGError, match="list of texts"):
        splitter().create_documents("abc")


@SPLITTERS
@pytest.mark.parametrize(
    "measure",
    [
        pytest.param(lambda text: -1, id="negative"),
        pytest.param(lambda text: 0.5, id="float"),
        pytest.param(lambda text: None, id="none"),
        pytest.param(lambda text: 1 // 0, id="raises"),
    ],
)
def test_a_broken_length_function_is_named(splitter, measure):
    """Whatever it gives instead of a length, the error is ours and names it."""
    with pytest.raises(EasyRAGError, match="length_function"):
        splitter(20, length_function=measure).create_documents(["Some words to be measured."])


@SPLITTERS
def test_from_tiktoken_encoder(splitter, monkeypatch):
    """The inherited builder: every chunk is within the limit in real tokens."""
    tiktoken = pytest.importorskip("tiktoken")
    found = find_spec("llama_index.core") if find_spec("llama_index") else None
    if found is None or found.origin is None:
        pytest.skip("the encoding comes with llama-index-core")
    cache = Path(found.origin).parent / "_static" / "tiktoken_cache"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(cache))
    settings = {"parent_chunk_size": 90} if splitter is ParentChildTextSplitter else {}
    made = splitter.from_tiktoken_encoder(ENCODING, chunk_size=30, chunk_overlap=4, **settings)
    assert isinstance(made, splitter)
    encode = tiktoken.get_encoding(ENCODING).encode
    chunks = made.create_documents([GUIDE * 3])
    limits = [90 if "child_ids" in chunk.metadata else 30 for chunk in chunks]
    sizes = [len(encode(chunk.page_content)) for chunk in chunks]
    assert all(size <= limit for size, limit in zip(sizes, limits, strict=True))
    assert max(sizes) > 20


@SPLITTERS
def test_from_huggingface_tokenizer(splitter, monkeypatch):
    """The other inherited builder works as well."""
    from langchain_text_splitters import base

    if not hasattr(base, "_import_pretrained_tokenizer_base"):
        pytest.skip("this version looks for the tokenizer's class elsewhere")

    class Tokenizer:
        def tokenize(self, text):
            return text.split()

    monkeypatch.setattr(base, "_import_pretrained_tokenizer_base", lambda: Tokenizer)
    settings = {"parent_chunk_size": 12} if splitter is ParentChildTextSplitter else {}
    made = splitter.from_huggingface_tokenizer(
        Tokenizer(), chunk_size=12, chunk_overlap=0, **settings
    )
    chunks = made.split_text("Each sentence has words. They are counted here. " * 8)
    assert len(chunks) > 5
    assert max(len(chunk.split()) for chunk in chunks) <= 12


@SPLITTERS
async def test_async_twins_give_the_same(splitter):
    """Each method has a twin with the same result."""
    made, texts = splitter(60), [GUIDE, "一在这里。二在那里。三不见了。"]
    documents = made.create_documents(texts)
    sources = [Document(text) for text in texts]
    assert await made.asplit_text(GUIDE) == made.split_text(GUIDE)
    assert await made.acreate_documents(texts, [{}, {}]) == documents
    assert await made.asplit_documents(sources) == made.split_documents(sources) == documents
    assert await made.atransform_documents(sources) == made.transform_documents(sources)


@SPLITTERS
async def test_the_event_loop_goes_on_while_splitting(splitter):
    """Splitting runs in a thread: a length function may wait for the loop."""
    gate = LoopGate()

    def slow_length(text):
        gate()
        return len(text)

    async with ticking() as ticks:
        await splitter(60, length_function=slow_length).asplit_documents([Document(GUIDE)])
    assert gate.passed > 0
    assert ticks[0] > 0


@SPLITTERS
def test_in_parent_document_retriever(splitter):
    """S18: accepted as child and as parent splitter; children lead to their parent."""
    retriever = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(WordEmbeddings()),
        docstore=ChunkDocstore(),
        child_splitter=splitter(60),
        parent_splitter=MarkdownSectionTextSplitter(200),
        search_kwargs={"k": 1},
    )
    retriever.add_documents([Document(GUIDE, id="g", metadata={"source": "g.md"})])
    (found,) = retriever.invoke("run the installer then restart the machine")
    assert "Run the installer" in found.page_content
    assert found.metadata["source"] == "g.md"
