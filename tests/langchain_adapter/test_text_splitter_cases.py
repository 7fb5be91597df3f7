"""Texts that other splitters get wrong: ours beside LangChain's."""

from __future__ import annotations

import itertools

import pytest
from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter

from langchain_easyrag import DocumentTextSplitter


def words(text):
    """Counts words."""
    return len(text.split())


def _starts(splitter, text):
    return [d.metadata["start_index"] for d in splitter.create_documents([text])]


def test_s1_start_index_with_overlap_in_words():
    """S1: LangChain's start_index is wrong or -1 where overlap is not in characters."""
    text = " ".join(f"word{number % 7}" for number in range(60))
    theirs = RecursiveCharacterTextSplitter(
        chunk_size=10, chunk_overlap=4, length_function=words, add_start_index=True
    )
    assert _starts(theirs, text) == [0, 78, 156, 234, -1, 54, 132, 210, 288, -1]
    ours = DocumentTextSplitter(10, 4, length_function=words, boundary="word")
    assert _starts(ours, text) == [0, 36, 72, 108, 144, 180, 216, 252, 288, 324]


def test_s3_start_index_of_repeated_paragraphs():
    """S3: equal paragraphs have starts of their own."""
    text = "the cat sat.\n\n" * 3 + "one more dog."
    theirs = RecursiveCharacterTextSplitter(chunk_size=14, chunk_overlap=13, add_start_index=True)
    assert _starts(theirs, text) == [0, 0, 0, 42]
    assert _starts(DocumentTextSplitter(14, 0), text) == [0, 14, 28, 42]


def test_s16_langchain_drops_the_document_id():
    """S16: theirs loses id and link to the source."""
    source = [Document("a. b.", id="doc-1")]
    (theirs,) = RecursiveCharacterTextSplitter().split_documents(source)
    (ours,) = DocumentTextSplitter().split_documents(source)
    assert theirs.id is None
    assert ours.metadata["document_id"] == "doc-1"


def _texts(splitter, text):
    return splitter.split_text(text)


@pytest.mark.parametrize(
    ("splitter", "text", "expected"),
    [
        pytest.param(
            DocumentTextSplitter(12, 0),
            "aaa bbb\tccc\nddd eee",
            ["aaa bbb\tccc", "ddd eee"],
            id="S4",
        ),
        pytest.param(
            DocumentTextSplitter(10, 0, length_function=lambda text: len(text) + 1),
            "a b c d e f g",
            ["a b c d e", "f g"],
            id="S6",
        ),
        pytest.param(DocumentTextSplitter(10, 0), "a" * 50, ["a" * 10] * 5, id="S10"),
        pytest.param(DocumentTextSplitter(3, 0), "", [], id="S19-empty"),
        pytest.param(DocumentTextSplitter(3, 0), " \n\u3000\n ", [], id="S19-blank"),
        pytest.param(DocumentTextSplitter(10, 4), "   ", [], id="peers-12"),
        pytest.param(DocumentTextSplitter(4, 0), "a.\r\n\r\nb.", ["a.", "b."], id="S15"),
    ],
)
def test_split_cases(splitter, text, expected):
    """Each case gives exactly these chunks."""
    assert _texts(splitter, text) == expected


def test_s7_overlap_is_there():
    """S7, peers-31: long pieces overlap too, by no more than was asked."""
    text = "abcdefg hijklmn opqrstu vwxyzab cdefghi"
    chunks = DocumentTextSplitter(20, 10).create_documents([text])
    places = [(c.metadata["start_index"], c.metadata["end_index"]) for c in chunks]
    shared = [end - start for (_, end), (start, _) in itertools.pairwise(places)]
    assert all(0 < overlap <= 10 for overlap in shared)


def test_s11_chinese_is_cut_after_sentences():
    """S11, peers-28: cuts come after the full stop; no chunk begins with closing marks."""
    text = "检索增强生成很有用，例如问答。它如何工作？先检索再生成，是两步。"
    chunks = DocumentTextSplitter(20, 4).split_text(text)
    assert all(len(chunk) <= 20 for chunk in chunks)
    assert all(chunk[-1] in "。！？；" for chunk in chunks)
    assert all(chunk[0] not in "，。！？；、）」" for chunk in chunks)


def test_s13_graphemes_stay_whole():
    """S13, peers-1: families, skin tones and combining marks are not torn."""
    text = "👨‍👩‍👧‍👦👍🏽e\u0301e\u0301"
    assert DocumentTextSplitter(3, 0).split_text(text) == ["👨‍👩‍👧‍👦", "👍🏽", "e\u0301", "e\u0301"]
    assert "".join(DocumentTextSplitter(7, 0).split_text("食べ物" * 50)) == "食べ物" * 50


@pytest.mark.parametrize("text", ["检索" * 360, "x" * 202], ids=["peers-3-zh", "peers-3-x"])
def test_peers_3_no_separator_at_all(text):
    """Text without a sentence end is cut at the limit all the same."""
    assert max(map(len, DocumentTextSplitter(50, 0).split_text(text))) <= 50


def test_s20_token_counting_is_bounded():
    """S20: a slow tokenizer is called a few times per chunk, not once per piece."""
    calls = 0

    def counted(text):
        nonlocal calls
        calls += 1
        return len(text) // 4

    text = "Every sentence counts here. 每句话都算数。" * 2000
    chunks = DocumentTextSplitter(200, 20, length_function=counted).split_text(text)
    assert calls <= 20 * len(chunks)


def test_s8_overlap_as_large_as_the_chunk():
    """S8: LangChain takes it and advances piece by piece; ours refuses."""
    theirs = RecursiveCharacterTextSplitter(chunk_size=9, chunk_overlap=9)
    first, second, *_ = theirs.split_text("a b c d e f g")
    assert first[-5:] == second[:5]
    with pytest.raises(ValueError, match="chunk_overlap"):
        DocumentTextSplitter(9, 9)


def test_s13_langchain_tears_a_family():
    """S13: a cut inside a grapheme cluster, beside ours above."""
    pieces = RecursiveCharacterTextSplitter(chunk_size=3, chunk_overlap=0).split_text(
        "👨\u200d👩\u200d👧"
    )
    assert len(pieces) > 1
    assert DocumentTextSplitter(3, 0).split_text("👨\u200d👩\u200d👧") == ["👨\u200d👩\u200d👧"]


def test_metadata_are_not_deep_copied():
    """LangChain copies nested values per chunk; ours shares them and copies the dict."""
    nested = [1]
    source = [Document("One. Two.", metadata={"nested": nested})]
    (theirs, *_) = RecursiveCharacterTextSplitter().split_documents(source)
    ours = DocumentTextSplitter(5, 0).split_documents(source)
    assert theirs.metadata["nested"] is not nested
    assert all(chunk.metadata["nested"] is nested for chunk in ours)
    assert ours[0].metadata is not ours[1].metadata
