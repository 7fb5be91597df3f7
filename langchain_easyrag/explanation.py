"""Why documents were found, and what fell out on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from easyrag_core import StageFacts, explanation
from easyrag_core.explanation import Retrieved, hit_of_facts
from langchain_easyrag._convert import OWN_KEY, facts_of
from langchain_easyrag._given import given_documents
from langchain_easyrag._identity import document_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from langchain_core.documents import Document

    from easyrag_core import Explanation

__all__ = ["explain"]


def explain(
    found: Iterable[Document] | Retrieved[Document],
    *,
    texts: Mapping[str, str] | None = None,
    stages: Iterable[StageFacts] | None = None,
    query: str | None = None,
) -> Explanation:
    """Explain a result of ours: why each document is there, and what fell out where.

    Args:
        found: Documents, best first, with what was found out about them under
            `metadata["easyrag"]`; or a pipeline's result, which knows its stages.
        texts: Id to text of what else may be named, such as what fell out on the way.
        stages: What each stage did, in order. Default: the result's own.
        query: What was asked.

    Returns:
        The explanation; show it in a notebook, or print it.

    Raises:
        InvalidParameterError: It is no list of documents.

    >>> from langchain_easyrag import BM25Retriever
    >>> words = BM25Retriever.from_texts(["Ranks are fused."], ids=["d1"])
    >>> print(explain(words.invoke("ranks"), query="ranks"))
    1 passage for: ranks
    #   score  bm25        passage
    1  0.2877  1 (0.2877)  Ranks are fused.
    """
    if isinstance(found, Retrieved):
        stages = found.stages if stages is None else stages
        found = found.hits
    documents = given_documents(found, name="found")
    if stages is None and documents:
        failed = facts_of(documents[0]).get("failed", {})
        stages = [StageFacts(name, error=error) for name, error in failed.items()]
    known = zip(document_ids(documents), documents, strict=True)
    ids = [facts_of(document).get(OWN_KEY, id_) for id_, document in known]
    hits = [
        hit_of_facts(id_, rank, facts_of(document))
        for rank, (id_, document) in enumerate(zip(ids, documents, strict=True), start=1)
    ]
    own = {id_: one.page_content for id_, one in zip(ids, documents, strict=True)}
    return explanation.explain(hits, texts={**(texts or {}), **own}, stages=stages, query=query)
