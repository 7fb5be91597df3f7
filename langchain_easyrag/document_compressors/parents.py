"""Small chunks that were found, replaced by the large ones that hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import run_in_executor
from pydantic import ConfigDict
from typing_extensions import override

from langchain_easyrag._parents import Families, ParentStore
from langchain_easyrag._settings import check_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.callbacks import Callbacks

__all__ = ["ParentExpansionCompressor"]


class ParentExpansionCompressor(BaseDocumentCompressor):
    """Replace each child by its parent, each parent once; works after any retriever.

    A parent stands at its best child's place, with its score. The children that were hit, with
    their places in the source, are under `metadata["easyrag"]["children"]`; what a parent
    itself has under `"easyrag"` is replaced. A document without a parent stays as it is, and so
    does, with a warning, one whose parent is missing.

    Put it behind fusion, never before: several children of one parent are several votes.

    Instantiate:
        ```python
        from langchain_easyrag import ParentExpansionCompressor

        compressor = ParentExpansionCompressor(store=docstore, k=4)
        ```

    Use:
        ```python
        compressor.compress_documents(retriever.invoke(question), question)
        ```
    """

    store: Any
    """Holds the parents by id: a `ChunkStore`, `ChunkDocstore`, a `HybridIndex`, or any other
    `BaseStore[str, Document]`."""

    k: int | None = None
    """How many documents to keep; all by default."""

    parent_key: str = "parent_id"
    """Metadata key under which a child names its parent; that of LangChain's
    `ParentDocumentRetriever` is `doc_id`."""

    strict: bool = False
    """Raise where a parent is missing or the store fails."""

    model_config: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    def __init__(self, **kwargs: Any) -> None:
        """Check the settings.

        Args:
            **kwargs: The fields of this class.

        Raises:
            InvalidParameterError: A setting is unknown, or the store is none.
        """
        check_settings(kwargs, known=type(self).model_fields)
        ParentStore(kwargs.get("store"))
        super().__init__(**kwargs)

    @override
    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Replace children by their parents.

        Args:
            documents: What was found, best first.
            query: Not used.
            callbacks: Not used.

        Returns:
            Copies, best first.

        Raises:
            ChunkNotFoundError: `strict`, and parents are missing.
            InvalidParameterError: The store holds something else than documents.
        """
        families = self._families(documents)
        return families.expanded(families.read(), self.k)

    @override
    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Replace children by their parents: the async twin of `compress_documents`."""
        families = await run_in_executor(None, self._families, documents)
        return families.expanded(await families.aread(), self.k)

    def _families(self, documents: Sequence[Document]) -> Families:
        return Families(
            documents,
            store=ParentStore(self.store),
            parent_key=self.parent_key,
            strict=self.strict,
        )
