"""Chunks in somebody else's key-value store."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Protocol

from easyrag_core.errors import IndexFormatError
from easyrag_core.index.store._checks import checked_ids
from easyrag_core.index.store._copy import all_checked, copied
from easyrag_core.index.store._memory import to_json
from easyrag_core.types import Chunk

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["ChunkRecords", "KeyValueChunkStore", "chunk_from_record", "record_of_chunk"]

_NAMES = frozenset(field.name for field in fields(Chunk))


class ChunkRecords(Protocol):
    """What somebody else's store can do: chunks in and out by their ids, each call a batch."""

    def read(self, ids: list[str]) -> list[Chunk | None]:
        """Look chunks up, in the order of the ids."""
        ...

    def write(self, chunks: list[Chunk]) -> None:
        """Add or replace chunks."""
        ...

    def delete(self, ids: list[str]) -> None:
        """Delete chunks that are there."""
        ...

    def ids(self) -> list[str]:
        """Give all ids."""
        ...


class KeyValueChunkStore:
    """A `ChunkStore` over any store that finds values by key alone.

    Reading, writing and deleting by id is one round trip per call. Such a store has no second
    order: where a parent does not list its children in `metadata["child_ids"]`, `children_of`
    reads everything once, and so does `delete_document`. Writes are all or nothing as far as
    the store's own are.
    """

    def __init__(self, records: ChunkRecords) -> None:
        """Wrap a store.

        Args:
            records: The store, behind the four calls of `ChunkRecords`.
        """
        self._records = records

    def get_many(self, ids: Sequence[str]) -> list[Chunk | None]:
        """Look chunks up, in the order of the ids; `None` where there is none."""
        wanted = checked_ids(ids)
        if not wanted:
            return []
        unique = list(dict.fromkeys(wanted))
        found = dict(zip(unique, self._records.read(unique), strict=True))
        return [None if (chunk := found[id_]) is None else copied(chunk) for id_ in wanted]

    def put_many(self, chunks: Iterable[Chunk]) -> None:
        """Add chunks, and replace those whose id is already here."""
        if by_id := {chunk.id: copied(chunk) for chunk in all_checked(chunks)}:
            self._records.write(list(by_id.values()))

    def delete_many(self, ids: Iterable[str]) -> int:
        """Delete chunks and tell how many there were."""
        gone = list(dict.fromkeys(checked_ids(ids)))
        here = [id_ for id_, chunk in zip(gone, self.get_many(gone), strict=True) if chunk]
        if here:
            self._records.delete(here)
        return len(here)

    def children_of(self, parent_id: str) -> list[str]:
        """Give the ids of the chunks whose `parent_id` this is, by their index."""
        parent = self.get_many([parent_id])[0]
        listed = None if parent is None else parent.metadata.get("child_ids")
        children = self.get_many(listed) if isinstance(listed, list) else self._all()
        return _by_index(c for c in children if c is not None and c.parent_id == parent_id)

    def parents_of(self, ids: Sequence[str]) -> dict[str, str | None]:
        """Give child id to parent id; unknown ids are left out."""
        return {chunk.id: chunk.parent_id for chunk in self.get_many(ids) if chunk is not None}

    def delete_document(self, document_id: str) -> list[str]:
        """Delete all chunks of a document and give their ids, by their index."""
        gone = _by_index(chunk for chunk in self._all() if chunk.document_id == document_id)
        if gone:
            self._records.delete(gone)
        return gone

    def ids(self) -> list[str]:
        """Give all ids, in the store's own order."""
        return self._records.ids()

    def _all(self) -> list[Chunk]:
        return [chunk for chunk in self.get_many(self.ids()) if chunk is not None]


def _by_index(chunks: Iterable[Chunk]) -> list[str]:
    return [chunk.id for chunk in sorted(chunks, key=lambda chunk: (chunk.index, chunk.id))]


def record_of_chunk(chunk: Chunk) -> dict[str, Any]:
    """Write a chunk as plain JSON values.

    Args:
        chunk: The chunk.

    Returns:
        A new dict.

    Raises:
        InvalidParameterError: Metadata that are no JSON values; the chunk is named.

    >>> record_of_chunk(Chunk("a", "doc", 0, "Hi", 0, 2))["text"]
    'Hi'
    """
    record: dict[str, Any] = json.loads(to_json(asdict(chunk), chunk.id))
    return record


def chunk_from_record(record: Mapping[str, Any], key: str) -> Chunk:
    """Read what `record_of_chunk` wrote.

    Args:
        record: The values.
        key: Where they were found, for the message.

    Returns:
        The chunk.

    Raises:
        IndexFormatError: It is something else.

    >>> chunk = Chunk("a", "doc", 0, "Hi", 0, 2, heading_path=("A",))
    >>> chunk_from_record(record_of_chunk(chunk), "a") == chunk
    True
    """
    try:
        values = {name: value for name, value in record.items() if name in _NAMES}
        values["heading_path"] = tuple(values.get("heading_path", ()))
        return Chunk(**values)
    except (AttributeError, TypeError) as error:
        raise IndexFormatError(f"What is kept under {key!r} is no chunk ({error}).") from error
