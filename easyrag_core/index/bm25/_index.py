"""The BM25 index: write, search, explain, save."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any

from easyrag_core.errors import ChunkNotFoundError, check_count, check_text, check_texts
from easyrag_core.index._folder import read_folder, write_folder
from easyrag_core.index.analyzer import StandardAnalyzer, as_analyzer
from easyrag_core.index.analyzer._reading import query_terms
from easyrag_core.index.bm25 import _persistence
from easyrag_core.index.bm25._documents import Documents
from easyrag_core.index.bm25._explaining import explain
from easyrag_core.index.bm25._fields import check_known, checked_weights
from easyrag_core.index.bm25._filter import accepted_documents
from easyrag_core.index.bm25._hits import hits_of
from easyrag_core.index.bm25._params import BM25Params, checked_params
from easyrag_core.index.bm25._search import Searcher, best_where
from easyrag_core.index.bm25._snapshot import Snapshot
from easyrag_core.index.bm25._writing import with_documents

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from easyrag_core.index._folder import FolderContents
    from easyrag_core.index.analyzer import Analyzer
    from easyrag_core.index.bm25._explanation import BM25Explanation
    from easyrag_core.index.bm25._filter import IdFilter
    from easyrag_core.types import Hit

__all__ = ["BM25Index"]


class BM25Index:
    """Ranks documents by the words that they share with a query.

    The score is the sum, over the terms of the query (a repeated one counts again), of
    `idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average_length))` with
    `idf = ln(1 + (N - n + 0.5) / (n + 0.5))`; S. Robertson, H. Zaragoza, "The Probabilistic
    Relevance Framework", 2009, in Lucene's form.

    - After any sequence of writes every score equals that of an index built from scratch.
    - Ids and statistics are held, never content: 5 bytes per posting as a rule. What searches
      remember of one state of the index is at most 12 more, or 128 MB if that is more.
    - Documents with equal scores come in the order in which they were first added. An updated
      document keeps its place; one that was removed and comes back stands last.
    - Any number of threads may read while one writes: a read sees the index as it was before a
      write or after it. Writers wait for each other.
    - A field with a weight counts as if its text stood that many times beside the document's:
      the terms are added up before they are weighed, as in S. Robertson, H. Zaragoza, M. Taylor,
      "Simple BM25 extension to multiple weighted fields", 2004.

    >>> index = BM25Index()
    >>> index.add(["a", "b"], ["the quick fox", "向量检索与关键词检索"])
    >>> [hit.id for hit in index.search("检索")]
    ['b']
    """

    def __init__(
        self,
        params: BM25Params | None = None,
        *,
        analyzer: Analyzer | Callable[[str], Sequence[str]] | None = None,
        field_weights: Mapping[str, int] | None = None,
    ) -> None:
        """Start an empty index.

        Args:
            params: `k1` and `b` of searches that do not bring their own; `BM25Params()` if not
                given.
            analyzer: Turns documents and queries into terms; `StandardAnalyzer()` if not given.
                A plain function is wrapped in a `FunctionAnalyzer`.
            field_weights: Names of fields that documents may have beside their text, and how
                often each counts, e.g. `{"title": 2}`.

        Raises:
            InvalidParameterError: For params, an analyzer or weights of another kind.
        """
        self._params = checked_params(params) or BM25Params()
        self._analyzer = StandardAnalyzer() if analyzer is None else as_analyzer(analyzer)
        self._field_weights = checked_weights(field_weights)
        self._snapshot = Snapshot.empty()
        self._writing = RLock()

    @property
    def params(self) -> BM25Params:
        """`k1` and `b` of searches that do not bring their own."""
        return self._params

    @property
    def analyzer(self) -> Analyzer:
        """What turns documents and queries into terms."""
        return self._analyzer

    @property
    def field_weights(self) -> dict[str, int]:
        """How often each field counts; empty for an index of texts alone."""
        return dict(self._field_weights)

    @property
    def ids(self) -> list[str]:
        """The ids, in the order in which they were first added."""
        return list(self._snapshot.ids)

    def __len__(self) -> int:
        """Count the documents."""
        return self._snapshot.documents

    def __contains__(self, id_: object) -> bool:
        """Whether a document with this id is here."""
        return isinstance(id_, str) and self._snapshot.find(id_) is not None

    def __repr__(self) -> str:
        """Show size and settings."""
        return f"<BM25Index of {len(self)} documents, {self._params}, {self._analyzer!r}>"

    # Writing

    def add(
        self,
        ids: Sequence[str],
        texts: Sequence[str],
        *,
        fields: Mapping[str, Sequence[str]] | None = None,
        processes: int | None = None,
        show_progress: bool = False,
    ) -> None:
        """Add documents, and replace those whose id is already here. All or nothing.

        Costs in proportion to what is added, not to the index, averaged over many calls.

        Args:
            ids: One id per text. Of an id that comes twice the last text counts.
            texts: The texts; empty ones are counted as documents.
            fields: For a field of `field_weights` one text per document; a field that is left
                out is empty.
            processes: Number of worker processes that read the texts, at most; `None` or 1 reads
                them in this one, as does a smaller write than it pays to start workers for. The
                index is the same.
            show_progress: Show a tqdm bar.

        Raises:
            InvalidParameterError: For lists of different lengths, values that are no strings,
                an unknown field, a number of processes below 1, or an analyzer that gives no
                lists of strings.
            MissingDependencyError: For a progress bar without tqdm.
        """
        check_known(fields, self._field_weights)
        if processes is not None:
            check_count("processes", processes, minimum=1)
        documents = Documents.checked(ids, texts, fields)
        if not documents.rows:
            return
        with self._writing:
            self._snapshot = with_documents(
                self._snapshot,
                documents,
                self._analyzer,
                self._field_weights,
                processes=processes,
                show_progress=show_progress,
            )

    def remove(self, ids: Iterable[str]) -> int:
        """Remove documents.

        Args:
            ids: Their ids; unknown ones are ignored.

        Returns:
            How many were removed.

        Raises:
            InvalidParameterError: For a single string instead of several ids, or other values.
        """
        gone = check_texts("ids", ids)
        with self._writing:
            places = list(filter(None, map(self._snapshot.find, dict.fromkeys(gone))))
            if places:
                self._snapshot = self._snapshot.without(places).settled()
            return len(places)

    def compact(self) -> None:
        """Rewrite the index as one part, without what removed documents left. O(n) time."""
        with self._writing:
            self._snapshot = self._snapshot.compacted()

    # Reading

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        filter: IdFilter | None = None,  # noqa: A002  # the word of both frameworks
        params: BM25Params | None = None,
    ) -> list[Hit]:
        """Return the best documents that share at least one term with the query.

        Args:
            query: The question, as text.
            k: How many hits are wanted; fewer come when fewer match.
            filter: Applied before ranking: ids, a bool array with one entry per id in `ids`, or
                a function that accepts an id. Ids that are not here are ignored.
            params: `k1` and `b` for this search.

        Returns:
            Hits, best first, with the channel `"bm25"`.

        Raises:
            InvalidParameterError: For a query that is no text, a negative k, or a filter or
                params of another kind.
        """
        asked = [check_text("query", query)]
        return self.search_batch(asked, k, filter=filter, params=params)[0]

    def search_batch(
        self,
        queries: Sequence[str],
        k: int = 10,
        *,
        filter: IdFilter | None = None,  # noqa: A002  # as above
        params: BM25Params | None = None,
    ) -> list[list[Hit]]:
        """Search for several queries in the same state of the index.

        Args:
            queries: The questions.
            k: How many hits are wanted for each.
            filter: As for `search`, the same for all.
            params: `k1` and `b` for this search.

        Returns:
            One list of hits per query.

        Raises:
            InvalidParameterError: As for `search`.
        """
        asked = check_texts("queries", queries)
        wanted = check_count("k", k)
        snapshot = self._snapshot
        searcher = Searcher.of(snapshot, checked_params(params) or self._params)
        if callable(filter):
            found = [best_where(searcher, self._terms(q), wanted, filter) for q in asked]
        else:
            accepted = None if filter is None else accepted_documents(snapshot, filter)
            found = [searcher.best(self._terms(q), wanted, accepted) for q in asked]
        return list(map(hits_of, found))

    def explain(
        self,
        query: str,
        id: str,  # noqa: A002  # what the other methods call it, too
        *,
        params: BM25Params | None = None,
    ) -> BM25Explanation:
        """Return how a document's score for a query comes about.

        Args:
            query: The question, as text.
            id: The document.
            params: `k1` and `b` for this explanation.

        Returns:
            The score, the document's length and what each term of the query adds.

        Raises:
            ChunkNotFoundError: If there is no such document.
            InvalidParameterError: For a query or an id that is no text, or params of another kind.
        """
        id_ = check_text("id", id)
        chosen, snapshot = checked_params(params) or self._params, self._snapshot
        place = snapshot.find(id_)
        if place is None:
            raise ChunkNotFoundError([id_])
        return explain(snapshot, self._terms(query), place, params=chosen)

    def _terms(self, query: str) -> list[str]:
        check_text("query", query)
        return query_terms(self._analyzer, query)

    # Keeping

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the index as a folder, in one step.

        Args:
            path: The folder; an index that is already there is replaced.

        Raises:
            IndexFormatError: If something else is there.
            OSError: If the disk refuses.
        """
        contents = self.contents()
        write_folder(
            path,
            kind=_persistence.KIND,
            version=_persistence.VERSION,
            arrays=contents.arrays,
            settings=contents.settings,
        )

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        mmap: bool = True,
        verify: bool | None = None,
        analyzer: Analyzer | Callable[[str], Sequence[str]] | None = None,
    ) -> BM25Index:
        """Load a saved index.

        Args:
            path: The folder.
            mmap: Map the arrays instead of reading them, in milliseconds for a million documents.
            verify: Compare the checksum of every file, which reads them all; by default only
                when they are read anyway, with `mmap=False`. The manifest's checksum, all sizes
                and how the arrays fit are always checked, postings when a search meets them.
            analyzer: The analyzer that the index was built with; needed only if it is not one
                of ours.

        Returns:
            The index; it can be written to, the files are never changed.

        Raises:
            FileNotFoundError: If the path does not exist.
            IndexFormatError: If it is torn, truncated, foreign or of another version, or was
                built with another analyzer.
        """
        contents = read_folder(
            path,
            kind=_persistence.KIND,
            version=_persistence.VERSION,
            mmap=mmap,
            verify=not mmap if verify is None else verify,
        )
        return cls.from_contents(contents, analyzer=analyzer)

    def contents(self) -> FolderContents:
        """Return what is saved, for an index that keeps this one as a part of its own."""
        return _persistence.packed(
            self._snapshot, self._params, self._analyzer, field_weights=self._field_weights
        )

    @classmethod
    def from_contents(
        cls,
        contents: FolderContents,
        *,
        analyzer: Analyzer | Callable[[str], Sequence[str]] | None = None,
    ) -> BM25Index:
        """Build the index from what `contents` returned.

        Args:
            contents: Arrays, settings and texts.
            analyzer: As for `load`.

        Returns:
            The index.

        Raises:
            IndexFormatError: As for `load`.
        """
        given = None if analyzer is None else as_analyzer(analyzer)
        snapshot, params, kept = _persistence.unpacked(contents, given)
        index = cls(params, analyzer=kept, field_weights=_persistence.weights_of(contents))
        index._snapshot = snapshot
        return index

    def __copy__(self) -> BM25Index:
        """Copy the table of terms; the parts that are here are shared, as they never change."""
        other = type(self).__new__(type(self))
        with self._writing:
            vocabulary = copy(self._snapshot.vocabulary)
            snapshot = replace(self._snapshot, vocabulary=vocabulary)
            other.__setstate__({**self.__getstate__(), "_snapshot": snapshot})
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the lock, and without what searches remembered."""
        state = {key: value for key, value in vars(self).items() if key != "_writing"}
        return {**state, "_snapshot": replace(self._snapshot)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpickle with a lock of its own."""
        vars(self).update(state, _writing=RLock())
