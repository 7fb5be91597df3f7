"""A transform before a query engine: what is searched changes, what is answered does not."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.callbacks.schema import CBEventType, EventPayload
from llama_index.core.query_engine import TransformQueryEngine as FrameworkTransformQueryEngine

from easyrag_core.pipeline import in_thread
from llamaindex_easyrag.query_transforms._transform import arun_transform, bundle_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.schema import NodeWithScore, QueryBundle

__all__ = ["TransformQueryEngine"]


class TransformQueryEngine(FrameworkTransformQueryEngine):
    """The framework's, with a true async path, one run of the transform, and the user's question.

    The transformed query is for retrieval and node postprocessors. The answer is written for the
    question as it was asked. Around an engine that cannot retrieve and answer in two steps, the
    transformed query is all that it gets.
    """

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Retrieve with the transformed query.

        Args:
            query_bundle: As it was asked.

        Returns:
            What the engine finds.
        """
        return self._query_engine.retrieve(self._searched(query_bundle))

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Retrieve with the transformed query: the async twin of `retrieve`."""
        return await self._afound(await self._asearched(query_bundle))

    def synthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> Any:
        """Answer the question as it was asked; the transform does not run again.

        Args:
            query_bundle: As it was asked.
            nodes: What was retrieved.
            additional_source_nodes: To be named as sources as well.

        Returns:
            The engine's answer.
        """
        return self._query_engine.synthesize(
            bundle_of(query_bundle), nodes, additional_source_nodes
        )

    async def asynthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> Any:
        """Answer the question as it was asked: the async twin of `synthesize`."""
        return await self._query_engine.asynthesize(
            bundle_of(query_bundle), nodes, additional_source_nodes
        )

    def _query(self, query_bundle: QueryBundle) -> Any:
        if not self._has_two_steps:
            return self._query_engine.query(self._searched(query_bundle))
        with self._query_event(query_bundle) as event:
            response = self.synthesize(query_bundle, self.retrieve(query_bundle))
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    async def _aquery(self, query_bundle: QueryBundle) -> Any:
        if not self._has_two_steps:
            return await self._query_engine.aquery(await self._asearched(query_bundle))
        with self._query_event(query_bundle) as event:
            nodes = await self.aretrieve(query_bundle)
            response = await self.asynthesize(query_bundle, nodes)
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    @property
    def _has_two_steps(self) -> bool:
        kind = type(self._query_engine)
        names = ("retrieve", "synthesize", "asynthesize")
        return all(getattr(kind, name) is not getattr(BaseQueryEngine, name) for name in names)

    def _query_event(self, query_bundle: QueryBundle) -> Any:
        payload: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        return self.callback_manager.event(CBEventType.QUERY, payload=payload)

    def _searched(self, query_bundle: QueryBundle) -> QueryBundle:
        return self._query_transform.run(bundle_of(query_bundle), self._transform_metadata)

    async def _asearched(self, query_bundle: QueryBundle) -> QueryBundle:
        metadata = self._transform_metadata
        return await arun_transform(self._query_transform, bundle_of(query_bundle), metadata)

    async def _afound(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        engine: Any = self._query_engine
        if hasattr(engine, "aretrieve"):
            found: list[NodeWithScore] = await engine.aretrieve(query_bundle)
            return found
        return await in_thread(partial(engine.retrieve, query_bundle))
