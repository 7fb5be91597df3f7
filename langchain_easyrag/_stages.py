"""LangChain's compressors and transformers as postprocessors of a pipeline."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.documents import (
    BaseDocumentCompressor,
    BaseDocumentTransformer,
)

from easyrag_core import InvalidParameterError, Rerank
from langchain_easyrag._convert import facts_of, with_facts, with_id
from langchain_easyrag._given import as_documents, is_listing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.callbacks import Callbacks
    from langchain_core.documents import Document

    from easyrag_core import PipelineContext, Postprocessor

__all__ = ["checked_parts", "stages_of"]

_FRAMEWORK = (BaseDocumentCompressor, BaseDocumentTransformer)
_NEW_SCORE = "relevance_score"
"""The metadata key under which LangChain's rerankers put their scores."""


def checked_parts(parts: Any) -> list[Any]:
    """Refuse postprocessors that could only fail when data flow.

    Args:
        parts: What the user gave.

    Returns:
        Compressors, transformers and postprocessors of the core.

    Raises:
        InvalidParameterError: It is no list of these.
    """
    if not is_listing(parts):
        raise InvalidParameterError("postprocessors", parts, "give a list")
    listed = list(parts)
    for part in listed:
        known = isinstance(part, _FRAMEWORK) or callable(getattr(part, "process", None))
        if not known or isinstance(part, type):
            allowed = (
                "give document compressors, transformers, or postprocessors of easyrag_core, "
                "not their class"
            )
            raise InvalidParameterError("postprocessors", part, allowed)
    return listed


def stages_of(
    parts: Sequence[Any], callbacks: Callable[[], Callbacks] = lambda: None
) -> list[Postprocessor[Document]]:
    """Return parts of either kind as postprocessors.

    Args:
        parts: Compressors, transformers and postprocessors of the core; a `Rerank` may hold a
            compressor.
        callbacks: Gives the callbacks of a child run.

    Returns:
        One postprocessor per part.
    """
    return [_stage_of(part, callbacks) for part in parts]


def _stage_of(part: Any, callbacks: Callable[[], Callbacks]) -> Any:
    if isinstance(part, _FRAMEWORK):
        return _FrameworkStage(part, callbacks)
    if isinstance(part, Rerank) and isinstance(part.reranker, _FRAMEWORK):
        rerank = copy(part)
        rerank.reranker = _stage_of(part.reranker, callbacks)
        return rerank
    return part


@dataclass(frozen=True, slots=True)
class _FrameworkStage:
    """A compressor or a transformer within one request."""

    part: Any
    callbacks: Callable[[], Callbacks]

    @property
    def name(self) -> str:
        """What the part is called."""
        return type(self.part).__name__

    @property
    def limit(self) -> int | None:
        """The most documents that come out, as the framework's parts name it."""
        limits = (getattr(self.part, name, None) for name in ("k", "top_n", "top_k"))
        return next((n for n in limits if isinstance(n, int) and not isinstance(n, bool)), None)

    def process(
        self, hits: Sequence[Document], context: PipelineContext[Document]
    ) -> list[Document]:
        """Run the part on copies: some write into what they are given."""
        given = [with_id(document, document.id) for document in hits]
        if isinstance(self.part, BaseDocumentCompressor):
            found = self.part.compress_documents(given, context.query, callbacks=self.callbacks())
        else:
            found = self.part.transform_documents(given)
        return _recognised(as_documents(found), hits, context)

    async def aprocess(
        self, hits: Sequence[Document], context: PipelineContext[Document]
    ) -> list[Document]:
        """Run the part: the async twin of `process`."""
        given = [with_id(document, document.id) for document in hits]
        if isinstance(self.part, BaseDocumentCompressor):
            found = await self.part.acompress_documents(
                given, context.query, callbacks=self.callbacks()
            )
        else:
            found = await self.part.atransform_documents(given)
        return _recognised(as_documents(found), hits, context)


def _recognised(
    found: Sequence[Document], hits: Sequence[Document], context: PipelineContext[Document]
) -> list[Document]:
    """Give ids and facts back to documents that lost them, and read new scores."""
    by_id = {hit.id: hit for hit in hits}
    by_text = {hit.page_content: hit for hit in reversed(hits)}
    recognised = []
    for document in found:
        before = by_text.get(document.page_content)
        before = before if document.id is None else by_id.get(document.id)
        known = document if before is None else _as_known(document, before)
        if note := _note(known, before):
            context.notes[context.items.id_of(known)] = note
        recognised.append(known)
    return recognised


def _as_known(document: Document, before: Document) -> Document:
    score, old = document.metadata.get(_NEW_SCORE), before.metadata.get(_NEW_SCORE)
    facts = facts_of(document) or facts_of(before)
    if isinstance(score, int | float) and score != old:
        facts = {**facts, "score": float(score)}
    elif document.id == before.id and facts is facts_of(document):
        return document
    # A document of another class, which only its maker can read, becomes a plain one.
    plain = with_id(before, before.id)
    plain.page_content, plain.metadata = document.page_content, dict(document.metadata)
    return with_facts(plain, facts)


def _note(document: Document, before: Document | None) -> str:
    facts, old = facts_of(document), {} if before is None else facts_of(before)
    if (mmr := facts.get("mmr")) is not None and mmr != old.get("mmr"):
        return f"gain {mmr['gain']:.4g}"
    if (children := facts.get("children")) and children != old.get("children"):
        return f"stands for {len(children)} children"
    score = facts.get("score")
    return f"score {score:.4g}" if score is not None and score != old.get("score") else ""
