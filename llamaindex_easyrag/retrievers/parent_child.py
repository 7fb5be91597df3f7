"""Small nodes searched, the large ones that hold them returned."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.storage.docstore import SimpleDocumentStore

from easyrag_core import InvalidParameterError
from easyrag_core.errors import check_count
from llamaindex_easyrag._families import Families, children_of
from llamaindex_easyrag._parents import ParentNodes
from llamaindex_easyrag.retrievers.bm25 import BM25Retriever
from llamaindex_easyrag.retrievers.hybrid import HybridRetriever

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.indices.base import BaseIndex
    from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, QueryBundle
    from llama_index.core.storage.docstore.types import BaseDocumentStore
    from llama_index.core.vector_stores.types import MetadataFilters

    from easyrag_core import Analyzer, ChunkStore, HybridConfig

__all__ = ["ParentChildRetriever"]

# How many children are asked for each parent wanted, where the size of families is not known.
_FAMILY = 8


class ParentChildRetriever(BaseRetriever):
    """Finds small nodes by words, by meaning or by both, and returns their parents.

    A parent is returned once, with the score and at the place of its best child; a node without
    parent as it is. A parent that is missing in the store is replaced by its children, with a
    warning. Results are copies; `metadata["easyrag"]["children"]` tells which children were
    found, their scores and their places in the document, the rest what was told of the best one.
    """

    def __init__(
        self,
        nodes: Sequence[BaseNode] | None = None,
        *,
        child_retriever: BaseRetriever | BaseIndex[Any] | None = None,
        docstore: BaseDocumentStore | None = None,
        storage_context: Any = None,
        store: ChunkStore | None = None,
        similarity_top_k: int = 4,
        child_k: int | None = None,
        embed_model: BaseEmbedding | None = None,
        vector_retriever: BaseRetriever | BaseIndex[Any] | None = None,
        config: HybridConfig | None = None,
        filters: MetadataFilters | None = None,
        analyzer: Analyzer | Callable[[str], Sequence[str]] | None = None,
        strict: bool = False,
        show_progress: bool = False,
        callback_manager: CallbackManager | None = None,
        objects: list[IndexNode] | None = None,
        object_map: dict[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        """Index the children and keep the parents.

        Args:
            nodes: Parents and children as `ParentChildNodeParser` makes them. Children are
                indexed by BM25, and by vectors if there is a vector side; parents go to the
                store.
            child_retriever: Instead of `nodes`: any retriever of children, or an index that
                makes one. The parents are then in a store already.
            docstore: Where the parents are; default, with `nodes`: a store in memory.
            storage_context: A storage context, or an index, whose document store that is.
            store: A `ChunkStore` instead of a document store.
            similarity_top_k: How many parents are returned, >= 0; it may be changed later.
            child_k: How many children are asked for, and no more; default: enough for as many
                parents as are wanted, even if all children of the best ones are found. A
                retriever of the caller's gives what it is set to.
            embed_model: Embeds children and queries.
            vector_retriever: The vector side instead: a retriever of the children, or an index.
            config: Candidates per side, fusion, weights and timeout.
            filters: What a child's metadata must satisfy.
            analyzer: Turns a text into terms; default: `StandardAnalyzer()`.
            strict: Raise where a side fails or a parent is missing.
            show_progress: Show a progress bar while indexing.
            callback_manager: Receives the retrieval events.
            objects: Index nodes that lead to other objects.
            object_map: The same as a dict.
            verbose: The framework's flag.

        Raises:
            InvalidParameterError: A setting is not as above, or two contradict each other.
        """
        super().__init__(
            callback_manager=callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )
        self._child_k = None if child_k is None else check_count("child_k", child_k, minimum=1)
        self._strict = strict
        self._largest_family = 0
        self._sized: list[Any] = []
        self._made_by: Any = None
        sides: dict[str, Any] = {
            "embed_model": embed_model,
            "vector_retriever": vector_retriever,
            "config": config,
            "filters": filters,
            "analyzer": analyzer,
        }
        places: dict[str, Any] = {
            "docstore": docstore,
            "storage_context": storage_context,
            "store": store,
        }
        parents = ParentNodes.of(**places, strict=strict)
        self._similarity_top_k = check_count("similarity_top_k", similarity_top_k)
        self._children: Any
        if child_retriever is not None:
            self._parents = _told(nodes, parents, sides)
            self._children = self._asked(child_retriever)
        elif nodes is None:
            raise InvalidParameterError("nodes", nodes, "give nodes, or a child_retriever")
        else:
            self._parents = parents or ParentNodes(SimpleDocumentStore(), strict=strict)
            leaves = self._kept(nodes)
            self._children = self._indexed(leaves, sides, show_progress=show_progress)
        self.similarity_top_k = similarity_top_k

    @property
    def similarity_top_k(self) -> int:
        """How many parents are returned."""
        return self._similarity_top_k

    @similarity_top_k.setter
    def similarity_top_k(self, similarity_top_k: int) -> None:
        self._similarity_top_k = check_count("similarity_top_k", similarity_top_k)
        for child in self._sized:
            child.similarity_top_k = self.child_k

    @property
    def child_k(self) -> int:
        """How many children are asked for."""
        if self._child_k is not None:
            return self._child_k
        return self._similarity_top_k * (self._largest_family or _FAMILY)

    def add_nodes(self, nodes: Sequence[BaseNode], *, show_progress: bool = False) -> None:
        """Add parents and children; known ids are replaced.

        Args:
            nodes: As in the constructor.
            show_progress: Show a progress bar while indexing.

        Raises:
            InvalidParameterError: The retriever of the children is the caller's.
        """
        if not hasattr(self._children, "add_nodes"):
            allowed = "it cannot be told: add nodes to it and to the store"
            raise InvalidParameterError("child_retriever", self._children, allowed)
        self._children.add_nodes(self._kept(nodes), show_progress=show_progress)
        self.similarity_top_k = self._similarity_top_k

    async def aadd_nodes(self, nodes: Sequence[BaseNode], *, show_progress: bool = False) -> None:
        """Add nodes in a thread: the async twin of `add_nodes`.

        Args:
            nodes: As in the constructor.
            show_progress: Show a progress bar while indexing.
        """
        await asyncio.to_thread(self.add_nodes, nodes, show_progress=show_progress)

    def _kept(self, nodes: Sequence[BaseNode]) -> list[BaseNode]:
        """Keep the parents in the store; return the leaves."""
        families = [(node, len(children_of(node))) for node in nodes]
        sizes = [size for _, size in families]
        self._largest_family = max([self._largest_family or 1, *sizes])
        self._parents.put([node for node, size in families if size])
        return [node for node, size in families if not size]

    def _indexed(
        self, leaves: list[BaseNode], sides: dict[str, Any], *, show_progress: bool
    ) -> BaseRetriever:
        if sides["embed_model"] is None and sides["vector_retriever"] is None:
            if sides["config"] is not None:
                allowed = "it is for two sides: give an embed_model or a vector_retriever"
                raise InvalidParameterError("config", sides["config"], allowed)
            words = BM25Retriever(
                leaves,
                filters=sides["filters"],
                analyzer=sides["analyzer"],
                verbose=show_progress,
            )
            self._sized = [words]
            return words
        both = HybridRetriever(leaves, **sides, strict=self._strict, show_progress=show_progress)
        self._sized = [both]
        return both

    def _asked(self, child_retriever: Any) -> BaseRetriever:
        if hasattr(child_retriever, "as_retriever"):
            self._made_by = child_retriever
            made: BaseRetriever = child_retriever.as_retriever(similarity_top_k=self.child_k)
            self._sized = [made]
            return made
        if not (hasattr(child_retriever, "retrieve") and hasattr(child_retriever, "aretrieve")):
            allowed = "give a retriever, or an index that makes one"
            raise InvalidParameterError("child_retriever", child_retriever, allowed)
        if self._child_k is not None:
            allowed = "set similarity_top_k on the child_retriever itself"
            raise InvalidParameterError("child_k", self._child_k, allowed)
        own: BaseRetriever = child_retriever
        return own

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        k, reach = self._similarity_top_k, self.child_k
        found = self._children.retrieve(replace(query_bundle))
        while self._goes_deeper(found, k, reach):
            reach *= 4
            found = self._reaching(reach).retrieve(replace(query_bundle))
        return self._parents.replace(found, k=k)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        k, reach = self._similarity_top_k, self.child_k
        found = await self._children.aretrieve(replace(query_bundle))
        while self._goes_deeper(found, k, reach):
            reach *= 4
            found = await self._reaching(reach).aretrieve(replace(query_bundle))
        return await self._parents.areplace(found, k=k)

    def _goes_deeper(self, found: list[NodeWithScore], k: int, reach: int) -> bool:
        """Whether too few parents were found, and there may be more children."""
        if self._made_by is None or self._child_k is not None:
            return False
        return len(found) >= reach > 0 and len(Families(found, {})) < k

    def _reaching(self, reach: int) -> BaseRetriever:
        made: BaseRetriever = self._made_by.as_retriever(similarity_top_k=reach)
        return made


def _told(nodes: object, parents: ParentNodes | None, sides: dict[str, Any]) -> ParentNodes:
    """Refuse what cannot be used beside a retriever of the caller's."""
    if nodes is not None:
        raise InvalidParameterError("nodes", nodes, "a child_retriever is given as well")
    for name, value in sides.items():
        if value is not None:
            raise InvalidParameterError(name, value, "set it on the child_retriever")
    if parents is None:
        allowed = "say where the parents are: a docstore, a storage_context or a store"
        raise InvalidParameterError("docstore", None, allowed)
    return parents
