"""Keyword search over nodes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.constants import DEFAULT_SIMILARITY_TOP_K

from easyrag_core import (
    BM25Index,
    BM25Params,
    HybridIndex,
    InvalidParameterError,
    StandardAnalyzer,
    field_texts,
)
from easyrag_core.errors import check_count
from llamaindex_easyrag._analyzers import choose_analyzer
from llamaindex_easyrag._convert import content_for_embedding
from llamaindex_easyrag._facts import facts_of_hit, scored_node
from llamaindex_easyrag._filters import matches
from llamaindex_easyrag.retrievers._saved import (
    filters_as_json,
    filters_from_json,
    load_retriever,
    save_retriever,
)
from llamaindex_easyrag.retrievers._writable import Writable, nodes_by_id

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.indices.base import BaseIndex
    from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, QueryBundle
    from llama_index.core.storage.docstore.types import BaseDocumentStore
    from llama_index.core.vector_stores.types import MetadataFilters

    from easyrag_core import Analyzer
    from llamaindex_easyrag._analyzers import SnowballStemmer

__all__ = ["BM25Retriever", "chosen_nodes"]

_KIND = "bm25"


class BM25Retriever(Writable, BaseRetriever):
    """Finds nodes by the words that they share with the query, in any language.

    Indexed is what would be embedded (`MetadataMode.EMBED`). Only nodes with at least one of
    the query's terms are returned, and only such as pass the filters. Results are copies of the
    nodes as they were given; `metadata["easyrag"]` holds score and rank.

    Nodes may be added and removed at any time; every score is then that of an index built anew.
    """

    def __init__(
        self,
        nodes: Sequence[BaseNode] | None = None,
        stemmer: SnowballStemmer | str | None = None,
        language: str | Sequence[str] | None = None,
        similarity_top_k: int = DEFAULT_SIMILARITY_TOP_K,
        callback_manager: CallbackManager | None = None,
        objects: list[IndexNode] | None = None,
        object_map: dict[str, Any] | None = None,
        verbose: bool = False,  # noqa: FBT001, FBT002 - the framework's order of arguments
        skip_stemming: bool | None = None,  # noqa: FBT001 - as above
        token_pattern: str | None = None,
        filters: MetadataFilters | None = None,
        *,
        analyzer: Analyzer | Callable[[str], Sequence[str]] | None = None,
        params: BM25Params | None = None,
        index: BM25Index | None = None,
        field_weights: Mapping[str, int] | None = None,
        processes: int | None = None,
    ) -> None:
        """Index the nodes.

        Args:
            nodes: The nodes; of several with one id the last counts.
            stemmer: A Snowball language such as `"english"`, or an object of PyStemmer.
                Default: no stemming.
            language: Whose stop words are left out, `"en"` or `"english"`, or the words.
                Default: none are.
            similarity_top_k: How many nodes are returned, >= 0; it may be changed later.
            callback_manager: Receives the retrieval events.
            objects: Index nodes that lead to other objects.
            object_map: The same as a dict.
            verbose: Show a progress bar while indexing.
            skip_stemming: `True` ignores the stemmer, `False` without a stemmer means English.
            token_pattern: Regular expression of a term, in place of our analyzer's rules.
            filters: What a node's metadata must satisfy; nested ones too.
            analyzer: Turns a text into terms, in place of the four arguments above.
            params: `k1` and `b`.
            index: An index that already holds the nodes.
            field_weights: Entries of the metadata that are searched beside the indexed text, and
                how often each counts, e.g. `{"heading_path": 2}`; a list is taken as its lines.
                What the indexed text shows of the metadata counts there, too.
            processes: Number of worker processes that read a large lot of nodes, at most.

        Raises:
            InvalidParameterError: A setting is not as above, or the analyzer is told twice.
            MissingDependencyError: A stemmer is asked for and PyStemmer is not installed.
        """
        chosen = choose_analyzer(
            analyzer=analyzer,
            stemmer=stemmer,
            language=language,
            skip_stemming=skip_stemming,
            token_pattern=token_pattern,
        )
        super().__init__(
            callback_manager=callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )
        self.similarity_top_k: int = check_count("similarity_top_k", similarity_top_k)
        self.filters: MetadataFilters | None = filters
        # An empty index is false, but it is the caller's.
        if index is not None:
            self._index = _checked_index(index, field_weights)
            self._nodes.update(nodes_by_id(nodes or []))
        else:
            read = chosen or StandardAnalyzer()
            self._index = BM25Index(params, analyzer=read, field_weights=field_weights)
            self.add_nodes(nodes or [], processes=processes, show_progress=verbose)

    @classmethod
    def from_defaults(
        cls,
        index: BaseIndex[Any] | None = None,
        nodes: Sequence[BaseNode] | None = None,
        docstore: BaseDocumentStore | None = None,
        stemmer: SnowballStemmer | str | None = None,
        language: str | Sequence[str] | None = None,
        similarity_top_k: int = DEFAULT_SIMILARITY_TOP_K,
        verbose: bool = False,  # noqa: FBT001, FBT002 - the framework's order of arguments
        skip_stemming: bool | None = None,  # noqa: FBT001 - as above
        token_pattern: str | None = None,
        filters: MetadataFilters | None = None,
        tokenizer: Callable[[str], Sequence[str]] | None = None,
        **settings: Any,
    ) -> BM25Retriever:
        """Index the nodes of an index, of a document store, or a list.

        Args:
            index: An index of the framework; its document store must hold the nodes.
            nodes: The nodes.
            docstore: A document store.
            stemmer: As in the constructor.
            language: As in the constructor.
            similarity_top_k: As in the constructor.
            verbose: As in the constructor.
            skip_stemming: As in the constructor.
            token_pattern: As in the constructor.
            filters: As in the constructor.
            tokenizer: A function from text to terms: the constructor's `analyzer`.
            **settings: Further arguments of the constructor.

        Returns:
            The retriever.

        Raises:
            InvalidParameterError: Not exactly one source of nodes is given, the index does not
                hold its nodes, or a setting is wrong.
        """
        if tokenizer is not None:
            if settings.get("analyzer") is not None:
                raise InvalidParameterError("tokenizer", tokenizer, "analyzer is given as well")
            settings["analyzer"] = tokenizer
        return cls(
            chosen_nodes(index=index, nodes=nodes, docstore=docstore),
            stemmer=stemmer,
            language=language,
            similarity_top_k=similarity_top_k,
            verbose=verbose,
            skip_stemming=skip_stemming,
            token_pattern=token_pattern,
            filters=filters,
            **settings,
        )

    def add_nodes(
        self,
        nodes: Iterable[BaseNode],
        *,
        processes: int | None = None,
        show_progress: bool = False,
    ) -> None:
        """Add nodes; one that is there under the same id is replaced.

        Args:
            nodes: The nodes. They are kept, not copied, and never changed.
            processes: As in the constructor.
            show_progress: Show a progress bar.

        Raises:
            InvalidParameterError: These are no nodes.
        """
        by_id = nodes_by_id(nodes)
        texts = [content_for_embedding(node) for node in by_id.values()]
        metadatas = [node.metadata for node in by_id.values()]
        with self._writing:
            self._index.add(
                list(by_id),
                texts,
                fields=field_texts(metadatas, self._index.field_weights),
                processes=processes,
                show_progress=show_progress,
            )
            self._nodes.update(by_id)

    async def aadd_nodes(self, nodes: Iterable[BaseNode], **how: Any) -> None:
        """Add nodes in a thread: the async twin of `add_nodes`.

        Args:
            nodes: The nodes.
            **how: As for `add_nodes`.
        """
        await asyncio.to_thread(self.add_nodes, nodes, **how)

    def delete_nodes(self, node_ids: Iterable[str]) -> int:
        """Remove nodes.

        Args:
            node_ids: Their ids; unknown ones are ignored.

        Returns:
            How many there were.

        Raises:
            InvalidParameterError: A single string is given.
        """
        if isinstance(node_ids, str):
            raise InvalidParameterError("node_ids", node_ids, "give a list of ids")
        gone = list(node_ids)
        with self._writing:
            removed = self._index.remove(gone)
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
        """Save the retriever as a folder, in one step, with its filters and every setting.

        Args:
            path: A new or empty folder, or one that holds an earlier save, which is replaced.

        Raises:
            IndexFormatError: Something else is there.
            InvalidParameterError: A node holds something that is no JSON value; it is named.
            OSError: The disk refuses.
        """
        settings = {
            "similarity_top_k": self.similarity_top_k,
            "verbose": self._verbose,
            "filters": filters_as_json(self.filters),
        }
        with self._writing:
            index = HybridIndex(bm25=self._index)
            save_retriever(path, kind=_KIND, settings=settings, nodes=self._nodes, index=index)

    @classmethod
    def from_persist_dir(
        cls,
        path: str | os.PathLike[str],
        *,
        analyzer: Analyzer | Callable[[str], Sequence[str]] | None = None,
        **settings: Any,
    ) -> BM25Retriever:
        """Load a saved retriever.

        Args:
            path: The folder.
            analyzer: The one that it was built with; needed only if that was a function, an
                analyzer of your own or an object of PyStemmer.
            **settings: Arguments of the constructor that replace the saved ones.

        Returns:
            A retriever that answers as the saved one did.

        Raises:
            FileNotFoundError: The path does not exist.
            IndexFormatError: It is torn, foreign or of another version, or the analyzer is
                another one.
        """
        saved = load_retriever(path, kind=_KIND, analyzer=analyzer)
        filters = filters_from_json(saved.settings["filters"])
        told = {**saved.settings, "filters": filters, **settings}
        return cls(saved.nodes, index=saved.index.bm25, **told)

    async def apersist(self, path: str | os.PathLike[str]) -> None:
        """Save in a thread: the async twin of `persist`.

        Args:
            path: A new or empty folder, or one that holds an earlier save, which is replaced.
        """
        await asyncio.to_thread(self.persist, path)

    @classmethod
    async def afrom_persist_dir(
        cls, path: str | os.PathLike[str], **settings: Any
    ) -> BM25Retriever:
        """Load in a thread: the async twin of `from_persist_dir`.

        Args:
            path: The folder.
            **settings: As for `from_persist_dir`.

        Returns:
            A retriever that answers as the saved one did.
        """
        return await asyncio.to_thread(cls.from_persist_dir, path, **settings)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self._index.search(
            query_bundle.query_str,
            check_count("similarity_top_k", self.similarity_top_k),
            filter=None if self.filters is None else self._passes,
        )
        found = ((hit, self._nodes.get(hit.id)) for hit in hits)
        return [scored_node(node, hit.score, facts_of_hit(hit)) for hit, node in found if node]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)

    def _passes(self, node_id: str) -> bool:
        node = self._nodes.get(node_id)
        return node is not None and matches(self.filters, node)


def _checked_index(index: BM25Index, field_weights: Mapping[str, int] | None) -> BM25Index:
    if not isinstance(index, BM25Index):
        raise InvalidParameterError("index", index, "give a BM25Index")
    if field_weights is not None and field_weights != index.field_weights:
        allowed = f"the index that is given has {index.field_weights}: leave them out"
        raise InvalidParameterError("field_weights", field_weights, allowed)
    return index


def chosen_nodes(
    *,
    index: BaseIndex[Any] | None,
    nodes: Sequence[BaseNode] | None,
    docstore: BaseDocumentStore | None,
) -> list[BaseNode]:
    """Return the nodes of the one source that is given.

    Args:
        index: An index of the framework.
        nodes: The nodes.
        docstore: A document store.

    Returns:
        The nodes.

    Raises:
        InvalidParameterError: Not exactly one source is given, or the index keeps its nodes in
            a vector store that does not hand them out.
    """
    given = [source for source in (index, nodes, docstore) if source is not None]
    if len(given) != 1:
        allowed = "please pass exactly one of index, nodes, or docstore"
        raise InvalidParameterError("nodes", f"{len(given)} sources", allowed)
    if nodes is not None:
        return list(nodes)
    store = docstore if index is None else index.docstore
    found = [] if store is None else list(store.docs.values())
    return found or _nodes_in_vector_store(index)


def _nodes_in_vector_store(index: BaseIndex[Any] | None) -> list[BaseNode]:
    store: Any = getattr(index, "vector_store", None)
    if not getattr(store, "stores_text", False):
        return []
    try:
        return list(store.get_nodes())
    except NotImplementedError as error:
        allowed = "its vector store keeps the nodes and does not hand them out: pass nodes="
        raise InvalidParameterError("index", index, allowed) from error
