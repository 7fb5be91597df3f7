"""Hypothesis strategies for Markdown that puts every block into every other."""

from __future__ import annotations

from hypothesis import strategies as st

__all__ = ["BLOCK_LINES", "block_lines", "markdown_texts"]

BLOCK_LINES = (
    *("# H", "## H ##", "###### x", "####### no", "#no", "#", "Text", "more text", "**b**", "中文"),
    *("===", "---", "-----", "- - -", "***", "* * *", "_ _ _", "--", "-", "="),
    *("```", "```py", "````", "~~~", "~~~ x", "``` a`b"),
    *("> q", ">", "> > r", ">no", "- a", "-", "- - b", "* c", "+ d", "1. one", "2. two", "10) ten"),
    *("1.", "-   pad", "-     code", "1.  x"),
    *("<div>", "</div>", "<!-- c", "-->", "<!-- c -->", "<a>", "<a href='x'>", "<b> t", "<?php"),
    *("?>", "<script>", "</script>", "<![CDATA[", "]]>", "<!DOC"),
    *("| a | b |", "|---|---|", "---|---", "a|b", ":-:|-", "| x", "|-", "x\\|y|z"),
    *("", "", "", "", "   ", "\t", "\\", "&nbsp;"),
)
"""Lines that begin, end or only look like blocks."""

DEFINITIONS = ("[a]: /u", "[a]: /u 't'", "[a]:", "'title'", "[a]: <b")

INDENTATIONS = ("", "", "", "", " ", "  ", "   ", "    ", "     ", "\t", " \t", "      ")
CONTAINERS = ("", "", "", "", "- ", "  - ", "> ", ">", "1. ")

_SENTENCES = (
    "Some text goes on here. ",
    "检索增强生成很有用。",
    "word ",
    "x" * 50,
    "👨‍👩‍👧‍👦",
    "e\u0301",
    "\u3000",
)
_ENDS = ("\n", "\n", "\n\n", "\r\n", "\r")


def block_lines(*, definitions: bool = False) -> st.SearchStrategy[str]:
    """One line, perhaps indented, perhaps in a list or a quote."""
    lines = st.sampled_from(BLOCK_LINES + (DEFINITIONS if definitions else ()))
    before = st.tuples(st.sampled_from(INDENTATIONS), st.sampled_from(CONTAINERS))
    return st.tuples(before, lines).map(lambda parts: "".join(parts[0]) + parts[1])


def markdown_texts(*, max_blocks: int = 14) -> st.SearchStrategy[str]:
    """Documents of odd lines, long paragraphs, tables, fences, lists, with odd line ends."""
    prose = st.lists(st.sampled_from(_SENTENCES), max_size=12).map("".join)
    line = st.tuples(block_lines(definitions=True), prose, st.sampled_from(_ENDS)).map("".join)
    rows = st.integers(0, 12)
    table = rows.map(lambda n: "| a | b |\n|---|---|\n" + "| 1 | x |\n" * n)
    fence = rows.map(lambda n: "```py\n" + "x = 1\n" * n + "```\n")
    items = ("- item\n", "- item\n  more\n", "- item\n  - sub\n", "- item\n\n  para\n")
    bullets = st.lists(st.sampled_from((*items, "- item\n  ```\n  code\n  ```\n")), max_size=12)
    block = st.one_of(line, line, line, table, fence, bullets.map("".join))
    start = st.sampled_from(("", "", "\ufeff", "---\ntitle: x\n---\n"))
    return st.tuples(start, st.lists(block, max_size=max_blocks).map("".join)).map("".join)
