"""What chunking costs, by counts: memory against the text, calls against the length."""

from __future__ import annotations

import sys
import tracemalloc
from collections import deque
from functools import partial

import pytest

from easyrag_core import CodeChunker, DocumentChunker, MarkdownChunker, ParentChildChunker

_PROSE = "Every chunk knows its place in the source, whatever it is measured with. " * 9
_BLOCKS = "```py\nvalue = compute(a, b)\n```\n\n- an item\n- another\n\n"
_SECTION = f"## Part\n\n{_PROSE}\n\n{_BLOCKS}{_PROSE}\n\n"
_CODE = "def f(a, b):\n    value = compute(a, b)\n    return value\n\n\n"
_CHINESE = "检索增强生成把查询改写成几个问题"


@pytest.mark.parametrize(
    ("chunker", "unit"),
    [
        pytest.param(MarkdownChunker(), _SECTION, id="markdown"),
        pytest.param(MarkdownChunker(400, merge_small=False), _SECTION, id="markdown-small"),
        pytest.param(DocumentChunker(), _SECTION, id="document"),
        pytest.param(CodeChunker(), _CODE, id="code"),
        pytest.param(ParentChildChunker(), _SECTION, id="parent-child"),
    ],
)
def test_memory_stays_below_six_times_the_text(chunker, unit: str) -> None:
    """At its peak, with all chunks in hand; one by one it takes less than half of that."""
    text = f"# Book\n\n{unit * (1_000_000 // len(unit))}"
    calls = {
        6: partial(chunker.chunk, text, "d"),
        3: lambda: deque(chunker.iter_chunks(text, "d"), maxlen=0),
    }
    for most, call in calls.items():
        tracemalloc.start()
        kept = call()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        del kept
        assert peak < most * sys.getsizeof(text)


@pytest.mark.parametrize("above", ["", "# 标题\n\n", "- ", "> "])
def test_chinese_without_a_sentence_mark_is_linear(above: str) -> None:
    """300,000 characters in one line: four times the text, four times the calls and characters."""

    def cost(length: int) -> tuple[int, int]:
        measured: list[int] = []

        def recording(piece: str) -> int:
            measured.append(len(piece))
            return len(piece)

        text = above + _CHINESE * (length // len(_CHINESE))
        chunks = MarkdownChunker(800, 100, length_function=recording).chunk(text, "d")
        assert all(len(chunk.embedding_text) <= 800 for chunk in chunks)
        assert chunks[-1].end == len(text)
        return len(measured), sum(measured)

    (few, short), (many, long) = cost(75_000), cost(300_000)
    assert many <= 4.2 * few
    assert long <= 4.2 * short


@pytest.mark.parametrize("fences", [("````\n", "```\n"), ("~~~\n", "```\n")])
def test_nested_fences_without_end_are_linear(fences: tuple[str, str]) -> None:
    """Fences that nothing closes hold all that follows, whole, at a few calls a chunk."""
    measured: list[int] = []

    def recording(piece: str) -> int:
        measured.append(len(piece))
        return len(piece)

    text = "# A\n\n" + "".join(fences) + "# no heading\nvalue = compute(a, b)\n" * 2000
    chunks = MarkdownChunker(800, length_function=recording).chunk(text, "d")
    assert "".join("".join(c.text for c in chunks).split()) == "".join(text.split())
    assert {chunk.heading_path for chunk in chunks} == {("A",)}
    assert len(measured) <= 12 * len(chunks)
