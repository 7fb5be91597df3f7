"""The promises of chunks, for `DocumentChunker` in every style and every measure."""

from __future__ import annotations

import itertools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core.chunking.document import Boundary, DocumentChunker
from easyrag_core.errors import InvalidParameterError
from easyrag_core.text import is_grapheme_boundary, line_starts
from tests.strategies import nasty_texts, paragraphs

BOUNDARIES = get_args(Boundary)


def words(text: str) -> int:
    """Count words: a measure that is not additive over cuts within a word."""
    return len(text.split())


def words_and_frame(text: str) -> int:
    """Count like a tokenizer that adds a mark at the front of every text."""
    return len(text.split()) + 1 if text else 0


def utf8_bytes(text: str) -> int:
    """Count bytes."""
    return len(text.encode("utf-8", "surrogatepass"))


def merging(text: str) -> int:
    """Count like a tokenizer that merges across borders: pairs of characters are one token."""
    return (len(text) + 1) // 2


LENGTHS = (len, utf8_bytes, merging, lambda text: len(text) + 2)


@st.composite
def chunkers(draw: st.DrawFn) -> DocumentChunker:
    size = draw(st.integers(4, 120))
    return DocumentChunker(
        size,
        draw(st.integers(0, size - 1)),
        length_function=draw(st.sampled_from(LENGTHS)),
        boundary=draw(st.sampled_from(BOUNDARIES)),
        strip=draw(st.booleans()),
    )


@given(chunkers(), nasty_texts())
def test_spans_are_true_and_nothing_is_lost(chunker: DocumentChunker, text: str) -> None:
    """Every chunk is its slice, starts never decrease, every non-blank character is covered."""
    chunks = chunker.chunk(text, "d")
    covered: set[int] = set()
    for chunk in chunks:
        assert text[chunk.start : chunk.end] == chunk.text
        assert chunk.text.strip()
        covered.update(range(chunk.start, chunk.end))
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert [chunk.start for chunk in chunks] == sorted({chunk.start for chunk in chunks})
    assert [chunk.end for chunk in chunks] == sorted({chunk.end for chunk in chunks})
    lost = [i for i, char in enumerate(text) if not char.isspace() and i not in covered]
    assert lost == []


@given(chunkers(), nasty_texts())
def test_the_limit_holds(chunker: DocumentChunker, text: str) -> None:
    """No chunk is longer than the limit, unless it is one grapheme cluster."""
    for start, end in chunker.spans(text):
        if chunker.length_function(text[start:end]) > chunker.chunk_size:
            inside = range(start + 1, end)
            assert not any(is_grapheme_boundary(text, i, floor=start) for i in inside)


@given(chunkers(), nasty_texts())
def test_no_cut_falls_into_a_grapheme_cluster(chunker: DocumentChunker, text: str) -> None:
    """Both ends of every chunk are boundaries of grapheme clusters."""
    for start, end in chunker.spans(text):
        assert is_grapheme_boundary(text, start) or text[:start].isspace()
        assert is_grapheme_boundary(text, end) or text[end].isspace()


@given(chunkers(), nasty_texts())
def test_overlap_is_never_longer_than_asked(chunker: DocumentChunker, text: str) -> None:
    """Neighbours share at most `chunk_overlap`, and no chunk consists of overlap alone."""
    spans = chunker.spans(text)
    for (_, end), (start, later_end) in itertools.pairwise(spans):
        assert text[end:later_end].strip()
        if start < end:
            assert chunker.length_function(text[start:end].strip()) <= chunker.chunk_overlap


@given(chunkers(), nasty_texts())
def test_lines_are_counted_from_one(chunker: DocumentChunker, text: str) -> None:
    """`start_line` and `end_line` are those of the first and the last character."""
    starts = line_starts(text)
    for chunk in chunker.chunk(text, "d"):
        line_of = lambda place: sum(1 for start in starts if start <= place)  # noqa: E731
        assert (chunk.start_line, chunk.end_line) == (line_of(chunk.start), line_of(chunk.end - 1))


@given(chunkers(), nasty_texts())
def test_same_input_gives_the_same_chunks(chunker: DocumentChunker, text: str) -> None:
    """A second call equals the first, and threads do not disturb each other."""
    first = chunker.chunk(text, "d")
    with ThreadPoolExecutor(2) as pool:
        others = list(pool.map(lambda _: chunker.chunk(text, "d"), range(3)))
    assert all(other == first for other in others)
    assert len({chunk.id for chunk in first}) == len(first)


@given(nasty_texts(max_fragments=12), paragraphs())
def test_ids_do_not_depend_on_the_place(text: str, above: str) -> None:
    """A chunk whose text stays keeps its id when paragraphs are put above it."""
    chunker = DocumentChunker(60, 0, boundary="paragraph")
    block = "An untouched paragraph that is exactly as long as the limit."
    assert len(block) == chunker.chunk_size
    before = [c.id for c in chunker.chunk(f"{text}\n\n{block}", "d") if c.text == block]
    after = [c.id for c in chunker.chunk(f"{above}\n\n{text}\n\n{block}", "d") if c.text == block]
    assert set(before) <= set(after)


@given(st.lists(st.sampled_from(("a", "bb", "ccc", "字")), min_size=1, max_size=60), st.data())
def test_windows_are_as_full_as_the_measure_allows(parts: list[str], data: st.DataObject) -> None:
    """Where every boundary is a space, not one more word fits into any chunk but the last."""
    text = " ".join(parts)
    measure = data.draw(st.sampled_from((words, words_and_frame)))
    size = data.draw(st.integers(2, 12))
    spans = DocumentChunker(size, 0, length_function=measure).spans(text)
    for _, end in spans[:-1]:
        start = max(start for start, _ in spans if start < end)
        one_more = len(text[end:].split()[0]) + 1
        assert measure(text[start : end + one_more]) > size


@given(nasty_texts(max_fragments=200), st.integers(40, 200))
def test_the_fast_lane_changes_nothing(text: str, size: int) -> None:
    """Windows taken without a look equal those taken step by step."""
    from easyrag_core.chunking._windows import CUTTERS, CharacterRuler, walk

    class SlowRuler(CharacterRuler):
        def glide(self, start, plain, floor, spans):
            return start, plain, floor

    settings = {"size": size, "overlap": size // 8, "strip": True}
    fast = CharacterRuler(text, CUTTERS["sentence"], **settings)
    slow = SlowRuler(text, CUTTERS["sentence"], **settings)
    assert walk(fast) == walk(slow)


@pytest.mark.parametrize("length", [utf8_bytes, words, words_and_frame, merging])
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_calls_of_the_length_function_are_bounded(length, boundary) -> None:
    """A few calls a chunk, never on more than about four chunks' worth of text."""
    text = (
        "Every chunk knows its place in the source, whatever the measure is. " * 60
        + "每个片段都知道自己在原文中的位置，无论如何度量。" * 60
        + "x" * 3000
        + "word " * 600
        + "段落。\n\n" * 300
    )
    calls: list[str] = []

    def recording(piece: str) -> int:
        calls.append(piece)
        return length(piece)

    chunker = DocumentChunker(100, 12, boundary=boundary, length_function=recording)
    spans = chunker.spans(text)
    widest = max(end - start for start, end in spans)
    assert len(calls) <= (4 + 2 * widest.bit_length()) * len(spans)
    assert max(map(len, calls)) <= 4 * widest


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize(
    "piece", ["x", "检索增强生成", "word ", "a\n", "\n", "👨‍👩‍👧‍👦", "e\u0301", ")", "。", " "]
)
def test_work_grows_linearly(piece: str, boundary: Boundary) -> None:
    """Twice the text takes about twice the calls into the boundary search."""
    from easyrag_core.chunking import _windows

    def steps(text: str) -> int:
        count = 0
        cutter = _windows.CUTTERS[boundary]

        def counting(*args):
            nonlocal count
            count += 1
            return cutter.latest(*args)

        ruler = _windows.CharacterRuler(
            text, cutter._replace(latest=counting), size=200, overlap=20, strip=True
        )
        _windows.walk(ruler)
        return count

    text = piece * (20_000 // len(piece))
    assert steps(text + text) <= 2 * steps(text) + 8


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"chunk_size": 0}, "chunk_size"),
        ({"chunk_size": -1}, "chunk_size"),
        ({"chunk_size": True}, "chunk_size"),
        ({"chunk_size": 10.0}, "chunk_size"),
        ({"chunk_size": "800"}, "chunk_size"),
        ({"chunk_size": None}, "chunk_size"),
        ({"chunk_overlap": -1}, "chunk_overlap"),
        ({"chunk_overlap": False}, "chunk_overlap"),
        ({"chunk_overlap": 1.5}, "chunk_overlap"),
        ({"chunk_size": 10, "chunk_overlap": 10}, "chunk_overlap"),
        ({"chunk_size": 10, "chunk_overlap": 11}, "chunk_overlap"),
        ({"boundary": "line"}, "boundary"),
        ({"boundary": None}, "boundary"),
        ({"length_function": None}, "length_function"),
        ({"length_function": 3}, "length_function"),
        ({"id_factory": "uuid"}, "id_factory"),
    ],
)
def test_misuse_is_refused_at_construction(settings: dict, name: str) -> None:
    """A wrong setting names itself and what was given, before any text is seen."""
    with pytest.raises(InvalidParameterError) as caught:
        DocumentChunker(**settings)
    assert caught.value.name == name
    assert repr(caught.value.value) in str(caught.value)


@pytest.mark.parametrize("text", [None, b"bytes", 3, ["a"]])
def test_only_text_is_cut(text: object) -> None:
    """Bytes and other things are refused with a word of advice."""
    with pytest.raises(InvalidParameterError, match="str"):
        DocumentChunker().spans(text)


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\u3000\u3000", "\r\n\t"])
def test_blank_texts_give_no_chunk(text: str) -> None:
    """Nothing to read, nothing to index."""
    assert DocumentChunker().chunk(text) == []
    assert DocumentChunker(strip=False).chunk(text) == []


def test_defaults() -> None:
    """800 and 100; a smaller chunk has a smaller overlap by default, never above a fifth."""
    chunker = DocumentChunker()
    assert (chunker.chunk_size, chunker.chunk_overlap) == (800, 100)
    assert (chunker.boundary, chunker.strip, chunker.length_function) == ("sentence", True, len)
    assert all(
        DocumentChunker(size).chunk_overlap * 5 <= size for size in (1, 5, 50, 256, 800, 4000)
    )


def test_character_windows_slide_by_a_fixed_step() -> None:
    """The plain window has width `chunk_size` and step `chunk_size - chunk_overlap`."""
    spans = DocumentChunker(10, 3, boundary="character").spans("abcdefghij" * 3)
    assert spans == [(0, 10), (7, 17), (14, 24), (21, 30)]


def test_id_factory_and_document_id() -> None:
    """Another scheme of ids can be given; without a document id it comes from the content."""
    chunker = DocumentChunker(10, 0, id_factory=lambda c: f"{c.document_id}#{c.index}")
    assert [c.id for c in chunker.chunk("one two three four", "doc")] == ["doc#0", "doc#1"]
    first, second = DocumentChunker().chunk("same")[0], DocumentChunker().chunk("same")[0]
    assert first.document_id == second.document_id
    assert len(first.id) == 32
    assert first.id == first.id.lower()
    int(first.id, 16)


def test_ids_are_the_same_in_another_process() -> None:
    """Ids come from a digest, not from `hash()`, so they survive a restart."""
    code = (
        "from easyrag_core.chunking import DocumentChunker\n"
        "print([c.id for c in DocumentChunker(20, 0).chunk('One. Two. 三。四。' * 5, 'd')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours = [c.id for c in DocumentChunker(20, 0).chunk("One. Two. 三。四。" * 5, "d")]
    assert run.stdout.strip() == str(ours)


def test_metadata_is_copied_for_each_chunk() -> None:
    """The caller's metadata is neither changed nor shared between chunks."""
    given_metadata = {"source": "a.txt"}
    chunks = DocumentChunker(10, 0).chunk("one two three four", metadata=given_metadata)
    chunks[0].metadata["more"] = 1
    assert given_metadata == {"source": "a.txt"}
    assert chunks[1].metadata == {"source": "a.txt"}
