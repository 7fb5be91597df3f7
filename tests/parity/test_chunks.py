"""The same text and settings give the same chunks through both frameworks, and the core's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core import DocumentChunker
from langchain_easyrag import DocumentTextSplitter
from llamaindex_easyrag import DocumentNodeParser
from tests.parity.frameworks import MODES, Place, place_of_document, place_of_node, sources
from tests.strategies import nasty_texts, paragraphs

ENGLISH = "Rankings are fused by rank. Dr. Smith agrees! " * 40
CHINESE = "每个片段都知道自己的位置。“真的吗？”他问：（是的！）\r\n\r\n" * 30


def _words(text: str) -> int:
    return len(text.split())


SETTINGS = {
    "defaults": {},
    "small": {"chunk_size": 40, "chunk_overlap": 10},
    "no overlap": {"chunk_size": 60, "chunk_overlap": 0},
    "characters": {"chunk_size": 50, "chunk_overlap": 12, "boundary": "character"},
    "words": {"chunk_size": 45, "chunk_overlap": 15, "boundary": "word"},
    "paragraphs": {"chunk_size": 120, "chunk_overlap": 0, "boundary": "paragraph"},
    "one character": {"chunk_size": 1, "chunk_overlap": 0},
    "own length": {"chunk_size": 8, "chunk_overlap": 2, "length_function": _words},
}
TOKENS = {"chunk_size": 20, "chunk_overlap": 5}


def both(settings, *, strip=True):
    """The two plugs with the same settings, each by its own name for them."""
    splitter = DocumentTextSplitter(**settings, strip_whitespace=strip)
    return splitter, DocumentNodeParser(**settings, strip=strip)


def both_by_tokens():
    """LlamaIndex brings the encoding with it, so that LangChain finds it without network."""
    parser = DocumentNodeParser(**TOKENS, length="tiktoken:cl100k_base")
    return DocumentTextSplitter.from_tiktoken_encoder("cl100k_base", **TOKENS), parser


def core_places(texts, settings, *, strip=True):
    chunker = DocumentChunker(**settings, strip=strip)
    return [
        Place(c.text, c.id, c.document_id, c.index, c.start, c.end, c.start_line, c.end_line)
        for number, text in enumerate(texts)
        for c in chunker.chunk(text, f"doc{number}")
    ]


def cut(ask, plugs, texts):
    """The chunks of both plugs."""
    splitter, parser = plugs
    documents, index_documents = sources(texts)
    return (
        list(map(place_of_document, ask(splitter, "split_documents", documents))),
        list(map(place_of_node, ask(parser, "get_nodes_from_documents", index_documents))),
    )


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("strip", [True, False], ids=["strip", "no strip"])
@given(st.lists(st.one_of(nasty_texts(), paragraphs()), max_size=3))
def test_chunks_are_the_same(settings, strip, texts):
    """Text, offsets, lines, numbers and ids: LangChain's are LlamaIndex's are the core's."""
    by_document, by_node = cut(MODES["sync"], both(settings, strip=strip), texts)
    assert by_document == by_node == core_places(texts, settings, strip=strip)
    for place in by_document:
        source = texts[int(place.document_id.removeprefix("doc"))]
        assert source[place.start : place.end] == place.text


@given(nasty_texts(max_fragments=25))
def test_chunks_by_tokens_are_the_same(text):
    """By the tokens of cl100k_base, each framework with its own way to name the encoding."""
    by_document, by_node = cut(MODES["sync"], both_by_tokens(), [text])
    assert by_document == by_node


@given(nasty_texts())
def test_plain_texts_are_the_same(text):
    """`split_text` of both gives the same strings; only the empty text is one for LlamaIndex."""
    splitter, parser = both(SETTINGS["small"])
    assert splitter.split_text(text) == (parser.split_text(text) if text else [])


@pytest.mark.parametrize("settings", [*SETTINGS, "tokens"])
@pytest.mark.parametrize("texts", [[ENGLISH, CHINESE], [CHINESE], ["", " \n", "x"], []], ids=len)
def test_sync_equals_async(settings, texts):
    """Both plugs, both ways: four times the same chunks."""
    plugs = both_by_tokens() if settings == "tokens" else both(SETTINGS[settings])
    first, *others = [places for ask in MODES.values() for places in cut(ask, plugs, texts)]
    assert others == [first] * 3
    assert bool(first) == any(text.strip() for text in texts)


def test_an_insertion_above_leaves_the_same_ids_below():
    """In both, a new first paragraph changes no id of what stands below it."""
    texts = ["\n\n".join(f"Paragraph {n} of the text." for n in range(9))]
    longer = ["A new beginning, long enough.\n\n" + texts[0]]
    plugs = both({"chunk_size": 30, "chunk_overlap": 0})
    for before, after in zip(*(cut(MODES["sync"], plugs, t) for t in (texts, longer)), strict=True):
        assert [place.id for place in after[-9:]] == [place.id for place in before]
        assert len(after) == 10


@pytest.mark.parametrize(
    "settings",
    [
        {"chunk_size": 0},
        {"chunk_size": -5},
        {"chunk_size": True},
        {"chunk_size": 10, "chunk_overlap": 10},
        {"chunk_size": 10, "chunk_overlap": -1},
        {"boundary": "chapter"},
    ],
    ids=repr,
)
def test_both_refuse_the_same(settings):
    """What one refuses the other refuses, in the same words, at construction."""
    said = []
    for plug in (DocumentTextSplitter, DocumentNodeParser, DocumentChunker):
        with pytest.raises(ValueError, match="is not allowed") as refused:
            plug(**settings)
        said.append(str(refused.value))
    assert len(set(said)) == 1
