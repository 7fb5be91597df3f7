"""Inputs that broke other splitters, each with the right value."""

from __future__ import annotations

from itertools import pairwise

import pytest

from easyrag_core.chunking.document import DocumentChunker
from easyrag_core.text import is_grapheme_boundary


def _texts(text: str, *sizes: int, **settings: object) -> list[str]:
    return [chunk.text for chunk in DocumentChunker(*sizes, **settings).chunk(text)]


def _words(text: str) -> int:
    return len(text.split())


def test_s1_overlap_counted_in_words_has_true_starts() -> None:
    """60 words, 10 and 4 words: every window starts six words after the last."""
    text = " ".join(f"word{i % 7}" for i in range(60))
    spans = DocumentChunker(10, 4, length_function=_words).spans(text)
    assert [start for start, _ in spans] == [36 * i for i in range(10)]
    assert [_words(text[a:b]) for a, b in spans][:-1] == [10] * 9


def test_s3_equal_paragraphs_are_told_apart() -> None:
    """Three equal paragraphs and one other: each at its own place, none searched for."""
    text = "the cat sat.\n\n" * 3 + "a dog ran."
    assert [start for start, _ in DocumentChunker(14, 13).spans(text)] == [0, 14, 28, 42]


def test_s4_whatever_stands_between_words_is_kept() -> None:
    """Tabs and line ends between words stay as they are in the chunk."""
    assert _texts("aaa bbb\tccc\nddd eee", 12, 0) == ["aaa bbb\tccc", "ddd eee"]


def test_s6_a_frame_around_every_text_does_not_shrink_chunks() -> None:
    """A tokenizer that adds a mark to each text: five words of two are still ten."""
    text = " ".join("abcdefghijklmnop")
    chunks = _texts(text, 10, 0, length_function=lambda piece: 2 * _words(piece))
    assert chunks[0] == "a b c d e"
    framed = _texts(text, 10, 0, length_function=lambda piece: _words(piece) + 1)
    assert framed[0] == "a b c d e f g h i"


@pytest.mark.parametrize("separator", ["\n\n", "\n", " "])
def test_s7_overlap_is_a_suffix_cut_at_a_boundary(separator: str) -> None:
    """Pieces of 15 in windows of 20: what fits of the piece before is repeated, never more."""
    pieces = ["one two six ab.", "red sky sea cd.", "low key map ef."]
    text = separator.join(pieces)
    spans = DocumentChunker(20, 10).spans(text)
    for (_, end), (start, _) in pairwise(spans):
        assert start <= end
        assert end - start <= 10
    assert any(start < end for (_, end), (start, _) in pairwise(spans))


def test_s10_a_word_longer_than_the_limit_is_cut() -> None:
    """Fifty letters in windows of ten are five chunks of ten."""
    assert _texts("a" * 50, 10, 0) == ["a" * 10] * 5


CHINESE = "如何使用检索增强生成？首先，准备好文档。然后，把它们切分成片段；最后建立索引！"


@pytest.mark.parametrize("size", range(8, 40))
def test_s11_chinese_is_cut_behind_its_own_marks(size: int) -> None:
    """No chunk starts with a closing mark; sentences end chunks wherever they can."""
    chunks = _texts(CHINESE, size, 2)
    assert all(chunk[0] not in "。！？；，、：”’）】》」』" for chunk in chunks)
    if size >= 20:
        assert all(chunk[-1] in "。！？；，" for chunk in chunks)


def test_s11_a_chinese_sentence_is_one_chunk_where_it_fits() -> None:
    """Three sentences of at most 20 characters are three chunks."""
    text = "如何使用检索增强生成技术？先把文档准备好放在一起。然后切分成片段建立索引！"
    assert _texts(text, 20, 0) == [
        "如何使用检索增强生成技术？",
        "先把文档准备好放在一起。",
        "然后切分成片段建立索引！",
    ]


def test_li9_closing_quotes_stay_with_their_sentence() -> None:
    """Quotes and brackets that close behind a full stop belong to the sentence before."""
    text = "他说：“今天天气很好。”她问：『我们去公园玩吗？』（好的，没问题！）走吧。"
    assert _texts(text, 13, 0) == [
        "他说：“今天天气很好。”",
        "她问：『我们去公园玩吗？』",
        "（好的，没问题！）走吧。",
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_s13_grapheme_clusters_are_never_cut(size: int) -> None:
    """A family, a skin tone and combining accents stay whole, even above the limit."""
    text = "👨‍👩‍👧‍👦👍🏽e\u0301e\u0301"
    spans = DocumentChunker(size, 0).spans(text)
    assert all(is_grapheme_boundary(text, place) for span in spans for place in span)
    assert "".join(text[a:b] for a, b in spans) == text


def test_s15_paragraphs_are_seen_with_carriage_returns() -> None:
    """A blank line of CRLFs ends a paragraph; offsets count both characters."""
    text = "a b c.\r\n\r\nd e f. g.\r\n\r\nh."
    assert DocumentChunker(14, 0).spans(text) == [(0, 6), (10, 19), (23, 25)]


@pytest.mark.parametrize(
    "text",
    ["食べ物" * 50, "中文没有标点符号的很长的一段话" * 40, "x" * 720, "x " * 300, "\n" * 50 + "x"],
    ids=["p1", "p3-zh", "p3-x", "words", "blank"],
)
@pytest.mark.parametrize("size", [1, 50, 64])
def test_p1_p3_every_chunk_is_within_the_limit(text: str, size: int) -> None:
    """With no separator at all the limit holds and the text comes back."""
    chunks = _texts(text, size, 0)
    assert max(map(len, chunks)) <= size
    assert "".join("".join(chunks).split()) == "".join(text.split())


def test_p13_p28_chinese_tokens_stay_within_the_limit() -> None:
    """A long Chinese document without short paragraphs: at most 1200 units, cut at sentences."""
    text = "这是一个没有空格的很长的文档，句子以句号结束。" * 2000
    chunks = _texts(text, 1200, 100, length_function=lambda piece: len(piece) * 3 // 2)
    assert all(len(chunk) * 3 // 2 <= 1200 for chunk in chunks)
    assert all(chunk.endswith("。") for chunk in chunks)


def test_p16_overlap_is_applied_once() -> None:
    """A heading line, a paragraph, another: every chunk is a slice of the source."""
    text = "Overview\nThis module reads folders.\n\nDetails\nIt skips what is not text."
    spans = DocumentChunker(50, 10).spans(text)
    assert all(text[a:b].count("Overview") <= 1 for a, b in spans)
    assert text[slice(*spans[0])] == "Overview\nThis module reads folders."


def test_p18_li_no_chunk_repeats_words() -> None:
    """A short last piece with overlap is still a slice: nothing is doubled."""
    text = "one two three four five six seven eight nine ten."
    assert all(chunk in text for chunk in _texts(text, 20, 8))


def test_p29_every_delimiter_is_kept() -> None:
    """Cutting at sentence marks loses none of them."""
    text = "中文测试文档\n\n默认分段1。\n\n默认分段2"
    assert _texts(text, 9, 0) == ["中文测试文档", "默认分段1。", "默认分段2"]


def test_p31_short_paragraphs_and_overlap() -> None:
    """Eight short paragraphs with overlap: all there, each at its place, overlap present."""
    text = "\n\n".join(f"Paragraph number {i} says this." for i in range(8))
    spans = DocumentChunker(40, 6).spans(text)
    assert len(spans) == 8
    assert all(start < end for (_, end), (start, _) in pairwise(spans))


def test_p32_chinese_overlap_is_whole_sentences() -> None:
    """The overlap of Chinese text starts at a sentence."""
    text = "".join(f"第{i}句话在这里。" for i in range(10))
    spans = DocumentChunker(30, 10).spans(text)
    for (_, end), (start, _) in pairwise(spans):
        assert 0 < end - start <= 10
        assert text[start] == "第"


def test_li1_repeated_sentences_cover_the_text() -> None:
    """Two hundred equal sentences counted in tokens: true places up to the end."""
    text = "the cat sat. " * 200
    spans = DocumentChunker(50, 10, length_function=lambda s: len(s.split()) + s.count(".")).spans(
        text
    )
    assert spans[-1][1] == len(text.rstrip())
    assert all(later <= end + 1 for (_, end), (later, _) in pairwise(spans))
    assert all(text[a:b].startswith("the cat") for a, b in spans)


def test_li7_one_unit_for_what_costs_three() -> None:
    """A character that alone exceeds the limit is its own chunk; the rest is cut normally."""
    bytes_of = lambda piece: len(piece.encode())  # noqa: E731
    assert _texts("龘", 1, 0, length_function=bytes_of) == ["龘"]
    assert _texts("👨‍👩‍👧‍👦 hello", 5, 0, length_function=bytes_of) == ["👨‍👩‍👧‍👦", "hello"]


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        ("Dr. Smith came. He sat.", ["Dr. Smith came.", "He sat."]),
        ("It cost 3.50 then. Now 4.", ["It cost 3.50 then.", "Now 4."]),
        ("By J. R. Doe here. Next one.", ["By J. R. Doe here.", "Next one."]),
        ("He said “yes.” Then left.", ["He said “yes.”", "Then left."]),
        ("你好!真的?是的,当然.", ["你好!真的?", "是的,当然."]),
    ],
)
def test_sentences_end_where_a_reader_says(text: str, chunks: list[str]) -> None:
    """Not after an initial, an abbreviation or inside a number; ASCII marks in Chinese count."""
    assert _texts(text, max(map(len, chunks)) + 3, 0) == chunks


@pytest.mark.parametrize("quotes", ["“”", "‘’", "「」", "（）", '""', "''"])
def test_an_opening_quote_behind_a_sentence_begins_the_next_chunk(quotes: str) -> None:
    """Dialogue without blanks: the quote that opens goes with what it quotes."""
    left, right = quotes
    text = f"他走了很久。{left}你去哪里，{right}她问道。{left}我去北京。{right}他说。"
    chunks = _texts(text, 12, 0)
    assert chunks[0] == "他走了很久。"
    assert chunks[-1] == f"{left}我去北京。{right}他说。"
    assert all(chunk[-1] != left or left == right for chunk in chunks)


@pytest.mark.parametrize("mark", ["」", "“", "。", "(", ")", '"', "e.g. ", "\u0301", "🇩🇪", "… "])
def test_runs_of_marks_cost_no_more_in_larger_windows(mark: str) -> None:
    """Work per character stays the same when the window grows: few places are tried."""
    from easyrag_core.chunking import _boundaries

    def tries(size: int) -> int:
        count = 0
        original = _boundaries.may_cut

        def counting(*arguments):
            nonlocal count
            count += 1
            return original(*arguments)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_boundaries, "may_cut", counting)
            DocumentChunker(size, 0).spans(mark * 20_000)
        return count

    assert tries(4000) <= tries(400) + 10
