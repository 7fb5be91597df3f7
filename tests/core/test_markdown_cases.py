"""Markdown that broke other chunkers, each with the right value."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

import pytest

from easyrag_core.chunking.markdown import MarkdownChunker

if TYPE_CHECKING:
    from easyrag_core.types import Chunk


def _characters(text: str) -> int:
    """Count like `len`, on the way that other measures take."""
    return len(text)


def _chunks(text: str, size: int = 1400, *, overlap: int = 0, **settings: object) -> list[Chunk]:
    return MarkdownChunker(size, overlap, **settings).chunk(text, "d")


def _texts(text: str, size: int = 1400, **settings: object) -> list[str]:
    return [chunk.text for chunk in _chunks(text, size, **settings)]


def _paths(text: str, size: int = 1400, **settings: object) -> list[tuple[str, ...]]:
    return [chunk.heading_path for chunk in _chunks(text, size, **settings)]


def _titles(text: str) -> list[tuple[int, str]]:
    return [(heading.level, heading.title) for heading in MarkdownChunker.headings(text)]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("```python\ndef f(x):\n    if x:\n        return 1\n```", id="M1-fence"),
        pytest.param("- a\n  - b\n    - c", id="M2-nested-list"),
        pytest.param("a\tb\u00a0c\u3000d\u200de\u00adf", id="M3-blanks-and-joiners"),
        pytest.param("　　全角缩进的段落。", id="M3-full-width-indentation"),
        pytest.param("One paragraph.\n\nAnother one.", id="M21-blank-line"),
        pytest.param("line one  \nline two\\\nline three", id="hard-breaks"),
    ],
)
def test_text_is_byte_exact(body: str) -> None:
    """Indentation, tabs, joiners, blank lines come out as they went in."""
    assert _texts(f"# A\n\n{body}\n") == [f"# A\n\n{body}"]


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        pytest.param("# T\nintro\n```py\nx=1\n\n# A\nbody", [(1, "T")], id="M5-open-fence"),
        pytest.param(
            "# T\n````md\n```py\n# in\n```\n# still\n````\n# U\n", [(1, "T"), (1, "U")], id="M6"
        ),
        pytest.param("# A\n````md\n```\n# x\n```\n````\n# B\nb", [(1, "A"), (1, "B")], id="L21"),
        pytest.param("# A\n~~~\n# not a header\n~~~\ntext", [(1, "A")], id="L20-tilde-fence"),
        pytest.param(
            "~~~\n# x\n```\n# y\n~~~ z\n# w\n~~~\n# A\n", [(1, "A")], id="fence-of-one-kind"
        ),
        pytest.param("    # not a heading\n\n# A\n", [(1, "A")], id="M9-indented"),
        pytest.param("Title\n=====\n\nSub\n---\nmore", [(1, "Title"), (2, "Sub")], id="M10-setext"),
        pytest.param("text\n\n---\n\nmore", [], id="M10-rule"),
        pytest.param("two\nlines\n---\n", [(2, "two lines")], id="setext-of-two-lines"),
        pytest.param("# A\r\ntext\r\n## B\r\nx\r\n", [(1, "A"), (2, "B")], id="M16-crlf"),
        pytest.param("# A\rtext\r## B\rx", [(1, "A"), (2, "B")], id="carriage-returns"),
        pytest.param("\ufeff# A\n", [(1, "A")], id="bom"),
        pytest.param("\ufeffA\n=\n", [(1, "A")], id="bom-setext"),
        pytest.param("---\ntitle: x\n# comment\n---\n# A\nt", [(1, "A")], id="L23-front-matter"),
        pytest.param("+++\ntitle = 'x'\n# c\n+++\n# A\nt", [(1, "A")], id="toml"),
        pytest.param("####### seven\n#hash\n#\ttab\n", [(1, "tab")], id="no-headings"),
        pytest.param(
            "# C# ##\n## `#` #\n### x#\n#\n",
            [(1, "C#"), (2, "`#`"), (3, "x#"), (1, "")],
            id="closing-hashes",
        ),
        pytest.param("- # in a list\n\n> # in a quote\n\n  # A\n", [(1, "A")], id="containers"),
        pytest.param("- item\n\n  # inside\n\n# A\n", [(1, "A")], id="list-content"),
        pytest.param("- ```\n  # code\n  ```\n# A\n", [(1, "A")], id="fence-in-a-list"),
        pytest.param("- ```\n  # code\n# A\n", [(1, "A")], id="list-ends-its-fence"),
        pytest.param("> quoted\nlazy\n---\n", [], id="lazy-line-is-no-heading"),
        pytest.param("- item\n---\n", [], id="rule-behind-a-list"),
        pytest.param("<!--\n# hidden\n-->\n# A\n", [(1, "A")], id="comment"),
        pytest.param("<!-- one line -->\n# A\n", [(1, "A")], id="comment-line"),
        pytest.param("<div>\n# hidden\n\n# A\n</div>\n", [(1, "A")], id="html-block"),
        pytest.param("<script>\n\n# x\n</script>\n# A\n", [(1, "A")], id="script"),
        pytest.param("text\n<b>\n# A\n", [(1, "A")], id="inline-tag-in-a-paragraph"),
        pytest.param("[a]: /u\n===\n\nx\n===\n", [(1, "x")], id="definition"),
        pytest.param("[a]: /u\nText\n===\n", [(1, "Text")], id="definition-before-a-title"),
        pytest.param(
            "| a | b |\n|---|---|\n| 1 | 2 |\n---\n# A\n", [(1, "A")], id="table-and-rule"
        ),
        pytest.param(
            "# 一级\n\n## 二级 ##\n\n三级\n---\n", [(1, "一级"), (2, "二级"), (2, "三级")], id="zh"
        ),
    ],
)
def test_headings_are_those_of_commonmark(text: str, titles: list[tuple[int, str]]) -> None:
    """What is a heading is decided by the structure of blocks, not by a line's first character."""
    assert _titles(text) == titles
    for size in (20, 1400):
        covered = "".join(_texts(text, size)).replace("\r", "")
        body = text[text.rindex("# A") :] if "title" in text else text
        assert "".join(covered.split()) == "".join(body.split())


def test_m5_an_open_fence_loses_nothing() -> None:
    """A fence that is never closed reaches to the end."""
    text = "# T\nintro\n```py\nx=1\n\n# A\nbody"
    assert _texts(text) == [text]
    assert _paths(text) == [("T",)]


def test_m12_headings_alone_give_a_chunk() -> None:
    """A document of headings is not lost."""
    (chunk,) = _chunks("# A\n## B\n### C\n")
    assert (chunk.text, chunk.heading_path) == ("# A\n## B\n### C", ("A", "B", "C"))
    assert chunk.embedding_text == chunk.text


def test_m13_text_before_the_first_heading() -> None:
    """It is kept, under no title."""
    assert [(c.heading_path, c.text) for c in _chunks("before\n\n# A\nx\n")] == [
        ((), "before"),
        (("A",), "# A\nx"),
    ]


def test_m14_equal_sections_are_two() -> None:
    """Same title, same text: two chunks with ids of their own."""
    first, second = _chunks("# A\nx\n\n# A\nx\n")
    assert first.heading_path == second.heading_path == ("A",)
    assert first.text == second.text
    assert first.id != second.id


def test_m15_levels_may_be_skipped() -> None:
    """A heading closes those of its own and of deeper levels, whichever there are."""
    paths = _paths("# Ex\n\na\n\n### Sub\n\nb\n\n## Sec\n\nc\n", merge_small=False)
    assert paths == [("Ex",), ("Ex", "Sub"), ("Ex", "Sec")]


def test_m16_carriage_returns_are_in_no_title() -> None:
    """CRLF: titles are clean, a rule is a rule, offsets are those of the text as given."""
    text = "# A\r\ntext\r\n\r\n---\r\n\r\n## B\r\nx\r\n"
    chunks = _chunks(text)
    assert [chunk.heading_path for chunk in chunks] == [("A",), ("A", "B")]
    assert [chunk.text for chunk in chunks] == ["# A\r\ntext\r\n\r\n---", "## B\r\nx"]
    assert [(chunk.start_line, chunk.end_line) for chunk in chunks] == [(1, 4), (6, 7)]


@pytest.mark.parametrize(
    ("text", "matter"),
    [
        ("---\ntitle: x\n---\n# A\n", "title: x"),
        ("\ufeff---\r\ntitle: x\r\ntags: [a]\r\n---\r\n# A\r\n", "title: x\r\ntags: [a]"),
        ("---\n# note\n标题: 测试\n...\n# A\n", "# note\n标题: 测试"),
        ("+++\n[a]\nb = 1\n+++\n# A\n", "[a]\nb = 1"),
    ],
)
def test_m17_front_matter_is_metadata(text: str, matter: str) -> None:
    """It is in every chunk's metadata and in no chunk's text."""
    (chunk,) = _chunks(text)
    assert chunk.text == "# A"
    assert chunk.metadata == {"front_matter": matter}


@pytest.mark.parametrize(
    "text",
    ["---\n\ntext\n\n---\n", "---\nA line.\n---\n", "text\n\n---\na: b\n---\n", "---\n---\n"],
)
def test_a_rule_is_not_front_matter(text: str) -> None:
    """Only keys and values at the very start are."""
    assert all("front_matter" not in chunk.metadata for chunk in _chunks(text))


def test_front_matter_of_the_callers_wins() -> None:
    """Metadata that the caller gives is not overwritten."""
    chunker = MarkdownChunker()
    (chunk,) = chunker.chunk("---\na: b\n---\nx", metadata={"front_matter": {"a": "b"}})
    assert chunk.metadata == {"front_matter": {"a": "b"}}


def test_m20_results_are_independent() -> None:
    """A second call leaves the first one's result alone."""
    chunker = MarkdownChunker()
    first = chunker.chunk("# A\nx\n")
    before = list(first)
    chunker.chunk("# B\ny\n")
    assert first == before


def test_m22_many_paragraphs_under_one_heading() -> None:
    """16,000 of them take a blink."""
    text = "# T\n\n" + "A paragraph here.\n\n" * 16_000
    begin = time.process_time()
    assert len(_chunks(text)) > 100
    assert time.process_time() - begin < 1


def test_l69_many_sections() -> None:
    """1 MB in 4,000 sections takes a blink, too."""
    section = "Some words of text in a line. " * 8
    text = "# T\n\n" + "".join(f"## Section {i}\n\n{section}\n\n" for i in range(4000))
    begin = time.process_time()
    assert len(_chunks(text, merge_small=False)) == 4000
    assert time.process_time() - begin < 2


TABLE = "| 名 | value |\n|---|---:|\n" + "".join(f"| row {i} | {i * i} |\n" for i in range(60))


@pytest.mark.parametrize("length", [len, _characters])
def test_m23_a_cut_table_repeats_its_header(length) -> None:
    """Each piece of the table has header and delimiter row where it is embedded, rows are whole."""
    text = f"# T\n\nThe rows:\n\n{TABLE}"
    chunks = _chunks(text, 400, length_function=length)
    assert len(chunks) > 2
    for chunk in chunks:
        assert chunk.embedding_text.count("| 名 | value |\n|---|---:|\n") == 1
        assert len(chunk.embedding_text) <= 400
        assert all(line in text.split("\n") for line in chunk.text.split("\n"))
    assert chunks[0].text.startswith("# T\n\nThe rows:\n\n| 名")
    assert [chunk.kind for chunk in chunks] == ["text"] + ["table"] * (len(chunks) - 1)


def test_m25_a_heading_cuts() -> None:
    """`## C` begins a chunk where neighbours are not merged."""
    assert _texts("# A\n\na\n\n## B\n\nb\n\n## C\n\nc\n", merge_small=False) == [
        "# A\n\na",
        "## B\n\nb",
        "## C\n\nc",
    ]


def test_l2_offsets_are_those_of_the_document() -> None:
    """The second of two sections has its own place."""
    text = "# A\n\nalpha one. alpha two.\n\n# B\n\nbeta one. beta two."
    assert [(c.start, c.end) for c in _chunks(text)] == [(0, 26), (28, len(text))]


def test_l25_setext_titles_are_in_the_path() -> None:
    """Underlined titles nest like all others."""
    chunks = _chunks("Title\n=====\n\ntext\n\nSub\n---\nmore")
    assert [chunk.heading_path for chunk in chunks] == [("Title",), ("Title", "Sub")]


def test_l29_siblings_at_different_levels() -> None:
    """`# A / ### C / ## B`: B and C are both children of A."""
    text = "# A\n\na\n\n### C\n\nc\n\n## B\n\nb\n"
    assert _paths(text, merge_small=False) == [("A",), ("A", "C"), ("A", "B")]


def test_l30_a_long_section_keeps_its_path() -> None:
    """Every chunk is within the limit and tells its titles; fences and rows are cut nowhere."""
    fence = "```py\nfor i in range(9):\n    print(i)\n```"
    block = f"{'A sentence of some words. ' * 20}\n\nAs in:\n\n{fence}\n\n{TABLE[:220]}\n\n"
    text = "# 指南\n\n## Long\n\n" + block * 60
    for chunk in _chunks(text, 700)[1:]:
        assert len(chunk.embedding_text) <= 700
        assert chunk.embedding_text.startswith("[指南 > Long]\n\n")
        assert chunk.text.count("```") % 2 == 0
        assert ("As in:" in chunk.text) == ("```py" in chunk.text)


def test_p7_tables_and_fences_are_in_the_output() -> None:
    """Nothing but text in between would be half of the document."""
    text = "Text 1\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nText 2\n\n```java\nint i;\n```\n\nText 3\n"
    chunks = _chunks(text, 25)
    assert "".join("".join(c.text for c in chunks).split()) == "".join(text.split())
    assert "table" in [chunk.kind for chunk in chunks]
    assert ("code", "java") in [(chunk.kind, chunk.language) for chunk in chunks]


@pytest.mark.parametrize("end", ["## Last", "## Last\n", "Last\n----", "<!-- c -->\n## Last"])
def test_p19_a_heading_at_the_end_is_kept(end: str) -> None:
    """A heading without a body is content."""
    texts = _texts(f"# A\n\nbody\n\n{end}")
    assert "Last" in texts[-1]


def test_p21_the_blank_lines_count() -> None:
    """What joins path, heading and body is measured with them."""
    text = "# Heading\n\n## Another\n\n" + "words and words " * 100
    for size in range(30, 130, 7):
        assert all(len(chunk.embedding_text) <= size for chunk in _chunks(text, size))


def test_p24_deep_headings_are_linear() -> None:
    """Six levels over and over: twice the text takes about twice the time, not four times."""
    unit = "# a\n## b\n### c\n#### d\n##### e\n###### f\n\ntext\n\n"
    chunks = _chunks(unit * 3000)
    assert len(chunks) == 3000
    assert chunks[0].heading_path == ("a", "b", "c", "d", "e", "f")


def test_systems_a_heading_without_body_beside_one_with() -> None:
    """`## Install` (no body), `## Use`: both are there with their paths."""
    chunks = _chunks("## Install\n\n## Use\n\ntext\n")
    assert [(c.heading_path, c.text) for c in chunks] == [
        (("Install",), "## Install"),
        (("Use",), "## Use\n\ntext"),
    ]


def test_systems_small_siblings_share_what_they_share() -> None:
    """Three short sections under one parent: its path, and the headings stay in the text."""
    text = "# Guide\n\nIntro.\n\n## Install\n\na\n\n## Use\n\nb\n\n## FAQ\n\nc\n"
    first, second = _chunks(text)
    assert first.text == "# Guide\n\nIntro."
    assert second.heading_path == ("Guide",)
    assert second.text == "## Install\n\na\n\n## Use\n\nb\n\n## FAQ\n\nc"
    assert second.embedding_text == "[Guide]\n\n" + second.text


@pytest.mark.parametrize("length", [len, _characters])
def test_systems_long_code_is_cut_at_line_ends(length) -> None:
    """3.1k of code, 1,800 allowed: within the limit, the fence repeated where it is embedded."""
    lines = "".join(f"value_{i} = compute({i})\n" for i in range(120))
    text = f"# T\n\nThe code:\n\n```python\n{lines}```\n"
    chunks = _chunks(text, 1800, length_function=length)
    assert len(chunks) == 2
    for chunk in chunks:
        assert len(chunk.embedding_text) <= 1800
        assert chunk.embedding_text.count("```python\n") == 1
        assert chunk.embedding_text.endswith(")\n```")
        assert not chunk.text.startswith(" ")
    assert (chunks[1].kind, chunks[1].language) == ("code", "python")
    assert chunks[1].embedding_text.startswith("[T]\n\n```python\nvalue_")


def test_systems_overlap_is_inside_a_paragraph_and_inside_the_limit() -> None:
    """Overlap 20, limit 120: the path comes first, no chunk is longer, no heading is repeated."""
    sentence = "Some words stand here. "
    text = f"# T\n\n## S\n\n{sentence * 30}\n\n## U\n\n{sentence * 12}"
    chunks = _chunks(text, 120, overlap=30)
    overlaps = 0
    for left, right in itertools.pairwise(chunks):
        assert len(right.embedding_text) <= 120
        if right.start < left.end:
            overlaps += 1
            assert left.end - right.start <= 30
            assert "#" not in text[right.start : left.end]
            assert right.embedding_text.startswith("[T > ")
    assert overlaps > 5
    assert next(c.text for c in chunks if "## U" in c.text).startswith("## U")


def test_lists_are_cut_between_items() -> None:
    """An item that fits is whole, its number is its own; a nested list stays with its item."""
    items = [f"{i}. Item number {i}\n   - with a nested one\n" for i in range(1, 40)]
    for chunk in _chunks("# L\n\nSteps:\n\n" + "".join(items), 200):
        lines = chunk.text.split("\n")
        start = next(i for i, line in enumerate(lines) if line[:1].isdigit())
        assert all(line[0].isdigit() for line in lines[start::2])
        assert all(line.startswith("   - ") for line in lines[start + 1 :: 2])


def test_the_lead_in_stays_with_its_block() -> None:
    """The paragraph before code, a table or a list goes with it when both fit."""
    fence = "```\n" + "code()\n" * 8 + "```"
    text = f"# T\n\n{'Words. ' * 12}\n\nThe call looks like this:\n\n{fence}\n"
    assert [chunk.text.split("\n")[0] for chunk in _chunks(text, 130)] == [
        "# T",
        "The call looks like this:",
    ]


def test_a_block_that_fits_is_never_cut() -> None:
    """Where the path would leave no room, its outermost titles are left out first."""
    path = "# An outer title\n\n## The inner title\n\n"
    for width in range(60, 101):
        code = "```\n" + "x" * (width - 8) + "\n```"
        chunks = _chunks(f"{path}Text.\n\n{code}\n", 100)
        assert code in [chunk.text for chunk in chunks] or any(code in c.text for c in chunks)
        assert all(len(chunk.embedding_text) <= 100 for chunk in chunks)


def test_a_path_that_is_too_long_is_shortened_from_outside() -> None:
    """The text is never shortened, and `heading_path` stays complete."""
    text = f"# {'Outer ' * 12}\n\n## Inner\n\n{'words and more words ' * 40}"
    chunks = _chunks(text, 80)
    assert chunks[-1].embedding_text.startswith("[… > Inner]\n\n")
    assert chunks[-1].heading_path == (("Outer " * 12).strip(), "Inner")
    long = _chunks(f"# {'标题' * 100}\n\n{'正文。' * 100}", 80)
    assert long[-1].embedding_text.startswith("[标题")
    assert "…]\n\n" in long[-1].embedding_text


def test_rules() -> None:
    """A hard rule cuts, and belongs to what it ends; a soft one is a block like others."""
    text = "# A\n\na\n\n## B\n\nb\n\n---\n\nc\n\n***\n\n## C\n\nd\n"
    assert _texts(text) == ["# A\n\na", "## B\n\nb\n\n---", "c\n\n***", "## C\n\nd"]
    assert _texts(text, horizontal_rule="soft") == ["# A\n\na", text[text.index("## B") : -1]]


def test_deep_headings_may_be_text() -> None:
    """Above `max_heading_level` a heading cuts nothing and is in no path."""
    text = "# A\n\na\n\n## B\n\nb\n\n### C\n\nc\n"
    assert _paths(text, max_heading_level=2) == [("A",), ("A", "B")]
    assert _texts(text, max_heading_level=1) == [text.strip()]


def test_where_the_path_goes() -> None:
    """`metadata`: `heading_path` has it, the embedded text is the text."""
    (_, chunk) = _chunks("# A\n\na\n\n## B\n\nb\n", heading_path_in="metadata")
    assert (chunk.heading_path, chunk.embedding_text) == (("A", "B"), "## B\n\nb")


def test_min_chunk_size() -> None:
    """A chunk that is long enough takes no further section in."""
    text = "# A\n\n" + "".join(f"## S{i}\n\n{'word ' * 10}\n\n" for i in range(6))
    assert len(_texts(text, 400)) == 1
    assert [t.count("##") for t in _texts(text, 400, min_chunk_size=100)] == [2, 2, 2]
