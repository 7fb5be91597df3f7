"""Children merged into their parent where enough of them are found, after any retriever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.callbacks import CallbackManager

from easyrag_core import InvalidParameterError, auto_merge
from easyrag_core.errors import check_count
from llamaindex_easyrag._parents import ParentNodes
from llamaindex_easyrag.postprocessors._reranker import Reranker

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore, QueryBundle
    from llama_index.core.storage.docstore.types import BaseDocumentStore

    from easyrag_core import ChunkStore

__all__ = ["AutoMergingPostprocessor"]


class AutoMergingPostprocessor(Reranker):
    """Replaces nodes by their parent where enough of its children were found, upward until stable.

    Works after any retriever or fusion, over any document store and over several levels; the
    store is read once per level. A parent stands at its best child's place. One that is missing
    leaves its children, with a warning. Results are copies; `metadata["easyrag"]` tells which
    children were found, where they are, and their share of all.

    Give it more nodes than are wanted in the end: several become one.
    """

    merge_threshold: float = Field(
        default=0.5, description="Share of a parent's children that must be found, in (0, 1]."
    )
    score: str = Field(default="best", description="best, mean or sum of the children's scores.")
    top_n: int | None = Field(default=None, description="How many nodes are kept; None: all.")
    strict: bool = Field(default=False, description="Whether a missing parent is an error.")
    _parents: ParentNodes = PrivateAttr()

    def __init__(
        self,
        docstore: BaseDocumentStore | None = None,
        *,
        storage_context: Any = None,
        store: ChunkStore | None = None,
        merge_threshold: float = 0.5,
        score: str = "best",
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
            merge_threshold: Share of a parent's children that must be found, in (0, 1].
            score: `"best"`, `"mean"` or `"sum"` of the children's scores.
            top_n: How many nodes are kept, >= 0; `None` keeps all.
            strict: Raise where a parent is missing or the store fails.
            callback_manager: Receives the `RERANKING` events.

        Raises:
            InvalidParameterError: Not exactly one place is given, or a setting is not as above.
        """
        auto_merge([], {}, {}, merge_threshold=merge_threshold, score=score)
        if top_n is not None:
            check_count("top_n", top_n)
        parents = ParentNodes.of(
            docstore=docstore, storage_context=storage_context, store=store, strict=strict
        )
        if parents is None:
            allowed = "say where the parents are: a docstore, a storage_context or a store"
            raise InvalidParameterError("docstore", docstore, allowed)
        settings: dict[str, Any] = {
            "merge_threshold": merge_threshold,
            "score": score,
            "top_n": top_n,
            "strict": strict,
            "callback_manager": callback_manager or CallbackManager(),
        }
        super().__init__(**settings)
        self._parents = parents

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which the settings are saved."""
        return "AutoMergingPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        with self.reranking(nodes, query_bundle, self._kept(nodes)) as result:
            result.extend(self._parents.merge(nodes, **self._how))
        return result

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        with self.reranking(nodes, query_bundle, self._kept(nodes)) as result:
            result.extend(await self._parents.amerge(nodes, **self._how))
        return result

    @property
    def _how(self) -> dict[str, Any]:
        return {"merge_threshold": self.merge_threshold, "score": self.score, "k": self.top_n}

    def _kept(self, nodes: list[NodeWithScore]) -> int:
        return len(nodes) if self.top_n is None else self.top_n
