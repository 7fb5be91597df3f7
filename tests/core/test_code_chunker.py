"""The promises of chunks, for `CodeChunker` in many languages and every measure."""

from __future__ import annotations

import itertools
import logging
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core.chunking.code import CodeChunker
from easyrag_core.chunking.code._grammars import grammar_of, kind_of
from easyrag_core.chunking.code._line_windows import CharacterLineRuler, walk_lines
from easyrag_core.chunking.code._lines import Lines
from easyrag_core.chunking.languages import known_languages, language_of
from easyrag_core.errors import InvalidParameterError
from easyrag_core.text import is_grapheme_boundary, line_starts
from tests.strategies import nasty_texts

DATA = Path(__file__).parents[1] / "data" / "code"
PYTHON = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))


def utf8_bytes(text: str) -> int:
    """Count bytes."""
    return len(text.encode("utf-8", "surrogatepass"))


def framed(text: str) -> int:
    """Count like a tokenizer that adds marks around every text."""
    return len(text) + 2


def merging(text: str) -> int:
    """Count like a tokenizer that merges across borders: pairs of characters are one token."""
    return (len(text) + 1) // 2


LENGTHS = (len, utf8_bytes, merging, framed)
TEMPLATES = (None, "{code}", "{language} {lines}\n{code}", "{symbol}\n{code}\n# {file}")


@cache
def samples() -> dict[str, str]:
    """Our own small files by name, and what else is installed on the machine."""
    found = {path.name: path.read_text(encoding="utf-8") for path in sorted(DATA.iterdir())}
    chosen = [path for path in PYTHON if path.stem in ("dataclasses", "enum", "contextlib")]
    for path in chosen + PYTHON[:: max(1, len(PYTHON) // 12)]:
        found[path.name] = path.read_text(encoding="utf-8", errors="surrogateescape")
    headers = sorted(Path(sysconfig.get_path("include")).glob("*.h"))
    for path in headers[:: max(1, len(headers) // 6)]:
        found[path.name] = path.read_text(encoding="utf-8", errors="surrogateescape")
    return found


@st.composite
def chunkers(draw: st.DrawFn) -> CodeChunker:
    size = draw(st.integers(4, 400))
    return CodeChunker(
        size,
        draw(st.integers(0, size - 1)),
        length_function=draw(st.sampled_from(LENGTHS)),
        template=draw(st.sampled_from(TEMPLATES)),
        file_path=draw(st.sampled_from((None, "src/some/folder/file.py", "a.c", "x.unknown"))),
    )


@st.composite
def sources(draw: st.DrawFn) -> str:
    """Pieces of real code, put together badly: other line ends, no blank lines, no end."""
    text = samples()[draw(st.sampled_from([path.name for path in sorted(DATA.iterdir())]))]
    start = draw(st.integers(0, len(text) // 2))
    text = text[start:] + draw(nasty_texts(max_fragments=6))
    change = draw(st.sampled_from(("", "\r\n", "\r", "no blank lines")))
    if change == "no blank lines":
        return "\n".join(line for line in text.split("\n") if line.strip())
    return text.replace("\n", change) if change else text


AWKWARD = (
    *("def f():", "class A:", "@x", "#[x]", "x = 1", "return", "elif a:", "else:", "end", "中文"),
    *("}", "{", "(", ")", "  }", "# c", "//", "/*", "*/", "'''", "public:", "-", "\ufeff"),
    *(" ", "  ", "    ", "\t", "\n", "\n\n", "  \n", "\r\n"),
)
"""What lines begin, end and are parted with: put together, no language at all."""


def scraps() -> st.SearchStrategy[str]:
    """Marks of many languages in any order: small texts with many kinds of bad cuts."""
    return st.lists(st.sampled_from(AWKWARD), max_size=60).map("".join)


def lines_of(text: str) -> list[tuple[int, int]]:
    """Start and end of each line; the end is in front of the line end."""
    starts = line_starts(text)
    return [
        (start, start + len(text[start:end].rstrip("\r\n")))
        for start, end in zip(starts, [*starts[1:], len(text)], strict=True)
    ]


def lost(text: str, chunks: list) -> list[int]:
    """Positions of non-blank characters in no chunk."""
    covered = bytearray(len(text))
    for chunk in chunks:
        covered[chunk.start : chunk.end] = b"\1" * (chunk.end - chunk.start)
    return [at for at, char in enumerate(text) if not covered[at] and not char.isspace()]


@given(chunkers(), st.one_of(sources(), nasty_texts(), scraps()))
def test_spans_are_true_and_nothing_is_lost(chunker: CodeChunker, text: str) -> None:
    """Every chunk is its slice, starts and ends grow, every non-blank character is covered."""
    chunks = chunker.chunk(text, "d")
    for chunk in chunks:
        assert text[chunk.start : chunk.end] == chunk.text
        assert chunk.text.strip()
        assert chunk.kind == "code"
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert [chunk.start for chunk in chunks] == sorted({chunk.start for chunk in chunks})
    assert [chunk.end for chunk in chunks] == sorted({chunk.end for chunk in chunks})
    assert lost(text, chunks) == []


@pytest.mark.parametrize(
    ("text", "size", "length"),
    [
        ("{\n)\n\nnde", 3, len),
        ("a\t\n)elif a:  \n\n\n\r\n@xelif a: else:}        enx]e/*", 40, utf8_bytes),
    ],
)
def test_no_chunk_is_blank_where_a_search_ends_with_a_line(text, size, length) -> None:
    """An empty line, or one of a lone CRLF, is no place to cut at, wherever the window ends."""
    for limit in (size, *range(3, 60)):
        chunks = CodeChunker(limit, 0, length_function=length).chunk(text, language="HTML")
        assert all(chunk.text.strip() for chunk in chunks)
        assert lost(text, chunks) == []


@given(chunkers(), st.one_of(sources(), nasty_texts(), scraps()))
def test_the_limit_holds_for_what_is_embedded(chunker: CodeChunker, text: str) -> None:
    """The frame counts; only a grapheme cluster that alone exceeds the limit may exceed it."""
    for chunk in chunker.chunk(text, "d"):
        if chunker.length_function(chunk.embedding_text) > chunker.chunk_size:
            inside = range(chunk.start + 1, chunk.end)
            assert not any(is_grapheme_boundary(text, at, floor=chunk.start) for at in inside)
        assert chunk.text in chunk.embedding_text


@given(chunkers(), st.one_of(sources(), nasty_texts(), scraps()))
def test_only_lines_that_do_not_fit_are_cut(chunker: CodeChunker, text: str) -> None:
    """A chunk is whole lines, or a part of one line that does not fit alone, without overlap."""
    lines = lines_of(text)
    starts = {start for start, _ in lines}
    ends = {end for _, end in lines}
    before = 0
    for chunk in chunker.chunk(text, "d"):
        if chunk.start in starts and chunk.end in ends:
            before = max(before, chunk.end)
            continue
        start, end = next((a, b) for a, b in lines if a <= chunk.start and chunk.end <= b)
        assert chunk.start_line == chunk.end_line
        assert chunk.start >= before
        assert is_grapheme_boundary(text, chunk.start, floor=start)
        assert is_grapheme_boundary(text, chunk.end, floor=start)
        assert chunker.length_function(text[start:end]) > chunker.chunk_size * 2 // 3 - 2
        before = chunk.end


@given(chunkers(), st.one_of(sources(), nasty_texts(), scraps()))
def test_overlap_is_whole_lines_within_the_limit(chunker: CodeChunker, text: str) -> None:
    """Neighbours share whole lines of at most `chunk_overlap`, and each adds something new."""
    chunks = chunker.chunk(text, "d")
    starts = set(line_starts(text))
    for chunk, following in itertools.pairwise(chunks):
        assert text[chunk.end : following.end].strip()
        if following.start < chunk.end:
            assert following.start in starts
            shared = text[following.start : chunk.end]
            assert chunker.length_function(shared) <= chunker.chunk_overlap


@given(chunkers(), st.one_of(sources(), nasty_texts(), scraps()))
def test_lines_are_counted_from_one(chunker: CodeChunker, text: str) -> None:
    """`start_line` and `end_line` are those of the first and the last character."""
    starts = line_starts(text)
    for chunk in chunker.chunk(text, "d"):
        line_of = lambda place: sum(1 for start in starts if start <= place)  # noqa: E731
        assert (chunk.start_line, chunk.end_line) == (line_of(chunk.start), line_of(chunk.end - 1))


@given(chunkers(), sources())
def test_same_input_gives_the_same_chunks(chunker: CodeChunker, text: str) -> None:
    """A second call equals the first, threads do not disturb each other, ids are distinct."""
    first = chunker.chunk(text, "d")
    with ThreadPoolExecutor(2) as pool:
        others = list(pool.map(lambda _: chunker.chunk(text, "d"), range(3)))
    assert all(other == first for other in others)
    assert len({chunk.id for chunk in first}) == len(first)
    assert list(chunker.iter_chunks(text, "d")) == first


@given(sources(), st.integers(20, 300), st.integers(0, 19))
def test_measured_lengths_change_nothing(text: str, size: int, overlap: int) -> None:
    """A function that counts characters keeps the limit as well as `len` does."""
    counted = CodeChunker(size, overlap, length_function=lambda piece: len(piece))  # noqa: PLW0108
    plain = CodeChunker(size, overlap)
    assert lost(text, counted.chunk(text)) == lost(text, plain.chunk(text)) == []
    if "\r" not in text:
        sizes = [len(chunk.embedding_text) for chunk in counted.chunk(text)]
        assert max(sizes, default=0) <= size or any(len(c) == 1 for c in sizes)


def attribute_groups(text: str, language: str) -> list[tuple[int, int]]:
    """Spans from a decorator or attribute to the end of the line that it belongs to."""
    opening, closers = {"Python": ("@", ")]}"), "Rust": ("#[", ")]}")}[language]
    lines = lines_of(text)
    groups, at = [], 0
    while at < len(lines):
        start, end = lines[at]
        content = text[start:end].lstrip()
        indent = end - start - len(content)
        at += 1
        if not content.startswith(opening):
            continue
        while at < len(lines):
            begin, end = lines[at]
            content = text[begin:end].lstrip()
            at += 1
            inner = not content or end - begin - len(content) > indent
            if not inner and content[0] not in closers and not content.startswith(opening):
                groups.append((start, end))
                break
    return groups


@pytest.mark.parametrize("size", [120, 300, 900, 3000])
@pytest.mark.parametrize("overlap", [0, 60])
def test_no_attribute_is_parted_from_its_definition(size: int, overlap: int) -> None:
    """Where decorators and the line that they belong to fit together, a chunk holds both."""
    seen = 0
    for name, text in samples().items():
        language = language_of(name)
        if language not in ("Python", "Rust"):
            continue
        chunks = CodeChunker(size, overlap, template="{code}").chunk(text, file_path=name)
        for start, end in attribute_groups(text, language):
            if end - start <= size:
                seen += 1
                assert any(c.start <= start and end <= c.end for c in chunks), text[start:end]
    assert seen > 20


@pytest.mark.parametrize("size", [90, 400, 3000])
@pytest.mark.parametrize("length", [len, utf8_bytes])
def test_a_corpus_of_many_languages_is_cut_at_lines(size: int, length) -> None:
    """Spans cover all lines, and no line that fits is cut, in thirty languages."""
    languages = set()
    for name, text in samples().items():
        chunks = CodeChunker(size, size // 10, length_function=length).chunk(text, file_path=name)
        languages.add(chunks[0].language)
        assert lost(text, chunks) == []
        starts = set(line_starts(text))
        for chunk in chunks:
            if chunk.start not in starts or text[chunk.end : chunk.end + 1] not in ("", "\n", "\r"):
                line = text[text.rfind("\n", 0, chunk.start) + 1 :].split("\n", 1)[0]
                assert length(line) > size // 2
    assert "" not in languages
    assert len(languages) >= 30


@pytest.mark.parametrize("size", [200, 400, 3000])
def test_chunks_do_not_begin_with_what_closes(size: int) -> None:
    """No chunk of whole lines begins with a closing bracket when the line before it fits too."""
    for name, text in samples().items():
        chunks = CodeChunker(size, 0, template="{code}").chunk(text, file_path=name)
        for before, chunk in itertools.pairwise(chunks):
            if chunk.text[0] in ")]}" and len(before.text.split("\n")[-1]) < 60:
                fits = len(before.text.split("\n")[-1]) + len(chunk.text) + 1 <= size
                assert not fits, (name, before.text[-60:], chunk.text[:60])


@pytest.mark.parametrize("path", PYTHON[:: max(1, len(PYTHON) // 12)], ids=lambda path: path.stem)
def test_a_cut_is_before_a_definition_where_one_begins_in_the_last_half(path: Path) -> None:
    """Of Python's own library: an unindented `def` or `class` in the last half is the cut."""
    text = path.read_text(encoding="utf-8")
    size = 1200
    chunks = CodeChunker(size, 0, template="{code}").chunk(text, language="Python")
    for chunk in chunks[:-1]:
        lines = [a for a, b in lines_of(text) if text[a:b].startswith(("def ", "class ", "async "))]
        inside = [a for a in lines if chunk.start + size // 2 < a <= chunk.start + size]
        following = text[chunk.end :].lstrip("\n")
        if inside:
            assert following.startswith(("def ", "class ", "async ", "@", "#")), following[:80]


@pytest.mark.parametrize("length", [utf8_bytes, framed, merging, lambda text: len(text.split())])
def test_calls_of_the_length_function_are_bounded(length) -> None:
    """A few calls a chunk, never on more than about four chunks' worth of text."""
    text = "\n".join(
        [
            "def f(x):\n    return [x, x + 1, 每个片段]\n" * 100,
            "y " * 4000,
            "@cache\nclass A:\n    b = 1\n\n    def c(self):\n        return self.b\n" * 100,
        ]
    )
    calls: list[str] = []

    def recording(piece: str) -> int:
        calls.append(piece)
        return length(piece)

    chunks = CodeChunker(120, 20, length_function=recording).chunk(text, language="Python")
    widest = max(len(chunk.embedding_text) for chunk in chunks)
    assert len(calls) <= (4 + 2 * widest.bit_length()) * len(chunks)
    assert max(map(len, calls)) <= 4 * widest


@pytest.mark.parametrize("language", ["Python", "C", "Rust", "TypeScript", "YAML", "Shell", ""])
@pytest.mark.parametrize(
    "piece",
    [
        *("x", "(", "@a\n", "#[a]\n", "// a\n", "/* a\n", "*/\n", "}\n", "\n", " \n", "    x\n"),
        *(
            "def f():\n",
            "@a(\n",
            "a: b\n",
            "int f(",
            "x = (y)\n",
            "\tx\n\n",
            "{\n",
            "a b ",
            "👨‍👩‍👧‍👦",
        ),
    ],
)
def test_work_grows_linearly(piece: str, language: str) -> None:
    """Four times the text takes about four times the time, whatever it is made of."""
    from time import process_time

    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        chunker = CodeChunker(1000, 100)
        best = 1e9
        for _ in range(2):
            begin = process_time()
            chunker.chunk(text, "d", language=language)
            best = min(best, process_time() - begin)
        return best

    assert seconds(160_000) <= 12 * seconds(40_000) + 0.05


def test_ten_megabytes_on_one_line_are_cut_in_time() -> None:
    """One line without a blank: pieces as long as the limit allows, all with one number."""
    chunks = CodeChunker(3000, 300).chunk("x" * 10_000_000, "d", file_path="bundle.min.js")
    assert {(chunk.start_line, chunk.end_line) for chunk in chunks} == {(1, 1)}
    assert {len(chunk.embedding_text) for chunk in chunks[:-1]} <= set(range(2980, 3001))
    assert sum(len(chunk.text) for chunk in chunks) == 10_000_000


def test_one_line_costs_the_same_per_character_at_any_length() -> None:
    """What is measured of a line of 10 MB is ten times what is measured of one of 1 MB."""

    def measured(size: int) -> int:
        seen = 0

        def recording(piece: str) -> int:
            nonlocal seen
            seen += len(piece)
            return len(piece)

        CodeChunker(3000, 300, length_function=recording).chunk("x" * size, "d", language="C")
        return seen

    assert measured(10_000_000) <= 10.5 * measured(1_000_000)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"chunk_size": 0}, "chunk_size"),
        ({"chunk_size": True}, "chunk_size"),
        ({"chunk_size": 10.0}, "chunk_size"),
        ({"chunk_overlap": -1}, "chunk_overlap"),
        ({"chunk_size": 10, "chunk_overlap": 10}, "chunk_overlap"),
        ({"length_function": None}, "length_function"),
        ({"length_function": 3}, "length_function"),
        ({"template": ""}, "template"),
        ({"template": "{code}{code}"}, "template"),
        ({"template": "{code} {author}"}, "template"),
        ({"template": "{code.__class__}"}, "template"),
        ({"template": "{code!r}"}, "template"),
        ({"template": "{code:>9}"}, "template"),
        ({"template": "{code"}, "template"),
        ({"template": "{} {code}"}, "template"),
        ({"template": b"{code}"}, "template"),
        ({"describe": "summary"}, "describe"),
        ({"id_factory": "uuid"}, "id_factory"),
    ],
)
def test_misuse_is_refused_at_construction(settings: dict, name: str) -> None:
    """A wrong setting names itself and what was given, before any text is seen."""
    with pytest.raises(InvalidParameterError) as caught:
        CodeChunker(**settings)
    assert caught.value.name == name
    assert repr(caught.value.value) in str(caught.value)


@pytest.mark.parametrize("answer", [-1, 1.5, None, "3", True])
def test_a_length_that_is_none_is_named_with_its_place(answer: object) -> None:
    """A measure that gives no whole number is refused with the span that it was given."""
    text = "a = 1\nb = 2\n"
    wrong = lambda piece: answer if "a = 1" in piece else 1  # noqa: E731
    with pytest.raises(InvalidParameterError, match=r"source\[0:\d+\]") as caught:
        CodeChunker(50, 0, length_function=wrong).chunk(text)
    assert caught.value.name == "length_function"
    assert repr(answer) in str(caught.value)


def test_a_length_function_that_raises_is_named_with_its_place() -> None:
    """The function's own error is told, and is the cause."""

    def broken(piece: str) -> int:
        if "b = 2" in piece:
            raise RuntimeError("no vocabulary")
        return len(piece)

    with pytest.raises(InvalidParameterError, match=r"no vocabulary.*source\[\d+:\d+\]") as caught:
        CodeChunker(30, 0, length_function=broken).chunk("a = 1\nb = 2\n" * 9)
    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.parametrize("text", [None, b"bytes", 3, ["a"]])
def test_only_text_is_cut(text: object) -> None:
    """Bytes and other things are refused with a word of advice."""
    with pytest.raises(InvalidParameterError, match="decode"):
        CodeChunker().chunk(text)


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\u3000\u3000", "\r\n\t", "\x0c\n"])
def test_blank_texts_give_no_chunk(text: str) -> None:
    """Nothing to read, nothing to index."""
    assert CodeChunker().chunk(text) == []


def test_bytes_that_are_no_text_survive() -> None:
    """A file decoded with `surrogateescape` comes out as it went in."""
    text = b"a = '\xff\xfe'\nb = 1\n".decode("utf-8", "surrogateescape")
    chunks = CodeChunker(8, 0, template="{code}").chunk(text, language="Python")
    assert "\n".join(chunk.text for chunk in chunks) == text.rstrip("\n")
    assert all(len(chunk.id) == 32 for chunk in chunks)


def test_ids_depend_on_document_path_language_and_text_alone() -> None:
    """What stands above does not matter; path and language do; ids are lower-case hex."""
    block = "def stays():\n    return 'untouched'\n"
    chunker = CodeChunker(60, 0, template="{code}")

    def ids(text: str, **settings: str) -> set[str]:
        return {c.id for c in chunker.chunk(text, "d", **settings) if c.text in block}

    plain = ids(block, language="Python")
    assert plain == ids("import os\nimport sys\nimport re\n\n" + block, language="Python")
    assert plain.isdisjoint(ids(block, language="Ruby"))
    assert plain.isdisjoint(ids(block, language="Python", file_path="a.py"))
    assert all(set(each) <= set("0123456789abcdef") and len(each) == 32 for each in plain)


def test_ids_are_the_same_in_another_process() -> None:
    """Ids come from a digest, not from `hash()`, so they survive a restart."""
    text = (DATA / "stock.py").read_text(encoding="utf-8")
    code = (
        "import sys, pathlib\n"
        "from easyrag_core.chunking.code import CodeChunker\n"
        "text = pathlib.Path(sys.argv[1]).read_text(encoding='utf-8')\n"
        "print([c.id for c in CodeChunker(200, 0).chunk(text, 'd', file_path='stock.py')])"
    )
    command = [sys.executable, "-c", code, str(DATA / "stock.py")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    ours = [c.id for c in CodeChunker(200, 0).chunk(text, "d", file_path="stock.py")]
    assert run.stdout.strip() == str(ours)


def test_id_factory_document_id_and_metadata() -> None:
    """Another scheme of ids can be given; metadata is copied for each chunk, not shared."""
    text = "a = 1\n\nb = 2\n"
    given_metadata = {"repository": "shop"}
    chunker = CodeChunker(
        8, 0, template="{code}", id_factory=lambda chunk: f"{chunk.document_id}#{chunk.index}"
    )
    chunks = chunker.chunk(text, "doc", file_path=Path("a.py"), metadata=given_metadata)
    assert [chunk.id for chunk in chunks] == ["doc#0", "doc#1"]
    chunks[0].metadata["more"] = 1
    assert chunks[1].metadata == {"repository": "shop", "file_path": "a.py"}
    assert given_metadata == {"repository": "shop"}
    assert CodeChunker().chunk(text)[0].document_id == CodeChunker().chunk(text)[0].document_id


def test_defaults() -> None:
    """3000 and 300; a smaller chunk has a smaller overlap."""
    chunker = CodeChunker()
    assert (chunker.chunk_size, chunker.chunk_overlap) == (3000, 300)
    assert chunker.length_function is len
    assert CodeChunker(200).chunk_overlap == 20
    assert CodeChunker(5).chunk_overlap == 0


def test_the_frame_says_what_the_code_is() -> None:
    """Language, file, symbol type and lines stand above the code; the text is the code alone."""
    text = "import os\n\n\n@cache\ndef here():\n    return os.getcwd()  # 这里\n"
    whole = CodeChunker().chunk(text, file_path="src\\shop\\here.py")[0]
    assert whole.embedding_text == (
        "Language: Python\nFile: src/shop/here.py\nSymbolType: CodeBlock\nLines: 1-6\n\n"
        + text.rstrip("\n")
    )
    function = CodeChunker().chunk(text[11:], file_path="here.py")[0]
    assert "SymbolType: Function\nLines: 2-4\n" in function.embedding_text
    assert function.metadata == {
        "file_path": "here.py",
        "symbol_type": "Function",
        "symbol": "here",
    }
    assert function.text == text[12:].rstrip("\n")


def test_empty_facts_leave_their_lines_out() -> None:
    """Without path and language there are no lines for them."""
    chunk = CodeChunker().chunk("something else\n")[0]
    assert chunk.embedding_text == "SymbolType: CodeBlock\nLines: 1-1\n\nsomething else"
    assert chunk.language == ""


@pytest.mark.parametrize(
    ("size", "lines"),
    [(3000, ["Language", "File: a/b/c.py"]), (205, ["Language", "File: b/c.py"]), (60, [])],
)
def test_a_frame_takes_no_more_than_a_third_of_the_limit(size: int, lines: list[str]) -> None:
    """The path loses its outermost folders first; a small limit is for the code alone."""
    text = "value = 1\n" * 40
    for chunk in CodeChunker(size, 0).chunk(text, file_path="a/b/c.py"):
        assert all(line in chunk.embedding_text for line in lines)
        assert len(chunk.embedding_text) - len(chunk.text) <= size // 3
        if not lines:
            assert chunk.embedding_text == chunk.text


def test_a_template_of_the_callers_is_filled_in() -> None:
    """Every field has its place, percent signs and braces are text, empty lines are left out."""
    template = (
        "100% of {file} {{{language}}}\n{symbol_type} {symbol} {start_line}/{end_line} {lines}\n"
        "{summary}\n{code}\nend %s"
    )
    chunker = CodeChunker(template=template)
    chunk = chunker.chunk("def f():\n    return '{x} %d'\n", file_path="50%.py")[0]
    assert chunk.embedding_text == (
        "100% of 50%.py {Python}\nFunction f 1/2 1-2\ndef f():\n    return '{x} %d'\nend %s"
    )


def test_a_description_comes_from_the_callers_function_alone() -> None:
    """Summary and keywords go to metadata and frame, shortened to what the limit leaves."""
    text = "x = 1\n" * 200
    asked = []

    def describe(chunk):
        asked.append(chunk.text)
        return {"summary": "Sets x again and again. 反复设置。", "keywords": ["set", "x", "值"]}

    chunks = CodeChunker(400, 0, describe=describe).chunk(text, file_path="a.py")
    assert asked == [chunk.text for chunk in chunks]
    for chunk in chunks:
        assert len(chunk.embedding_text) <= 400
        assert "Summary: Sets x again" in chunk.embedding_text
        assert chunk.metadata["keywords"] == ["set", "x", "值"]
    assert "Keywords: set, x, 值\n\n" in chunks[-1].embedding_text
    plain = CodeChunker(400, 0).chunk(text, file_path="a.py")
    assert all("summary" not in chunk.metadata for chunk in plain)
    assert all("Summary" not in chunk.embedding_text for chunk in plain)


def test_a_description_that_fails_costs_that_chunk_alone(caplog) -> None:
    """A model that is down leaves chunks without a summary, with a warning."""

    def describe(chunk):
        if chunk.index == 0:
            raise TimeoutError("model is down")
        return {"summary": "good"}

    with caplog.at_level(logging.WARNING):
        chunks = CodeChunker(60, 0, template="{code}", describe=describe).chunk("x = 1\n" * 20)
    assert "model is down" in caplog.text
    assert "summary" not in chunks[0].metadata
    assert chunks[1].metadata["summary"] == "good"


def test_a_part_keeps_its_places_in_the_document() -> None:
    """A chunk cut again gives spans and lines of the document, in its language."""
    text = (DATA / "stock.py").read_text(encoding="utf-8")
    for large in CodeChunker(400, 0).chunk(text, "d", file_path="shelf/stock.py"):
        small = CodeChunker(300, 0).chunk_within(large, metadata={"a": 1})
        assert small[0].start == large.start
        assert small[-1].end == large.end
        for chunk in small:
            assert text[chunk.start : chunk.end] == chunk.text
            assert chunk.start_line == text.count("\n", 0, chunk.start) + 1
            assert f"Lines: {chunk.start_line}-{chunk.end_line}" in chunk.embedding_text
            assert (chunk.language, chunk.metadata["a"]) == ("Python", 1)


SYMBOLS = [
    ("Python", "class Shelf(Base):\n    pass\n", "Class", "Shelf"),
    ("Python", "@dec(\n    1,\n)\nasync def go() -> None:\n    pass\n", "Function", "go"),
    (
        "JavaScript",
        "export default async function load(url) {\n  return 1;\n}\n",
        "Function",
        "load",
    ),
    ("JavaScript", "const add = (a, b) => {\n  return a + b;\n};\n", "Function", "add"),
    ("TypeScript", "export interface Row {\n  id: number;\n}\n", "Interface", "Row"),
    ("TypeScript", "export type Rows = Row[];\n", "Type", "Rows"),
    ("Java", "@Service\npublic final class Shop {\n    int a;\n}\n", "Class", "Shop"),
    ("Kotlin", "data class Leaf(val size: Int)\n", "Class", "Leaf"),
    ("C", "static int\nring_take(struct ring *r)\n{\n    return 0;\n}\n", "Function", "ring_take"),
    ("C", "struct ring {\n    int a;\n};\n", "Struct", "ring"),
    ("C++", "template <typename T>\nclass Matrix {\n  T cell;\n};\n", "Class", "Matrix"),
    ("C++", "void Shop::open(int hour) {\n  hour++;\n}\n", "Function", "Shop::open"),
    ("Go", "// 任务\nfunc (q *Queue) Push(job string) {\n\tq.n++\n}\n", "Function", "Push"),
    ("Go", "type Queue struct {\n\tn int\n}\n", "Type", "Queue"),
    (
        "Rust",
        "#[inline]\npub(crate) async fn area(&self) -> f64 {\n    1.0\n}\n",
        "Function",
        "area",
    ),
    ("Rust", "impl<T: Copy> Shape for Circle<T> {\n    const A: u8 = 1;\n}\n", "Impl", None),
    ("Ruby", "def noon?\n  true\nend\n", "Function", "noon?"),
    ("PHP", "#[Cached]\nfinal class Page\n{\n    public $a;\n}\n", "Class", "Page"),
    ("Swift", "extension Player {\n    var a: Int { 1 }\n}\n", "Extension", "Player"),
    ("Shell", "pack() {\n  tar -cz .\n}\n", "Function", "pack"),
    ("Lua", "function Timer:tick()\n  return 1\nend\n", "Function", "Timer:tick"),
    ("SQL", "create or replace view people as\n    select 1;\n", "View", "people"),
    ("HCL", 'variable "region" {\n  default = "eu"\n}\n', "Variable", "region"),
    ("Clojure", "(defn greet\n  [name]\n  name)\n", "Function", "greet"),
    ("Elixir", "defmodule Chat do\n  def a, do: 1\nend\n", "Module", "Chat"),
    ("Protocol Buffer", "message Note {\n  string text = 1;\n}\n", "Message", "Note"),
    ("Zig", 'test "nothing" {\n    try ok();\n}\n', "Test", "nothing"),
    ("R", "fit <- function(x) {\n  x\n}\n", "Function", "fit"),
    ("", "function anything(x) {\n  y\n}\n", "Function", "anything"),
]


@pytest.mark.parametrize(
    ("language", "text", "kind", "name"), SYMBOLS, ids=lambda value: str(value)[:16]
)
def test_a_chunk_that_is_one_definition_is_named(language, text, kind, name) -> None:
    """Kind and name come from the definition's line; two definitions, or half of one, have none."""
    chunker = CodeChunker(1000, 0)
    chunk = chunker.chunk(text, language=language)[0]
    assert chunk.metadata["symbol_type"] == kind
    assert name is None or chunk.metadata["symbol"] == name
    assert f"SymbolType: {kind}\n" in chunk.embedding_text
    assert "symbol" not in chunker.chunk(text + "\n" + text, language=language)[0].metadata
    assert "symbol" not in chunker.chunk("  " + text, language=language)[0].metadata


def test_no_symbol_type_is_longer_than_the_usual_one() -> None:
    """The limit is kept with the usual type counted, so none may be longer."""
    import re

    words = set()
    for language in known_languages():
        for pattern in grammar_of(language.name).definitions:
            for group in re.findall(r"\?P<word>([^)]*)\)", pattern.pattern):
                words.update(re.findall(r"[\w@!-]+", group))
    assert len(words) > 80
    assert all(len(kind_of(word)) <= len("CodeBlock") for word in words)


def test_a_function_without_room_for_its_overlap_is_kept_whole() -> None:
    """The last lines of a file are not left alone because of an overlap."""
    body = "\n".join(f"    value_{at} = compute({at})" for at in range(10))
    text = f"def first():\n{body}\n\n\ndef second():\n{body}\n"
    chunks = CodeChunker(290, 60, template="{code}").chunk(text, language="Python")
    assert [chunk.text[:12] for chunk in chunks] == ["def first():", "def second()"]


@given(st.data())
def test_walks_over_any_lines_end(data: st.DataObject) -> None:
    """Every grammar walks over every text: all lines are in a window, each window is new."""
    language = data.draw(st.sampled_from(known_languages())).name
    pieces = st.sampled_from(
        (
            "@a\n",
            "#[a]\n",
            "\n",
            "def f():\n",
            "    x\n",
            "\t}\n",
            "}\n",
            "// a\n",
            "/*\n",
            "*/\n",
            "{\n",
            "end\n",
            "a: b\n",
            "  @b(\n",
            "  )\n",
            "字\n",
            "fn f() {\n",
            "[a]\n",
            " \n",
            "x" * 30,
        )
    )
    text = "".join(data.draw(st.lists(pieces, max_size=60)))
    size = data.draw(st.integers(3, 80))
    overlap = data.draw(st.integers(0, size - 1))
    ruler = CharacterLineRuler(Lines(text), grammar_of(language), size=size, overlap=overlap)
    windows = walk_lines(ruler)
    covered = {at for start, _, end, _ in windows for at in range(start, end)}
    assert all(char.isspace() for at, char in enumerate(text) if at not in covered)
    assert all(end - start <= size for start, _, end, _ in windows)
    assert all(a[2] < b[2] and a[0] < b[0] for a, b in itertools.pairwise(windows))
