"""Small chunks to find, the large ones that hold them to read."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core.chunking.code import CodeChunker
from easyrag_core.chunking.document import DocumentChunker
from easyrag_core.chunking.markdown import MarkdownChunker
from easyrag_core.chunking.parent_child import ParentChildChunker
from easyrag_core.errors import InvalidParameterError
from easyrag_core.index import InMemoryChunkStore
from easyrag_core.text import line_starts
from tests.strategies import nasty_texts, paragraphs

DATA = Path(__file__).parents[1] / "data" / "code"


def utf8_bytes(text: str) -> int:
    """Count bytes."""
    return len(text.encode("utf-8", "surrogatepass"))


@st.composite
def chunkers(draw: st.DrawFn) -> ParentChildChunker:
    length = draw(st.sampled_from((len, utf8_bytes)))
    large = draw(st.integers(8, 200))
    small = draw(st.integers(4, large))
    make = st.sampled_from((DocumentChunker, CodeChunker, MarkdownChunker))
    parent = draw(make)(large, draw(st.sampled_from((0, large // 5))), length_function=length)
    child = draw(make)(small, 0, length_function=length)
    return ParentChildChunker(parent, child)


def families(chunks: list) -> list[tuple]:
    """Each parent with its children; a lone chunk with none."""
    found: list[tuple] = []
    for chunk in chunks:
        if chunk.parent_id is None:
            found.append((chunk, []))
        else:
            assert chunk.parent_id == found[-1][0].id
            found[-1][1].append(chunk)
    return found


@given(chunkers(), st.one_of(nasty_texts(), paragraphs()))
def test_both_levels_keep_the_promises(chunker: ParentChildChunker, text: str) -> None:
    """True spans, true lines, nothing lost, on each level; children lie in their parent."""
    chunks = chunker.chunk(text, "d")
    starts = line_starts(text)
    for chunk in chunks:
        assert text[chunk.start : chunk.end] == chunk.text
        assert chunk.text.strip()
        assert chunk.start_line == sum(1 for start in starts if start <= chunk.start)
        assert chunk.end_line == sum(1 for start in starts if start <= chunk.end - 1)
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    for level in (
        [c for c in chunks if c.parent_id is None],
        [c for c in chunks if c.kind != "parent"],
    ):
        covered = {at for chunk in level for at in range(chunk.start, chunk.end)}
        assert all(char.isspace() or at in covered for at, char in enumerate(text))
    for parent, children in families(chunks):
        assert (parent.kind == "parent") == bool(children)
        assert all(parent.start <= c.start < c.end <= parent.end for c in children)
        assert all(a.start < b.start for a, b in pairwise(children))


@given(chunkers(), st.one_of(nasty_texts(), paragraphs()))
def test_ids_are_distinct_linked_and_stable(chunker: ParentChildChunker, text: str) -> None:
    """No two chunks share an id; a parent lists its children in order; a second run is equal."""
    chunks = chunker.chunk(text, "d")
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    for parent, children in families(chunks):
        assert parent.metadata.get("child_ids", []) == [child.id for child in children]
        assert len(children) != 1 or children[0].text != parent.text
    assert chunker.chunk(text, "d") == chunks
    assert list(chunker.iter_chunks(text, "d")) == chunks


def test_parents_are_packed_to_their_size() -> None:
    """1150 characters of short paragraphs, 1000 and 500: two parents, not forty."""
    text = "\n\n".join(f"Paragraph {at:02} says little." for at in range(43))
    assert 1150 < len(text) < 1200
    chunks = ParentChildChunker(DocumentChunker(1000, 0), DocumentChunker(500, 0)).chunk(text)
    (first, inner), (second, few) = families(chunks)
    assert first.kind == "parent"
    assert len(first.text) > 500
    assert len(inner) >= 2
    assert (second.kind, few) == ("text", [])


def test_a_parent_that_is_its_only_child_is_given_once() -> None:
    """A short document is one chunk without parent: it is indexed, and it is what is read."""
    chunks = ParentChildChunker().chunk("短文。One short text.")
    assert [(chunk.kind, chunk.parent_id) for chunk in chunks] == [("text", None)]
    assert "child_ids" not in chunks[0].metadata


def test_the_store_gives_the_children_in_order() -> None:
    """Links are fields: a store finds parent and children whatever the ids look like."""
    text = "这是一个句子。Here is another one. " * 60
    chunks = ParentChildChunker(DocumentChunker(400, 0), DocumentChunker(90, 20)).chunk(
        text, "a_b_3"
    )
    store = InMemoryChunkStore()
    store.put_many(chunks)
    for parent, children in families(chunks):
        assert store.children_of(parent.id) == [child.id for child in children]


def test_defaults() -> None:
    """2000 without overlap, and 400 with 50."""
    chunker = ParentChildChunker()
    sizes = [(each.chunk_size, each.chunk_overlap) for each in (chunker.parent, chunker.child)]
    assert sizes == [(2000, 0), (400, 50)]


def test_unchanged_children_keep_their_ids_when_parents_move() -> None:
    """Text put on top makes new parents; children whose text stays keep their ids."""
    text = "\n\n".join(
        f"第{at}段。Paragraph {at} stays as it is, word for word." for at in range(20)
    )
    chunker = ParentChildChunker(
        DocumentChunker(300, 0), DocumentChunker(60, 0, boundary="paragraph")
    )
    before = {c.text: c.id for c in chunker.chunk(text, "d") if c.parent_id}
    after = {c.text: c.id for c in chunker.chunk("New on top.\n\n" + text, "d") if c.parent_id}
    kept = before.keys() & after.keys()
    assert len(kept) > 15
    assert all(before[text] == after[text] for text in kept)


def test_code_children_know_the_lines_of_the_file() -> None:
    """Lines in the frame of a child are those of the file, its language and path the parent's."""
    text = (DATA / "stock.py").read_text(encoding="utf-8")
    chunker = ParentChildChunker(
        CodeChunker(600, 0, file_path="shelf/stock.py"), CodeChunker(250, 0)
    )
    children = [c for c in chunker.chunk(text, "d", metadata={"team": "a"}) if c.kind != "parent"]
    assert len(children) > 3
    for child in children:
        assert text.split("\n")[child.start_line - 1] == child.text.split("\n")[0]
        assert f"Lines: {child.start_line}-{child.end_line}\n" in child.embedding_text
        assert (child.language, child.kind) == ("Python", "code")
        assert child.metadata["team"] == "a"


def test_children_of_markdown_know_their_headings() -> None:
    """A child of prose has the headings of its section; one of Markdown adds its own."""
    text = (
        "# Guide\n\n## Use\n\n"
        + "Some words are here. " * 30
        + "\n\n## 安装\n\n"
        + "步骤如下。" * 60
    )
    for child in (DocumentChunker(120, 0), MarkdownChunker(120)):
        chunks = ParentChildChunker(MarkdownChunker(500), child).chunk(text, "d")
        paths = {
            chunk.heading_path for chunk in chunks if "words" in chunk.text and chunk.parent_id
        }
        assert paths == {("Guide", "Use")}


def test_metadata_is_copied_and_the_callers_is_left_alone() -> None:
    """Each chunk has its own copy."""
    given_metadata = {"source": "a.txt"}
    text = "One sentence is here. " * 30
    chunker = ParentChildChunker(DocumentChunker(300, 0), DocumentChunker(60, 0))
    parent, child, *_ = chunker.chunk(text, metadata=given_metadata)
    child.metadata["more"] = 1
    assert given_metadata == {"source": "a.txt"}
    assert parent.metadata.keys() == {"source", "child_ids"}


def test_another_scheme_of_ids() -> None:
    """The factory sees parents and children with their links; the chunkers' own ids are unused."""
    chunker = ParentChildChunker(
        DocumentChunker(60, 0, id_factory=lambda chunk: "same"),
        DocumentChunker(25, 0, id_factory=lambda chunk: "same"),
        id_factory=lambda chunk: f"{chunk.parent_id or chunk.document_id}/{chunk.index}",
    )
    chunks = chunker.chunk("One is here now. Two is there.\n\n三在这里。四在那里。", "d")
    assert [chunk.id for chunk in chunks] == ["d/0", "d/0/1", "d/0/2"]
    assert chunks[0].metadata["child_ids"] == ["d/0/1", "d/0/2"]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"parent": 2000}, "parent"),
        ({"child": "small"}, "child"),
        ({"parent": DocumentChunker(100, 0)}, "child"),
        ({"parent": DocumentChunker(100, 0), "child": DocumentChunker(101, 0)}, "child"),
        ({"id_factory": 3}, "id_factory"),
    ],
)
def test_misuse_is_refused_at_construction(settings: dict, name: str) -> None:
    """What is no chunker, and a child above its parent, are refused before any text is seen."""
    with pytest.raises(InvalidParameterError) as caught:
        ParentChildChunker(**settings)
    assert caught.value.name == name


def test_sizes_in_different_units_are_not_compared() -> None:
    """A parent in characters and a child in bytes may have any sizes."""
    ParentChildChunker(DocumentChunker(100, 0), DocumentChunker(150, 0, length_function=utf8_bytes))


@pytest.mark.parametrize("text", [None, b"bytes", 3])
def test_only_text_is_cut(text: object) -> None:
    """Bytes and other things are refused with a word of advice."""
    with pytest.raises(InvalidParameterError, match="decode"):
        ParentChildChunker().chunk(text)


@pytest.mark.parametrize("text", ["", " \n", "\u3000"])
def test_blank_texts_give_no_chunk(text: str) -> None:
    """Nothing to read, nothing to index."""
    assert ParentChildChunker().chunk(text) == []
