"""A transform before a retriever, with and without waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llama_index.core.retrievers import TransformRetriever as FrameworkTransformRetriever

from llamaindex_easyrag.query_transforms._transform import arun_transform, bundle_of
from llamaindex_easyrag.retrievers._channels import aretrieved

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore, QueryBundle

__all__ = ["TransformRetriever"]


class TransformRetriever(FrameworkTransformRetriever):
    """The framework's, with a true async path and without a trace on the caller's query.

    The framework's has no async form of its own: its event loop stands still. Around a
    retriever of a query engine, the answer is still written for the question as it was asked.
    """

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        bundle = self._query_transform.run(bundle_of(query_bundle), self._transform_metadata)
        return self._retriever.retrieve(bundle)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        metadata = self._transform_metadata
        bundle = await arun_transform(self._query_transform, bundle_of(query_bundle), metadata)
        return await aretrieved(self._retriever, bundle)
