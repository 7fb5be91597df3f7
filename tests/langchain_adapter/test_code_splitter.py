"""`CodeTextSplitter`: whole lines with their numbers, in any language."""

from __future__ import annotations

import json
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_text_splitters import Language, RecursiveCharacterTextSplitter

from easyrag_core import EasyRAGError
from easyrag_core.chunking.code import CodeChunker
from langchain_easyrag import CodeTextSplitter
from tests.langchain_adapter.markdown_samples import places, sized
from tests.langchain_adapter.samples import ids
from tests.strategies import nasty_texts

DECORATED = """\
@cache
class Shop:
    pass

@cache
def first(argument):
    result = compute(argument)
    return result

@cache
async def second(argument):
    return compute(argument)
"""

FUNCTIONS = "\n\n".join(
    f'def function_{n}(value):\n    """说明 {n}."""\n    return value + {n}' for n in range(12)
)


@st.composite
def code(draw):
    """Lines of code between texts that break splitters."""
    lines = st.sampled_from(("def f(x):\n", "    return x\n", "\n", "@dec\n", "class A:\n", "}\n"))
    parts = draw(st.lists(st.one_of(lines, nasty_texts(max_fragments=2)), max_size=20))
    return "".join(parts)


@given(
    code(),
    st.integers(min_value=10, max_value=120),
    st.sampled_from([len, sized]),
    st.booleans(),
)
def test_promises_hold_for_any_code(text, size, measure, prefix):
    """DESIGN 1.1 to 1.3: true spans, nothing lost, the size kept on what is embedded."""
    splitter = CodeTextSplitter(size, prefix_header=prefix, length_function=measure)
    chunks = splitter.split_documents([Document(text, metadata={"source": "a.py"})])
    covered, last = set(), 0
    for chunk, own in zip(chunks, places(chunks, text), strict=True):
        place = chunk.metadata
        assert own.strip()
        assert own in chunk.page_content
        assert prefix or own == chunk.page_content
        assert place["start_index"] >= last
        last = place["start_index"]
        covered.update(range(place["start_index"], place["end_index"]))
        assert measure(chunk.page_content) <= size or len(own) < 12
    assert all(text[at].isspace() for at in set(range(len(text))) - covered)


@given(code(), st.integers(min_value=20, max_value=120), st.booleans())
def test_the_chunks_are_those_of_the_core(text, size, prefix):
    """DESIGN 1.10: ids, places and what is embedded are the core's."""
    template = None if prefix else "{code}"
    core = CodeChunker(size, template=template).chunk(text, "doc", file_path="a.py")
    ours = CodeTextSplitter(size, prefix_header=prefix).split_documents(
        [Document(text, id="doc", metadata={"source": "a.py"})]
    )
    assert [(c.id, c.embedding_text, c.start, c.end, c.start_line, c.end_line) for c in core] == [
        (
            d.id,
            d.page_content,
            d.metadata["start_index"],
            d.metadata["end_index"],
            d.metadata["start_line"],
            d.metadata["end_line"],
        )
        for d in ours
    ]


def test_c1_decorators_stay_with_what_they_decorate():
    """C1: theirs leaves "@cache" alone; ours never parts it from its definition."""
    theirs = RecursiveCharacterTextSplitter.from_language(
        Language.PYTHON, chunk_size=60, chunk_overlap=0
    ).split_text(DECORATED)
    assert any(chunk.rstrip().endswith("@cache") for chunk in theirs)
    ours = CodeTextSplitter(70, 0, language="python", prefix_header=False).split_text(DECORATED)
    assert len(ours) > 1
    assert not any(chunk.rstrip().endswith("@cache") for chunk in ours)
    assert any(chunk.startswith("@cache\nasync def second(argument):\n    re") for chunk in ours)


def test_c2_the_indentation_of_first_lines_is_kept():
    """C2: theirs strips it; ours cuts whole lines."""
    text = "\n".join(f"    line_{n} = {n}" for n in range(10))
    theirs = RecursiveCharacterTextSplitter(chunk_size=40, chunk_overlap=0).split_text(text)
    assert not theirs[1].startswith("    ")
    ours = CodeTextSplitter(40, 0, prefix_header=False).split_text(text)
    assert all(chunk.startswith("    line_") for chunk in ours)
    assert "\n".join(ours) == text


def test_c5_lines_language_and_ids():
    """C5: lines from 1 in the file, the language by its name, ids that stay."""
    source = Document(FUNCTIONS, metadata={"source": "src/app/main.py"})
    chunks = CodeTextSplitter(300, 0).split_documents([source])
    lines = FUNCTIONS.split("\n")
    for chunk, own in zip(chunks, places(chunks, FUNCTIONS), strict=True):
        first, last = chunk.metadata["start_line"], chunk.metadata["end_line"]
        assert "\n".join(lines[first - 1 : last]) == own
        assert chunk.metadata["language"] == "Python"
        assert "File: src/app/main.py\n" in chunk.page_content
        assert f"Lines: {first}-{last}\n" in chunk.page_content
        assert json.loads(json.dumps(chunk.metadata)) == chunk.metadata
    assert ids(chunks) == ids(CodeTextSplitter(300, 0).split_documents([source]))
    assert len(set(ids(chunks))) == len(chunks)


@pytest.mark.parametrize("language", [Language.PERL, "bash", "sql", "dart", "no such language"])
def test_c6_any_language_is_split(language):
    """C6: theirs raises for languages that it has no list for; ours cuts lines."""
    text = "first line\nsecond line\n\nthird line"
    chunks = CodeTextSplitter.from_language(language, chunk_size=25, chunk_overlap=0)
    assert "third line" in chunks.split_text(text)[-1]


@pytest.mark.parametrize(
    ("metadata", "settings", "language"),
    [
        ({"source": "a/b.rs"}, {}, "Rust"),
        ({"source": "x.txt", "file_path": "b.go"}, {}, "Go"),
        ({"source": "b.rs"}, {"language": "python"}, "Python"),
        ({"source": "b.rs"}, {"language": Language.JAVA}, "Java"),
        ({"file_path": PurePosixPath("Dockerfile")}, {}, "Dockerfile"),
        ({"source": 3}, {}, None),
        ({}, {}, None),
    ],
    ids=str,
)
def test_where_the_language_comes_from(metadata, settings, language):
    """The splitter's own, else `file_path`, else `source`; nothing known is fine."""
    source = Document("a = 1\nb = 2", metadata=metadata)
    (chunk,) = CodeTextSplitter(**settings).split_documents([source])
    assert chunk.metadata.get("language") == language


def test_a_single_definition_is_named():
    """Its kind and name are in the metadata, beside the source's."""
    source = Document("def greet(name):\n    return name", metadata={"source": "a.py", "n": 1})
    (chunk,) = CodeTextSplitter().split_documents([source])
    assert chunk.metadata["symbol"] == "greet"
    assert chunk.metadata["n"] == 1


def test_a_description_is_embedded_and_kept():
    """`describe` and `template` are the core's."""
    splitter = CodeTextSplitter(
        template="{summary}\n{code}", describe=lambda _: {"summary": "greets", "keywords": ["hi"]}
    )
    (chunk,) = splitter.create_documents(["def greet(name):\n    return name"])
    assert chunk.page_content.startswith("greets\ndef greet")
    assert chunk.metadata["keywords"] == ["hi"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"chunk_size": 0},
        {"chunk_size": 10, "chunk_overlap": 10},
        {"language": 3},
        {"template": "no code"},
        {"length_function": "len"},
    ],
    ids=str,
)
def test_wrong_settings_are_refused_at_construction(wrong):
    """Typed, and a ValueError as in LangChain."""
    with pytest.raises(EasyRAGError) as refused:
        CodeTextSplitter(**wrong)
    assert isinstance(refused.value, ValueError)
