"""Which retriever is best on your own questions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_core.runnables import Runnable

from easyrag_core import evaluation
from langchain_easyrag._given import as_documents
from langchain_easyrag._identity import content_id, source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableConfig

    from easyrag_core import Bootstrap, Comparison
    from easyrag_core.evaluation import Qrels

__all__ = ["Asked", "Key", "acompare", "compare"]

Asked: TypeAlias = "Runnable[str, Any] | Callable[[str], Any]"
"""A retriever, any runnable from a question to documents, or a function; a function may give
ids, too."""

Key: TypeAlias = "Callable[[Document], str | Sequence[str]]"
"""A document to the id that the questions name, or to several that it goes by."""


def compare(
    retrievers: Mapping[str, Asked],
    questions: Qrels,
    *,
    metrics: Sequence[str] = evaluation.METRICS,
    match: str = "id",
    key: Key | None = None,
    groups: Mapping[str, Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
    strict: bool = False,
    show_progress: bool = False,
    config: RunnableConfig | None = None,
) -> Comparison:
    """Ask several retrievers the same questions, and say which is better and faster.

    One that fails on a question found nothing for it; that is told in the table and logged.

    Args:
        retrievers: Name to retriever, or to a function from a question to documents or ids.
        questions: Question to what is relevant. Under `match="id"` the ids, or id to grade; a
            document counts under its own id, `metadata["document_id"]` or `metadata["source"]`,
            the first that the question names. Under `match="text"` the answer, in one or several
            wordings: a document that holds one of them is the right one, so that splitters can be
            compared whose chunks have different ids.
        metrics: `recall@k`, `precision@k`, `mrr`, `mrr@k`, `ndcg`, `ndcg@k`, `map`, `map@k`.
        match: `"id"` or `"text"`.
        key: A document's id, in place of the three above.
        groups: Question to what it hangs together with, such as the document that it was written
            for. Default: each stands alone.
        bootstrap: How the intervals are drawn. Default: `Bootstrap()`.
        strict: Raise a retriever's own error.
        show_progress: Show a tqdm bar for each retriever.
        config: Handed to every retriever: callbacks, tags, metadata.

    Returns:
        Means, intervals, differences from the first, and milliseconds; shown as a table in a
        notebook and by `print`.

    Raises:
        InvalidParameterError: An argument is not as above.
        MissingDependencyError: A bar is wanted and tqdm is not installed.

    >>> from langchain_easyrag import BM25Retriever
    >>> texts = {"d1": "Ranks are fused.", "d2": "The limit holds."}
    >>> words = BM25Retriever.from_texts(list(texts.values()), ids=list(texts), k=1)
    >>> compare({"words": words}, {"What is fused?": ["d1"]}, metrics=["recall@1"]).best("recall@1")
    'words'
    """
    return evaluation.compare(
        _asking(retrievers, config, "invoke"),
        questions,
        metrics=metrics,
        match=match,
        key=partial(_key, key),
        text=_text,
        groups=groups,
        bootstrap=bootstrap,
        strict=strict,
        show_progress=show_progress,
    )


async def acompare(
    retrievers: Mapping[str, Asked],
    questions: Qrels,
    *,
    metrics: Sequence[str] = evaluation.METRICS,
    match: str = "id",
    key: Key | None = None,
    groups: Mapping[str, Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
    strict: bool = False,
    show_progress: bool = False,
    config: RunnableConfig | None = None,
) -> Comparison:
    """Ask several retrievers the same questions: the async twin of `compare`.

    Args:
        retrievers: As in `compare`; functions may be coroutine functions.
        questions: As in `compare`.
        metrics: As in `compare`.
        match: As in `compare`.
        key: As in `compare`.
        groups: As in `compare`.
        bootstrap: As in `compare`.
        strict: As in `compare`.
        show_progress: As in `compare`.
        config: As in `compare`.

    Returns:
        As `compare` does.

    Raises:
        InvalidParameterError: An argument is not as in `compare`.
    """
    return await evaluation.acompare(
        _asking(retrievers, config, "ainvoke"),
        questions,
        metrics=metrics,
        match=match,
        key=partial(_key, key),
        text=_text,
        groups=groups,
        bootstrap=bootstrap,
        strict=strict,
        show_progress=show_progress,
    )


def _asking(retrievers: Any, config: RunnableConfig | None, method: str) -> Any:
    """Return what is called with a question; what cannot be asked stays, to be refused."""
    if not isinstance(retrievers, Mapping):
        return retrievers
    return {
        name: partial(getattr(one, method), config=config) if isinstance(one, Runnable) else one
        for name, one in retrievers.items()
    }


def _key(own: Key | None, found: Any) -> str | Sequence[str]:
    if isinstance(found, str):
        return found
    (document,) = as_documents([found])
    if own is not None:
        return own(document)
    metadata = document.metadata
    names: Iterable[Any] = (document.id, metadata.get("document_id"), metadata.get("source"))
    known = [name for name in names if isinstance(name, str)]
    return known or content_id(document.page_content, source_of(metadata))


def _text(found: Any) -> str:
    return as_documents([found])[0].page_content
