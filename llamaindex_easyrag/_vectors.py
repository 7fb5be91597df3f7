"""Finds the vectors of nodes that were found without them."""

from __future__ import annotations

import logging
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from llama_index.core.vector_stores.simple import SimpleVectorStore

from easyrag_core import VectorIndex
from llamaindex_easyrag._convert import content_for_embedding

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.schema import BaseNode, QueryBundle
    from numpy.typing import NDArray

__all__ = [
    "Vector",
    "VectorCache",
    "aembedded_query",
    "embedded_nodes",
    "embedded_query",
    "is_usable",
    "known_vectors",
    "vectors_to_add",
]

_logger = logging.getLogger(__name__)

Vector: TypeAlias = "Sequence[float] | NDArray[Any]"
"""A list of numbers or a one-dimensional array."""


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

    def __eq__(self, other: object) -> bool:
        """Caches of one size are equal: what they hold changes no result."""
        return self._size == other._size if isinstance(other, VectorCache) else NotImplemented

    # What it holds changes.
    __hash__ = None  # type: ignore[assignment]

    def get(self, text: str) -> Vector | None:
        """Return a text's vector, or `None`.

        Args:
            text: What was embedded.

        Returns:
            Its vector, if it is here.
        """
        with self._lock:
            if text in self._vectors:
                self._vectors.move_to_end(text)
            return self._vectors.get(text)

    def put(self, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors; those that were not used for longest make room.

        Args:
            vectors: Text to vector.
        """
        with self._lock:
            self._vectors.update(vectors)
            while len(self._vectors) > self._size:
                self._vectors.popitem(last=False)


def is_usable(vector: Vector | None) -> bool:
    """Tell whether a vector can be compared with others: it is there, not empty, and finite.

    Args:
        vector: A vector or `None`.

    Returns:
        Whether it can.
    """
    return vector is not None and len(vector) > 0 and bool(np.isfinite(vector).all())


def known_vectors(nodes: Sequence[BaseNode], store: Any) -> list[Vector | None]:
    """Return the vectors that exist already: the nodes' own, else those of a vector store.

    Args:
        nodes: Any nodes.
        store: A vector store of the framework, a `VectorIndex`, or `None`. One that does not
            hand vectors out, or fails, gives none.

    Returns:
        One vector or `None` per node.
    """
    missing = [node.node_id for node in nodes if node.embedding is None]
    stored: Mapping[str, Vector] = {}
    if store is not None and missing:
        try:
            stored = _look_up(store, missing)
        except Exception as error:  # noqa: BLE001 - a store may fail in any way
            _logger.warning("No vectors from %s: %r", type(store).__name__, error)
    return [
        stored.get(node.node_id) if node.embedding is None else node.embedding for node in nodes
    ]


def _look_up(store: Any, ids: list[str]) -> Mapping[str, Vector]:
    if isinstance(store, SimpleVectorStore):
        known = store.data.embedding_dict
        return {node_id: known[node_id] for node_id in ids if node_id in known}
    if isinstance(store, VectorIndex):
        rows = zip(ids, store.get(ids), strict=True)
        return {node_id: row for node_id, row in rows if row is not None}
    try:
        nodes = store.get_nodes(node_ids=ids)
    except NotImplementedError:
        _logger.debug("%s gives no vectors by id.", type(store).__name__)
        return {}
    return {node.node_id: node.embedding for node in nodes if node.embedding is not None}


def embedded_nodes(
    nodes: Sequence[BaseNode],
    vectors: Sequence[Vector | None],
    embed_model: BaseEmbedding,
    cache: VectorCache,
) -> list[Vector]:
    """Fill in missing vectors: from the cache, else by the model, in one batch.

    Args:
        nodes: Any nodes.
        vectors: Their vectors as far as they are known.
        embed_model: The model.
        cache: Where vectors are kept between calls.

    Returns:
        One vector per node.
    """
    texts = [content_for_embedding(node) for node in nodes]
    wanted = [text for text, vector in zip(texts, vectors, strict=True) if vector is None]
    found = {text: vector for text in wanted if (vector := cache.get(text)) is not None}
    fresh = list(dict.fromkeys(text for text in wanted if text not in found))
    if fresh:
        made = dict(zip(fresh, embed_model.get_text_embedding_batch(fresh), strict=True))
        # A model that is well again is asked again.
        cache.put({text: vector for text, vector in made.items() if is_usable(vector)})
        found |= made
    return [
        found[text] if vector is None else vector
        for text, vector in zip(texts, vectors, strict=True)
    ]


def embedded_query(query: QueryBundle, embed_model: BaseEmbedding | None) -> Vector | None:
    """Return the query's vector: its own, else the model's.

    Args:
        query: The query; it is left as it is.
        embed_model: The model, if there is one.

    Returns:
        The vector; `None` without either, and for an empty query.
    """
    texts = _query_texts(query)
    if query.embedding is not None or embed_model is None or not texts:
        return query.embedding
    return embed_model.get_agg_embedding_from_queries(texts)


async def aembedded_query(query: QueryBundle, embed_model: BaseEmbedding) -> Vector | None:
    """Return the query's vector: the async twin of `embedded_query`.

    Args:
        query: The query; it is left as it is.
        embed_model: The model.

    Returns:
        The vector; `None` for an empty query.
    """
    texts = _query_texts(query)
    if query.embedding is not None or not texts:
        return query.embedding
    return await embed_model.aget_agg_embedding_from_queries(texts)


def _query_texts(query: QueryBundle) -> list[str]:
    # The framework's RetrieverTool wraps queries in line ends.
    return [text for text in map(str.strip, query.embedding_strs) if text]


def vectors_to_add(
    nodes: Sequence[BaseNode],
    embed_model: BaseEmbedding,
    *,
    stale: Collection[str],
    show_progress: bool,
) -> list[Vector | None]:
    """Return the vectors that an index has to be given: each node's own, else the model's.

    Args:
        nodes: Any nodes.
        embed_model: The model.
        stale: Ids of the nodes whose vector the index does not have, or not for this text.
        show_progress: Show a progress bar while embedding.

    Returns:
        One vector per node; `None` where the index has it.
    """
    bare = [n for n in nodes if n.embedding is None and n.node_id in stale]
    texts = [content_for_embedding(node) for node in bare]
    made = embed_model.get_text_embedding_batch(texts, show_progress) if texts else []
    fresh = dict(zip((node.node_id for node in bare), made, strict=True))
    return [fresh.get(n.node_id) if n.embedding is None else n.embedding for n in nodes]
