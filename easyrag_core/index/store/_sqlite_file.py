"""The file behind `SQLiteChunkStore`: made whole, told from others, its errors in our words."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from easyrag_core.errors import IndexFormatError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["connect", "make_file", "prepare", "translated", "unusable"]

# "easy" in ASCII: tells our files from those of other programs.
_APPLICATION_ID: Final = 0x65617379
_VERSION: Final = 1
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
# What SQLite says of a file that is not as we wrote it. Our statements are fixed: its general
# error, too, says that a table is missing or a text is no text.
_DAMAGED: Final = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR")


def connect(file_path: Path, *, mode: str, timeout: float) -> sqlite3.Connection:
    """Open a connection.

    Args:
        file_path: The file, absolute.
        mode: `"rw"` for a file that must be there, `"rwc"` to make it.
        timeout: Seconds to wait for another writer.

    Returns:
        The connection, without transactions of its own accord.
    """
    import sqlite3  # noqa: PLC0415 - only those who use this store need it

    return sqlite3.connect(
        f"{file_path.as_uri()}?mode={mode}",
        uri=True,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
    )


def make_file(file_path: Path) -> None:
    """Make an empty store, whole at once: an empty file under its name is never ours.

    Args:
        file_path: The file; if another process makes it first, that one stays.
    """
    aside = file_path.with_name(f"{file_path.name}.{secrets.token_hex(8)}")
    try:
        connection = connect(aside, mode="rwc", timeout=0)
        try:
            connection.execute("BEGIN")
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            connection.commit()
        finally:
            connection.close()
        _give_name(aside, file_path)
    finally:
        aside.unlink(missing_ok=True)


def _give_name(aside: Path, file_path: Path) -> None:
    try:
        os.link(aside, file_path)
    except FileExistsError:
        return
    except OSError:  # a disk without links
        if not file_path.exists():
            aside.rename(file_path)


def prepare(connection: sqlite3.Connection, file_path: Path) -> bool:
    """Refuse what is no store of ours, and let readers and a writer work side by side.

    Args:
        connection: To the file.
        file_path: The file, for the message.

    Returns:
        Whether the file system allows the latter (WAL).

    Raises:
        IndexFormatError: Another program's file, or of another version.
    """
    if _pragma(connection, "application_id") != _APPLICATION_ID:
        raise unusable(file_path, "it was made by another program")
    version = _pragma(connection, "user_version")
    if version != _VERSION:
        reason = f"its version {version} is not {_VERSION}, the one known here"
        raise unusable(file_path, reason)
    modes = (_pragma(connection, mode) for mode in ("journal_mode", "journal_mode = WAL"))
    return "wal" in modes


def _pragma(connection: sqlite3.Connection, pragma: str) -> Any:
    return connection.execute(f"PRAGMA {pragma}").fetchone()[0]


def unusable(file_path: Path, reason: str) -> IndexFormatError:
    """Return the error for a file that cannot be used.

    Args:
        file_path: The file.
        reason: What is wrong with it.

    Returns:
        The error.
    """
    return IndexFormatError(
        f"{file_path} is no usable chunk store: {reason}. "
        "Bring back a copy, or give a new path and add the chunks again."
    )


@contextmanager
def translated(file_path: Path) -> Iterator[None]:
    """Tell of a damaged file with our error; one that is locked or full stays SQLite's."""
    import sqlite3  # noqa: PLC0415 - as above

    try:
        yield
    except sqlite3.DatabaseError as error:
        # Errors of the module itself, such as for bytes that are no text, have no name.
        name = getattr(error, "sqlite_errorname", None) or "SQLITE_ERROR"
        ours = isinstance(error, sqlite3.OperationalError) or type(error) is sqlite3.DatabaseError
        if ours and name.startswith(_DAMAGED):
            raise unusable(file_path, f"it is no SQLite file, or damaged ({error})") from error
        raise
