"""markdown-it-py as the judge of what the top-level blocks of a document are.

Differences that are known, each with its reason; none of them occurs in the corpora below:

1. *Behind a link reference definition.* markdown-it-py ends the paragraph with the definition; the
   reference implementation (cmark, commonmark.js) goes on: an indented line, a line behind a
   quoted definition, a lone tag there are paragraph text. We follow the reference.
2. *A definition whose destination would be an underline* (`[a]:` over `---`): a heading in the
   reference implementation and here, a definition in markdown-it-py.
3. *Lazy lines indented by four columns or more, but less than an item's content.* They continue
   the paragraph in the reference and here; markdown-it-py may see code.
4. *One column: `| a` over `---`.* An underline wins over a delimiter row in cmark-gfm and here.
5. *A byte order mark* hides nothing here, *front matter* is no part of the document's blocks, and
   markdown-it-py reads NUL as U+FFFD: the texts are adapted before they are compared.
6. *More than a hundred containers in each other* are text here.
"""

from __future__ import annotations

import os
import re
import sysconfig
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core.chunking.markdown import MarkdownChunker
from easyrag_core.chunking.markdown._blocks import (
    BlockKind,
    find_blocks,
    find_front_matter,
    with_line_feeds,
)
from tests.benchmarks._corpora import data_folder
from tests.markdown_strategies import block_lines

markdown_it = pytest.importorskip("markdown_it")

_NAMES = {
    BlockKind.CODE: "code_block",
    BlockKind.HTML: "html_block",
    BlockKind.RULE: "hr",
    BlockKind.LIST: "list",
    BlockKind.QUOTE: "blockquote",
    BlockKind.TABLE: "table",
}


@cache
def _judge():
    return markdown_it.MarkdownIt("commonmark", {"maxNesting": 1000}).enable("table")


def _theirs(text: str) -> list[tuple]:
    """Top-level blocks but paragraphs: kind, first line from 1, and what there is to say."""
    found = []
    tokens = _judge().parse(text)
    for token, following in zip(tokens, tokens[1:] + tokens[:1], strict=True):
        if token.level or token.map is None or token.type == "paragraph_open":
            continue
        line, kind = token.map[0] + 1, token.type.removesuffix("_open")
        if kind == "heading":
            title = " ".join(part.strip() for part in following.content.split("\n"))
            found.append((kind, line, int(token.tag[1]), title.strip()))
        elif kind == "fence":
            found.append((kind, line, token.info.strip()))
        elif kind != "inline":
            found.append((kind.removeprefix("bullet_").removeprefix("ordered_"), line))
    return found


def _ours(text: str) -> list[tuple]:
    shadow = with_line_feeds(text)
    found: list[tuple] = []
    for block in find_blocks(shadow):
        line = shadow.count("\n", 0, block.start) + 1
        if block.kind == BlockKind.HEADING:
            found.append(("heading", line, block.level, block.info))
        elif block.kind == BlockKind.FENCE:
            found.append(("fence", line, block.info))
        else:
            found.append((_NAMES[block.kind], line))
    return found


def _adapted(text: str) -> str:
    """Blank out what is ours alone: the mark at the start, front matter, NUL."""
    text = text.removeprefix("\ufeff").replace("\0", "\ufffd")
    shadow = with_line_feeds(text)
    matter = find_front_matter(shadow)
    return "\n" * shadow.count("\n", 0, matter[2]) + text[matter[2] :] if matter else text


def _agree(text: str) -> None:
    adapted = _adapted(text)
    assert _ours(adapted) == _theirs(adapted)
    headings = [
        tuple(heading) for heading in MarkdownChunker.headings(text.replace("\0", "\ufffd"))
    ]
    assert headings == [fact[1:] for fact in _theirs(adapted) if fact[0] == "heading"]


def _files() -> list[Path]:
    """All Markdown of the corpora and of what is installed here, each text once."""
    roots = [
        Path(sysconfig.get_path("purelib")),
        Path("/usr/share/doc"),
        Path("/usr/lib/node_modules"),
    ]
    shared = data_folder()
    if shared:
        roots.insert(0, shared / "md")
    texts = {}
    for root in roots:
        for path in sorted(root.rglob("*.md")) if root.is_dir() else ():
            if path.is_file():
                texts.setdefault(path.read_bytes(), path)
    return list(texts.values())


def test_every_markdown_file_that_is_here() -> None:
    """The same headings, fences, lists, quotes, tables, rules, code, HTML at the same lines."""
    files = _files()
    if not files:
        pytest.skip("no Markdown on this machine")
    for path in files:
        try:
            with path.open(encoding="utf-8", newline="") as file:
                text = file.read()
        except UnicodeDecodeError:
            continue
        adapted = _adapted(text)
        assert _ours(adapted) == _theirs(adapted), path


def _spec_examples() -> list[str]:
    """The examples of the CommonMark specification, from the npm package `commonmark-spec`."""
    places = [Path(os.environ.get("COMMONMARK_SPEC", "spec.txt"))]
    places += [
        root / "node_modules/commonmark-spec/spec.txt" for root in (Path.cwd(), Path("/usr/lib"))
    ]
    for place in places:
        if place.is_file():
            text = place.read_text(encoding="utf-8")
            found = re.findall(r"^`{32} example[^\n]*\n(.*?)^\.\n", text, re.MULTILINE | re.DOTALL)
            return [example.replace("→", "\t") for example in found]
    return []


def test_all_examples_of_the_specification() -> None:
    """Every example of CommonMark has the blocks that the judge sees."""
    examples = _spec_examples()
    if not examples:
        pytest.skip("set COMMONMARK_SPEC to the spec.txt of the npm package commonmark-spec")
    assert len(examples) > 600
    for example in examples:
        _agree(example)


EXAMPLES = [
    *("\tcode\n", "  - a\n\n\tb\n", "- a\n\n\t\tcode\n", ">\t\tcode\n", "-\t\tcode\n", "\t- a\n"),
    *("# a\n## b ##\n### c   \n", "#a\n", "\\# a\n", "#                  a\n", "   # a\n    # b\n"),
    *("a\n    # b\n", "a\n===\n\nb\n---\n", "a\nb\n===\n", "  a\nb\n ===\n", "a\n    ---\n"),
    *("> a\n---\n", "> a\nb\n===\n", "- a\n---\n", "a\n\n---\n", "---\n---\n", "`a\n---\n`\n"),
    *("[a]: /b\n===\n[a]\n", "[a]: /b\nc\n===\n", "[a]: /b 't\nu'\n\n# c\n", "a\n[b]: /c\n===\n"),
    *(
        "```\n```\n",
        "```\n\n  \n```\n",
        "~~~~ x y\na\n~~~\n~~~~\n",
        "   ```\n   a\n  ```\n",
        "``` `\n",
    ),
    *(
        "````\n```\n``````\n",
        "```\na\n    ```\n",
        "a\n```\nb\n```\nc\n",
        "> ```\n> a\n\nb\n",
        "- ```\n",
    ),
    *(
        "<pre>\n\n# a\n</pre>\n# b\n",
        "<!-- a\n\n# b -->\n# c\n",
        "<?a\n# b\n?>\n# c\n",
        "<!A\n# b\n>\n",
    ),
    *(
        "<![CDATA[\n# a\n]]>\n# b\n",
        "<div>\n# a\n\n# b\n",
        "<a b='c'>\n# d\n\n# e\n",
        "x\n<a>\n# b\n",
    ),
    *(
        "</ins>\n# a\n",
        "<a b>c\n# d\n",
        "<table><tr>\n# a\n",
        "<DIV\n# a\n\n# b\n",
        "<div/># a\n# b\n",
    ),
    *("- a\n- b\n\n\n- c\n", "- a\n\n  b\n\n    code\n", "-\n\n  a\n", "-\n  a\n", "1. a\n2) b\n"),
    *(
        "a\n- b\n",
        "a\n1. b\n",
        "a\n2. b\n",
        "a\n-\n",
        "1234567890. a\n",
        "- a\n - b\n  - c\n   - d\n    - e\n",
    ),
    *(
        "- a\n  > b\nc\n",
        "> - a\nb\n",
        "* a\n+ b\n- c\n",
        "* * *\n",
        "- * * *\n",
        "* a\n*\n\n* c\n",
    ),
    *(">a\n>\n>b\n", "> a\n\n> b\n", ">>> a\nb\n", "> # a\n# b\n", ">     code\n\n>    a\n"),
    *(
        "| a |\n|---|\n| b |\n# c\n",
        "| a | b |\n|---|\n",
        "a\n|b|\n|-|\nc\n\nd\n",
        "|a|\n|-|\n> b\n",
    ),
    *(
        "| a |\n|---|\n===\n",
        "- | a |\n  |---|\n  | b |\nc\n",
        "a \\| b\n---|---\n",
        "|a|b|\n|:-:|-:|\n|c\n",
    ),
    *(
        "# 标题\r\n\r\n正文\r\n---\r\n",
        "# a\r## b\r",
        "\ufeff# a\n",
        "a\u2028# b\n",
        "\x0c# a\n",
        "# a\0\n",
    ),
]
"""Block structure in small, written for this test."""


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_of_our_own(text: str) -> None:
    """Each rule of the block structure, and each border between two of them."""
    _agree(text)


def _is_known_to_differ(text: str) -> bool:
    """Reasons 3 and 4: four columns of indentation, or one column of a table."""
    one_column = re.search(r"^[^\n]*\|[^\n]*\n[ \t>]*-+[ \t]*$", text, re.MULTILINE)
    return bool(one_column) or bool(re.search(r"^[ >\d.\-]*(?:    |\t)", text, re.MULTILINE))


@given(st.lists(block_lines(), max_size=9).map("\n".join))
def test_random_lines(text: str) -> None:
    """Lines that begin blocks, in any order and nested in any way."""
    if not _is_known_to_differ(text):
        _agree(text)
