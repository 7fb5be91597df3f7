"""Markdown that other splitters get wrong: ours, in one table and beside LangChain's."""

from __future__ import annotations

import pytest
from langchain_text_splitters import (
    ExperimentalMarkdownSyntaxTextSplitter,
    MarkdownHeaderTextSplitter,
    MarkdownTextSplitter,
)

from langchain_easyrag import MarkdownSectionTextSplitter

LEVELS = [("#" * level, f"Header {level}") for level in range(1, 7)]


def sections(text, **settings):
    """Path and text of each section, unpacked."""
    splitter = MarkdownSectionTextSplitter(merge_small=False, prefix_headings=False, **settings)
    return [
        (chunk.metadata.get("heading_path", []), chunk.page_content)
        for chunk in splitter.create_documents([text])
    ]


FENCE = "# T\n\n```python\ndef f():\n    return 1\n```"
LISTS = "# T\n\n- a\n  - b\n    - c"
BLANKS = "# T\n\na\tb\u00a0c\u3000全角缩进 x\u200dy s\u00adh"
OPEN = "# T\nintro\n```py\nx=1\n\n# A\nbody"
NESTED = "# T\n\n````md\n```py\n# in\n```\n# still\n````\n\n# U\n\nout"
TWINS = "# A\nx\n# A\ny"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(FENCE, [(["T"], FENCE)], id="M1"),
        pytest.param(LISTS, [(["T"], LISTS)], id="M2"),
        pytest.param(BLANKS, [(["T"], BLANKS)], id="M3"),
        pytest.param(OPEN, [(["T"], OPEN)], id="M5"),
        pytest.param(
            NESTED,
            [(["T"], NESTED[: NESTED.index("# U") - 2]), (["U"], "# U\n\nout")],
            id="M6",
        ),
        pytest.param("    # not a heading", [([], "    # not a heading")], id="M9"),
        pytest.param(
            "Title\n=====\n\na\n\nSub\n---\n\nb",
            [(["Title"], "Title\n=====\n\na"), (["Title", "Sub"], "Sub\n---\n\nb")],
            id="M10",
        ),
        pytest.param("before\n\n# A\n\nx", [([], "before"), (["A"], "# A\n\nx")], id="M13"),
        pytest.param(TWINS, [(["A"], "# A\nx"), (["A"], "# A\ny")], id="M14"),
        pytest.param(
            "# Ex\n\n### Sub\n\na\n\n## Sec\n\nb",
            [
                (["Ex", "Sub"], "# Ex\n\n### Sub\n\na"),
                (["Ex", "Sec"], "## Sec\n\nb"),
            ],
            id="M15",
        ),
        pytest.param("# A\r\n\r\nx\r\n", [(["A"], "# A\r\n\r\nx")], id="M16"),
        pytest.param("---\ntitle: x\n---\n# A\n\ny", [(["A"], "# A\n\ny")], id="M17"),
        pytest.param("# A\n\none\n\ntwo", [(["A"], "# A\n\none\n\ntwo")], id="M21"),
    ],
)
def test_markdown_cases(text, expected):
    """Each case gives exactly these sections, byte for byte."""
    assert sections(text) == expected


def test_m12_a_document_of_headings_only_gives_chunks():
    """M12: theirs are empty; ours keeps every heading."""
    text = "# A\n## B\n### C\n"
    assert MarkdownHeaderTextSplitter(LEVELS).split_text(text) == []
    chunks = MarkdownSectionTextSplitter().create_documents([text])
    assert "".join(chunk.page_content for chunk in chunks).count("#") == 6


def test_m14_twins_have_ids_of_their_own():
    """M14: two sections of one path and one text are two chunks."""
    chunks = MarkdownSectionTextSplitter(8, merge_small=False).create_documents(["# A\nx\n# A\nx"])
    assert len(chunks) == len({chunk.id for chunk in chunks}) == 2


def test_m17_front_matter_is_metadata():
    """M17: neither a rule nor text."""
    (chunk,) = MarkdownSectionTextSplitter().create_documents(["---\ntitle: x\n---\n# A\n\ny"])
    assert chunk.metadata["front_matter"] == "title: x"
    assert chunk.page_content == "# A\n\ny"


def test_m20_two_calls_give_two_lists():
    """M20: theirs empties the first result."""
    theirs = ExperimentalMarkdownSyntaxTextSplitter()
    first = theirs.split_text("# A\n\nx")
    assert theirs.split_text("# B\n\ny") is first
    ours = MarkdownSectionTextSplitter()
    first = ours.split_text("# A\n\nx")
    ours.split_text("# B\n\ny")
    assert first == ["# A\n\nx"]


def test_m22_many_paragraphs_under_one_heading():
    """M22: sixteen thousand paragraphs, each of them kept, none cut."""
    lines = [f"paragraph {number}" for number in range(16_000)]
    chunks = MarkdownSectionTextSplitter(prefix_headings=False).split_text(
        "# T\n\n" + "\n\n".join(lines)
    )
    assert [line for chunk in chunks for line in chunk.split("\n\n")][1:] == lines


def test_m23_a_cut_table_keeps_its_header():
    """M23: header and delimiter row stand above each piece; the places are those of the rows."""
    rows = [f"| {number} | value {number} |" for number in range(40)]
    table = "| key | value |\n|---|---|\n" + "\n".join(rows)
    text = f"# T\n\n{table}"
    chunks = MarkdownSectionTextSplitter(200).create_documents([text])
    assert len(chunks) > 2
    for chunk in chunks:
        assert "| key | value |\n|---|---|\n" in chunk.page_content
    found = "\n".join(text[c.metadata["start_index"] : c.metadata["end_index"]] for c in chunks)
    assert found == text


def test_m25_headings_cut():
    """M25: MarkdownTextSplitter glues a heading to the section above; ours never does."""
    text = "## A\n\n" + "word " * 14 + "\n\n## C\n\nmore text"
    theirs = MarkdownTextSplitter(chunk_size=90, chunk_overlap=0).split_text(text)
    assert any("## C" in chunk[1:] for chunk in theirs)
    ours = MarkdownSectionTextSplitter(90, merge_small=False).split_text(text)
    assert not any("## C" in chunk[1:] for chunk in ours)


def test_m5_theirs_loses_the_rest():
    """M5: an unclosed fence drops what follows, beside ours above."""
    found = ExperimentalMarkdownSyntaxTextSplitter().split_text(OPEN)
    assert "x=1" not in "".join(chunk.page_content for chunk in found)
