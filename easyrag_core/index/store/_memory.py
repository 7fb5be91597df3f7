"""Chunks in this process's memory."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from easyrag_core.errors import IndexFormatError, InvalidParameterError
from easyrag_core.index._folder import FolderContents
from easyrag_core.index.store._checks import checked_ids
from easyrag_core.index.store._copy import checked, copied
from easyrag_core.types import Chunk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["InMemoryChunkStore", "to_json"]

_TEXTS = ("id", "document_id", "text", "embedding_text", "kind", "language")
_NUMBERS = ("index", "start", "end", "start_line", "end_line")


class InMemoryChunkStore:
    """A `ChunkStore` that lives as long as the process. Safe to share between threads.

    >>> store = InMemoryChunkStore()
    >>> store.put_many([Chunk("a1", "doc", 0, "Hello", 0, 5)])
    >>> [chunk and chunk.text for chunk in store.get_many(["a1", "b2"])]
    ['Hello', None]
    """

    def __init__(self) -> None:
        """Make an empty store."""
        self._lock = threading.Lock()
        self._chunks: dict[str, Chunk] = {}
        self._numbers: dict[str, int] = {}
        self._next_number = 0
        self._children: dict[str, set[str]] = {}
        self._documents: dict[str, set[str]] = {}

    def __len__(self) -> int:
        """Count the chunks."""
        return len(self._chunks)

    def __contains__(self, id_: object) -> bool:
        """Whether a chunk with this id is here."""
        return id_ in self._chunks

    def __repr__(self) -> str:
        """Show the size."""
        return f"<InMemoryChunkStore of {len(self)} chunks>"

    def __getstate__(self) -> dict[str, Any]:
        """Leave the lock behind; the rest can be copied and pickled."""
        return {key: value for key, value in self.__dict__.items() if key != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a new lock."""
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def __copy__(self) -> InMemoryChunkStore:
        """Copy what can change; chunks that are kept never do."""
        other = type(self).__new__(type(self))
        with self._lock:
            other.__setstate__(
                self.__getstate__()
                | {
                    "_chunks": dict(self._chunks),
                    "_numbers": dict(self._numbers),
                    "_children": {key: set(ids) for key, ids in self._children.items()},
                    "_documents": {key: set(ids) for key, ids in self._documents.items()},
                }
            )
        return other

    def get_many(self, ids: Sequence[str]) -> list[Chunk | None]:
        """Look chunks up, in the order of the ids; `None` where there is none."""
        wanted = checked_ids(ids)
        with self._lock:
            found = [self._chunks.get(id_) for id_ in wanted]
        # What is kept is never changed, only replaced: it can be copied outside of the lock.
        return [None if chunk is None else copied(chunk) for chunk in found]

    def put_many(self, chunks: Iterable[Chunk]) -> None:
        """Add chunks, and replace those whose id is already here."""
        kept = [copied(checked(chunk)) for chunk in chunks]
        with self._lock:
            for chunk in kept:
                self._unlink(self._chunks.get(chunk.id))
                self._link(chunk)

    def delete_many(self, ids: Iterable[str]) -> int:
        """Delete chunks and tell how many there were."""
        gone = checked_ids(ids)
        with self._lock:
            return sum(self._forget(id_) for id_ in gone)

    def children_of(self, parent_id: str) -> list[str]:
        """Give the ids of the chunks whose `parent_id` this is, by their index."""
        with self._lock:
            return self._by_index(self._children.get(parent_id, ()))

    def parents_of(self, ids: Sequence[str]) -> dict[str, str | None]:
        """Give child id to parent id; unknown ids are left out."""
        wanted = checked_ids(ids)
        with self._lock:
            return {id_: self._chunks[id_].parent_id for id_ in wanted if id_ in self._chunks}

    def delete_document(self, document_id: str) -> list[str]:
        """Delete all chunks of a document and give their ids, by their index."""
        with self._lock:
            ids = self._by_index(self._documents.get(document_id, ()))
            for id_ in ids:
                self._forget(id_)
        return ids

    def ids(self) -> list[str]:
        """Give all ids, in the order in which they were first added."""
        with self._lock:
            return list(self._chunks)

    def _by_index(self, ids: Iterable[str]) -> list[str]:
        return sorted(ids, key=lambda id_: (self._chunks[id_].index, self._numbers[id_]))

    def _link(self, chunk: Chunk) -> None:
        if chunk.id not in self._chunks:
            self._numbers[chunk.id] = self._next_number
            self._next_number += 1
        self._chunks[chunk.id] = chunk
        self._documents.setdefault(chunk.document_id, set()).add(chunk.id)
        if chunk.parent_id is not None:
            self._children.setdefault(chunk.parent_id, set()).add(chunk.id)

    def _unlink(self, chunk: Chunk | None) -> None:
        if chunk is None:
            return
        for links, key in ((self._documents, chunk.document_id), (self._children, chunk.parent_id)):
            if key is not None:
                links[key].discard(chunk.id)
                if not links[key]:
                    del links[key]

    def _forget(self, id_: str) -> bool:
        chunk = self._chunks.pop(id_, None)
        self._numbers.pop(id_, None)
        self._unlink(chunk)
        return chunk is not None

    def contents(self) -> FolderContents:
        """Give what goes to disk, for a folder that holds more than this store.

        Raises:
            InvalidParameterError: Metadata that is not plain JSON; the chunk is named.
        """
        with self._lock:
            chunks = list(self._chunks.values())
        return FolderContents(
            arrays={
                name: np.array([getattr(c, name) for c in chunks], np.int64) for name in _NUMBERS
            }
            | {"has_parent": np.array([c.parent_id is not None for c in chunks], np.bool_)},
            texts={name: [getattr(c, name) for c in chunks] for name in _TEXTS}
            | {
                "parent_id": [c.parent_id or "" for c in chunks],
                "heading_path": [to_json(list(c.heading_path), c.id) for c in chunks],
                "metadata": [to_json(c.metadata, c.id) for c in chunks],
            },
        )

    @classmethod
    def from_contents(cls, contents: FolderContents) -> InMemoryChunkStore:
        """Rebuild a store from its contents.

        Args:
            contents: What `contents()` gave.

        Returns:
            The store.

        Raises:
            IndexFormatError: The parts do not fit together.
        """
        store = cls()
        try:
            columns = {name: contents.arrays[name].tolist() for name in _NUMBERS}
            columns |= {name: contents.texts[name] for name in _TEXTS}
            parents = zip(
                contents.texts["parent_id"], contents.arrays["has_parent"].tolist(), strict=True
            )
            columns["parent_id"] = [id_ if known else None for id_, known in parents]
            columns["heading_path"] = [tuple(json.loads(t)) for t in contents.texts["heading_path"]]
            columns["metadata"] = [json.loads(text) for text in contents.texts["metadata"]]
            rows = zip(*columns.values(), strict=True)
            store.put_many(Chunk(**dict(zip(columns, row, strict=True))) for row in rows)
        except (KeyError, TypeError, ValueError) as error:
            raise IndexFormatError(f"The saved chunks do not fit ({error}): rebuild.") from error
        return store


def to_json(value: Any, id_: str) -> str:
    """Write a value of a chunk as JSON that reads back to the same strings.

    Args:
        value: Plain JSON values.
        id_: The chunk's id, for the message.

    Returns:
        JSON with characters as they are: escaped surrogates would join to other characters.

    Raises:
        InvalidParameterError: Something in it is not plain JSON.
    """
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        allowed = f"metadata of chunk {id_!r} must be plain JSON values ({error})"
        raise InvalidParameterError("metadata", value, allowed) from error
