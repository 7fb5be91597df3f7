"""Definitions and what stands above them, whatever the lines and the comments end with."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from easyrag_core import CodeChunker
from easyrag_core.chunking.code._grammars import grammar_of
from easyrag_core.chunking.code._line_cuts import best_cut, blank_lines_end, group_start
from easyrag_core.chunking.code._lines import Lines
from easyrag_core.chunking.code._symbols import symbol_of
from easyrag_core.chunking.languages import language_of

FILES = sorted((Path(__file__).parents[1] / "data" / "code").iterdir())
TAILS = ("\r\n", " \n", "\t  \n", " \r\n")
"""Line ends that say no more than a line feed."""

HEADS = {
    "C": "/* d\n * e\n */\nstatic int\nf(void)",
    "C++": "/**\n  About it.\n\n  More of it.\n*/\ntemplate <class T>\nT f(T x)",
    "Java": "/**\n * About it.\n */\n@Override\n@Named(\n    value = 1\n)\nclass A",
    "C#": "/* About it. */\n[Serializable]\npublic class A",
    "JavaScript": "/**\n * @param {string} a\n */\nexport function f(a)",
    "TypeScript": "/* d */\n@Component({\n  a: 1,\n})\nexport class A",
    "PHP": "/**\n * About it.\n */\n#[Pure]\nfunction f()",
    "Go": "/*\nAbout it.\n\nMore of it.\n*/\nfunc f() int",
    "Rust": "/** About it.\n */\n#[derive(Debug)]\nstruct A",
    "Swift": "/// About it.\n@objc\nclass A",
    "Kotlin": "/**\n * About it.\n */\n@Composable\nfun f()",
    "Python": "# About it.\n@cache(\n    size=3,\n)\ndef f():",
    "Ruby": "=begin\nAbout it.\n\nMore of it.\n=end\ndef f",
    "Perl": "=head2 f\n\nAbout it.\n\n=over\n\n=item a\n\n=back\n\n=cut\nsub f",
    "Elixir": '@doc """\nAbout it.\n\nMore of it.\n"""\n@spec f(integer) :: integer\ndef f(x) do',
    "Julia": '"""\n    f(x)\n\nAbout it.\n"""\nfunction f(x)',
    "GraphQL": '"""\nAbout it.\n\nMore of it.\n"""\ntype A {',
    "Haskell": "{-| About it.\n\n   More of it.\n-}\nf :: Int -> Int",
    "Elm": "{-| About it.\n-}\nf : Int -> Int",
    "OCaml": "(** About it.\n\n    More of it. *)\nlet f x =",
    "F#": "(*\n  About it.\n*)\n[<Literal>]\nlet f x =",
    "Lua": "--[[\nAbout it.\n\nMore of it.\n]]\nlocal function f(x)",
    "PowerShell": "<#\n.SYNOPSIS\nAbout it.\n\n.EXAMPLE\nf\n#>\nfunction Get-It {",
    "Pascal": "{ About it.\n\n  More of it. }\nprocedure F(x: Integer);",
    "Nim": "#[\nAbout it.\n\nMore of it.\n]#\nproc f(x: int): int =",
    "MATLAB": "%{\nAbout it.\n\nMore of it.\n%}\nfunction f(x)",
    "Common Lisp": "#|\nAbout it.\n\nMore of it.\n|#\n(defun f (x)",
    "CMake": "#[[\nAbout it.\n\nMore of it.\n]]\nfunction(f x)",
    "CoffeeScript": "###\nAbout it.\n\nMore of it.\n###\nclass A",
    "HTML": "<!--\n  About it.\n\n  More of it.\n-->\n<section>",
    "SQL": "/*\nAbout it.\n\nMore of it.\n*/\nCREATE TABLE a (",
    "CSS": "/* About it.\n\n   More of it. */\n.a {",
    "HCL": '/*\nAbout it.\n\nMore of it.\n*/\nresource "a" "b" {',
    "VHDL": "/*\nAbout it.\n*/\nentity a is",
    "D": "/+\nAbout it.\n\nMore of it.\n+/\nclass A",
}
"""A definition's first line in each language, with all that belongs to it above."""

ONE_LINE = {
    "Julia": '"Compute it."\n@inline\nfunction f(x)',
    "GraphQL": '"About it."\ntype A {',
    "Elixir": '@doc "About it."\n@spec f(integer) :: integer\ndef f(x) do',
    "Lua": "--[[ About it. ]]\nlocal function f(x)",
    "Nim": "##[ About it. ]##\nproc f(x: int): int =",
    "Perl": "# About it.\nsub f",
    "PowerShell": "<# About it. #>\nfunction Get-It {",
}
"""The same with comments of one line."""

HEADS_AND_LANGUAGES = [(one, told) for heads in (HEADS, ONE_LINE) for one, told in heads.items()]

BODY = "    a = one;\n\n    b = two;\n    c = three;\n    d = four;\n"


@cache
def sample(path: Path) -> tuple[str, str]:
    """A text that is long enough for a window anywhere, and its language."""
    text = path.read_text(encoding="utf-8")
    return text * (1 + 60 // text.count("\n")), language_of(str(path), text=text)


def line_starts_of(view: str) -> list[int]:
    """The start of every line."""
    return [0, *(place + 1 for place, character in enumerate(view) if character == "\n")]


@given(st.sampled_from(FILES), st.sampled_from(TAILS), st.data())
def test_what_lines_end_with_changes_no_cut(path: Path, tail: str, data: st.DataObject) -> None:
    """In thirty languages, the best cut is before the same line with blanks and CRLF at ends."""
    text, language = sample(path)
    grammar = grammar_of(language)
    one, other = Lines(text), Lines(text.replace("\n", tail))
    starts, others = line_starts_of(one.view), line_starts_of(other.view)
    floor = data.draw(st.integers(0, len(starts) - 30))
    # No comment is longer than what lies between: whether one fits is another question.
    low = floor + data.draw(st.integers(12, 18))
    high = low + data.draw(st.integers(1, 11))
    cut, strength = best_cut(one, starts[low], starts[high], starts[floor], grammar)
    twin, same_strength = best_cut(other, others[low], others[high], others[floor], grammar)
    assert (starts.index(cut), strength) == (others.index(twin), same_strength)


@given(st.sampled_from(FILES), st.sampled_from(TAILS), st.data())
def test_what_lines_end_with_changes_no_group_and_no_symbol(path, tail, data) -> None:
    """What belongs to a line, and what a chunk defines, is the same with blanks at line ends."""
    text, language = sample(path)
    grammar = grammar_of(language)
    one, other = Lines(text), Lines(text.replace("\n", tail))
    starts, others = line_starts_of(one.view), line_starts_of(other.view)
    first = data.draw(st.integers(0, len(starts) - 30))
    behind = first + data.draw(st.integers(13, 25))
    assume(blank_lines_end(one.view, starts[behind]) == starts[behind])
    group = group_start(one.view, starts[behind], starts[first], grammar)
    twin = group_start(other.view, others[behind], others[first], grammar)
    assert starts.index(group) == others.index(twin)
    assume(one.view[starts[first]] != "\n")
    end = one.content_end(starts[first], starts[behind])
    twin_end = other.content_end(others[first], others[behind])
    symbol = symbol_of(one.view, starts[first], end, grammar)
    assert symbol == symbol_of(other.view, others[first], twin_end, grammar)


@pytest.mark.parametrize("tail", ["\n", "\r\n", " \n"])
@pytest.mark.parametrize(("language", "head"), HEADS_AND_LANGUAGES)
def test_no_definition_is_parted_from_its_comment(language: str, head: str, tail: str) -> None:
    """Where comment, attributes and first line fit together, a chunk holds them all."""
    head, piece = (text.replace("\n", tail) for text in (head, f"{head}\n{BODY}\n"))
    text = piece * 6
    places = range(0, len(text), len(piece))
    for size in range(len(head + tail), 420, 7):
        chunks = CodeChunker(size, 0, template="{code}").chunk(text, "d", language=language)
        for place in places:
            assert any(c.start <= place and place + len(head) <= c.end for c in chunks), (
                size,
                place,
            )


@pytest.mark.parametrize("tail", ["\n", "\r\n"])
def test_a_comment_inside_a_module_stays_with_its_function(tail: str) -> None:
    """Docs with empty lines in an indented block are kept whole with what they describe."""
    doc = '  @doc """\n  About it.\n\n  More of it.\n  """\n  def f(x) do'
    text = f"defmodule A do\n{f'{doc}{chr(10)}    x + 1{chr(10)}  end{chr(10)}{chr(10)}' * 9}end\n"
    text, doc = text.replace("\n", tail), doc.replace("\n", tail)
    for size in range(100, 500, 9):
        chunks = CodeChunker(size, 0, template="{code}").chunk(text, "d", language="Elixir")
        assert sum(chunk.text.count(doc) for chunk in chunks) == 9, size


def test_a_comment_longer_than_a_chunk_is_cut_at_its_empty_lines() -> None:
    """What cannot be kept whole is cut like any other text."""
    part = "About it, line one.\nAbout it, line two.\n"
    text = "int a;\n\n/*\n" + "\n".join([part] * 20) + "*/\nint f(void)\n{\n}\n"
    chunks = CodeChunker(150, 0, template="{code}").chunk(text, "d", language="C")
    assert all(chunk.text.endswith("line two.") for chunk in chunks[1:-1])


def test_a_chunk_that_begins_with_its_comment_has_its_symbol() -> None:
    """A definition with its comment is named, whatever the comment is written like."""
    for language in ("C", "Ruby", "Elixir", "Julia", "Haskell", "Lua", "Pascal", "PowerShell"):
        head = HEADS[language].replace("def f(x) do", "defmodule F do")
        (chunk,) = CodeChunker(900).chunk(f"{head}\n    a\n", "d", language=language)
        assert chunk.metadata["symbol"].casefold() in ("f", "get-it")
