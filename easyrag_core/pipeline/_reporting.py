"""What a run did: facts for who reads the result, events for who watches."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from easyrag_core.events import emit
from easyrag_core.types import StageFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from easyrag_core.events import AttributeValue, EventHandler
    from easyrag_core.pipeline._channels import ChannelOutcome
    from easyrag_core.pipeline._items import Items

__all__ = ["Report"]

T = TypeVar("T")


@dataclass(slots=True)
class Report(Generic[T]):
    """The stages of one run, in the order in which they are drawn.

    Attributes:
        items: Reads hits.
        handler: Who listens; `None` is nobody.
        query: What was asked.
        k: How many hits are wanted.
        stages: What was done so far.
        reasons: Id to what was done to it, in words.
    """

    items: Items[T]
    handler: EventHandler | None
    query: str
    k: int
    stages: list[StageFacts] = field(default_factory=list)
    reasons: dict[str, list[str]] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)

    def channels(self, names: Sequence[str], outcome: ChannelOutcome[list[T]]) -> None:
        """Keep what the channels gave, or how they failed; all of them began with the run."""
        for name in names:
            found, error = outcome.results.get(name, []), outcome.errors.get(name)
            facts = StageFacts(
                name,
                given=self._ids(found),
                seconds=outcome.seconds.get(name, 0.0),
                error=None if error is None else repr(error),
            )
            self.stages.append(facts)
            self._emit("easyrag.channel", partial(self._channel, name, found), facts, error)

    def _channel(self, name: str, found: Sequence[T]) -> dict[str, AttributeValue]:
        told = _retrieval(self.query, self._told(found))
        return {**told, "gen_ai.data_source.id": name, "easyrag.channel.name": name}

    def fusion(self, given: Sequence[T], *, seconds: float) -> None:
        """Keep what all channels together gave."""
        taken = dict.fromkeys(id_ for facts in self.stages for id_ in facts.given)
        facts = StageFacts("fusion", tuple(taken), self._ids(given), seconds)
        self.stages.append(facts)
        self._emit("easyrag.fusion", partial(self._fusion, given), facts)

    def _fusion(self, given: Sequence[T]) -> dict[str, AttributeValue]:
        told = _listed("retrieval.documents", self._told(given))
        return {"openinference.span.kind": "CHAIN", **told}

    def stage(
        self,
        name: str,
        taken: Sequence[T],
        given: Sequence[T],
        *,
        since: float,
        notes: Mapping[str, str] | None = None,
        error: Exception | None = None,
    ) -> None:
        """Keep what a postprocessor did."""
        seconds = time.perf_counter() - since
        told = dict(notes or {})
        for id_, note in told.items():
            self.reasons.setdefault(id_, []).append(f"{name}: {note}")
        shown = None if error is None else repr(error)
        facts = StageFacts(name, self._ids(taken), self._ids(given), seconds, shown, told)
        self.stages.append(facts)
        self._emit("easyrag.postprocessor", partial(self._stage, name, taken, given), facts, error)

    def _stage(
        self, name: str, taken: Sequence[T], given: Sequence[T]
    ) -> dict[str, AttributeValue]:
        return {
            "openinference.span.kind": "RERANKER",
            "reranker.query": self.query,
            "reranker.top_k": self.k,
            **_listed("reranker.input_documents", self._told(taken)),
            **_listed("reranker.output_documents", self._told(given)),
            "easyrag.postprocessor.name": name,
        }

    def ended(self, hits: Sequence[T], error: Exception | None = None) -> None:
        """Tell that the run is over."""
        seconds = time.perf_counter() - self.started
        facts = StageFacts("retrieval", given=self._ids(hits), seconds=seconds)
        self._emit("easyrag.retrieval", partial(self._ended, hits), facts, error)

    def _ended(self, hits: Sequence[T]) -> dict[str, AttributeValue]:
        return {**_retrieval(self.query, self._told(hits)), "gen_ai.request.top_k": self.k}

    def _ids(self, items: Sequence[T]) -> tuple[str, ...]:
        return tuple(map(self.items.id_of, items))

    def _told(self, items: Sequence[T]) -> list[tuple[str, float | None]]:
        return [(self.items.id_of(item), self.items.score_of(item)) for item in items]

    def _emit(
        self,
        name: str,
        attributes: Callable[[], Mapping[str, AttributeValue]],
        facts: StageFacts,
        error: Exception | None = None,
    ) -> None:
        """Emit an event; its attributes are made only if somebody listens."""
        if self.handler is None:
            return
        told: dict[str, AttributeValue] = {**attributes()}
        told |= {"easyrag.hits.taken": len(facts.taken), "easyrag.hits.given": len(facts.given)}
        if error is not None:
            told |= {"error.type": type(error).__qualname__, "exception.message": str(error)}
        ended = time.time()
        if name == "easyrag.channel":  # told when the last one has ended
            ended -= max(0.0, time.perf_counter() - self.started - facts.seconds)
        emit(self.handler, name, told, seconds=facts.seconds, ended_at=ended)


def _retrieval(query: str, told: Sequence[tuple[str, float | None]]) -> dict[str, AttributeValue]:
    documents = [{"id": id_, "score": _finite(score)} for id_, score in told]
    return {
        "openinference.span.kind": "RETRIEVER",
        "input.value": query,
        **_listed("retrieval.documents", told),
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.query.text": query,
        "gen_ai.retrieval.documents": json.dumps(documents, ensure_ascii=False),
    }


def _finite(score: float | None) -> float | None:
    # JSON has no word for infinity.
    return score if score is not None and math.isfinite(score) else None


def _listed(prefix: str, told: Sequence[tuple[str, float | None]]) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {}
    for number, (id_, score) in enumerate(told):
        attributes[f"{prefix}.{number}.document.id"] = id_
        if score is not None:
            attributes[f"{prefix}.{number}.document.score"] = score
    return attributes
