"""What the tests of the node parsers look at: places, coverage and links."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from llama_index.core.schema import Document

from easyrag_core.text import is_grapheme_boundary

if TYPE_CHECKING:
    from llama_index.core.schema import TextNode


def document(text: str, **fields) -> Document:
    return Document(text=text, **{"id_": "doc", **fields})


def covered(text: str, nodes: list[TextNode], start: int = 0) -> bool:
    """Whether every non-blank character from `start` on is in a node."""
    kept = set()
    for node in nodes:
        kept.update(range(node.start_char_idx, node.end_char_idx))
    return all(
        place in kept or text[place].isspace() or text[place] == "\ufeff"
        for place in range(start, len(text))
    )


def check_places(text: str, nodes: list[TextNode], *, lines: bool = True) -> None:
    """Every node is a slice of the root, with the right lines if they are known."""
    for node in nodes:
        assert text[node.start_char_idx : node.end_char_idx] == node.text
        assert node.text.strip()
        if lines:
            assert node.metadata["start_line"] == line_at(text, node.start_char_idx)
            assert node.metadata["end_line"] == line_at(text, node.end_char_idx - 1)


def line_at(text: str, place: int) -> int:
    before = text[:place].replace("\r\n", "\n\0")
    # A line feed after a carriage return belongs to the line that both end.
    inside = text[place - 1 : place + 1] == "\r\n" if place else False
    return 1 + before.count("\n") + before.count("\r") - inside


def check_links(nodes: list[TextNode]) -> None:
    """Both ways between neighbours of one document, never beyond, with the targets' hashes."""
    for before, after in pairwise(nodes):
        if before.ref_doc_id == after.ref_doc_id:
            assert before.next_node.node_id == after.node_id
            assert after.prev_node.node_id == before.node_id
            assert before.next_node.hash == after.hash
            assert after.prev_node.hash == before.hash
            assert before.next_node.metadata == after.prev_node.metadata == {}
        else:
            assert before.next_node is None
            assert after.prev_node is None
    if nodes:
        assert nodes[0].prev_node is None
        assert nodes[-1].next_node is None


def is_one_cluster(text: str) -> bool:
    return not any(is_grapheme_boundary(text, place) for place in range(1, len(text)))


def ids_of(nodes) -> list[str]:
    return [node.node_id for node in nodes]
