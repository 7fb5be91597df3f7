"""Chunk stores as LlamaIndex's stores, and those as chunk stores."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.storage.docstore.utils import json_to_doc
from llama_index.core.storage.kvstore.types import DEFAULT_COLLECTION, BaseKVStore

from easyrag_core import InMemoryChunkStore, InvalidParameterError
from easyrag_core.index.store import KeyValueChunkStore, chunk_from_record, record_of_chunk
from llamaindex_easyrag._convert import (
    chunk_of_record,
    kept_chunk,
    kept_node,
    node_from_chunk,
    record_in_chunk,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from llama_index.core.schema import BaseNode

    from easyrag_core import Chunk, ChunkStore

__all__ = ["ChunkDocumentStore", "ChunkKVStore", "DocstoreChunkStore"]


class ChunkKVStore(BaseKVStore):
    """Keeps the framework's records in a `ChunkStore`: in memory, in SQLite, or in any other.

    Each collection is a document of the store, each record one of its chunks.
    """

    def __init__(self, store: ChunkStore | None = None) -> None:
        """Wrap a store.

        Args:
            store: Any chunk store; default: a new one in memory.
        """
        self.store: ChunkStore = InMemoryChunkStore() if store is None else store

    def put(self, key: str, val: dict[str, Any], collection: str = DEFAULT_COLLECTION) -> None:
        """Keep a record.

        Args:
            key: Its key.
            val: Plain JSON values.
            collection: Where it belongs.
        """
        self.put_all([(key, val)], collection)

    async def aput(
        self, key: str, val: dict[str, Any], collection: str = DEFAULT_COLLECTION
    ) -> None:
        """Keep a record in a thread: the async twin of `put`."""
        await asyncio.to_thread(self.put, key, val, collection)

    def put_all(
        self,
        kv_pairs: list[tuple[str, dict[str, Any]]],
        collection: str = DEFAULT_COLLECTION,
        batch_size: int = 1,
    ) -> None:
        """Keep records, all at once.

        Args:
            kv_pairs: Keys with their records.
            collection: Where they belong.
            batch_size: Not used: the store takes all of them in one step.
        """
        del batch_size
        self.store.put_many([chunk_of_record(key, val, collection) for key, val in kv_pairs])

    async def aput_all(
        self,
        kv_pairs: list[tuple[str, dict[str, Any]]],
        collection: str = DEFAULT_COLLECTION,
        batch_size: int = 1,
    ) -> None:
        """Keep records in a thread: the async twin of `put_all`."""
        await asyncio.to_thread(self.put_all, kv_pairs, collection, batch_size)

    def get(self, key: str, collection: str = DEFAULT_COLLECTION) -> dict[str, Any] | None:
        """Look a record up.

        Args:
            key: Its key.
            collection: Where it belongs.

        Returns:
            The record; `None` if there is none.
        """
        return self.get_many([key], collection)[0]

    async def aget(self, key: str, collection: str = DEFAULT_COLLECTION) -> dict[str, Any] | None:
        """Look a record up in a thread: the async twin of `get`."""
        return await asyncio.to_thread(self.get, key, collection)

    def get_many(
        self, keys: Sequence[str], collection: str = DEFAULT_COLLECTION
    ) -> list[dict[str, Any] | None]:
        """Look records up in one round trip.

        Args:
            keys: Their keys.
            collection: Where they belong.

        Returns:
            One record per key, `None` where there is none.
        """
        chunks = self.store.get_many([_id_of(key, collection) for key in keys])
        return [None if chunk is None else record_in_chunk(chunk) for chunk in chunks]

    def get_all(self, collection: str = DEFAULT_COLLECTION) -> dict[str, dict[str, Any]]:
        """Return all records of a collection by key.

        Args:
            collection: The collection.

        Returns:
            The records, in the order in which they came.
        """
        begin = _id_of("", collection)
        keys = [id_[len(begin) :] for id_ in self.store.ids() if id_.startswith(begin)]
        found = zip(keys, self.get_many(keys, collection), strict=True)
        return {key: record for key, record in found if record is not None}

    async def aget_all(self, collection: str = DEFAULT_COLLECTION) -> dict[str, dict[str, Any]]:
        """Return all records of a collection: the async twin of `get_all`."""
        return await asyncio.to_thread(self.get_all, collection)

    def delete(self, key: str, collection: str = DEFAULT_COLLECTION) -> bool:
        """Delete a record.

        Args:
            key: Its key.
            collection: Where it belongs.

        Returns:
            Whether there was one.
        """
        return bool(self.store.delete_many([_id_of(key, collection)]))

    async def adelete(self, key: str, collection: str = DEFAULT_COLLECTION) -> bool:
        """Delete a record in a thread: the async twin of `delete`."""
        return await asyncio.to_thread(self.delete, key, collection)


def _id_of(key: str, collection: str) -> str:
    return f"{collection}\n{key}"


class ChunkDocumentStore(KVDocumentStore):
    """A document store of the framework in a `ChunkStore`; with SQLite, one in a file.

    Nodes come back as they went in, many in one round trip. Chunks that the core put into the
    same store come back as nodes, too.
    """

    def __init__(self, store: ChunkStore | None = None, namespace: str | None = None) -> None:
        """Wrap a store.

        Args:
            store: Any chunk store; default: a new one in memory.
            namespace: Tells document stores in one chunk store apart.
        """
        self._records = ChunkKVStore(store)
        super().__init__(self._records, namespace=namespace, batch_size=2**31)

    def get_nodes(self, node_ids: list[str], raise_error: bool = True) -> list[BaseNode]:  # noqa: FBT001, FBT002 - the framework's order of arguments
        """Look nodes up, in one round trip.

        Args:
            node_ids: Their ids.
            raise_error: Whether a missing one is an error; else it is left out.

        Returns:
            The nodes, in the order of the ids.

        Raises:
            ValueError: One is missing, and `raise_error`.
        """
        found: dict[str, BaseNode] = {}
        records = self._records.get_many(node_ids, self._node_collection)
        for node_id, record in zip(node_ids, records, strict=True):
            if record is not None:
                found[node_id] = json_to_doc(record)
        if missing := [node_id for node_id in node_ids if node_id not in found]:
            chunks = zip(missing, self._records.store.get_many(missing), strict=True)
            found |= {id_: node_from_chunk(chunk) for id_, chunk in chunks if chunk is not None}
        for node_id in node_ids:
            if raise_error and node_id not in found:
                # The words that the framework's stores use.
                raise ValueError(f"doc_id {node_id} not found.")
        return [found[node_id] for node_id in node_ids if node_id in found]

    async def aget_nodes(self, node_ids: list[str], raise_error: bool = True) -> list[BaseNode]:  # noqa: FBT001, FBT002 - as above
        """Look nodes up in a thread: the async twin of `get_nodes`."""
        return await asyncio.to_thread(self.get_nodes, node_ids, raise_error)

    def get_document(self, doc_id: str, raise_error: bool = True) -> BaseNode | None:  # noqa: FBT001, FBT002 - as above
        """Look one node up.

        Args:
            doc_id: Its id.
            raise_error: Whether a missing one is an error.

        Returns:
            The node; `None` if there is none.

        Raises:
            ValueError: It is missing, and `raise_error`.
        """
        return next(iter(self.get_nodes([doc_id], raise_error)), None)

    async def aget_document(self, doc_id: str, raise_error: bool = True) -> BaseNode | None:  # noqa: FBT001, FBT002 - as above
        """Look one node up in a thread: the async twin of `get_document`."""
        return await asyncio.to_thread(self.get_document, doc_id, raise_error)


class DocstoreChunkStore(KeyValueChunkStore):
    """Keeps chunks in any document store or key-value store of the framework.

    Chunks come back equal to what was put in. In a document store others can read them as
    nodes, and nodes that others put in can be read as chunks. The framework's key-value stores
    look up one key at a time: there, a batch is as many round trips.
    """

    def __init__(
        self, store: BaseDocumentStore | BaseKVStore, *, collection: str = "easyrag/chunks"
    ) -> None:
        """Wrap a store.

        Args:
            store: A document store, or a key-value store.
            collection: For a key-value store: where chunks are kept in it.

        Raises:
            InvalidParameterError: It is neither.
        """
        self.store = store
        if isinstance(store, BaseDocumentStore):
            super().__init__(_NodeRecords(store))
        elif isinstance(store, BaseKVStore):
            super().__init__(_Records(store, collection))
        else:
            raise InvalidParameterError("store", store, "give a document store or a KV store")


class _NodeRecords:
    """Chunks as nodes, each under its id."""

    def __init__(self, store: BaseDocumentStore) -> None:
        self._store = store

    def read(self, ids: list[str]) -> list[Chunk | None]:
        nodes = self._store.get_nodes(ids, raise_error=False)
        found = {node.node_id: kept_chunk(node) for node in nodes}
        return [found.get(id_) for id_ in ids]

    def write(self, chunks: list[Chunk]) -> None:
        self._store.add_documents(list(map(kept_node, chunks)), allow_update=True)

    def delete(self, ids: list[str]) -> None:
        for id_ in ids:
            self._store.delete_document(id_, raise_error=False)

    def ids(self) -> list[str]:
        return list(self._store.docs)


class _Records:
    """Chunks as records, each under its id."""

    def __init__(self, store: BaseKVStore, collection: str) -> None:
        self._get = partial(store.get, collection=collection)
        self._all = partial(store.get_all, collection=collection)
        self._put = partial(store.put_all, collection=collection)
        self._delete = partial(store.delete, collection=collection)

    def read(self, ids: list[str]) -> list[Chunk | None]:
        found = zip(ids, map(self._get, ids), strict=True)
        return [None if value is None else chunk_from_record(value, id_) for id_, value in found]

    def write(self, chunks: list[Chunk]) -> None:
        self._put([(chunk.id, record_of_chunk(chunk)) for chunk in chunks])

    def delete(self, ids: Iterable[str]) -> None:
        for id_ in ids:
            self._delete(id_)

    def ids(self) -> list[str]:
        return list(self._all())
