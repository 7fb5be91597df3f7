"""Where the content of chunks is looked up by id."""

from __future__ import annotations

from easyrag_core.index.store._cached import CachedChunkStore
from easyrag_core.index.store._key_value import (
    ChunkRecords,
    KeyValueChunkStore,
    chunk_from_record,
    record_of_chunk,
)
from easyrag_core.index.store._memory import InMemoryChunkStore
from easyrag_core.index.store._protocol import ChunkStore
from easyrag_core.index.store._sqlite import SQLiteChunkStore

__all__ = [
    "CachedChunkStore",
    "ChunkRecords",
    "ChunkStore",
    "InMemoryChunkStore",
    "KeyValueChunkStore",
    "SQLiteChunkStore",
    "chunk_from_record",
    "record_of_chunk",
]
