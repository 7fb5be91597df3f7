"""How a pipeline reads and writes documents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from easyrag_core.explanation import known_channels
from langchain_easyrag._convert import (
    MARK_KEY,
    OWN_KEY,
    facts_of,
    given_score,
    with_facts,
    with_mark,
)
from langchain_easyrag._fusing import fused_with_facts
from langchain_easyrag._given import as_documents
from langchain_easyrag._identity import (
    content_id,
    content_key,
    document_ids,
    keys_by_content,
    own_key,
    source_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.documents import Document

__all__ = ["DocumentItems"]


@dataclass(frozen=True, slots=True)
class DocumentItems:
    """Documents of one request, each with what was found out about it under one metadata key.

    Attributes:
        id_key: Documents with the same metadata value under this key are taken for one.
        score_key: Metadata key of scores that are not ours, higher is better.
    """

    id_key: str | None = None
    score_key: str | None = None
    _made: dict[tuple[str, str], str] = field(default_factory=dict, repr=False, compare=False)

    def checked(self, answer: Any) -> list[Document]:
        """Return an answer as a list of documents."""
        return as_documents(answer)

    def id_of(self, item: Document) -> str:
        """Return the value under `id_key`, else the id, else one made of content and source.

        A document without an id that was fused with one that has it is known by that id; one that
        a stage gave another text is known by what it was before.
        """
        mark = item.metadata.get(MARK_KEY)
        # A number is the place that a stage around us has given it.
        key = mark if isinstance(mark, str) else own_key(item, self.id_key)
        return self._made_of(content_key(item)) if key is None else key

    def _made_of(self, content: tuple[str, str]) -> str:
        # Every stage asks for it, and copies share their text.
        if content not in self._made:
            self._made[content] = content_id(*content)
        return self._made[content]

    def know(self, rankings: Sequence[Sequence[Document]]) -> None:
        """Learn which documents without an id are those that have one."""
        self._made.update(keys_by_content(rankings, id_key=self.id_key))

    def score_of(self, item: Document) -> float | None:
        """Return the score; NaN is none."""
        return given_score(item, score_key=self.score_key)

    def content_of(self, item: Document) -> str:
        """Return the text."""
        return item.page_content

    def fused(
        self,
        rankings: Mapping[str, Sequence[Document]],
        *,
        fusion: str,
        weights: Sequence[float],
        rank_constant: float,
        k: int,
    ) -> list[Document]:
        """Fuse rankings; see `fused_with_facts`."""
        self.know(list(rankings.values()))
        return fused_with_facts(
            rankings,
            fusion=fusion,
            weights=weights,
            rank_constant=rank_constant,
            id_key=self.id_key,
            score_key=self.score_key,
            k=k,
        )

    def kept(self, item: Document, key: str) -> Document:
        """Return a document that is known by a key: a marked copy, if it is not yet."""
        return item if self.id_of(item) == key else with_mark(item, key)

    def scored(self, item: Document, score: float | None) -> Document:
        """Return a copy with another score."""
        told = None if score is None else float(score)
        return with_facts(item, {**facts_of(item), "score": told})

    def joined(self, kept: Document, others: Sequence[Document]) -> Document:
        """Return a copy with the channels of all, and where the others come from."""
        channels = known_channels(facts_of(kept).get("channels"))
        for other in others:
            for name, place in known_channels(facts_of(other).get("channels")).items():
                if name not in channels or place["rank"] < channels[name]["rank"]:
                    channels[name] = place
        same = [{"id": self.id_of(d), "source": source_of(d.metadata)} for d in others]
        return with_facts(kept, {**facts_of(kept), "channels": channels, "same": same})

    def finished(
        self, items: Sequence[Document], reasons: Mapping[str, Sequence[str]]
    ) -> list[Document]:
        """Return documents with their final ranks and reasons; copies, where these are new."""
        told = []
        for rank, document in enumerate(items, start=1):
            facts, key = facts_of(document), self.id_of(document)
            why = list(reasons.get(key, ()))
            new = {**facts, "rank": rank} | ({"reasons": why} if why else {})
            if key != document.id and key not in document_ids([document]):
                new[OWN_KEY] = key
            unmarked = with_mark(document, None)
            told.append(unmarked if new == facts else with_facts(unmarked, new))
        return told
