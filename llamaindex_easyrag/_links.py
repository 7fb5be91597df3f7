"""Links between nodes: neighbours, and parents with their children."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from llama_index.core.schema import NodeRelationship, RelatedNodeInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.schema import BaseNode

    from easyrag_core import Chunk

__all__ = ["info_of", "link_families", "link_generations", "link_nodes"]


def link_nodes(nodes: Sequence[BaseNode]) -> None:
    """Link neighbours of the same document in both directions, in place.

    One info per node is shared by its two neighbours, and holds no copy of the metadata.

    Args:
        nodes: Nodes that the caller has just built, in the order of their documents.
    """
    infos = [info_of(node) for node in nodes]
    for (before, info_before), (after, info_after) in pairwise(zip(nodes, infos, strict=True)):
        if before.ref_doc_id == after.ref_doc_id:
            before.relationships[NodeRelationship.NEXT] = info_after
            after.relationships[NodeRelationship.PREVIOUS] = info_before


def link_families(nodes: Sequence[BaseNode], chunks: Sequence[Chunk]) -> None:
    """Link parents and children in both directions, in place.

    Args:
        nodes: Nodes that the caller has just built.
        chunks: What they were built of, in the same order.
    """
    nodes_of = {chunk.id: node for chunk, node in zip(chunks, nodes, strict=False)}
    children: dict[str, list[RelatedNodeInfo]] = {}
    infos: dict[str, RelatedNodeInfo] = {}
    for chunk in chunks:
        if chunk.parent_id is None:
            continue
        parent = nodes_of[chunk.parent_id]
        if chunk.parent_id not in infos:
            infos[chunk.parent_id] = info_of(parent)
        nodes_of[chunk.id].relationships[NodeRelationship.PARENT] = infos[chunk.parent_id]
        children.setdefault(chunk.parent_id, []).append(info_of(nodes_of[chunk.id]))
    for parent_id, found in children.items():
        nodes_of[parent_id].relationships[NodeRelationship.CHILD] = found


def link_generations(nodes: Sequence[BaseNode]) -> None:
    """Link neighbours of one generation, in place: leaves with leaves, parents with parents.

    A node that is parent and leaf in one, because its only child would be itself, stands among
    the leaves; parents on its two sides are no neighbours.

    Args:
        nodes: Nodes whose families are linked, each parent before its children.
    """
    link_nodes([node for node in nodes if NodeRelationship.CHILD not in node.relationships])
    roots = [node for node in nodes if NodeRelationship.PARENT not in node.relationships]
    for is_parent, run in groupby(roots, lambda root: NodeRelationship.CHILD in root.relationships):
        if is_parent:
            link_nodes(list(run))


def info_of(node: BaseNode) -> RelatedNodeInfo:
    """Return what a link to a node holds: no copy of its metadata.

    Args:
        node: A node that is complete.

    Returns:
        Its id, type and hash.
    """
    try:
        digest = node.hash
    except UnicodeEncodeError:  # the framework cannot hash a document with a lone surrogate
        digest = None
    return RelatedNodeInfo(node_id=node.node_id, node_type=node.get_type(), hash=digest)
