"""Which retriever is best on your own questions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from llama_index.core.schema import BaseNode, NodeWithScore

from easyrag_core import InvalidParameterError, evaluation
from llamaindex_easyrag._sources import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from llama_index.core.base.base_retriever import BaseRetriever

    from easyrag_core import Bootstrap, Comparison
    from easyrag_core.evaluation import Qrels

__all__ = ["Asked", "Key", "acompare", "compare"]

Asked: TypeAlias = "BaseRetriever | Callable[[str], Any]"
"""A retriever, anything else that has `retrieve` and `aretrieve` such as a query engine, or a
function from a question to nodes or ids."""

Key: TypeAlias = "Callable[[BaseNode], str | Sequence[str]]"
"""A node to the id that the questions name, or to several that it goes by."""


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
) -> Comparison:
    """Ask several retrievers the same questions, and say which is better and faster.

    One that fails on a question found nothing for it; that is told in the table and logged.

    Args:
        retrievers: Name to retriever, or to a function from a question to nodes or ids.
        questions: Question to what is relevant. Under `match="id"` the ids, or id to grade; a
            node counts under its own id, its document's (`ref_doc_id`) or
            `metadata["file_path"]`, the first that the question names. Under `match="text"` the
            answer, in one or several wordings: a node that holds one of them is the right one, so
            that node parsers can be compared whose nodes have different ids.
        metrics: `recall@k`, `precision@k`, `mrr`, `mrr@k`, `ndcg`, `ndcg@k`, `map`, `map@k`.
        match: `"id"` or `"text"`.
        key: A node's id, in place of the three above.
        groups: Question to what it hangs together with, such as the document that it was written
            for. Default: each stands alone.
        bootstrap: How the intervals are drawn. Default: `Bootstrap()`.
        strict: Raise a retriever's own error.
        show_progress: Show a tqdm bar for each retriever.

    Returns:
        Means, intervals, differences from the first, and milliseconds; shown as a table in a
        notebook and by `print`.

    Raises:
        InvalidParameterError: An argument is not as above.
        MissingDependencyError: A bar is wanted and tqdm is not installed.

    >>> from llama_index.core.schema import TextNode
    >>> from llamaindex_easyrag import BM25Retriever
    >>> texts = {"d1": "Ranks are fused.", "d2": "The limit holds."}
    >>> nodes = [TextNode(text=text, id_=id_) for id_, text in texts.items()]
    >>> words = BM25Retriever(nodes, similarity_top_k=1)
    >>> compare({"words": words}, {"What is fused?": ["d1"]}, metrics=["recall@1"]).best("recall@1")
    'words'
    """
    return evaluation.compare(
        _asking(retrievers, "retrieve"),
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

    Returns:
        As `compare` does.

    Raises:
        InvalidParameterError: An argument is not as in `compare`.
    """
    return await evaluation.acompare(
        _asking(retrievers, "aretrieve"),
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


def _asking(retrievers: Any, method: str) -> Any:
    """Return what is called with a question; what cannot be asked stays, to be refused."""
    if not isinstance(retrievers, Mapping):
        return retrievers
    return {name: getattr(one, method, one) for name, one in retrievers.items()}


def _key(own: Key | None, found: Any) -> str | Sequence[str]:
    if isinstance(found, str):
        return found
    node = _node(found)
    if own is not None:
        return own(node)
    names: Iterable[Any] = (node.node_id, node.ref_doc_id, node.metadata.get("file_path"))
    return [name for name in names if isinstance(name, str)]


def _text(found: Any) -> str:
    return text_of(_node(found))


def _node(found: Any) -> BaseNode:
    node = found.node if isinstance(found, NodeWithScore) else found
    if not isinstance(node, BaseNode):
        raise InvalidParameterError("found", found, "a retriever gives nodes")
    return node
