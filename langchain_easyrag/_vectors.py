"""Finds the vectors of documents that were found without them."""

from __future__ import annotations

import logging
import math
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from langchain_core.vectorstores import InMemoryVectorStore

from easyrag_core import HybridIndex, VectorIndex
from langchain_easyrag._query_vectors import aembedded_query, embedded_query

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings

__all__ = [
    "Vector",
    "VectorCache",
    "aembedded",
    "embedded",
    "is_usable",
    "stored_id",
    "stored_vectors",
]

_logger = logging.getLogger(__name__)

Vector = Any
"""A sequence of floats or a one-dimensional array."""


def is_usable(vector: Vector | None) -> bool:
    """Tell whether something is a vector: not empty, and of finite numbers alone."""
    try:
        if isinstance(vector, np.ndarray):
            return vector.ndim == 1 and vector.size > 0 and bool(np.isfinite(vector).all())
        # A sum is finite only if all its parts are; of infinite ones fsum may refuse to make one.
        return vector is not None and len(vector) > 0 and math.isfinite(math.fsum(vector))
    except (TypeError, ValueError, OverflowError):
        return False


def stored_id(document: Document) -> str | None:
    """Return the id under which a store keeps a document.

    Args:
        document: What the store found.

    Returns:
        The document's id, else what Qdrant's store puts into the metadata in its place.
    """
    told = document.metadata.get("_id") if document.id is None else document.id
    return None if told is None else str(told)


def stored_vectors(store: Any, ids: Sequence[str | None]) -> list[Vector | None]:
    """Look vectors up by id, in whatever way a store offers.

    Knows our own indices, `InMemoryVectorStore`, and by their methods Chroma and PGVectorStore,
    FAISS and Qdrant. A store that offers nothing, or fails, gives no vectors.

    Args:
        store: A vector store, a `VectorIndex`, a `HybridIndex`, or `None`.
        ids: Ids of documents; `None` for a document without.

    Returns:
        One vector or `None` per id.
    """
    known = [id_ for id_ in ids if id_ is not None]
    if store is None or not known:
        return [None] * len(ids)
    try:
        found = _look_up(store, known)
    except Exception as error:  # noqa: BLE001 - a store may fail in any way
        _logger.warning("No vectors from %s: %r", type(store).__name__, error)
        found = {}
    return [None if id_ is None else found.get(id_) for id_ in ids]


def _look_up(store: Any, ids: list[str]) -> Mapping[str, Vector]:
    for offers, look_up in _LOOKUPS:
        if offers(store):
            return look_up(store, ids)
    _logger.debug("%s gives no vectors by id.", type(store).__name__)
    return {}


def _from_own_index(store: Any, ids: list[str]) -> Mapping[str, Vector]:
    index = store.vectors if isinstance(store, HybridIndex) else store
    return {} if index is None else dict(zip(ids, index.get(ids), strict=True))


def _from_memory(store: Any, ids: list[str]) -> Mapping[str, Vector]:
    return {id_: store.store[id_]["vector"] for id_ in ids if id_ in store.store}


def _from_get_include(store: Any, ids: list[str]) -> Mapping[str, Vector]:
    """Chroma and PGVectorStore: `get(ids=…, include=…)` gives columns."""
    found = store.get(ids=ids, include=["embeddings"])
    vectors = found["embeddings"]
    return {} if vectors is None else dict(zip(found["ids"], vectors, strict=True))


def _from_faiss(store: Any, ids: list[str]) -> Mapping[str, Vector]:
    rows = {id_: row for row, id_ in store.index_to_docstore_id.items()}
    return {id_: store.index.reconstruct(rows[id_]) for id_ in ids if id_ in rows}


def _from_qdrant(store: Any, ids: list[str]) -> Mapping[str, Vector]:
    records = store.client.retrieve(store.collection_name, ids=ids, with_vectors=True)
    name = getattr(store, "vector_name", "")
    return {
        str(record.id): record.vector.get(name)
        if isinstance(record.vector, dict)
        else record.vector
        for record in records
    }


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda store: all(hasattr(store, name) for name in names)


_LOOKUPS: tuple[
    tuple[Callable[[Any], bool], Callable[[Any, list[str]], Mapping[str, Vector]]], ...
] = (
    (lambda store: isinstance(store, HybridIndex | VectorIndex), _from_own_index),
    (lambda store: isinstance(store, InMemoryVectorStore), _from_memory),
    (_has("index_to_docstore_id", "index"), _from_faiss),
    (_has("client", "collection_name"), _from_qdrant),
    (_has("get"), _from_get_include),
)


class VectorCache:
    """The vectors of the texts used last; safe to share between threads."""

    def __init__(self, size: int) -> None:
        """Make an empty cache.

        Args:
            size: How many vectors are kept; 0 keeps none.
        """
        self._size = size
        self._vectors: OrderedDict[str, Vector] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[VectorCache], tuple[int]]:
        """Copy and pickle as an empty cache of the same size: a lock cannot be copied."""
        return VectorCache, (self._size,)

    def get(self, text: str) -> Vector | None:
        """Return a text's vector, or `None`."""
        with self._lock:
            if text in self._vectors:
                self._vectors.move_to_end(text)
            return self._vectors.get(text)

    def put(self, texts: Sequence[str], vectors: Sequence[Vector]) -> None:
        """Keep vectors; the ones that were not used for longest make room."""
        with self._lock:
            self._vectors.update(zip(texts, vectors, strict=True))
            while len(self._vectors) > self._size:
                self._vectors.popitem(last=False)


def embedded(
    embeddings: Embeddings, texts: Sequence[str], query: str | None
) -> tuple[list[Vector], Vector | None]:
    """Embed texts in one batch, and the query if there is one.

    Args:
        embeddings: The model.
        texts: The texts; none at all costs no call.
        query: The query, or `None`.

    Returns:
        The texts' vectors and the query's.
    """
    vectors = embeddings.embed_documents(list(texts)) if texts else []
    return vectors, None if query is None else embedded_query(embeddings, query)


async def aembedded(
    embeddings: Embeddings, texts: Sequence[str], query: str | None
) -> tuple[list[Vector], Vector | None]:
    """Embed texts in one batch: the async twin of `embedded`."""
    vectors = await embeddings.aembed_documents(list(texts)) if texts else []
    return vectors, None if query is None else await aembedded_query(embeddings, query)
