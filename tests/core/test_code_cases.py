"""Code that broke other splitters, each with the right value."""

from __future__ import annotations

import pytest

from easyrag_core.chunking.by_path import chunker_for
from easyrag_core.chunking.code import CodeChunker
from easyrag_core.chunking.document import DocumentChunker
from easyrag_core.chunking.languages import language_name
from easyrag_core.chunking.markdown import MarkdownChunker

CLASS = '''\
class Shop:
    """A shop. 商店。"""

    @cached
    def owner(self):
        return self.name

    @retry(
        times=3,
    )
    async def open(self, hour):
        await self.door(hour)

    def close(self):
        self.hour = None
'''


def _texts(text: str, size: int, overlap: int = 0, **settings: str) -> list[str]:
    chunker = CodeChunker(size, overlap, template="{code}")
    return [chunk.text for chunk in chunker.chunk(text, **settings)]


@pytest.mark.parametrize("size", range(100, 200, 5))
def test_c1_a_decorator_stays_with_its_method(size: int) -> None:
    """A decorator, its `def` and its body are in one chunk, in every size that holds them."""
    chunks = _texts(CLASS, size, language="Python")
    for method in ("@cached\n    def owner(self):\n        return", "@retry(\n        times=3,\n"):
        assert sum(method in chunk for chunk in chunks) == 1
    assert any("    )\n    async def open(self, hour):\n        await" in chunk for chunk in chunks)
    assert all(not chunk.rstrip().endswith((":", ")")) or "await" in chunk for chunk in chunks)


def test_c1_the_cut_is_at_the_lowest_blank_line() -> None:
    """Between methods, not inside one of them."""
    text = "class A:\n" + "\n".join(
        f"    def m{at}(self):\n        a = {at}\n\n        return a\n" for at in range(4)
    )
    assert [chunk.split("(")[0].strip() for chunk in _texts(text, 130, language="Python")] == [
        "class A:\n    def m0",
        "def m2",
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_lowest_blank_line_is_one_of_two_blanks_too(end: str) -> None:
    """Where a step is two blanks, four are two steps: the cut is between methods, in any file."""
    text = "class A {\n  a() {\n    x;\n  }\n\n  b() {\n    y;\n\n    z;\n\n    w;\n  }\n}\n"
    chunks = _texts(text.replace("\n", end), 54, language="JavaScript")
    assert chunks[1].startswith(f"  b() {{{end}    y;")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_empty_line_is_one_in_a_file_with_crlf_too(end: str) -> None:
    """The cut goes to the empty line in the last half of the window, whatever lines end with."""
    text = end.join(["value = 1"] * 6 + [""] + ["other = 2"] * 6)
    chunks = CodeChunker(100, 0, template="{code}").chunk(text, language="Python")
    assert [(chunk.start_line, chunk.end_line) for chunk in chunks] == [(1, 6), (8, 13)]


def test_c2_indentation_is_kept() -> None:
    """Ten indented lines in windows of 40: three lines each, every one with its blanks."""
    text = "".join(f"    line_{at}\n" for at in range(10))
    chunks = _texts(text, 40)
    assert [chunk.count("\n") + 1 for chunk in chunks] == [3, 3, 3, 1]
    assert "\n".join(chunks) + "\n" == text


def test_c5_chunks_have_lines_language_and_stable_ids() -> None:
    """1-based lines, the language by extension, and an id that is a digest."""
    text = "#include <a.h>\n\nint main(void)\n{\n    return 0;\n}\n"
    chunks = CodeChunker(40, 0, template="{code}").chunk(text, "doc", file_path="src/main.c")
    assert [(c.start_line, c.end_line, c.language) for c in chunks] == [(1, 1, "C"), (3, 6, "C")]
    again = CodeChunker(40, 0, template="{code}").chunk(text, "doc", file_path="src/main.c")
    assert [c.id for c in chunks] == [c.id for c in again]
    assert all(len(c.id) == 32 and int(c.id, 16) >= 0 for c in chunks)


@pytest.mark.parametrize(
    ("language", "name"),
    [
        ("perl", "Perl"),
        ("bash", "Shell"),
        ("sql", "SQL"),
        ("dart", "Dart"),
        ("brainfuck", "brainfuck"),
        ("", ""),
        ("文言", "文言"),
    ],
)
def test_c6_a_language_is_never_an_error(language: str, name: str) -> None:
    """Known or not, code is cut at its lines."""
    text = "alpha beta\n\ngamma delta\n"
    chunks = CodeChunker(14, 0, template="{code}").chunk(text, language=language)
    assert [chunk.text for chunk in chunks] == ["alpha beta", "gamma delta"]
    assert {chunk.language for chunk in chunks} == {name}
    assert language_name(language) == name


def test_li31_one_line_at_a_time() -> None:
    """A limit of one line gives one chunk a line."""
    assert _texts("a=1\nb=2\nc=3\n", 3, language="Python") == ["a=1", "b=2", "c=3"]


def test_li32_a_slice_begins_with_its_indentation() -> None:
    """A method is a slice of the file, with its blanks and its lines."""
    text = "class A:\n    x = 1\n\n    def m(self):\n        pass\n"
    chunks = CodeChunker(32, 0, template="{code}").chunk(text, language="Python")
    assert [chunk.text for chunk in chunks] == [
        "class A:\n    x = 1",
        "    def m(self):\n        pass",
    ]
    assert [(chunk.start_line, chunk.end_line) for chunk in chunks] == [(1, 2), (4, 5)]


def test_li33_code_that_does_not_parse_is_cut_at_lines() -> None:
    """Nothing is parsed, so nothing can fail."""
    assert _texts("def (((:\n  !!", 20, language="Python") == ["def (((:\n  !!"]
    assert _texts("def (((:\n  !!", 8, language="Python") == ["def (((:", "  !!"]


BRACES = """\
namespace Shop
{
    public class Orders
    {
        [Obsolete]
        public void Add(string name)
        {
            count++;
        }

        public void Clear()
        {
            count = 0;
        }
    }
}
"""


@pytest.mark.parametrize("size", range(100, 200, 10))
def test_li35_no_chunk_of_only_braces(size: int) -> None:
    """Brackets stay with what they close, an attribute with its method."""
    chunks = _texts(BRACES, size, language="C#")
    assert all(set("".join(chunk.split())) - set("{}") for chunk in chunks)
    assert any("[Obsolete]\n        public void Add" in chunk for chunk in chunks)


def test_li35_equal_functions_are_told_apart() -> None:
    """Repeated code has its own places, as it was cut there and not searched for."""
    text = "a = 1\n\nb = 2\n\na = 1\n\nb = 2\n"
    chunks = CodeChunker(6, 0, template="{code}").chunk(text, language="Python")
    assert [chunk.start for chunk in chunks] == [0, 7, 14, 21]
    assert len({chunk.id for chunk in chunks}) == 4


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_every_kind_are_line_ends(end: str) -> None:
    """Windows and old Mac files are cut alike; nothing of a line end is in a chunk's edge."""
    text = f"import os{end}{end}def f():{end}    return 1{end}{end}def g():{end}    return 2{end}"
    chunks = CodeChunker(30, 0, template="{code}").chunk(text, language="Python")
    assert [chunk.text for chunk in chunks] == [
        "import os",
        f"def f():{end}    return 1",
        f"def g():{end}    return 2",
    ]
    assert [(chunk.start_line, chunk.end_line) for chunk in chunks] == [(1, 1), (3, 4), (6, 7)]


def test_other_separators_are_no_line_ends() -> None:
    """U+2028, form feed and U+0085 are characters of a line."""
    text = "a = '\u2028\x0c\x85'\nb = 1\n"
    chunks = CodeChunker(9, 0, template="{code}").chunk(text)
    assert [(c.text, c.start_line) for c in chunks] == [("a = '\u2028\x0c\x85'", 1), ("b = 1", 2)]


def test_a_long_line_is_cut_at_graphemes_and_shares_its_number() -> None:
    """Pieces of a line that does not fit: one line number, no overlap, no family parted."""
    text = "a\n" + "字👨‍👩‍👧‍👦" * 30 + "\nb\n"
    chunks = CodeChunker(20, 6, template="{code}").chunk(text)
    pieces = [chunk for chunk in chunks if chunk.start_line == 2]
    assert "".join(chunk.text for chunk in pieces) == text.split("\n")[1]
    assert all(chunk.end_line == 2 and len(chunk.text) <= 20 for chunk in pieces)
    assert all(chunk.text[0] in "字👨" for chunk in pieces)
    assert chunks[-1].text == "b"


def test_a_bom_is_content_and_hides_no_definition() -> None:
    """The first line counts with its mark, and the definition behind it has its name."""
    chunk = CodeChunker().chunk("\ufeffdef f():\n    return 1\n", language="Python")[0]
    assert chunk.text.startswith("\ufeffdef")
    assert chunk.metadata["symbol"] == "f"


def test_chinese_comments_and_names_are_code_like_any() -> None:
    """Definitions and comments in Chinese stay together and have their names."""
    text = "导入 = 1\n\n\n# 计算总价\ndef 总价(购物车):\n    return sum(购物车)\n"
    chunks = CodeChunker(45, 0, template="{code}").chunk(text, language="Python")
    assert [chunk.text.split("\n")[0] for chunk in chunks] == ["导入 = 1", "# 计算总价"]
    assert chunks[1].metadata == {"symbol_type": "Function", "symbol": "总价"}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("README.md", MarkdownChunker),
        ("docs/guide.mdx", MarkdownChunker),
        ("src/main.rs", CodeChunker),
        ("Dockerfile", CodeChunker),
        ("data.yaml", CodeChunker),
        ("notes.txt", DocumentChunker),
        ("paper.tex", DocumentChunker),
        ("LICENSE", DocumentChunker),
        ("没有扩展名", DocumentChunker),
    ],
)
def test_the_chunker_follows_the_file_name(path: str, kind: type) -> None:
    """Markdown, code and prose each have their own; sizes are passed on."""
    chunker = chunker_for(path, chunk_size=500)
    assert type(chunker) is kind
    assert chunker.chunk_size == 500
    assert chunker_for(path).chunk("some text\n", "d")[0].text == "some text"


def test_the_chunker_of_a_script_follows_its_first_line() -> None:
    """A file without extension is code when it says which program reads it."""
    chunk = chunker_for("bin/run", text="#!/bin/sh\necho 1\n").chunk("#!/bin/sh\necho 1\n")[0]
    assert (chunk.language, chunk.metadata["file_path"]) == ("Shell", "bin/run")
