"""Where parents are kept, and documents that were found replaced by them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.documents import Document
from langchain_core.runnables import run_in_executor
from langchain_core.stores import BaseStore

from easyrag_core import ChunkNotFoundError, ChunkStore, HybridIndex, InvalidParameterError
from easyrag_core.plans import adriven, driven
from easyrag_core.ranking.expansion import expand_to_parents
from easyrag_core.ranking.merging import MergedItem, merge_by_reading
from langchain_easyrag._convert import (
    OWN_KEY,
    document_of_chunk,
    facts_of,
    given_score,
    with_facts,
    with_id,
)
from langchain_easyrag._given import given_documents
from langchain_easyrag._identity import document_ids
from langchain_easyrag.stores import ChunkDocstore

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    from easyrag_core import Chunk
    from easyrag_core.ranking.expansion import ExpandedItem
    from easyrag_core.ranking.merging import MergePlan

    Merge: TypeAlias = "tuple[list[MergedItem], dict[str, Family]] | None"

__all__ = ["Families", "Family", "FamilyKeys", "ParentStore"]

_logger = logging.getLogger(__name__)

_PLACE = ("start_index", "end_index", "start_line", "end_line")


class Family(NamedTuple):
    """A document that may have a parent and children.

    Attributes:
        document: The document.
        parent: The id of its parent, if it has one.
        children: The ids of all its children.
    """

    document: Document
    parent: str | None
    children: Sequence[str]


class FamilyKeys(NamedTuple):
    """The metadata keys under which documents name their parent and their children."""

    parent: str
    children: str

    def family_of(self, document: Document) -> Family:
        """Read what a document knows."""
        parent = document.metadata.get(self.parent)
        children = document.metadata.get(self.children)
        listed = children if isinstance(children, list | tuple) else ()
        return Family(
            document,
            parent if isinstance(parent, str) else None,
            [child for child in listed if isinstance(child, str)],
        )


class ParentStore:
    """Any store of parents: of the core, of an index, or of LangChain."""

    def __init__(self, store: Any) -> None:
        """Tell what kind of store it is.

        Args:
            store: A `ChunkStore`, a `HybridIndex`, or a `BaseStore[str, Document]`.

        Raises:
            InvalidParameterError: It is none of these.
        """
        if isinstance(store, HybridIndex | ChunkDocstore):
            store = store.store
        if not isinstance(store, BaseStore | ChunkStore):
            allowed = "give a ChunkStore, a HybridIndex or a BaseStore of Documents"
            raise InvalidParameterError("store", store, allowed)
        self._store: BaseStore[str, Document] | ChunkStore = store

    def read(self, ids: Sequence[str]) -> dict[str, Document]:
        """Look parents up in one batch.

        Args:
            ids: The ids.

        Returns:
            Copies by id; those that are not there are left out.

        Raises:
            InvalidParameterError: The store holds something else than documents.
        """
        if isinstance(self._store, BaseStore):
            return _copies(ids, self._store.mget(ids))
        chunks = self._store.get_many(ids)
        return {chunk.id: document_of_chunk(chunk) for chunk in chunks if chunk is not None}

    async def aread(self, ids: Sequence[str]) -> dict[str, Document]:
        """Look parents up: the async twin of `read`."""
        if isinstance(self._store, BaseStore):
            return _copies(ids, await self._store.amget(ids))
        return await run_in_executor(None, self.read, ids)

    def families(self, ids: Sequence[str], keys: FamilyKeys) -> dict[str, Family]:
        """Look parents up with what they know of their families, in one batch.

        A chunk that does not list its children is asked for them.

        Args:
            ids: The ids.
            keys: Where documents name their parent and their children.

        Returns:
            Families by id; those that are not there are left out.

        Raises:
            InvalidParameterError: The store holds something else than documents.
        """
        families = {id_: keys.family_of(parent) for id_, parent in self.read(ids).items()}
        if not isinstance(self._store, BaseStore):
            for id_, family in families.items():
                if not family.children:
                    families[id_] = family._replace(children=self._store.children_of(id_))
        return families

    async def afamilies(self, ids: Sequence[str], keys: FamilyKeys) -> dict[str, Family]:
        """Look parents up with their families: the async twin of `families`."""
        if isinstance(self._store, BaseStore):
            found = _copies(ids, await self._store.amget(ids))
            return {id_: keys.family_of(parent) for id_, parent in found.items()}
        return await run_in_executor(None, self.families, ids, keys)

    def write(self, parents: Iterable[Chunk]) -> None:
        """Put parents in; one that is there under the same id is replaced.

        Args:
            parents: The parents.
        """
        parents = list(parents)
        if not isinstance(self._store, BaseStore):
            self._store.put_many(parents)
        elif parents:
            self._store.mset([(parent.id, document_of_chunk(parent)) for parent in parents])

    def delete(self, ids: Sequence[str]) -> None:
        """Remove parents; ids that are not there are ignored.

        Args:
            ids: The ids.
        """
        if not isinstance(self._store, BaseStore):
            self._store.delete_many(ids)
        elif ids:
            self._store.mdelete(ids)

    def linked(self, ids: Sequence[str]) -> Mapping[str, str | None]:
        """Return the parents of children, as far as the store itself knows them."""
        return {} if isinstance(self._store, BaseStore) else self._store.parents_of(ids)


def _copies(ids: Sequence[str], found: Iterable[Document | None]) -> dict[str, Document]:
    copies = {}
    for id_, document in zip(ids, found, strict=True):
        if document is not None and not isinstance(document, Document):
            allowed = "it has to hold Documents; wrap a store of bytes by create_kv_docstore"
            raise InvalidParameterError("store", type(document).__name__, allowed)
        if document is not None:
            copies[id_] = with_id(document, document.id)
    return copies


class Families:
    """Documents that were found, and the parents that they have."""

    def __init__(
        self, documents: Sequence[Document], *, store: ParentStore, parent_key: str, strict: bool
    ) -> None:
        """See which parents there are.

        Args:
            documents: What a retriever found, best first.
            store: Holds the parents.
            parent_key: Metadata key of the parent's id.
            strict: Raise where a parent is missing or the store fails.
        """
        self._documents = given_documents(documents)
        self._keys = document_ids(self._documents)
        self._store = store
        self._strict = strict
        self._parents = self._linked(parent_key)
        self.wanted = list(dict.fromkeys(self._parents.values()))

    def _linked(self, parent_key: str) -> dict[str, str]:
        told = [document.metadata.get(parent_key) for document in self._documents]
        links = zip(self._keys, told, strict=True)
        parents = {key: parent for key, parent in links if isinstance(parent, str)}
        if unknown := [key for key in self._keys if key not in parents]:
            known = self._attempt(self._store.linked, unknown)
            parents.update((key, id_) for key, id_ in known.items() if id_ is not None)
        return parents

    def read(self) -> dict[str, Document]:
        """Look the parents up; a store that fails has none, with a warning."""
        return self._attempt(self._store.read, self.wanted) if self.wanted else {}

    async def aread(self) -> dict[str, Document]:
        """Look the parents up: the async twin of `read`."""
        if not self.wanted:
            return {}
        try:
            return await self._store.aread(self.wanted)
        except Exception as error:  # noqa: BLE001 - a store may fail in any way
            self._go_on(error)
            return {}

    def merge(self, threshold: float, score: str, keys: FamilyKeys) -> Merge:
        """Put parents in the place of children where enough of them were hit; see `merged`."""
        try:
            return driven(self._plan(threshold, score), lambda ids: self._store.families(ids, keys))
        except Exception as error:  # noqa: BLE001 - a store may fail in any way
            self._go_on(error)
            return None

    async def amerge(self, threshold: float, score: str, keys: FamilyKeys) -> Merge:
        """Put parents in the place of children: the async twin of `merge`."""
        try:
            return await adriven(
                self._plan(threshold, score), lambda ids: self._store.afamilies(ids, keys)
            )
        except Exception as error:  # noqa: BLE001 - a store may fail in any way
            self._go_on(error)
            return None

    def _plan(self, threshold: float, score: str) -> MergePlan[Family]:
        return merge_by_reading(
            [(key, given_score(d)) for key, d in zip(self._keys, self._documents, strict=True)],
            self._parents,
            family_of=lambda family: (family.parent, family.children),
            merge_threshold=threshold,
            score=score,
        )

    def merged(self, merge: Merge, k: int | None) -> list[Document]:
        """Return what a merge came to; where the store failed, what was there before.

        Args:
            merge: Items, and what was read.
            k: The most documents to return.

        Returns:
            Copies, each with its rank and score, and those of a parent with the children that
            were hit and their share of all.

        Raises:
            ChunkNotFoundError: `strict`, and parents are missing.
        """
        hits = self._first()
        items, read = merge or (
            [MergedItem(key, given_score(d)) for key, (_, d) in hits.items()],
            {},
        )
        missing = [id_ for id_ in self.wanted if merge and id_ not in read]
        if missing and self._strict:
            raise ChunkNotFoundError(missing)
        documents = []
        for rank, item in enumerate(items[:k], start=1):
            if item.ratio is None:
                document = hits[item.id][1]
                documents.append(with_facts(document, {**facts_of(document), "rank": rank}))
                continue
            sources = [id_ for id_ in item.sources if id_ in hits]
            best = _handed_on(hits[sources[0]][1])
            told = {"score": item.score, "rank": rank, "ratio": item.ratio}
            children = {"children": _children_told(sources, hits)}
            documents.append(with_facts(read[item.id].document, {**best, **told, **children}))
        return documents

    def _first(self) -> dict[str, tuple[int, Document]]:
        hits: dict[str, tuple[int, Document]] = {}
        for rank, (key, document) in enumerate(
            zip(self._keys, self._documents, strict=True), start=1
        ):
            hits.setdefault(key, (rank, document))
        return hits

    def _attempt(self, ask: Any, ids: list[str]) -> Any:
        try:
            return ask(ids)
        except Exception as error:  # noqa: BLE001 - a store may fail in any way
            self._go_on(error)
            return {}

    def _go_on(self, error: Exception) -> None:
        if self._strict or isinstance(error, InvalidParameterError):
            raise error
        _logger.warning("The store of the parents failed, the children stay: %r", error)

    def expanded(self, found: Mapping[str, Document], k: int | None) -> list[Document]:
        """Put parents in the place of their children.

        Args:
            found: The parents by id.
            k: The most documents to return.

        Returns:
            Copies, each with its rank, the best child's score, and the children that were hit.

        Raises:
            ChunkNotFoundError: `strict`, and parents are missing.
        """
        hits = self._first()
        items = expand_to_parents(
            [(key, given_score(d)) for key, d in zip(self._keys, self._documents, strict=True)],
            self._parents,
            k=k,
            exists=found.keys() | hits.keys(),
            strict=self._strict,
        )
        return [
            _standing(item, rank, found.get(item.id) or hits[item.id][1], hits)
            for rank, item in enumerate(items, start=1)
        ]


def _standing(
    item: ExpandedItem, rank: int, document: Document, hits: Mapping[str, tuple[int, Document]]
) -> Document:
    if not item.children:
        return with_facts(document, {**facts_of(document), "rank": rank})
    children = _children_told(item.children, hits)
    best = _handed_on(hits[item.children[0]][1])
    facts = {**best, "score": item.score, "rank": rank, "children": children}
    return with_facts(document, facts)


def _handed_on(child: Document) -> dict[str, Any]:
    """Return the facts that are a parent's as well."""
    return {name: fact for name, fact in facts_of(child).items() if name != OWN_KEY}


def _children_told(
    ids: Sequence[str], hits: Mapping[str, tuple[int, Document]]
) -> list[dict[str, Any]]:
    return [
        {"id": id_, "rank": place, "score": given_score(child), **_place_of(child)}
        for id_, (place, child) in ((id_, hits[id_]) for id_ in ids)
    ]


def _place_of(child: Document) -> dict[str, Any]:
    return {key: child.metadata[key] for key in _PLACE if key in child.metadata}
