"""What all our postprocessors share: the events of the framework's rerankers."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import QueryBundle
from llama_index_instrumentation import get_dispatcher

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llama_index.core.schema import NodeWithScore

__all__ = ["Reranker"]

_dispatcher = get_dispatcher(__name__)


class Reranker(BaseNodePostprocessor):
    """A postprocessor that reports what it does as the framework's rerankers do."""

    def __eq__(self, other: object) -> bool:
        """Equal settings make equal postprocessors, whoever listens to their events."""
        if not isinstance(other, type(self)) or self.to_dict() != other.to_dict():
            return False
        told = type(self).model_fields.keys() - {"callback_manager"}
        return all(getattr(self, name) == getattr(other, name) for name in told)

    # Settings can be changed, so a hash would not last.
    __hash__ = None  # type: ignore[assignment]

    @contextmanager
    def reranking(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None, top_n: int
    ) -> Iterator[list[NodeWithScore]]:
        """Report the start and, when the list that is handed out has been filled, the end."""
        name = self.class_name()
        query = query_bundle or QueryBundle("")
        _dispatcher.event(ReRankStartEvent(query=query, nodes=nodes, top_n=top_n, model_name=name))
        payload: dict[str, Any] = {
            EventPayload.NODES: nodes,
            EventPayload.MODEL_NAME: name,
            EventPayload.QUERY_STR: query.query_str,
            EventPayload.TOP_K: top_n,
        }
        result: list[NodeWithScore] = []
        with self.callback_manager.event(CBEventType.RERANKING, payload=payload) as event:
            yield result
            event.on_end(payload={EventPayload.NODES: result})
        _dispatcher.event(ReRankEndEvent(nodes=result))
