"""Children that were found, and the parents that hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo
from llama_index_instrumentation import get_dispatcher

from easyrag_core import ChunkNotFoundError
from easyrag_core.ranking.expansion import expand_to_parents
from easyrag_core.ranking.merging import MergedItem, merge_by_reading
from llamaindex_easyrag._facts import facts_of, scored_node

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from llama_index.core.schema import NodeWithScore

    from easyrag_core.ranking.expansion import ExpandedItem
    from easyrag_core.ranking.merging import MergePlan

__all__ = ["Families", "Family", "children_of", "parent_of"]

_dispatcher = get_dispatcher(__name__)


def children_of(node: BaseNode) -> list[str]:
    """Return the ids of a node's children.

    Args:
        node: Any node.

    Returns:
        The ids in order; none for a leaf.
    """
    children = node.relationships.get(NodeRelationship.CHILD)
    return [child.node_id for child in children] if isinstance(children, list) else []


class Family(NamedTuple):
    """A node that may have a parent and children.

    Attributes:
        node: The node.
        parent: The id of its parent, if it has one.
        children: The ids of all its children.
    """

    node: BaseNode
    parent: str | None
    children: Sequence[str]


class Families:
    """What a retriever found, and the parents that it has."""

    def __init__(self, found: Sequence[NodeWithScore], links: Mapping[str, str | None]) -> None:
        """See which parents there are.

        Args:
            found: What a retriever gave, best first.
            links: Parents that only the store knows of.
        """
        self._found = found
        self._first: dict[str, tuple[int, NodeWithScore]] = {}
        for rank, one in enumerate(found, start=1):
            self._first.setdefault(one.node.node_id, (rank, one))
        told = {id_: parent_of(one.node) for id_, (_, one) in self._first.items()}
        parents = {id_: parent or links.get(id_) for id_, parent in told.items()}
        self._parents = {id_: parent for id_, parent in parents.items() if parent is not None}

    def __len__(self) -> int:
        """Count what is left when each parent stands for its children."""
        return len({self._parents.get(id_, id_) for id_ in self._first})

    def to_read(self) -> list[str]:
        """Return the parents that were not found themselves."""
        return [id_ for id_ in dict.fromkeys(self._parents.values()) if id_ not in self._first]

    def expanded(
        self, parents: Mapping[str, BaseNode], *, k: int | None, strict: bool = False
    ) -> list[NodeWithScore]:
        """Replace children by their parents, each parent once, at its best child's place.

        Args:
            parents: The parents that could be read.
            k: The most nodes to return; `None` for all.
            strict: Raise where a parent is missing, instead of keeping the child.

        Returns:
            Copies with the best child's score; `metadata["easyrag"]` tells which children were
            hit, and where they are.

        Raises:
            ChunkNotFoundError: `strict`, and parents are missing.
        """
        hits = {id_: one.node for id_, (_, one) in self._first.items()}
        nodes = {**parents, **hits}
        pairs = [(one.node.node_id, one.score) for one in self._found]
        _report([id_ for id_ in dict.fromkeys(self._parents.values()) if id_ not in nodes])
        items = expand_to_parents(pairs, self._parents, k=k, exists=nodes, strict=strict)
        return [
            _scored(item, rank, nodes[item.id], self._first)
            for rank, item in enumerate(items, start=1)
        ]

    def plan(self, merge_threshold: float, score: str) -> MergePlan[Family]:
        """Plan a merge.

        Args:
            merge_threshold: Share of a parent's children that must be found.
            score: How the children's scores become the parent's.

        Returns:
            The plan; it asks for the parents of one level after the other.
        """
        return merge_by_reading(
            [(one.node.node_id, one.score) for one in self._found],
            self._parents,
            family_of=lambda family: (family.parent, family.children),
            merge_threshold=merge_threshold,
            score=score,
        )

    def merged(
        self,
        merge: tuple[list[MergedItem], dict[str, Family]] | None,
        *,
        k: int | None,
        strict: bool = False,
    ) -> list[NodeWithScore]:
        """Return what a merge came to; where the store failed, what was there before.

        Args:
            merge: Items, and what was read.
            k: The most nodes to return; `None` for all.
            strict: Raise where a parent is missing, instead of keeping the children.

        Returns:
            Copies; `metadata["easyrag"]` tells which children of a parent were found, where they
            are, and their share of all.

        Raises:
            ChunkNotFoundError: `strict`, and parents are missing.
        """
        kept = [MergedItem(id_, one.score) for id_, (_, one) in self._first.items()]
        items, read = merge or (kept, {})
        wanted = dict.fromkeys(self._parents.values()) if merge else {}
        missing = [id_ for id_ in wanted if id_ not in read]
        _report(missing)
        if missing and strict:
            raise ChunkNotFoundError(missing)
        return [
            _merged(item, rank, read, self._first) for rank, item in enumerate(items[:k], start=1)
        ]


def parent_of(node: BaseNode) -> str | None:
    """Return the id of a node's parent, as the node knows it.

    Args:
        node: Any node.

    Returns:
        The id, from its relationships or from `metadata["parent_id"]`.
    """
    parent = node.relationships.get(NodeRelationship.PARENT)
    if isinstance(parent, RelatedNodeInfo):
        return parent.node_id
    told = node.metadata.get("parent_id")
    return told if isinstance(told, str) else None


def _report(missing: list[str]) -> None:
    if missing:
        _dispatcher.event(ExceptionEvent(exception=ChunkNotFoundError(missing)))


def _scored(
    item: ExpandedItem, rank: int, node: BaseNode, first: Mapping[str, tuple[int, NodeWithScore]]
) -> NodeWithScore:
    """What a retriever told of the first child is told of its parent too."""
    if not item.children:
        return scored_node(node, item.score, {"score": item.score, "rank": rank})
    hits = [first[child] for child in item.children]
    children = [_child_facts(place, one) for place, one in hits]
    told = {**facts_of(hits[0][1].node), "score": item.score, "rank": rank, "children": children}
    return scored_node(node, item.score, told)


def _child_facts(rank: int, one: NodeWithScore) -> dict[str, Any]:
    places = {
        "start_index": getattr(one.node, "start_char_idx", None),
        "end_index": getattr(one.node, "end_char_idx", None),
        "start_line": one.node.metadata.get("start_line"),
        "end_line": one.node.metadata.get("end_line"),
    }
    known = {name: place for name, place in places.items() if place is not None}
    return {"id": one.node.node_id, "rank": rank, "score": one.score, **known}


def _merged(
    item: MergedItem,
    rank: int,
    read: Mapping[str, Family],
    first: Mapping[str, tuple[int, NodeWithScore]],
) -> NodeWithScore:
    if item.ratio is None:
        return scored_node(first[item.id][1].node, item.score, {"score": item.score, "rank": rank})
    hits = [first[id_] for id_ in item.sources if id_ in first]
    told = {"score": item.score, "rank": rank, "ratio": item.ratio}
    children = {"children": [_child_facts(place, one) for place, one in hits]}
    return scored_node(
        read[item.id].node, item.score, {**facts_of(hits[0][1].node), **told, **children}
    )
