"""Engines that find passages by their words, all made to look alike."""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["ENGINES", "Engine", "words"]

_WORD = re.compile(r"(?u)\w+")
_K = 10


def words(text: str) -> list[str]:
    """The tokens of all engines that let us choose."""
    return _WORD.findall(text.lower())


class Engine(Protocol):
    """What is measured of each engine; a search is from text to the ten best."""

    most_documents: int

    def build(self, texts: Sequence[str]) -> None:
        """Index passages; the position is the id."""

    def search(self, query: str) -> list[str]:
        """Return the best ten, as strings of their positions."""

    def add(self, text: str, position: int) -> None:
        """Add one passage, so that the next search finds it."""

    def nbytes(self) -> int | None:
        """Bytes of the arrays; `None` where nothing tells."""

    def reload(self, folder: Path) -> Any:
        """Save into a folder and return a call that loads."""


class Ours:
    """BM25Index, with the settings that it has from the start."""

    most_documents = 10**9

    def build(self, texts: Sequence[str]) -> None:
        from easyrag_core import BM25Index

        self.index = BM25Index()
        self.index.add([str(at) for at in range(len(texts))], texts)

    def search(self, query: str) -> list[str]:
        return [hit.id for hit in self.index.search(query, _K)]

    def add(self, text: str, position: int) -> None:
        self.index.add([str(position)], [text])

    def nbytes(self) -> int | None:
        names = ("documents", "frequencies", "offsets", "terms", "lengths", "orders")
        segments = [part.segment for part in self.index._snapshot.parts]
        return sum(getattr(segment, name).nbytes for segment in segments for name in names)

    def reload(self, folder: Path) -> Any:
        from easyrag_core import BM25Index

        self.index.save(folder)
        return lambda: BM25Index.load(folder)


class Bm25s:
    """bm25s with its scores computed beforehand; it cannot add."""

    most_documents = 10**9
    backend = "numpy"

    def build(self, texts: Sequence[str]) -> None:
        import bm25s

        self.peer = bm25s
        self.index = bm25s.BM25(method="lucene", backend=self.backend)
        self.index.index(self._tokens(texts), show_progress=False)

    def _tokens(self, texts: Sequence[str]) -> Any:
        return self.peer.tokenize(
            texts, stopwords=None, token_pattern=r"(?u)\w+", show_progress=False
        )

    def search(self, query: str) -> list[str]:
        k = min(_K, self.index.scores["num_docs"])
        found, _ = self.index.retrieve(self._tokens([query]), k=k, show_progress=False)
        return [str(at) for at in found[0]]

    def add(self, text: str, position: int) -> None:
        raise NotImplementedError

    def nbytes(self) -> int | None:
        arrays = self.index.scores
        return sum(arrays[name].nbytes for name in ("data", "indices", "indptr"))

    def reload(self, folder: Path) -> Any:
        self.index.save(str(folder))
        return lambda: self.peer.BM25.load(str(folder), mmap=True)


class Bm25sNumba(Bm25s):
    """bm25s compiled; the compilation, several seconds in each process, is not counted."""

    backend = "numba"

    def build(self, texts: Sequence[str]) -> None:
        import numba  # noqa: F401 - says whether it is there

        super().build(texts)
        self.index.activate_numba_scorer()
        self.search("compile now")


class RankBm25:
    """rank-bm25, where it takes less than minutes."""

    most_documents = 10_000

    def build(self, texts: Sequence[str]) -> None:
        from rank_bm25 import BM25Okapi

        self.index = BM25Okapi([words(text) for text in texts])
        self.ids = [str(at) for at in range(len(texts))]

    def search(self, query: str) -> list[str]:
        return list(self.index.get_top_n(words(query), self.ids, n=_K))

    def add(self, text: str, position: int) -> None:
        raise NotImplementedError

    def nbytes(self) -> int | None:
        return None

    def reload(self, folder: Path) -> Any:
        raise NotImplementedError


class Tantivy:
    """tantivy with one thread for writing."""

    most_documents = 10**9

    def build(self, texts: Sequence[str]) -> None:
        import tantivy

        self.peer = tantivy
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("text", stored=False)
        builder.add_integer_field("id", stored=True)
        self.index = tantivy.Index(builder.build())
        self.writer = self.index.writer(heap_size=200_000_000, num_threads=1)
        for at, text in enumerate(texts):
            self.writer.add_document(tantivy.Document(text=text, id=at))
        self.writer.commit()
        self._reopen()

    def _reopen(self) -> None:
        self.index.reload()
        self.searcher = self.index.searcher()

    def search(self, query: str) -> list[str]:
        # Ids are left where they are: to fetch them is no part of the ranking.
        parsed = self.index.parse_query(query, ["text"])
        return [str(place) for _, place in self.searcher.search(parsed, _K, count=False).hits]

    def add(self, text: str, position: int) -> None:
        self.writer.add_document(self.peer.Document(text=text, id=position))
        self.writer.commit()
        self._reopen()

    def nbytes(self) -> int | None:
        return None

    def reload(self, folder: Path) -> Any:
        raise NotImplementedError


class Fts5:
    """SQLite's FTS5 in memory, without content, terms joined by OR."""

    most_documents = 10**9

    def build(self, texts: Sequence[str]) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute("create virtual table t using fts5(text, content='')")
        self.db.executemany("insert into t(rowid, text) values (?, ?)", enumerate(texts))
        self.db.commit()

    def search(self, query: str) -> list[str]:
        wanted = " OR ".join(f'"{word}"' for word in words(query))
        rows = self.db.execute(
            "select rowid from t where t match ? order by rank limit ?", (wanted, _K)
        )
        return [str(row[0]) for row in rows]

    def add(self, text: str, position: int) -> None:
        self.db.execute("insert into t(rowid, text) values (?, ?)", (position, text))
        self.db.commit()

    def nbytes(self) -> int | None:
        pages = self.db.execute("pragma page_count").fetchone()[0]
        return int(pages * self.db.execute("pragma page_size").fetchone()[0])

    def reload(self, folder: Path) -> Any:
        raise NotImplementedError


ENGINES: dict[str, type[Engine]] = {
    "ours": Ours,
    "bm25s-numba": Bm25sNumba,
    "bm25s-numpy": Bm25s,
    "tantivy": Tantivy,
    "fts5": Fts5,
    "rank-bm25": RankBm25,
}
"""Name to engine; ours comes first, as the others are compared with it."""
