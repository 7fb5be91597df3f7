"""Chunks in one SQLite file."""

from __future__ import annotations

import json
import logging
import os
import re
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from easyrag_core.errors import InvalidParameterError, check_number
from easyrag_core.index.store._checks import checked_ids
from easyrag_core.index.store._copy import checked
from easyrag_core.index.store._memory import to_json
from easyrag_core.index.store._sqlite_file import (
    connect,
    make_file,
    prepare,
    translated,
    unusable,
)
from easyrag_core.types import Chunk

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["SQLiteChunkStore"]

_logger = logging.getLogger(__name__)

_UNSAFE: Final = re.compile("[\\x00\\x1b\ud800-\udfff]")
_ESCAPED: Final = re.compile("\x1b([0-9a-f]{4})")
_COLUMNS: Final = (
    "id, document_id, position, parent_id, text, embedding_text, "
    "start, end, start_line, end_line, facts"
)
_PUT: Final = f"""
INSERT INTO chunks ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    document_id = excluded.document_id, position = excluded.position,
    parent_id = excluded.parent_id, text = excluded.text,
    embedding_text = excluded.embedding_text, start = excluded.start, end = excluded.end,
    start_line = excluded.start_line, end_line = excluded.end_line, facts = excluded.facts
"""  # noqa: S608 - column names of ours
# One parameter for any number of ids: SQLite limits how many a statement may have.
_GET: Final = f"""
SELECT {_COLUMNS} FROM chunks WHERE id IN (SELECT value FROM json_each(?))
"""  # noqa: S608 - as above


class SQLiteChunkStore:
    """A `ChunkStore` in one file, for several threads and processes at once.

    A write is a transaction: after a kill in the middle of it the file holds what was there
    before. Readers and one writer do not block each other (WAL); while the store is in use,
    SQLite keeps two files beside it. Use a local disk, not a network share.

    Connections are opened when needed and kept for later calls; `close()` or a `with` block
    closes them. Every call but `close()` raises `IndexFormatError` once the file is gone, empty
    or damaged, rather than to write where no one will read.
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 30.0) -> None:
        """Open the file, or make it.

        Args:
            path: The file; its folder must exist.
            timeout: Seconds to wait for another writer.

        Raises:
            IndexFormatError: The file is empty or damaged, belongs to something else, or to a
                newer version.
            InvalidParameterError: No path, or `":memory:"`.
            FileNotFoundError: The folder does not exist.
            sqlite3.OperationalError: The file cannot be opened, or stays locked.
        """
        if not os.fspath(path) or os.fspath(path) == ":memory:":
            raise InvalidParameterError("path", path, "give a file; InMemoryChunkStore needs none")
        # Behind all links: a file is made beside its own name and not beside a link's.
        self._path = Path(os.path.realpath(path))
        allowed = "give seconds of at least 0"
        self._timeout = check_number("timeout", timeout, allowed=allowed)
        if self._timeout < 0:
            raise InvalidParameterError("timeout", timeout, allowed)
        if not self._path.parent.is_dir():
            raise FileNotFoundError(2, "No such folder; make it first", str(self._path.parent))
        self._reset()
        if not self._path.exists():
            make_file(self._path)
        with self._connection():
            pass  # opened once, so that what is no store of ours is refused here

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[tuple[sqlite3.Connection, tuple[int, int]]] = []
        self._process = os.getpid()

    def __enter__(self) -> Self:
        """Use the store in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close at the block's end."""
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        """Copy and pickle the place, not the connections."""
        return {"_path": self._path, "_timeout": self._timeout}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Start without connections."""
        self.__dict__.update(state)
        self._reset()

    def __del__(self) -> None:
        """Close what was left open."""
        if hasattr(self, "_idle"):
            self.close()

    def __len__(self) -> int:
        """Count the chunks."""
        with self._connection() as connection:
            number: int = connection.execute("SELECT count(*) FROM chunks").fetchone()[0]
        return number

    def __contains__(self, id_: object) -> bool:
        """Whether a chunk with this id is here."""
        return isinstance(id_, str) and id_ in self.parents_of([id_])

    def __repr__(self) -> str:
        """Show the file."""
        return f"<SQLiteChunkStore in {self._path}>"

    def close(self) -> None:
        """Close the connections that are not in use; a later call opens new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        # After a fork they are the parent's: closing them here would break its locks.
        if self._process == os.getpid():
            for connection, _ in idle:
                connection.close()

    # The protocol

    def get_many(self, ids: Sequence[str]) -> list[Chunk | None]:
        """Look chunks up, in the order of the ids; `None` where there is none."""
        keys = [_key(id_) for id_ in checked_ids(ids)]
        with self._connection() as connection:
            rows = connection.execute(_GET, (json.dumps(keys),)).fetchall()
        found = {row[0]: row for row in rows}
        try:
            picked = map(found.get, keys)
            return [None if row is None else _chunk(row) for row in picked]
        except (TypeError, ValueError, RecursionError) as error:
            raise unusable(self._path, f"a chunk in it is damaged ({error})") from error

    def put_many(self, chunks: Iterable[Chunk]) -> None:
        """Add chunks, and replace those whose id is already here, in one transaction."""
        rows = [_row(checked(chunk)) for chunk in chunks]
        with self._writing() as connection:
            connection.executemany(_PUT, rows)

    def delete_many(self, ids: Iterable[str]) -> int:
        """Delete chunks and tell how many there were."""
        sql = "DELETE FROM chunks WHERE id IN (SELECT value FROM json_each(?))"
        keys = [_key(id_) for id_ in checked_ids(ids)]
        with self._writing() as connection:
            deleted: int = connection.execute(sql, (json.dumps(keys),)).rowcount
        return deleted

    def children_of(self, parent_id: str) -> list[str]:
        """Give the ids of the chunks whose `parent_id` this is, by their index."""
        sql = "SELECT id FROM chunks WHERE parent_id = ? ORDER BY position, number"
        with self._connection() as connection:
            return [_unkey(row[0]) for row in connection.execute(sql, (_key(parent_id),))]

    def parents_of(self, ids: Sequence[str]) -> dict[str, str | None]:
        """Give child id to parent id; unknown ids are left out."""
        sql = "SELECT id, parent_id FROM chunks WHERE id IN (SELECT value FROM json_each(?))"
        keys = {id_: _key(id_) for id_ in checked_ids(ids)}
        with self._connection() as connection:
            rows = connection.execute(sql, (json.dumps(list(keys.values())),)).fetchall()
        found = dict(rows)
        return {id_: _unkey_or_none(found[key]) for id_, key in keys.items() if key in found}

    def delete_document(self, document_id: str) -> list[str]:
        """Delete all chunks of a document and give their ids, by their index."""
        key = (_key(document_id),)
        sql = "SELECT id FROM chunks WHERE document_id = ? ORDER BY position, number"
        with self._writing() as connection:
            ids = [_unkey(row[0]) for row in connection.execute(sql, key)]
            connection.execute("DELETE FROM chunks WHERE document_id = ?", key)
        return ids

    def ids(self) -> list[str]:
        """Give all ids, in the order in which they were first added."""
        with self._connection() as connection:
            rows = connection.execute("SELECT id FROM chunks ORDER BY number")
            return [_unkey(row[0]) for row in rows]

    # Connections

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection to the file that is there; one is used by one thread at a time."""
        if self._process != os.getpid():
            self._reset()
        place = self._place()
        connection = self._kept(place)
        try:
            with translated(self._path):
                connection = connection or self._open()
                yield connection
        except BaseException:
            if connection is not None:
                connection.close()
            raise
        with self._lock:
            self._idle.append((connection, place))

    def _kept(self, place: tuple[int, int]) -> sqlite3.Connection | None:
        """Take a connection that is open; those to a file that was replaced are closed."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection, opened = self._idle.pop()
            if opened == place:
                return connection
            connection.close()

    def _place(self) -> tuple[int, int]:
        """Tell which file has our name, so that none is used that has it no longer."""
        try:
            found = self._path.stat()
        except FileNotFoundError as error:
            raise unusable(self._path, "the file is gone") from error
        if not found.st_size:
            raise unusable(self._path, "it is empty, so it was cut off or is another program's")
        return found.st_dev, found.st_ino

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        place = self._place()
        with self._connection() as connection:
            # Taken at once: a reader that turns writer half-way cannot wait for another writer.
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()
            if self._place() != place:
                raise unusable(self._path, "the file was replaced during a write")

    def _open(self) -> sqlite3.Connection:
        connection = connect(self._path, mode="rw", timeout=self._timeout)
        try:
            if not prepare(connection, self._path):
                _logger.warning("%s cannot use WAL: readers wait for writers", self._path)
        except BaseException:
            connection.close()
            raise
        return connection


# Rows


def _key(id_: str) -> str:
    """Write an id without what SQLite cannot keep (NUL, lone surrogates): others stay."""
    return _UNSAFE.sub(lambda found: f"\x1b{ord(found[0]):04x}", id_)


def _unkey(key: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), key)


def _row(chunk: Chunk) -> tuple[object, ...]:
    same = chunk.embedding_text == chunk.text
    facts = [list(chunk.heading_path), chunk.kind, chunk.language, chunk.metadata]
    return (
        _key(chunk.id),
        _key(chunk.document_id),
        int(chunk.index),
        None if chunk.parent_id is None else _key(chunk.parent_id),
        _bytes(chunk.text),
        None if same else _bytes(chunk.embedding_text),
        int(chunk.start),
        int(chunk.end),
        int(chunk.start_line),
        int(chunk.end_line),
        _bytes(to_json(facts, chunk.id)),
    )


def _chunk(row: tuple[Any, ...]) -> Chunk:
    text = _text(row[4])
    heading_path, kind, language, metadata = json.loads(_text(row[10]))
    return Chunk(
        id=_unkey(row[0]),
        document_id=_unkey(row[1]),
        index=row[2],
        parent_id=_unkey_or_none(row[3]),
        text=text,
        embedding_text=text if row[5] is None else _text(row[5]),
        start=row[6],
        end=row[7],
        start_line=row[8],
        end_line=row[9],
        heading_path=tuple(heading_path),
        kind=kind,
        language=language,
        metadata=metadata,
    )


def _unkey_or_none(key: str | None) -> str | None:
    return None if key is None else _unkey(key)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(blob: bytes) -> str:
    return blob.decode("utf-8", "surrogatepass")
