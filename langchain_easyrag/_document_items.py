"""How a pipeline reads and writes documents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from easyrag_core.explanation import known_channels
from langchain_easyrag._convert import facts_of, given_score, with_facts
from langchain_easyrag._fusing import fused_with_facts
from langchain_easyrag._given import as_documents
from langchain_easyrag._identity import content_id, source_of

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
        """Return the value under `id_key`, else the id, else one made of content and source."""
        if self.id_key is not None and self.id_key in item.metadata:
            return str(item.metadata[self.id_key])
        if item.id is not None:
            return item.id
        # Every stage asks for it, and copies share their text.
        told = item.page_content, source_of(item.metadata)
        if told not in self._made:
            self._made[told] = content_id(*told)
        return self._made[told]

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
        return fused_with_facts(
            rankings,
            fusion=fusion,
            weights=weights,
            rank_constant=rank_constant,
            id_key=self.id_key,
            score_key=self.score_key,
            k=k,
        )

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
            facts = facts_of(document)
            why = list(reasons.get(self.id_of(document), ()))
            new = {**facts, "rank": rank} | ({"reasons": why} if why else {})
            told.append(document if new == facts else with_facts(document, new))
        return told
