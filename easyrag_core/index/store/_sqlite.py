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

from easyrag_core.errors import IndexFormatError, InvalidParameterError
from easyrag_core.index.store._memory import to_json
from easyrag_core.types import Chunk

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["SQLiteChunkStore"]

_logger = logging.getLogger(__name__)

# "easy" in ASCII: tells our files from those of other programs.
_APPLICATION_ID: Final = 0x65617379
_VERSION: Final = 1
_UNSAFE: Final = re.compile("[\\x00\\x1b\ud800-\udfff]")
_ESCAPED: Final = re.compile("\x1b([0-9a-f]{4})")
_SCHEMA: Final = """
CREATE TABLE chunks (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    document_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    parent_id TEXT,
    text BLOB NOT NULL,
    embedding_text BLOB,
    start INTEGER NOT NULL,
    end INTEGER NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    facts BLOB NOT NULL
);
CREATE INDEX chunks_by_document ON chunks (document_id, position);
CREATE INDEX chunks_by_parent ON chunks (parent_id, position) WHERE parent_id IS NOT NULL;
"""
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
_GET: Final = f"""
SELECT {_COLUMNS} FROM chunks WHERE id IN (SELECT value FROM json_each(?))
"""  # noqa: S608 - as above


class SQLiteChunkStore:
    """A `ChunkStore` in one file, for several threads and processes at once.

    A write is a transaction: after a kill in the middle of it the file holds what was there
    before. Readers and one writer do not block each other (WAL); while the store is in use,
    SQLite keeps two files beside it. Use a local disk, not a network share.

    Connections are opened when needed and kept for later calls; `close()` or a `with` block
    closes them.
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 30.0) -> None:
        """Open the file, or make it.

        Args:
            path: The file; its folder must exist.
            timeout: Seconds to wait for another writer.

        Raises:
            IndexFormatError: The file belongs to something else, or to a newer version.
            InvalidParameterError: No path, or `":memory:"`.
            FileNotFoundError: The folder does not exist.
            sqlite3.OperationalError: The file cannot be opened, or stays locked.
        """
        if not os.fspath(path) or os.fspath(path) == ":memory:":
            raise InvalidParameterError("path", path, "give a file; InMemoryChunkStore needs none")
        self._path = Path(path).absolute()
        self._timeout = timeout
        if not self._path.parent.is_dir():
            raise FileNotFoundError(2, "No such folder; make it first", str(self._path.parent))
        self._reset()
        with self._connection() as connection:
            self._prepare(connection)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
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
            for connection in idle:
                connection.close()

    # The protocol

    def get_many(self, ids: Sequence[str]) -> list[Chunk | None]:
        """Look chunks up, in the order of the ids; `None` where there is none."""
        with self._connection() as connection:
            rows = connection.execute(_GET, (_keys_json(ids),)).fetchall()
        found = {row[0]: row for row in rows}
        picked = (found.get(_key(id_)) for id_ in ids)
        return [None if row is None else _chunk(row) for row in picked]

    def put_many(self, chunks: Iterable[Chunk]) -> None:
        """Add chunks, and replace those whose id is already here, in one transaction."""
        rows = [_row(chunk) for chunk in chunks]
        with self._writing() as connection:
            connection.executemany(_PUT, rows)

    def delete_many(self, ids: Iterable[str]) -> int:
        """Delete chunks and tell how many there were."""
        sql = "DELETE FROM chunks WHERE id IN (SELECT value FROM json_each(?))"
        with self._writing() as connection:
            return connection.execute(sql, (_keys_json(ids),)).rowcount

    def children_of(self, parent_id: str) -> list[str]:
        """Give the ids of the chunks whose `parent_id` this is, by their index."""
        sql = "SELECT id FROM chunks WHERE parent_id = ? ORDER BY position, number"
        with self._connection() as connection:
            return [_unkey(row[0]) for row in connection.execute(sql, (_key(parent_id),))]

    def parents_of(self, ids: Sequence[str]) -> dict[str, str | None]:
        """Give child id to parent id; unknown ids are left out."""
        sql = "SELECT id, parent_id FROM chunks WHERE id IN (SELECT value FROM json_each(?))"
        with self._connection() as connection:
            found = dict(connection.execute(sql, (_keys_json(ids),)).fetchall())
        known = ((id_, _key(id_)) for id_ in ids)
        return {id_: _unkey_or_none(found[key]) for id_, key in known if key in found}

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
        """Lend a connection; one is used by one thread at a time."""
        if self._process != os.getpid():
            self._reset()
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        connection = connection or self._open()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._idle.append(connection)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._connection() as connection:
            # Taken at once: a reader that turns writer half-way cannot wait for another writer.
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def _open(self) -> sqlite3.Connection:
        import sqlite3  # noqa: PLC0415 - only those who use this store need it

        return sqlite3.connect(
            self._path,
            timeout=self._timeout,
            isolation_level=None,
            check_same_thread=False,
        )

    def _prepare(self, connection: sqlite3.Connection) -> None:
        import sqlite3  # noqa: PLC0415 - as above

        try:
            if _pragma(connection, "application_id") != _APPLICATION_ID:
                self._create(connection)
            version = _pragma(connection, "user_version")
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            raise self._foreign(f"it is no SQLite file, or damaged ({error})") from error
        if version != _VERSION:
            raise self._foreign(f"its version {version} is not {_VERSION}, the one known here")
        modes = (_pragma(connection, mode) for mode in ("journal_mode", "journal_mode = WAL"))
        if "wal" not in modes:
            _logger.warning("%s cannot use WAL: readers wait for writers", self._path)

    def _create(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have made it while this one waited.
            if _pragma(connection, "application_id") == _APPLICATION_ID:
                return
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise self._foreign("it has tables of another program")
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            connection.commit()
        finally:
            if connection.in_transaction:
                connection.rollback()

    def _foreign(self, reason: str) -> IndexFormatError:
        return IndexFormatError(
            f"{self._path} is no chunk store of ours: {reason}. "
            "Nothing was written; give another path."
        )


def _pragma(connection: sqlite3.Connection, pragma: str) -> Any:
    return connection.execute(f"PRAGMA {pragma}").fetchone()[0]


# Rows


def _key(id_: str) -> str:
    """Write an id without what SQLite cannot keep (NUL, lone surrogates): others stay."""
    return _UNSAFE.sub(lambda found: f"\x1b{ord(found[0]):04x}", id_)


def _unkey(key: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), key)


def _keys_json(ids: Iterable[str]) -> str:
    # One parameter for any number of ids: SQLite limits how many a statement may have.
    return json.dumps([_key(id_) for id_ in ids])


def _row(chunk: Chunk) -> tuple[object, ...]:
    same = chunk.embedding_text == chunk.text
    facts = [list(chunk.heading_path), chunk.kind, chunk.language, chunk.metadata]
    return (
        _key(chunk.id),
        _key(chunk.document_id),
        chunk.index,
        None if chunk.parent_id is None else _key(chunk.parent_id),
        _bytes(chunk.text),
        None if same else _bytes(chunk.embedding_text),
        chunk.start,
        chunk.end,
        chunk.start_line,
        chunk.end_line,
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
