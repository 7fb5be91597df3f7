"""The promises of chunks, for `MarkdownChunker` under every setting and every measure."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from easyrag_core.chunking.markdown import MarkdownChunker
from easyrag_core.chunking.markdown._blocks import (
    BlockKind,
    find_blocks,
    find_front_matter,
    with_line_feeds,
)
from easyrag_core.chunking.markdown._containers import Leaf, inner_blocks
from easyrag_core.chunking.markdown._items import is_one_paragraph, item_starts
from easyrag_core.chunking.markdown._lane import Lane
from easyrag_core.errors import InvalidParameterError
from easyrag_core.text import is_grapheme_boundary, line_starts
from tests.markdown_strategies import block_lines, markdown_texts
from tests.strategies import nasty_texts, paragraphs

DOCUMENTS = st.one_of(markdown_texts(), nasty_texts())


def utf8_bytes(text: str) -> int:
    """Count bytes."""
    return len(text.encode("utf-8", "surrogatepass"))


def merging(text: str) -> int:
    """Count like a tokenizer that merges across borders: pairs of characters are one token."""
    return (len(text) + 1) // 2


def framed(text: str) -> int:
    """Count like a tokenizer that adds marks around every text."""
    return len(text) + 2


LENGTHS = (len, len, utf8_bytes, merging, framed)


@st.composite
def chunkers(draw: st.DrawFn) -> MarkdownChunker:
    size = draw(st.sampled_from((1, 2, 5, 20, 40, 60, 120, 400)))
    return MarkdownChunker(
        size,
        draw(st.sampled_from((0, 0, size // 4))),
        min_chunk_size=draw(st.sampled_from((None, size // 2))),
        max_heading_level=draw(st.sampled_from((1, 2, 6))),
        heading_path_in=draw(st.sampled_from(("embedding_text", "metadata"))),
        length_function=draw(st.sampled_from(LENGTHS)),
        merge_small=draw(st.booleans()),
        horizontal_rule=draw(st.sampled_from(("hard", "soft"))),
    )


@given(chunkers(), DOCUMENTS)
def test_spans_are_true_and_nothing_is_lost(chunker: MarkdownChunker, text: str) -> None:
    """Every chunk is its slice, starts never decrease, every non-blank character is covered."""
    chunks = chunker.chunk(text, "d")
    covered: set[int] = set()
    for chunk in chunks:
        assert text[chunk.start : chunk.end] == chunk.text
        assert chunk.text.strip()
        assert chunk.text in chunk.embedding_text
        covered.update(range(chunk.start, chunk.end))
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert [chunk.start for chunk in chunks] == sorted({chunk.start for chunk in chunks})
    assert [chunk.end for chunk in chunks] == sorted({chunk.end for chunk in chunks})
    matter = find_front_matter(with_line_feeds(text))
    body = range(matter[2] if matter else 0, len(text))
    assert [i for i in body if not text[i].isspace() and i not in covered] == []


@given(chunkers(), DOCUMENTS)
def test_the_limit_holds(chunker: MarkdownChunker, text: str) -> None:
    """No embedded text is longer than the limit, unless one grapheme cluster alone is."""
    for chunk in chunker.chunk(text, "d"):
        if chunker.length_function(chunk.embedding_text) > chunker.chunk_size:
            assert chunk.embedding_text == chunk.text
            inside = range(chunk.start + 1, chunk.end)
            assert not any(is_grapheme_boundary(text, i, floor=chunk.start) for i in inside)


@given(chunkers(), DOCUMENTS)
def test_no_cut_falls_into_a_grapheme_cluster(chunker: MarkdownChunker, text: str) -> None:
    """Both ends of every chunk are boundaries of grapheme clusters."""
    for chunk in chunker.chunk(text, "d"):
        assert is_grapheme_boundary(text, chunk.start) or text[: chunk.start].isspace()
        assert is_grapheme_boundary(text, chunk.end) or text[chunk.end].isspace()


@given(chunkers(), DOCUMENTS)
def test_lines_are_counted_from_one(chunker: MarkdownChunker, text: str) -> None:
    """`start_line` and `end_line` are those of the first and the last character."""
    starts = line_starts(text)
    for chunk in chunker.chunk(text, "d"):
        line_of = lambda place: sum(1 for start in starts if start <= place)  # noqa: E731
        assert (chunk.start_line, chunk.end_line) == (line_of(chunk.start), line_of(chunk.end - 1))


@given(chunkers(), DOCUMENTS)
def test_overlap_is_never_longer_than_asked(chunker: MarkdownChunker, text: str) -> None:
    """Neighbours share at most `chunk_overlap`, no heading, and each brings something new."""
    headings = {heading.line for heading in chunker.headings(text) if heading.level == 1}
    for left, right in itertools.pairwise(chunker.chunk(text, "d")):
        assert text[left.end : right.end].strip()
        if right.start < left.end:
            shared = text[right.start : left.end].strip()
            assert chunker.length_function(shared) <= chunker.chunk_overlap
            assert headings.isdisjoint(range(right.start_line, left.end_line))


def words(text: str) -> int:
    """Count what blanks part: blanks are free."""
    return len(text.split())


def dense(text: str) -> int:
    """Count like a tokenizer that swallows blanks and takes three characters at once."""
    return (len("".join(text.split())) + 2) // 3


def weighed(text: str) -> int:
    """Count words twice and line ends once."""
    return 2 * len(text.split()) + text.count("\n")


LEAD_INS = st.lists(
    st.sampled_from(
        (
            "? u [",
            "> X '",
            "a b c",
            "“q” (",
            "- it",
            "中文。再来。",
            "| a |\n|---|\n| 1 |",
            "\n",
            " ",
        )
    ),
    max_size=10,
).map("\n".join)
"""Short paragraphs, some with an end that no chunk should have, before quotes, lists, tables."""


@given(
    st.sampled_from((words, dense, weighed, merging, framed, len)),
    st.integers(2, 12),
    st.data(),
    st.one_of(LEAD_INS, DOCUMENTS),
)
@example(words, 2, None, "? u [\n> X '")
def test_no_chunk_is_overlap_alone(
    length, size: int, data: st.DataObject | None, text: str
) -> None:
    """Each chunk reaches beyond the one before it, however lengths add up."""
    overlap = data.draw(st.integers(1, size - 1)) if data else 1
    path_in = data.draw(st.sampled_from(("embedding_text", "metadata"))) if data else "metadata"
    chunker = MarkdownChunker(size, overlap, length_function=length, heading_path_in=path_in)
    chunks = chunker.chunk(text, "d")
    for left, right in itertools.pairwise(chunks):
        assert left.start <= right.start
        assert text[left.end : right.end].strip()


@given(chunkers(), DOCUMENTS)
def test_same_input_gives_the_same_chunks(chunker: MarkdownChunker, text: str) -> None:
    """A second call equals the first, and threads do not disturb each other."""
    first = chunker.chunk(text, "d")
    with ThreadPoolExecutor(2) as pool:
        others = list(pool.map(lambda _: chunker.chunk(text, "d"), range(3)))
    assert all(other == first for other in others)
    assert len({chunk.id for chunk in first}) == len(first)


def _no_glide(lane: Lane, start: int, *_: int) -> list[tuple[int, int]]:
    lane.rest = start
    return []


@given(markdown_texts(), st.sampled_from((20, 40, 60, 120, 400)), st.booleans())
def test_the_fast_lane_changes_nothing(text: str, size: int, merge: bool) -> None:  # noqa: FBT001
    """Pieces found without a look at what is in them equal those packed part by part."""
    chunker = MarkdownChunker(size, merge_small=merge)
    fast = chunker.chunk(text, "d")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lane, "glide", _no_glide)
        assert chunker.chunk(text, "d") == fast


@given(st.lists(st.one_of(block_lines(), st.just("- item")), max_size=12).map("\n".join))
def test_a_glance_at_an_item_sees_what_is_there(text: str) -> None:
    """Items start where a walk over all lines has them, and hold one paragraph or more blocks."""
    for block in find_blocks(text):
        if block.kind != BlockKind.LIST:
            continue
        starts = list(item_starts(text, block.start, block.stop))
        walked = inner_blocks(text, block.start, block.stop)
        assert starts == [inner.start for inner in walked if inner.depth == 0]
        for start, stop in itertools.pairwise((*starts, block.stop)):
            inner = inner_blocks(text, start, stop)
            alone = [block.leaf for block in inner] == [Leaf.PARAGRAPH]
            seen = is_one_paragraph(text, start, stop)
            assert seen in (None, alone)
            assert seen is not False or len(inner) > 1


@given(chunkers(), DOCUMENTS)
def test_pieces_are_the_facts_of_chunks(chunker: MarkdownChunker, text: str) -> None:
    """Who builds objects of their own from pieces has what the chunks have."""
    facts = [
        (
            *(chunk.id, chunk.text, chunk.start, chunk.end, chunk.start_line, chunk.end_line),
            *(chunk.heading_path, chunk.embedding_text, chunk.kind, chunk.language),
        )
        for chunk in chunker.chunk(text, "d")
    ]
    assert list(chunker.iter_pieces(text, "d")) == facts


@given(markdown_texts(max_blocks=5), paragraphs())
def test_ids_do_not_depend_on_the_place(text: str, above: str) -> None:
    """A section keeps its ids when sections are put above it."""
    chunker = MarkdownChunker(60)
    section = f"# The one\n\n{'Some words stand here. ' * 8}\n"
    ids = {c.id for c in chunker.chunk(f"{section}", "d")}
    assert ids <= {c.id for c in chunker.chunk(f"# Above\n\n{above}\n\n{section}", "d")}
    below = chunker.chunk(f"{section}\n# Below\n\n{text}", "d")
    assert ids <= {c.id for c in below}


@given(markdown_texts())
def test_the_path_is_told_where_the_text_does_not(text: str) -> None:
    """The embedded text begins with the titles, or with the headings themselves."""
    for chunk in MarkdownChunker(400).chunk(text, "d"):
        if not chunk.heading_path:
            assert not chunk.embedding_text.startswith("[") or chunk.text.startswith("[")
            continue
        lead = "[" + " > ".join(chunk.heading_path) + "]\n\n"
        if not chunk.embedding_text.startswith(lead):
            titles = [h.title for h in MarkdownChunker.headings(chunk.text)]
            shortened = chunk.embedding_text.startswith("[…") or len(chunk.text) > 300
            assert titles[: len(chunk.heading_path)] == list(chunk.heading_path) or shortened


@pytest.mark.parametrize("length", [utf8_bytes, merging, framed, lambda text: len(text.split())])
def test_calls_of_the_length_function_are_bounded(length) -> None:
    """A few calls a chunk, never on more than about four chunks' worth of text."""
    prose = "Every chunk knows its place in the source, whatever the measure is. "
    text = "# Guide\n\n" + "".join(
        f"## Part {i}\n\n{prose * 12}\n\n每个片段都知道自己的位置。\n\n```py\n{'x = 1' + chr(10)}"
        f"{'value = compute(a, b)' + chr(10)}```\n\n" + "- an item of a list\n" * 30 + "\n"
        f"### Small {i}\n\n{prose}\n\n### Other {i}\n\n{prose}\n\n"
        for i in range(12)
    )
    text += "## Long\n\n```\n" + "a line of code that is long\n" * 400 + "```\n\n" + "word " * 4000
    calls: list[str] = []

    def recording(piece: str) -> int:
        calls.append(piece)
        return length(piece)

    chunks = MarkdownChunker(200, length_function=recording).chunk(text)
    widest = max(len(chunk.embedding_text) for chunk in chunks)
    assert len(calls) <= 12 * len(chunks)
    assert max(map(len, calls)) <= 4 * widest


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "x",
            "word ",
            "检索增强生成",
            "# x\n",
            "- a\n",
            "> a\n",
            "* ",
            ">",
            "```\n",
            "<!--\n",
            "a\n\n",
        ),
        *(
            "[a]: /u\n===\n",
            "|a|b|\n|---|---|\n",
            "| x |\n",
            "<a \n",
            "<div\n\n",
            "[",
            "  - a\n",
            "\ta\n",
        ),
        *("a\n---\n", "---\n", "\n", " ", "1. a\n\n\n   b\n", "> a\nlazy\n", "- a\nlazy\n", "`"),
    ],
)
def test_time_grows_linearly(unit: str) -> None:
    """Four times the text never takes anything like sixteen times as long."""

    def seconds(length: int) -> float:
        text = unit * (length // len(unit)) + "\n\nend\n"
        begin = time.process_time()
        MarkdownChunker(200, 20).chunk(text, "d")
        return time.process_time() - begin

    small = min(seconds(20_000) for _ in range(3))
    large = min(seconds(80_000) for _ in range(2))
    assert large < 9 * small + 0.1


@pytest.mark.parametrize("depth", [50, 3000])
def test_deep_nesting_is_no_danger(depth: int) -> None:
    """Thousands of containers in each other neither recurse nor multiply."""
    for text in ("> " * depth + "a\n", "- " * depth + "a\n", "1. " * depth + "# a\n"):
        chunks = MarkdownChunker(100).chunk(text)
        assert "".join("".join(c.text for c in chunks).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"chunk_size": 0}, "chunk_size"),
        ({"chunk_size": True}, "chunk_size"),
        ({"chunk_size": 10.0}, "chunk_size"),
        ({"chunk_overlap": -1}, "chunk_overlap"),
        ({"chunk_size": 10, "chunk_overlap": 10}, "chunk_overlap"),
        ({"min_chunk_size": -1}, "min_chunk_size"),
        ({"min_chunk_size": 1.5}, "min_chunk_size"),
        ({"chunk_size": 10, "min_chunk_size": 11}, "min_chunk_size"),
        ({"max_heading_level": 0}, "max_heading_level"),
        ({"max_heading_level": 7}, "max_heading_level"),
        ({"heading_path_in": "text"}, "heading_path_in"),
        ({"horizontal_rule": "none"}, "horizontal_rule"),
        ({"length_function": None}, "length_function"),
        ({"length_function": 3}, "length_function"),
        ({"id_factory": "uuid"}, "id_factory"),
    ],
)
def test_misuse_is_refused_at_construction(settings: dict, name: str) -> None:
    """A wrong setting names itself and what was given, before any text is seen."""
    with pytest.raises(InvalidParameterError) as caught:
        MarkdownChunker(**settings)
    assert caught.value.name == name
    assert repr(caught.value.value) in str(caught.value)


@pytest.mark.parametrize("text", [None, b"bytes", 3, ["a"]])
def test_only_text_is_cut(text: object) -> None:
    """Bytes and other things are refused with a word of advice."""
    for call in (MarkdownChunker().chunk, MarkdownChunker.headings):
        with pytest.raises(InvalidParameterError, match="str"):
            call(text)


@pytest.mark.parametrize("result", [-1, 1.5, None, "3", True])
def test_a_length_function_that_gives_nonsense_is_named(result: object) -> None:
    """With the place in the source that it was asked about."""
    with pytest.raises(InvalidParameterError, match=r"source\[0:13\]") as caught:
        MarkdownChunker(length_function=lambda _: result).chunk("# A\n\nSome te.")
    assert caught.value.name == "length_function"


def test_a_length_function_that_raises_is_named() -> None:
    """The error of the function is the cause."""

    def broken(_: str) -> int:
        raise KeyError("vocabulary")

    with pytest.raises(InvalidParameterError, match="vocabulary") as caught:
        MarkdownChunker(length_function=broken).chunk("# A")
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\u3000\u3000", "\r\n\t"])
def test_blank_texts_give_no_chunk(text: str) -> None:
    """Nothing to read, nothing to index."""
    assert MarkdownChunker().chunk(text) == []
    assert MarkdownChunker.headings(text) == []


def test_defaults_and_repr() -> None:
    """The settings are those of the specification, and can be read back."""
    chunker = MarkdownChunker()
    assert (chunker.chunk_size, chunker.chunk_overlap, chunker.min_chunk_size) == (1400, 0, None)
    assert (chunker.max_heading_level, chunker.heading_path_in) == (6, "embedding_text")
    assert (chunker.merge_small, chunker.horizontal_rule) == (True, "hard")
    assert chunker.length_function is len
    assert "chunk_size=1400" in repr(chunker)
    copy = pickle.loads(pickle.dumps(chunker))
    assert copy.chunk("# A\n\nx", "d") == chunker.chunk("# A\n\nx", "d")


def test_ids_document_id_and_metadata() -> None:
    """Ids come from document, titles and text; metadata is copied for each chunk."""
    text = "# A\n\nx\n\n# B\n\ny\n"
    first = MarkdownChunker().chunk(text, metadata={"source": "a.md"})
    assert len({chunk.document_id for chunk in first}) == 1
    assert all(len(chunk.id) == 32 and int(chunk.id, 16) >= 0 for chunk in first)
    first[0].metadata["more"] = 1
    assert first[1].metadata == {"source": "a.md"}
    assert [c.id for c in MarkdownChunker().chunk(text)] == [c.id for c in first]
    named = MarkdownChunker(id_factory=lambda c: f"{c.document_id}#{c.index}").chunk(text, "doc")
    assert [chunk.id for chunk in named] == ["doc#0", "doc#1"]
    moved = MarkdownChunker().chunk("# C\n\ny\n", first[0].document_id)
    assert moved[0].id not in {chunk.id for chunk in first}


def test_ids_are_the_same_in_another_process() -> None:
    """Ids come from a digest, not from `hash()`, so they survive a restart."""
    code = (
        "from easyrag_core.chunking.markdown import MarkdownChunker\n"
        "text = '# 标题\\n\\n一。二。\\n\\n## B\\n\\nx' * 5\n"
        "print([c.id for c in MarkdownChunker(40).chunk(text, 'd')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours = MarkdownChunker(40).chunk("# 标题\n\n一。二。\n\n## B\n\nx" * 5, "d")
    assert run.stdout.strip() == str([chunk.id for chunk in ours])
