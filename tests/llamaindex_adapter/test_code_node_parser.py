"""CodeLineNodeParser: whole lines, true line numbers, definitions kept together."""

from __future__ import annotations

import importlib.util

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.node_parser import CodeSplitter, MetadataAwareTextSplitter
from llama_index.core.schema import MetadataMode

from easyrag_core.chunking.code import CodeChunker
from llamaindex_easyrag import CodeLineNodeParser
from tests.llamaindex_adapter._nodes import (
    check_links,
    check_places,
    covered,
    document,
    ids_of,
    is_one_cluster,
)
from tests.llamaindex_adapter._parts import Gate
from tests.strategies import nasty_texts

CODE = '''import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache


@cache
def here():
    """现在的位置。"""
    return {"path": os.getcwd()}


class Place:
    """The place of something, which has a name and a path."""

    def name(self):
        return "place"


# Afterwards.
def there(place):
    if place:

        return place.name()
    return None
'''


def embedded(node) -> str:
    return node.get_content(MetadataMode.EMBED)


def python(text: str = CODE, **fields):
    """A document whose path tells its language, and that no model reads."""
    hidden = ["file_path"]
    return document(
        text,
        metadata={"file_path": "src/place.py"},
        excluded_embed_metadata_keys=hidden,
        excluded_llm_metadata_keys=hidden,
        **fields,
    )


def test_it_is_what_the_framework_asks_for():
    """It is a text splitter that knows of metadata, with a documented constructor."""
    assert issubclass(CodeLineNodeParser, MetadataAwareTextSplitter)
    assert CodeLineNodeParser.class_name() == "CodeLineNodeParser"
    assert "template" in CodeLineNodeParser.__init__.__doc__


@given(text=nasty_texts(), size=st.integers(30, 120), words=st.booleans())
def test_promises_hold_on_any_text(text, size, words):
    """Spans are true, nothing is lost, the limit holds for what is embedded, links are complete."""

    def measure(shown: str) -> int:
        return len(shown.split()) + len(shown) // 7 if words else len(shown)

    parser = CodeLineNodeParser(size, length_function=measure, length="mine")
    source = document(text, metadata={"t": "x"})
    for nodes in (parser([python(text)]), parser([source])):
        check_places(text, nodes)
        check_links(nodes)
        assert covered(text, nodes)
        for node in nodes:
            assert measure(embedded(node)) <= size or is_one_cluster(node.text)


@given(text=nasty_texts(), size=st.integers(20, 200))
def test_nodes_are_the_chunks_of_the_core(text, size):
    """Ids, texts, lines and what is embedded are those of the core's chunks."""
    chunks = CodeChunker(size, file_path="src/place.py").chunk(text, "doc")
    nodes = CodeLineNodeParser(size)([python(text)])
    for node, chunk in zip(nodes, chunks, strict=True):
        assert (node.node_id, node.text) == (chunk.id, chunk.text)
        framed = chunk.embedding_text != chunk.text
        assert embedded(node) == (chunk.embedding_text.strip() if framed else chunk.text)
        assert node.get_content(MetadataMode.LLM) == chunk.text
        assert node.metadata["language"] == "Python"


def test_what_is_known_of_the_code():
    """Language, lines and symbols are metadata; they are embedded, and the LLM reads code alone."""
    body = "    # 很长的一行说明，让它自己成为一块。\n" * 5
    code = f"import os\n\n\n@cache\ndef here():\n{body}\n\ndef there():\n{body}"
    nodes = CodeLineNodeParser(220, 0)([python(code)])
    here = next(node for node in nodes if "def here" in node.text)
    assert here.text.startswith("@cache\ndef here")
    assert here.metadata["symbol"] == "here"
    assert here.metadata["language"] == "Python"
    head = embedded(here).removesuffix(here.text)
    assert head.startswith("Language: Python\nFile: ")
    assert "Lines: 4-10\n" in head
    assert here.get_content(MetadataMode.LLM) == here.text


def test_beside_the_callers_metadata():
    """A path that models read stays where it is; the frame is one more entry."""
    source = document(CODE, metadata={"file_path": "src/place.py"})
    node = CodeLineNodeParser(400)([source])[0]
    assert node.get_content(MetadataMode.LLM) == f"file_path: src/place.py\n\n{node.text}"
    assert embedded(node).startswith("file_path: src/place.py\ncontext: Language: Python\n")


@pytest.mark.parametrize(
    ("metadata", "settings", "language"),
    [
        pytest.param({"file_path": "a/Dockerfile"}, {}, "Dockerfile", id="name"),
        pytest.param({"source": "x.rs"}, {}, "Rust", id="source"),
        pytest.param({"file_name": "x.go"}, {}, "Go", id="file_name"),
        pytest.param({"file_path": "x.py"}, {"language": "go"}, "Go", id="told"),
        pytest.param({"language": "rust"}, {}, "Rust", id="metadata"),
        pytest.param({"language": "en", "file_path": "x.py"}, {}, "Python", id="spoken-language"),
    ],
)
def test_the_language_is_found(metadata, settings, language):
    """From the setting, from any path that readers leave, or from the metadata."""
    (node,) = CodeLineNodeParser(**settings)([document("x = 1\n", metadata=metadata)])
    assert node.metadata["language"] == language


def test_an_unknown_language_is_fine():
    """No language is no error."""
    (node,) = CodeLineNodeParser()([document("x = 1\n")])
    assert "language" not in node.metadata


def test_a_template_of_the_callers():
    """Braces of the code stay as they are."""
    nodes = CodeLineNodeParser(template="{symbol}|{code}|{lines}")([python()])
    assert embedded(nodes[0]).endswith(f"{nodes[0].text}|1-25")
    bare = CodeLineNodeParser(template="{code}")([python()])
    assert embedded(bare[0]) == bare[0].text
    with pytest.raises(ValueError, match="template"):
        CodeLineNodeParser(template="{codes}")


def test_without_metadata():
    """`include_metadata=False`: bare nodes, nothing embedded but the code."""
    nodes = CodeLineNodeParser(60, 0, include_metadata=False)([python()])
    assert all(node.metadata == {} and embedded(node) == node.text for node in nodes)
    assert covered(CODE, nodes)


def test_a_limit_of_one_line():
    """LI-31: the limit is honoured, and every node is one line."""
    parser = CodeLineNodeParser(3, 0, template="{code}")
    assert parser.split_text("a=1\nb=2\nc=3\n") == ["a=1", "b=2", "c=3"]


def test_indentation_is_kept():
    """LI-32: a slice begins with its indentation, and lines are counted from 1."""
    text = "class A:\n    x = 1\n\n    def m(self):\n        pass\n"
    nodes = CodeLineNodeParser(40, 0, template="{code}")([document(text)])
    last = nodes[-1]
    assert last.text == "    def m(self):\n        pass"
    assert (last.metadata["start_line"], last.metadata["end_line"]) == (4, 5)


def test_broken_code_is_code():
    """LI-33: what no grammar takes is cut by lines all the same."""
    text = "def (((:\n  !!"
    assert CodeLineNodeParser().split_text(text) == [text]


def test_decorators_stay_with_their_function():
    """LI-35: what fits together is not parted, and no node is a brace alone."""
    text = "@dec\ndef f():\n    return 1\n\n\n@dec\ndef g():\n    return 2\n"
    pieces = CodeLineNodeParser(40, 0, template="{code}").split_text(text)
    assert [piece.split("\n")[0] for piece in pieces] == ["@dec", "@dec"]
    braces = "class A\n{\n    int f()\n    {\n        return 1;\n    }\n}\n" * 3
    pieces = CodeLineNodeParser(60, 0, template="{code}", language="C#").split_text(braces)
    assert not {piece.strip() for piece in pieces} & {"{", "}"}


def test_repeated_code_has_true_places():
    """Equal lines are told apart by where they are."""
    text = "a = 1\n\nb = 2\n\na = 1\n\nb = 2\n"
    nodes = CodeLineNodeParser(12, 0, template="{code}")([document(text)])
    check_places(text, nodes)
    assert covered(text, nodes)
    assert len(set(ids_of(nodes))) == len(nodes) > 1


needs_grammars = pytest.mark.skipif(
    not importlib.util.find_spec("tree_sitter_language_pack"),
    reason="CodeSplitter needs tree-sitter-language-pack",
)


@needs_grammars
def test_divergence_the_stock_splitter_loses_indentation_and_lines():
    """Named divergence (LI-31, LI-32, LI-33): stripped slices, an ignored limit, an error."""
    splitter = CodeSplitter("python", chunk_lines=2, chunk_lines_overlap=1, max_chars=30)
    text = "class A:\n    def m(self):\n        pass\n"
    assert any(piece.startswith("def m") for piece in splitter.split_text(text))
    with pytest.raises(ValueError, match="parse"):
        splitter.split_text("def (((:\n  !!")


def test_ids_depend_on_path_and_language_but_not_on_the_position():
    """What is inserted above changes no id below."""
    parser = CodeLineNodeParser(180, 0)
    nodes = parser([python()])
    shifted = parser([python("#\n\n" + CODE)])
    assert ids_of(nodes)[1:] == ids_of(shifted)[-len(nodes) + 1 :]
    other = parser([document(CODE, metadata={"file_path": "b.py"})])
    assert set(ids_of(other)).isdisjoint(ids_of(nodes))


@pytest.mark.parametrize("bad", [-1, None, 1.5, "raises"])
@pytest.mark.parametrize("metadata", [{}, {"k": "v"}], ids=["bare", "metadata"])
def test_a_length_function_that_gives_no_length_is_named(bad, metadata):
    """Not a number of at least 0, or an error: a ValueError that names the function."""

    def measure(text: str):
        if bad == "raises" and text:
            raise RuntimeError("no")
        return bad if text else 0

    def make():
        parser = CodeLineNodeParser(120, length_function=measure, metadata_overflow="cap")
        return parser([document(CODE * 3, metadata=metadata)])

    with pytest.raises((ValueError, RuntimeError), match=r"length_function|no"):
        make()


async def test_async_gives_the_same_and_the_loop_goes_on():
    """LI-37b: `acall` works in a thread and gives the nodes of the sync call."""
    gate = Gate(len)
    parser = CodeLineNodeParser(200, length_function=gate, length="gate")
    assert await gate.run(parser.acall([python()])) == parser([python()])
