"""Small chunks that were found, merged into the large ones of which they are enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import run_in_executor
from pydantic import ConfigDict
from typing_extensions import override

from easyrag_core import auto_merge
from langchain_easyrag._parents import Families, FamilyKeys, ParentStore
from langchain_easyrag._settings import check_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.callbacks import Callbacks

__all__ = ["AutoMergingCompressor"]


class AutoMergingCompressor(BaseDocumentCompressor):
    """Replace children by their parent where enough of them were found, upward until stable.

    Works after any retriever, over any store, and over several levels; the store is read once
    per level. A parent stands at its best child's place. The children that were found, with
    their places in the source, and their share of all are under `metadata["easyrag"]`. A parent
    that is missing leaves its children, with a warning.

    Put it behind fusion, never before: several children of one parent are several votes. Give it
    more documents than are wanted in the end: several become one.

    Instantiate:
        ```python
        from langchain_easyrag import AutoMergingCompressor

        compressor = AutoMergingCompressor(store=docstore, merge_threshold=0.5, k=4)
        ```

    Use:
        ```python
        compressor.compress_documents(retriever.invoke(question), question)
        ```
    """

    store: Any
    """Holds the parents by id: a `ChunkStore`, `ChunkDocstore`, a `HybridIndex`, or any other
    `BaseStore[str, Document]`."""

    merge_threshold: float = 0.5
    """Share of a parent's children that must be found, in (0, 1]."""

    score: str = "best"
    """`"best"`, `"mean"` or `"sum"` of the children's scores."""

    k: int | None = None
    """How many documents to keep; all by default."""

    parent_key: str = "parent_id"
    """Metadata key under which a child names its parent."""

    children_key: str = "child_ids"
    """Metadata key under which a parent lists its children; a `ChunkStore` knows them anyway."""

    strict: bool = False
    """Raise where a parent is missing or the store fails."""

    model_config: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    def __init__(self, **kwargs: Any) -> None:
        """Check the settings.

        Args:
            **kwargs: The fields of this class.

        Raises:
            InvalidParameterError: A setting is unknown or out of range, or the store is none.
        """
        check_settings(kwargs, known=type(self).model_fields)
        # The kernel knows what thresholds and words are allowed.
        names = {"merge_threshold", "score"} & kwargs.keys()
        auto_merge([], {}, {}, **{name: kwargs[name] for name in names})
        ParentStore(kwargs.get("store"))
        super().__init__(**kwargs)

    @override
    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Merge children into their parents.

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
        return families.merged(families.merge(*self._how()), self.k)

    @override
    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Merge children into their parents: the async twin of `compress_documents`."""
        families = await run_in_executor(None, self._families, documents)
        return families.merged(await families.amerge(*self._how()), self.k)

    def _how(self) -> tuple[float, str, FamilyKeys]:
        keys = FamilyKeys(self.parent_key, self.children_key)
        return self.merge_threshold, self.score, keys

    def _families(self, documents: Sequence[Document]) -> Families:
        return Families(
            documents,
            store=ParentStore(self.store),
            parent_key=self.parent_key,
            strict=self.strict,
        )
