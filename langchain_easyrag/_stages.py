"""LangChain's compressors and transformers as postprocessors of a pipeline."""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

from langchain_core.documents import (
    BaseDocumentCompressor,
    BaseDocumentTransformer,
)

from easyrag_core import InvalidParameterError, Rerank
from easyrag_core.ranking.hit_fusion import known_score
from langchain_easyrag._convert import FACTS_KEY, MARK_KEY, facts_of, with_mark
from langchain_easyrag._document_items import DocumentItems
from langchain_easyrag._given import as_documents, is_listing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
        given = _copies(hits)
        if isinstance(self.part, BaseDocumentCompressor):
            found = self.part.compress_documents(given, context.query, callbacks=self.callbacks())
        else:
            found = self.part.transform_documents(given)
        return _recognised(as_documents(found), hits, context)

    async def aprocess(
        self, hits: Sequence[Document], context: PipelineContext[Document]
    ) -> list[Document]:
        """Run the part: the async twin of `process`."""
        given = _copies(hits)
        if isinstance(self.part, BaseDocumentCompressor):
            found = await self.part.acompress_documents(
                given, context.query, callbacks=self.callbacks()
            )
        else:
            found = await self.part.atransform_documents(given)
        return _recognised(as_documents(found), hits, context)


def _copies(hits: Sequence[Document]) -> list[Document]:
    """Copy documents, each with a mark, and without a score that is not of this stage."""
    copies = []
    for place, hit in enumerate(hits):
        marked = with_mark(hit, place)
        marked.metadata.pop(_NEW_SCORE, None)
        copies.append(marked)
    return copies


def _recognised(
    found: Sequence[Document], hits: Sequence[Document], context: PipelineContext[Document]
) -> list[Document]:
    """Give ids and facts back to documents that lost them, and read new scores."""
    origins, items = _Origins(found, hits), context.items
    recognised = []
    for document in found:
        source, before = origins.of(document)
        known = _as_known(document, source, before)
        if before is not None and isinstance(items, DocumentItems):
            known = items.kept(known, items.id_of(before))
        if note := _note(known, source):
            context.notes[items.id_of(known)] = note
        recognised.append(known)
    return recognised


class _Origins:
    """Which of the documents that a part was given are those that it gave back."""

    def __init__(self, found: Sequence[Document], hits: Sequence[Document]) -> None:
        self._by_id = {hit.id: hit for hit in reversed(hits) if hit.id is not None}
        self._by_text = {hit.page_content: hit for hit in reversed(hits)}
        self._by_place: dict[int | None, Document] = dict(enumerate(hits))
        self._pieces = Counter(map(_place, found))

    def of(self, document: Document) -> tuple[Document | None, Document | None]:
        """Return the document that this one was made of, and the one that it still is, if any.

        Of several pieces of one document, none is that document.
        """
        place = _place(document)
        source, before = self._by_place.get(place), None
        if document.id is not None:
            same = source is not None and source.id == document.id
            before = source if same else self._by_id.get(document.id)
        elif source is None or source.page_content == document.page_content:
            before = source or self._by_text.get(document.page_content)
        elif self._pieces[place] == 1:
            before = source
        return source or before, before


def _place(document: Document) -> int | None:
    """Return where the document stood that this one was made of, if it was made of one."""
    mark = document.metadata.get(MARK_KEY)
    return mark if isinstance(mark, int) else None


def _unmarked(metadata: Mapping[Any, Any]) -> dict[Any, Any]:
    """Copy metadata without our mark, also where a part has put some into some."""
    return {
        key: _unmarked(value) if isinstance(value, dict) and MARK_KEY in value else value
        for key, value in metadata.items()
        if key != MARK_KEY
    }


def _as_known(document: Document, source: Document | None, before: Document | None) -> Document:
    """Return a document with the id, the facts and the score that it should have."""
    facts = facts_of(document) or ({} if before is None else facts_of(before))
    metadata = _unmarked(document.metadata)
    score = _number(metadata.get(_NEW_SCORE))
    # What the part has made of nothing of ours may bring a score from elsewhere.
    if score is not None and (source is not None or "score" not in facts):
        facts = {**facts, "score": score}
    if source is not None and _NEW_SCORE in source.metadata:
        metadata.setdefault(_NEW_SCORE, source.metadata[_NEW_SCORE])
    if facts:
        metadata[FACTS_KEY] = facts
    same = before is None or (document.id == before.id and facts is facts_of(document))
    # A document of another class, which only its maker can read, becomes a plain one.
    plain = document if same or before is None else before
    text = {"page_content": document.page_content, "metadata": metadata}
    return plain.model_copy(update=text)


def _number(score: Any) -> float | None:
    """Return what a reranker may have given as a score: any real number but NaN, and no truth."""
    real = isinstance(score, Real) and not isinstance(score, bool)
    return known_score(score) if real else None


def _note(document: Document, before: Document | None) -> str:
    facts, old = facts_of(document), {} if before is None else facts_of(before)
    if (mmr := facts.get("mmr")) is not None and mmr != old.get("mmr"):
        return f"gain {mmr['gain']:.4g}"
    if (children := facts.get("children")) and children != old.get("children"):
        return f"stands for {len(children)} children"
    score = facts.get("score")
    return f"score {score:.4g}" if score is not None and score != old.get("score") else ""
