"""Chunk stores as LangChain's key-value stores, and those as chunk stores."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any, get_args

from langchain_core.documents import Document
from langchain_core.stores import BaseStore
from typing_extensions import override

from easyrag_core import IndexFormatError, InMemoryChunkStore, InvalidParameterError
from easyrag_core.index.store import KeyValueChunkStore, chunk_from_record, record_of_chunk
from langchain_easyrag._convert import (
    chunk_of_document,
    document_of_chunk,
    kept_chunk,
    kept_document,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from easyrag_core import Chunk, ChunkStore

__all__ = ["ChunkDocstore", "DocstoreChunkStore"]

# What LocalFileStore takes for a key, without a way out of its folder.
_PLAIN_KEY = re.compile(r"(?!x-)[a-zA-Z0-9_][a-zA-Z0-9_\-]*")
# What file systems take for a name, in bytes.
_LONGEST_KEY = 255
# No plain key begins like this, and no other one goes on with a letter after `f`.
_DIGEST = "x-sha256-"


class ChunkDocstore(BaseStore[str, Document]):
    """Keep documents by key in a `ChunkStore`: in memory, in SQLite, or in any other.

    Documents come back equal to what was put in. Chunks that the core put into the same store
    come back as documents that show their place.

    Instantiate:
        ```python
        from easyrag_core import SQLiteChunkStore
        from langchain_easyrag import ChunkDocstore

        docstore = ChunkDocstore(SQLiteChunkStore("chunks.sqlite"))
        ```

    Use:
        ```python
        docstore.mset([("a", document)])
        docstore.mget(["a", "b"])  # [document, None]
        ```
    """

    def __init__(self, store: ChunkStore | None = None) -> None:
        """Wrap a store.

        Args:
            store: Any chunk store. Default: a new one in memory.
        """
        self.store: ChunkStore = InMemoryChunkStore() if store is None else store

    @override
    def mget(self, keys: Sequence[str]) -> list[Document | None]:
        """Look documents up.

        Args:
            keys: The keys.

        Returns:
            One document per key, in the order of the keys; `None` for what is not there.
        """
        chunks = self.store.get_many(list(keys))
        return [None if chunk is None else document_of_chunk(chunk) for chunk in chunks]

    @override
    def mset(self, key_value_pairs: Sequence[tuple[str, Document]]) -> None:
        """Put documents in; one that is there under the same key is replaced.

        Args:
            key_value_pairs: Keys with their documents.
        """
        self.store.put_many([chunk_of_document(value, key) for key, value in key_value_pairs])

    @override
    def mdelete(self, keys: Sequence[str]) -> None:
        """Remove documents; keys that are not there are ignored.

        Args:
            keys: The keys.
        """
        self.store.delete_many(list(keys))

    @override
    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Give all keys.

        Args:
            prefix: Give only those that begin like this.

        Yields:
            The keys.
        """
        yield from (key for key in self.store.ids() if prefix is None or key.startswith(prefix))


class DocstoreChunkStore(KeyValueChunkStore):
    """Keep chunks in any of LangChain's key-value stores: in memory, in files, in Redis, ….

    Chunks come back equal to what was put in. In a store of documents others can read them as
    documents, and documents that others put in can be read as chunks; in a store of bytes they
    are JSON.

    Instantiate:
        ```python
        from langchain_classic.storage import LocalFileStore
        from langchain_easyrag import DocstoreChunkStore

        store = DocstoreChunkStore(LocalFileStore("chunks"))
        ```

    Use:
        ```python
        index = HybridIndex(store=store)
        ```
    """

    def __init__(self, store: BaseStore[str, Any], *, values: str | None = None) -> None:
        """Wrap a store.

        Args:
            store: Any `BaseStore[str, Document]` or `ByteStore`.
            values: `"documents"` or `"bytes"`. Default: what the store's class says; documents
                where it says nothing.

        Raises:
            InvalidParameterError: It is no such store.
        """
        if not isinstance(store, BaseStore):
            raise InvalidParameterError("store", store, "give a BaseStore or a ByteStore")
        if values not in {None, "documents", "bytes"}:
            raise InvalidParameterError("values", values, "choose 'documents' or 'bytes'")
        self.store = store
        in_bytes = _holds_bytes(type(store)) if values is None else values == "bytes"
        super().__init__(_ByteRecords(store) if in_bytes else _DocumentRecords(store))


class _DocumentRecords:
    """Chunks as documents, each under its id."""

    def __init__(self, store: BaseStore[str, Any]) -> None:
        self._store = store

    def read(self, ids: list[str]) -> list[Chunk | None]:
        found = zip(ids, self._store.mget(ids), strict=True)
        return [None if value is None else _as_chunk(value, id_) for id_, value in found]

    def write(self, chunks: list[Chunk]) -> None:
        self._store.mset([(chunk.id, kept_document(chunk)) for chunk in chunks])

    def delete(self, ids: list[str]) -> None:
        self._store.mdelete(ids)

    def ids(self) -> list[str]:
        return list(self._store.yield_keys())


def _as_chunk(value: Any, id_: str) -> Chunk:
    if not isinstance(value, Document):
        told = f"What is kept under {id_!r} is {type(value).__name__}, not a Document."
        raise IndexFormatError(told)
    return kept_chunk(value, id_)


class _ByteRecords:
    """Chunks as JSON, each under its id in letters that every store takes for a key."""

    def __init__(self, store: BaseStore[str, Any]) -> None:
        self._store = store

    def read(self, ids: list[str]) -> list[Chunk | None]:
        found = zip(ids, self._store.mget(list(map(_key_of, ids))), strict=True)
        return [None if value is None else _parsed(value, id_) for id_, value in found]

    def write(self, chunks: list[Chunk]) -> None:
        self._store.mset([(_key_of(chunk.id), _written(chunk)) for chunk in chunks])

    def delete(self, ids: list[str]) -> None:
        self._store.mdelete(list(map(_key_of, ids)))

    def ids(self) -> list[str]:
        keys = list(map(_told_key, self._store.yield_keys()))
        long = [key for key in keys if key.startswith(_DIGEST)]
        found = zip(long, self._store.mget(long), strict=True) if long else ()
        told = {key: _parsed(value, key).id for key, value in found if value is not None}
        told |= {key: _id_of(key) for key in keys if not key.startswith(_DIGEST)}
        return [told[key] for key in keys if key in told]  # the others have gone meanwhile


def _holds_bytes(kind: type) -> bool:
    """Tell whether a class says that its values are bytes."""
    bases = (base for cls in kind.__mro__ for base in getattr(cls, "__orig_bases__", ()))
    return any(bytes in get_args(base)[-1:] for base in bases)


def _key_of(id_: str) -> str:
    """Return the id as it is, or its bytes as digits; where that is too long, their digest."""
    told = id_.encode("utf-8", "surrogatepass")
    key = id_ if _PLAIN_KEY.fullmatch(id_) else "x-" + told.hex()
    return key if len(key) <= _LONGEST_KEY else _DIGEST + sha256(told).hexdigest()


def _told_key(key: Any) -> str:
    return key.decode() if isinstance(key, bytes) else str(key)


def _id_of(key: str) -> str:
    if not key.startswith("x-"):
        return key
    return bytes.fromhex(key[2:]).decode("utf-8", "surrogatepass")


def _written(chunk: Chunk) -> bytes:
    told = json.dumps(record_of_chunk(chunk), ensure_ascii=False)
    return told.encode("utf-8", "surrogatepass")


def _parsed(value: bytes, id_: str) -> Chunk:
    try:
        record = json.loads(value.decode("utf-8", "surrogatepass"))
    except (AttributeError, ValueError) as error:
        raise IndexFormatError(f"What is kept under {id_!r} is no chunk ({error}).") from error
    return chunk_from_record(record, id_)
