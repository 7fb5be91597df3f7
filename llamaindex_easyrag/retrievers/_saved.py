"""Retrievers on disk: index, nodes and settings in the one folder of a hybrid index.

The core commits that folder in one step, among any number of writers and readers. Each stored
chunk carries its node as JSON, and one chunk more, which nothing finds, the settings.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from llama_index.core.storage.docstore.utils import doc_to_json, json_to_doc
from llama_index.core.vector_stores.types import MetadataFilters

from easyrag_core import (
    BM25Index,
    Chunk,
    HybridIndex,
    IndexFormatError,
    InMemoryChunkStore,
    InvalidParameterError,
)
from llamaindex_easyrag._analyzers import checked_analyzer, restored_analyzer

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from llama_index.core.schema import BaseNode

    from easyrag_core import Analyzer, ChunkStore, HybridConfig

__all__ = [
    "SavedRetriever",
    "filters_as_json",
    "filters_from_json",
    "load_retriever",
    "save_retriever",
]

_KEY = "llamaindex_easyrag"
_SETTINGS = "settings"
_READ_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class SavedRetriever:
    """What a folder held.

    Attributes:
        settings: What was given to `save_retriever`.
        nodes: The nodes, in the order in which they were given.
        index: Words, vectors and chunks.
    """

    settings: dict[str, Any]
    nodes: list[BaseNode]
    index: HybridIndex


def save_retriever(
    path: str | os.PathLike[str],
    *,
    kind: str,
    settings: Mapping[str, Any],
    nodes: Mapping[str, BaseNode],
    index: HybridIndex,
) -> None:
    """Save a retriever as a folder, in one step that holds or does not happen.

    Args:
        path: A new or empty folder, or one that holds an earlier save, which is replaced.
        kind: Which retriever it is.
        settings: JSON values.
        nodes: Node id to node.
        index: Words and vectors; its chunks are saved too, whatever store holds them.

    Raises:
        IndexFormatError: Something else is there.
        InvalidParameterError: A node holds something that is no JSON value; it is named.
        OSError: The disk refuses.
    """
    store = InMemoryChunkStore()
    store.put_many(_packed(index, nodes))
    known = set(store.ids())
    free = _SETTINGS
    while free in known:
        free += "'"
    analyzer = index.bm25.analyzer.settings()
    told = {"kind": kind, "settings": dict(settings), "analyzer": analyzer}
    store.put_many([_bare(free, _as_json(told, f"this {kind} retriever", settings))])
    bm25 = index.bm25
    if restored_analyzer(analyzer) is not None:
        bm25 = _with_analyzer(bm25, _TOLD_APART.settings(), _TOLD_APART)
    HybridIndex(index.config, bm25=bm25, vectors=index.vectors, store=store).save(path)


def load_retriever(
    path: str | os.PathLike[str],
    *,
    kind: str,
    analyzer: Analyzer | Callable[[str], Sequence[str]] | None = None,
    config: HybridConfig | None = None,
) -> SavedRetriever:
    """Read what `save_retriever` wrote.

    Args:
        path: The folder.
        kind: Which retriever is expected.
        analyzer: What it was built with; needed only if it is not one of ours.
        config: Instead of the one that was saved.

    Returns:
        What was saved.

    Raises:
        FileNotFoundError: The path does not exist.
        IndexFormatError: It is torn, foreign, of another kind or version, or was built with
            another analyzer.
        InvalidParameterError: The analyzer is none.
    """
    given = None if analyzer is None else checked_analyzer(analyzer)
    index = _loaded(path, given, config)
    try:
        told, nodes, chunks = _unpacked(index.store)
    except (KeyError, TypeError, ValueError) as error:
        raise IndexFormatError(f"{path}: the nodes are damaged ({error}): rebuild.") from error
    if told is None:
        raise IndexFormatError(f"{path} holds an index, but no retriever of this package.")
    if told["kind"] != kind:
        raise IndexFormatError(f"{path} holds a {told['kind']!r}, not a {kind!r}.")
    bm25 = index.bm25
    if bm25.analyzer is _TOLD_APART:
        real = told["analyzer"]
        bm25 = _with_analyzer(bm25, real, given or restored_analyzer(real))
    store = InMemoryChunkStore()
    store.put_many(chunks)
    index = HybridIndex(index.config, bm25=bm25, vectors=index.vectors, store=store)
    return SavedRetriever(told["settings"], nodes, index)


def filters_as_json(filters: MetadataFilters | None) -> dict[str, Any] | None:
    """Return filters as JSON values.

    Args:
        filters: The filters, or `None`.

    Returns:
        What `filters_from_json` takes.
    """
    return None if filters is None else filters.model_dump(mode="json")


def filters_from_json(data: dict[str, Any] | None) -> MetadataFilters | None:
    """Build filters from what `filters_as_json` returned.

    Args:
        data: JSON values, or `None`.

    Returns:
        Equal filters.
    """
    return None if data is None else MetadataFilters.model_validate(data)


class _ToldApart:
    """Stands in a folder for an analyzer of this package, whose settings are told apart.

    The core builds its own analyzers of their settings and asks for every other one; which one
    to give is known only from what is in the folder.
    """

    name = "llamaindex-told-apart"

    def __call__(self, text: str) -> list[str]:
        """Refuse to work."""
        raise NotImplementedError

    def analyze_many(
        self, texts: Sequence[str], *, processes: int | None = None
    ) -> list[list[str]]:
        """Refuse to work."""
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        """Return the name alone."""
        return {"name": self.name}


_TOLD_APART = _ToldApart()


def _loaded(path: Any, given: Analyzer | None, config: HybridConfig | None) -> HybridIndex:
    errors = []
    # Twice: between two looks another writer may have replaced the one kind by the other.
    for analyzer in (given, _TOLD_APART) * 2:
        try:
            return HybridIndex.load(path, analyzer=analyzer, config=config)
        except IndexFormatError as error:
            errors.append(error)
    raise errors[0]


def _with_analyzer(
    bm25: BM25Index, settings: Mapping[str, Any], analyzer: Analyzer | None
) -> BM25Index:
    """Return the same index under another analyzer's name."""
    contents = bm25.contents()
    told = {**contents.settings, "analyzer": dict(settings)}
    return BM25Index.from_contents(replace(contents, settings=told), analyzer=analyzer)


def _packed(index: HybridIndex, nodes: Mapping[str, BaseNode]) -> Iterator[Chunk]:
    """Give the chunks of an index with their nodes, and a bare chunk for every other node."""
    chunks = {chunk.id: chunk for chunk in _chunks_of(index.store) if chunk.id in index}
    for id_ in dict.fromkeys([*nodes, *chunks]):
        told: dict[str, Any] = {}
        if id_ in nodes:
            told["node"] = _node_data(nodes[id_])
        if id_ in chunks:
            told["chunk"] = chunks[id_].metadata
        text = _as_json(told, f"node {id_!r}", nodes[id_].metadata if id_ in nodes else told)
        yield replace(chunks[id_], metadata={_KEY: text}) if id_ in chunks else _bare(id_, text)


def _unpacked(store: ChunkStore) -> tuple[dict[str, Any] | None, list[BaseNode], list[Chunk]]:
    settings: dict[str, Any] | None = None
    nodes: list[BaseNode] = []
    chunks: list[Chunk] = []
    for chunk in _chunks_of(store):
        told = json.loads(chunk.metadata.get(_KEY, "{}"))
        if "settings" in told:
            settings = told
        if "node" in told:
            nodes.append(json_to_doc(told["node"]))
        if "chunk" in told:
            chunks.append(replace(chunk, metadata=told["chunk"]))
    return settings, nodes, chunks


def _chunks_of(store: ChunkStore) -> Iterator[Chunk]:
    ids = store.ids()
    for start in range(0, len(ids), _READ_AT_ONCE):
        found = store.get_many(ids[start : start + _READ_AT_ONCE])
        yield from (chunk for chunk in found if chunk is not None)


def _bare(id_: str, told: str) -> Chunk:
    return Chunk(id_, id_, 0, "", 0, 0, metadata={_KEY: told})


def _node_data(node: BaseNode) -> Any:
    try:
        return doc_to_json(node)
    except (TypeError, ValueError, RecursionError) as error:
        raise _no_json(f"node {node.node_id!r}", node.metadata, error) from error


def _as_json(value: dict[str, Any], owner: str, shown: object) -> str:
    try:
        # Characters as they are: escaped lone surrogates would join to other characters.
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise _no_json(owner, shown, error) from error


def _no_json(owner: str, value: object, error: Exception) -> InvalidParameterError:
    allowed = f"all that {owner} holds must be plain JSON values ({error})"
    return InvalidParameterError("metadata", value, allowed)
