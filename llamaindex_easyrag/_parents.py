"""Children that were found, replaced by the parents that hold them."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index_instrumentation import get_dispatcher

from easyrag_core import ChunkStore, InvalidParameterError
from easyrag_core.plans import adriven, driven
from llamaindex_easyrag._convert import node_from_chunk, storable_chunks
from llamaindex_easyrag._families import Families, Family, children_of, parent_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from llama_index.core.schema import BaseNode, NodeWithScore

__all__ = ["ParentNodes"]

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

    def merge(
        self, found: Sequence[NodeWithScore], *, merge_threshold: float, score: str, k: int | None
    ) -> list[NodeWithScore]:
        """Replace children by their parent where enough of them were found.

        Args:
            found: What a retriever gave, best first.
            merge_threshold: Share of a parent's children that must be found, in (0, 1].
            score: `"best"`, `"mean"` or `"sum"` of the children's scores.
            k: The most nodes to return; `None` for all.

        Returns:
            Copies, see `Families.merged`.

        Raises:
            ChunkNotFoundError: Parents are missing, and this is strict.
        """
        families, merge = Families(found, {}), None
        try:
            families = Families(found, self._links(found))
            merge = driven(families.plan(merge_threshold, score), self._families)
        except Exception as error:
            if self._strict:
                raise
            _report_failure(error)
        return families.merged(merge, k=k, strict=self._strict)

    async def amerge(
        self, found: Sequence[NodeWithScore], *, merge_threshold: float, score: str, k: int | None
    ) -> list[NodeWithScore]:
        """Replace children by their parent: the async twin of `merge`.

        Args:
            found: What a retriever gave, best first.
            merge_threshold: Share of a parent's children that must be found, in (0, 1].
            score: `"best"`, `"mean"` or `"sum"` of the children's scores.
            k: The most nodes to return; `None` for all.

        Returns:
            Copies, see `Families.merged`.

        Raises:
            ChunkNotFoundError: Parents are missing, and this is strict.
        """
        families, merge = Families(found, {}), None
        try:
            families = Families(found, await asyncio.to_thread(self._links, found))
            merge = await adriven(families.plan(merge_threshold, score), self._afamilies)
        except Exception as error:
            if self._strict:
                raise
            _report_failure(error)
        return families.merged(merge, k=k, strict=self._strict)

    def _families(self, ids: list[str]) -> dict[str, Family]:
        return {node.node_id: self._family(node) for node in self._read(ids)}

    async def _afamilies(self, ids: list[str]) -> dict[str, Family]:
        if not isinstance(self._store, BaseDocumentStore):
            return await asyncio.to_thread(self._families, ids)
        nodes = await self._store.aget_nodes(ids, raise_error=False)
        return {node.node_id: self._family(node) for node in nodes}

    def _family(self, node: BaseNode) -> Family:
        children = children_of(node)
        if not children and not isinstance(self._store, BaseDocumentStore):
            children = self._store.children_of(node.node_id)
        return Family(node, parent_of(node), children)

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
