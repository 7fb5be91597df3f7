"""Children that were found, replaced by the parents that hold them."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index_instrumentation import get_dispatcher

from easyrag_core import ChunkNotFoundError, ChunkStore, InvalidParameterError
from easyrag_core.ranking.expansion import expand_to_parents
from llamaindex_easyrag._convert import node_from_chunk, storable_chunks
from llamaindex_easyrag._facts import facts_of, scored_node

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from llama_index.core.schema import NodeWithScore

    from easyrag_core.ranking.expansion import ExpandedItem

__all__ = ["Families", "ParentNodes", "children_of", "parent_of"]

_logger = logging.getLogger(__name__)
_dispatcher = get_dispatcher(__name__)


class ParentNodes:
    """Where parents are looked up by id: a document store or a store of chunks."""

    def __init__(self, store: BaseDocumentStore | ChunkStore, *, strict: bool = False) -> None:
        """Keep the store.

        Args:
            store: A document store of the framework, or a `ChunkStore`.
            strict: Raise the store's own error, instead of answering without it.

        Raises:
            InvalidParameterError: It is neither.
        """
        if not isinstance(store, BaseDocumentStore | ChunkStore):
            raise InvalidParameterError("store", store, "give a docstore or a ChunkStore")
        self._store = store
        self._strict = strict

    @classmethod
    def of(
        cls,
        *,
        docstore: BaseDocumentStore | None = None,
        storage_context: Any = None,
        store: ChunkStore | None = None,
        strict: bool = False,
    ) -> ParentNodes | None:
        """Choose the one place that is given.

        Args:
            docstore: A document store.
            storage_context: A storage context or an index: its document store.
            store: A store of chunks.
            strict: As in the constructor.

        Returns:
            The place; `None` if none is given.

        Raises:
            InvalidParameterError: More than one is given, or it is no store.
        """
        # A store may be empty, and so false.
        given = [one for one in (docstore, storage_context, store) if one is not None]
        if not given:
            return None
        if len(given) > 1:
            allowed = "give just one of docstore, storage_context and store"
            raise InvalidParameterError("docstore", f"{len(given)} places", allowed)
        return cls(getattr(given[0], "docstore", given[0]), strict=strict)

    def put(self, nodes: Sequence[BaseNode]) -> None:
        """Add parents, and replace those that are there.

        Args:
            nodes: The parents.
        """
        if isinstance(self._store, BaseDocumentStore):
            self._store.add_documents(nodes, allow_update=True)
        else:
            self._store.put_many(storable_chunks(nodes))

    def replace(self, found: Sequence[NodeWithScore], *, k: int | None) -> list[NodeWithScore]:
        """Replace children by their parents.

        Args:
            found: What a retriever gave, best first.
            k: The most nodes to return; `None` for all.

        Returns:
            Copies, see `Families.expanded`.

        Raises:
            ChunkNotFoundError: Parents are missing, and this is strict.
        """
        families, parents = self._looked_up(found)
        return families.expanded(parents, k=k, strict=self._strict)

    async def areplace(
        self, found: Sequence[NodeWithScore], *, k: int | None
    ) -> list[NodeWithScore]:
        """Replace children by their parents: the async twin of `replace`.

        Args:
            found: What a retriever gave, best first.
            k: The most nodes to return; `None` for all.

        Returns:
            Copies, see `Families.expanded`.

        Raises:
            ChunkNotFoundError: Parents are missing, and this is strict.
        """
        if not isinstance(self._store, BaseDocumentStore):
            families, parents = await asyncio.to_thread(self._looked_up, found)
            return families.expanded(parents, k=k, strict=self._strict)
        families, parents = Families(found, {}), {}
        try:
            parents = _by_id(await self._store.aget_nodes(families.to_read(), raise_error=False))
        except Exception as error:
            if self._strict:
                raise
            _report_failure(error)
        return families.expanded(parents, k=k, strict=self._strict)

    def _looked_up(self, found: Sequence[NodeWithScore]) -> tuple[Families, dict[str, BaseNode]]:
        families = Families(found, {})
        try:
            families = Families(found, self._links(found))
            return families, _by_id(self._read(families.to_read()))
        except Exception as error:
            if self._strict:
                raise
            _report_failure(error)
        return families, {}

    def _links(self, found: Sequence[NodeWithScore]) -> Mapping[str, str | None]:
        """Parents of nodes that do not know them themselves."""
        alone = [one.node.node_id for one in found if parent_of(one.node) is None]
        if isinstance(self._store, BaseDocumentStore) or not alone:
            return {}
        return self._store.parents_of(alone)

    def _read(self, ids: Sequence[str]) -> list[BaseNode]:
        if isinstance(self._store, BaseDocumentStore):
            return self._store.get_nodes(list(ids), raise_error=False)
        return [node_from_chunk(chunk) for chunk in self._store.get_many(list(ids)) if chunk]


def _report_failure(error: Exception) -> None:
    _logger.warning("Parents cannot be read, children stay: %r", error)
    _dispatcher.event(ExceptionEvent(exception=error))


def _by_id(nodes: Sequence[BaseNode]) -> dict[str, BaseNode]:
    return {node.node_id: node for node in nodes}


def children_of(node: BaseNode) -> list[str]:
    """Return the ids of a node's children.

    Args:
        node: Any node.

    Returns:
        The ids in order; none for a leaf.
    """
    children = node.relationships.get(NodeRelationship.CHILD)
    return [child.node_id for child in children] if isinstance(children, list) else []


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
