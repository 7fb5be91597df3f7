"""Children replaced by their parents, after any retriever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.callbacks import CallbackManager

from easyrag_core import InvalidParameterError
from easyrag_core.errors import check_count
from llamaindex_easyrag._parents import ParentNodes
from llamaindex_easyrag.postprocessors._reranker import Reranker

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore, QueryBundle
    from llama_index.core.storage.docstore.types import BaseDocumentStore

    from easyrag_core import ChunkStore

__all__ = ["ParentExpansionPostprocessor"]


class ParentExpansionPostprocessor(Reranker):
    """Replaces each node by its parent, each parent once, after any retriever or fusion.

    A parent stands at its best child's place, with its score. A node without parent stays, and
    so does one whose parent is missing in the store, with a warning. Results are copies;
    `metadata["easyrag"]["children"]` tells which children were found, their scores and their
    places in the document.
    """

    top_n: int | None = Field(default=None, description="How many nodes are kept; None: all.")
    strict: bool = Field(default=False, description="Whether a missing parent is an error.")
    _parents: ParentNodes = PrivateAttr()

    def __init__(
        self,
        docstore: BaseDocumentStore | None = None,
        *,
        storage_context: Any = None,
        store: ChunkStore | None = None,
        top_n: int | None = None,
        strict: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        """Check the settings.

        Args:
            docstore: Where the parents are. It is not part of `to_dict()`; nor are the next
                two, of which one may be given instead.
            storage_context: A storage context, or an index, whose document store that is.
            store: A `ChunkStore`.
            top_n: How many nodes are kept, >= 0; `None` keeps all.
            strict: Raise where a parent is missing or the store fails.
            callback_manager: Receives the `RERANKING` events.

        Raises:
            InvalidParameterError: Not exactly one place is given, or `top_n` is no such number.
        """
        if top_n is not None:
            check_count("top_n", top_n)
        parents = ParentNodes.of(
            docstore=docstore, storage_context=storage_context, store=store, strict=strict
        )
        if parents is None:
            allowed = "say where the parents are: a docstore, a storage_context or a store"
            raise InvalidParameterError("docstore", docstore, allowed)
        settings: dict[str, Any] = {
            "top_n": top_n,
            "strict": strict,
            "callback_manager": callback_manager or CallbackManager(),
        }
        super().__init__(**settings)
        self._parents = parents

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which the settings are saved."""
        return "ParentExpansionPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        with self.reranking(nodes, query_bundle, self._kept(nodes)) as result:
            result.extend(self._parents.replace(nodes, k=self.top_n))
        return result

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        with self.reranking(nodes, query_bundle, self._kept(nodes)) as result:
            result.extend(await self._parents.areplace(nodes, k=self.top_n))
        return result

    def _kept(self, nodes: list[NodeWithScore]) -> int:
        return len(nodes) if self.top_n is None else self.top_n
