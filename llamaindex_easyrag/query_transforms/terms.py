"""The users' words into the documents' words, before retrieval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from llama_index.core.indices.query.query_transform.base import BaseQueryTransform
from llama_index_instrumentation import get_dispatcher

from easyrag_core import TermMap
from llamaindex_easyrag.events import QueryStepEvent
from llamaindex_easyrag.query_transforms._transform import asked_bundle, transformed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from llama_index.core.schema import QueryBundle

    from easyrag_core import Term

__all__ = ["TermMapTransform"]

_dispatcher = get_dispatcher(__name__)


class TermMapTransform(BaseQueryTransform):
    """Replaces terms in a question, without a model.

    What is embedded is replaced as well, and a vector of the old words is dropped.
    """

    step: ClassVar[str] = "terms"

    def __init__(self, terms: TermMap | Mapping[str, str] | Iterable[Term]) -> None:
        """Build the map.

        Args:
            terms: A `TermMap`, or what it is made of.

        Raises:
            InvalidParameterError: A term is blank, or no text.
        """
        super().__init__()
        self.terms: TermMap = terms if isinstance(terms, TermMap) else TermMap(terms)

    async def arun(
        self, query_bundle_or_str: str | QueryBundle, metadata: dict[str, Any] | None = None
    ) -> QueryBundle:
        """Transform a query: the async twin of `run`; nothing is waited for.

        Args:
            query_bundle_or_str: The query.
            metadata: Not used.

        Returns:
            The transformed query.
        """
        return self.run(asked_bundle(query_bundle_or_str), metadata)

    def _run(self, query_bundle: QueryBundle, metadata: dict[str, Any]) -> QueryBundle:
        del metadata
        question = query_bundle.query_str
        query = self.terms.apply(question)
        event = QueryStepEvent(step=self.step, question=question, result=[query], calls=0)
        _dispatcher.event(event)
        embedded = [self.terms.apply(text) for text in query_bundle.embedding_strs]
        return transformed(query_bundle, query, embedded)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: dict[str, Any]) -> None:
        """There are none."""
