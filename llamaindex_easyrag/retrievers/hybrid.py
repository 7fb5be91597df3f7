"""Words and meaning together: BM25 and vectors over the same nodes."""

from __future__ import annotations

import asyncio
import logging
from copy import copy
from typing import TYPE_CHECKING, Any

from llama_index.core.base.base_retriever import BaseRetriever

from easyrag_core import (
    BM25Index,
    HybridConfig,
    HybridIndex,
    InvalidParameterError,
)
from easyrag_core.errors import check_count
from llamaindex_easyrag._convert import chunks_from_nodes, node_from_chunk
from llamaindex_easyrag._facts import facts_of_hit, scored_node
from llamaindex_easyrag._filters import matches
from llamaindex_easyrag._vectors import vectors_to_add
from llamaindex_easyrag.retrievers._own_sides import OwnSides
from llamaindex_easyrag.retrievers._saved import (
    filters_as_json,
    filters_from_json,
    load_retriever,
    save_retriever,
)
from llamaindex_easyrag.retrievers._sides import TwoSides
from llamaindex_easyrag.retrievers._writable import Writable, nodes_by_id
from llamaindex_easyrag.retrievers.bm25 import chosen_nodes

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.indices.base import BaseIndex
    from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, QueryBundle
    from llama_index.core.storage.docstore.types import BaseDocumentStore
    from llama_index.core.vector_stores.types import MetadataFilters

    from easyrag_core import Analyzer, Hit

__all__ = ["HybridRetriever"]

_logger = logging.getLogger(__name__)

_KIND = "hybrid"


class HybridRetriever(Writable, BaseRetriever):
    """Finds nodes by words and by meaning at once, and fuses both rankings.

    Words are found by an index of our own. Meaning is found by the same index with an embedding
    model, or by any retriever or index of the framework. A side that fails or is late is left
    out with a warning and an `ExceptionEvent`; the other one answers. Without a vector side it
    is BM25 alone, and says so in a warning.

    Results are copies of the nodes as they were given, with fused scores;
    `metadata["easyrag"]` tells each side's rank and raw score.
    """

    def __init__(
        self,
        nodes: Sequence[BaseNode] | None = None,
        *,
        embed_model: BaseEmbedding | None = None,
        vector_retriever: BaseRetriever | BaseIndex[Any] | None = None,
        bm25_retriever: BaseRetriever | None = None,
        similarity_top_k: int = 10,
        config: HybridConfig | None = None,
        filters: MetadataFilters | None = None,
        analyzer: Analyzer | Callable[[str], Sequence[str]] | None = None,
        strict: bool = False,
        index: HybridIndex | None = None,
        show_progress: bool = False,
        callback_manager: CallbackManager | None = None,
        objects: list[IndexNode] | None = None,
        object_map: dict[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        """Index the nodes.

        Args:
            nodes: The nodes. Those that bring an embedding keep it.
            embed_model: Embeds nodes and queries for the index of our own.
            vector_retriever: The vector side instead: a retriever, or an index that makes one.
            bm25_retriever: The word side, with `vector_retriever`; default: BM25 over `nodes`.
            similarity_top_k: How many nodes are returned, >= 0; it may be changed later.
            config: Candidates per side, fusion, weights and timeout.
            filters: What a node's metadata must satisfy. They hold for both sides, whatever the
                vector side makes of them.
            analyzer: Turns a text into terms; default: `StandardAnalyzer()`.
            strict: Raise a failing side's own error.
            index: An index that already holds the nodes, or chunks that become nodes; its config
                holds.
            show_progress: Show a progress bar while indexing.
            callback_manager: Receives the retrieval events.
            objects: Index nodes that lead to other objects.
            object_map: The same as a dict.
            verbose: The framework's flag.

        Raises:
            InvalidParameterError: A setting is not as above, or the sides contradict each other.
        """
        super().__init__(
            callback_manager=callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )
        known = index is not None
        if embed_model is not None and not hasattr(embed_model, "get_text_embedding_batch"):
            raise InvalidParameterError("embed_model", embed_model, "give an embedding model")
        if known and not isinstance(index, HybridIndex):
            raise InvalidParameterError("index", index, "give a HybridIndex")
        if known and config is not None:
            raise InvalidParameterError("config", config, "the index has a config of its own")
        self._filters = filters
        self._config = (config or HybridConfig()) if index is None else index.config
        self._strict = strict
        self._embed_model = embed_model
        # An empty index may be false, but it is the caller's.
        if index is None:
            index = HybridIndex(self._config, bm25=BM25Index(analyzer=analyzer))
        self._index = index
        self._sides: TwoSides | None = None
        if vector_retriever is not None:
            _check_alone("embed_model", embed_model)
            self._sides = TwoSides(
                nodes,
                bm25_retriever,
                vector_retriever,
                config=self._config,
                filters=filters,
                analyzer=analyzer,
                strict=strict,
            )
            self._embed_model = self._sides.embed_model
        else:
            _check_alone("bm25_retriever", bm25_retriever)
            self._fill(nodes or [], known=known, show_progress=show_progress)
        self.similarity_top_k = similarity_top_k

    def _fill(self, nodes: Sequence[BaseNode], *, known: bool, show_progress: bool) -> None:
        if self._embed_model is None:
            _logger.warning("No embed_model and no vector_retriever: searching by BM25 alone.")
        if known:
            self._nodes.update(nodes_by_id(nodes))
        else:
            self.add_nodes(nodes, show_progress=show_progress)

    @classmethod
    def from_defaults(
        cls,
        index: BaseIndex[Any] | None = None,
        nodes: Sequence[BaseNode] | None = None,
        docstore: BaseDocumentStore | None = None,
        **settings: Any,
    ) -> HybridRetriever:
        """Index the nodes of an index, of a document store, or a list.

        Args:
            index: An index of the framework; it is the vector side too, unless an
                `embed_model` or a `vector_retriever` is given.
            nodes: The nodes.
            docstore: A document store.
            **settings: Arguments of the constructor.

        Returns:
            The retriever.

        Raises:
            InvalidParameterError: Not exactly one source of nodes is given, the index does not
                hold its nodes, or a setting is wrong.
        """
        found = chosen_nodes(index=index, nodes=nodes, docstore=docstore)
        own = settings.keys() & {"embed_model", "vector_retriever"}
        if index is not None and not own:
            settings["vector_retriever"] = index
        return cls(found, **settings)

    @property
    def similarity_top_k(self) -> int:
        """How many nodes are returned."""
        return self._similarity_top_k

    @similarity_top_k.setter
    def similarity_top_k(self, similarity_top_k: int) -> None:
        self._similarity_top_k = check_count("similarity_top_k", similarity_top_k)
        if self._sides is not None:
            self._sides.make_room(similarity_top_k)

    @property
    def filters(self) -> MetadataFilters | None:
        """What a node's metadata must satisfy."""
        return self._filters

    @property
    def vector_store(self) -> Any:
        """Where the vectors can be looked up by node id; `None` if that is not known."""
        return self._sides.vector_store if self._sides else self._index.vectors

    def add_nodes(self, nodes: Iterable[BaseNode], *, show_progress: bool = False) -> None:
        """Add nodes to words, vectors and content in one step; known ids are replaced.

        Only what is new or changed is embedded.

        Args:
            nodes: The nodes. They are kept, not copied, and never changed.
            show_progress: Show a progress bar while embedding.

        Raises:
            InvalidParameterError: These are no nodes, or the vector side is not ours, so that it
                must be told as well.
        """
        self._check_own()
        by_id = nodes_by_id(nodes)
        chunks = chunks_from_nodes(by_id.values())
        with self._writing:
            vectors = None
            if self._embed_model is not None:
                stale = {chunk.id for chunk in self._index.without_vector(chunks)}
                vectors = vectors_to_add(
                    list(by_id.values()),
                    self._embed_model,
                    stale=stale,
                    show_progress=show_progress,
                )
            self._index.add(chunks, vectors)
            self._nodes.update(by_id)

    async def aadd_nodes(self, nodes: Iterable[BaseNode], *, show_progress: bool = False) -> None:
        """Add nodes in a thread: the async twin of `add_nodes`.

        Args:
            nodes: The nodes.
            show_progress: Show a progress bar while embedding.
        """
        await asyncio.to_thread(self.add_nodes, nodes, show_progress=show_progress)

    def delete_nodes(self, node_ids: Iterable[str]) -> int:
        """Remove nodes.

        Args:
            node_ids: Their ids; unknown ones are ignored.

        Returns:
            How many there were.

        Raises:
            InvalidParameterError: A single string is given, or the vector side is not ours.
        """
        self._check_own()
        if isinstance(node_ids, str):
            raise InvalidParameterError("node_ids", node_ids, "give a list of ids")
        gone = list(node_ids)
        with self._writing:
            removed: int = self._index.remove(gone)
            for node_id in gone:
                self._nodes.pop(node_id, None)
        return removed

    async def adelete_nodes(self, node_ids: Iterable[str]) -> int:
        """Remove nodes in a thread: the async twin of `delete_nodes`.

        Args:
            node_ids: Their ids; unknown ones are ignored.

        Returns:
            How many there were.
        """
        return await asyncio.to_thread(self.delete_nodes, node_ids)

    def persist(self, path: str | os.PathLike[str]) -> None:
        """Save the retriever as a folder, in one step; the embedding model is not saved.

        Args:
            path: A new or empty folder, or one that holds an earlier save, which is replaced.

        Raises:
            InvalidParameterError: The vector side is not ours, or a node holds something that
                is no JSON value; it is named.
            IndexFormatError: Something else is there.
            OSError: The disk refuses.
        """
        self._check_own()
        settings = {
            "similarity_top_k": self.similarity_top_k,
            "strict": self._strict,
            "filters": filters_as_json(self.filters),
        }
        with self._writing:
            nodes, index = self._nodes, self._index
            save_retriever(path, kind=_KIND, settings=settings, nodes=nodes, index=index)

    @classmethod
    def from_persist_dir(
        cls,
        path: str | os.PathLike[str],
        *,
        embed_model: BaseEmbedding | None = None,
        analyzer: Analyzer | Callable[[str], Sequence[str]] | None = None,
        **settings: Any,
    ) -> HybridRetriever:
        """Load a saved retriever.

        Args:
            path: The folder.
            embed_model: The model that the nodes were embedded with.
            analyzer: The one that it was built with; needed only if it is not one of ours.
            **settings: Arguments of the constructor that replace the saved ones.

        Returns:
            A retriever that answers as the saved one did.

        Raises:
            FileNotFoundError: The path does not exist.
            IndexFormatError: It is torn, foreign or of another version, or the analyzer is
                another one.
        """
        config = settings.pop("config", None)
        saved = load_retriever(path, kind=_KIND, analyzer=analyzer, config=config)
        filters = filters_from_json(saved.settings["filters"])
        told = {**saved.settings, "filters": filters, **settings}
        return cls(saved.nodes, index=saved.index, embed_model=embed_model, **told)

    def narrowed(
        self,
        filters: MetadataFilters | None,
        similarity_top_k: int,
        narrow: Callable[[BaseRetriever, int], BaseRetriever],
    ) -> HybridRetriever:
        """Return a retriever over the same index with other filters.

        Args:
            filters: What a node's metadata must satisfy, in place of this one's.
            similarity_top_k: How many nodes are returned.
            narrow: Does the same for a side that is a retriever of its own.

        Returns:
            A copy.
        """
        made = copy(self)
        made._filters = filters  # noqa: SLF001 - it is one of ours
        made._similarity_top_k = similarity_top_k  # noqa: SLF001 - as above
        if self._sides is not None:
            made._sides = self._sides.narrowed(filters, similarity_top_k, narrow)  # noqa: SLF001
        return made

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._sides is not None:
            return self._sides.retrieve(query_bundle, self._similarity_top_k)
        return self._scored(*self._own_sides().search(query_bundle))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._sides is not None:
            return await self._sides.aretrieve(query_bundle, self._similarity_top_k)
        hits, failed = await self._own_sides().asearch(query_bundle)
        return await asyncio.to_thread(self._scored, hits, failed)

    def _own_sides(self) -> OwnSides:
        accepts = None if self._filters is None else self._passes
        k, strict = self._similarity_top_k, self._strict
        return OwnSides(self._index, self._embed_model, accepts, k=k, strict=strict)

    def _scored(self, hits: list[Hit], failed: dict[str, str]) -> list[NodeWithScore]:
        told = {"failed": failed} if failed else {}
        found = zip(hits, self._known_nodes([hit.id for hit in hits]), strict=True)
        return [
            scored_node(node, hit.score, facts_of_hit(hit) | told) for hit, node in found if node
        ]

    def _known_nodes(self, ids: list[str]) -> list[BaseNode | None]:
        """The nodes that were given; for what only the index knows, nodes made of its chunks."""
        foreign = [node_id for node_id in ids if node_id not in self._nodes]
        chunks = dict(zip(foreign, self._index.get_many(foreign), strict=True))
        made = {id_: node_from_chunk(chunk) for id_, chunk in chunks.items() if chunk}
        return [self._nodes.get(node_id) or made.get(node_id) for node_id in ids]

    def _passes(self, node_id: str) -> bool:
        node = self._known_nodes([node_id])[0]
        return node is not None and matches(self._filters, node)

    def _check_own(self) -> None:
        if self._sides is not None:
            allowed = "the vector side is not ours: change both sides themselves"
            raise InvalidParameterError("vector_retriever", self._sides, allowed)


def _check_alone(name: str, value: object) -> None:
    if value is not None:
        allowed = "give an embed_model alone, or a vector_retriever with or without bm25_retriever"
        raise InvalidParameterError(name, value, allowed)
