"""Why each passage was found, and what fell out on the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from easyrag_core.errors import InvalidParameterError
from easyrag_core.explanation._page import page_of
from easyrag_core.explanation._text import text_of
from easyrag_core.types import Hit, StageFacts

if TYPE_CHECKING:
    from collections.abc import Sequence

T_co = TypeVar("T_co", covariant=True)

__all__ = ["Explanation", "FellOut", "Retrieved", "explain"]


@runtime_checkable
class Retrieved(Protocol[T_co]):
    """A result that knows its hits and the stages that they went through."""

    @property
    def hits(self) -> Sequence[T_co]:
        """What was found, best first."""

    @property
    def stages(self) -> Sequence[StageFacts]:
        """What each stage did, in order."""


class FellOut(NamedTuple):
    """A passage that was found and is not in the result.

    Attributes:
        id: The passage's id.
        stage: The name of the last stage that it went into and did not come out of.
        note: What that stage says about it; the empty string where it says nothing.
        channels: Channel name to the rank, from 1, that it had there.
    """

    id: str
    stage: str
    note: str
    channels: Mapping[str, int]


class Explanation:
    """For each passage why it is there; for each stage what it did.

    In a notebook it is a table with bars, in a terminal it is text. Everything that comes from
    outside is escaped.

    Attributes:
        hits: What was found, best first.
        texts: Id to text, where it is known.
        stages: What each stage did, in order.
        query: What was asked, if it is known.
    """

    def __init__(
        self,
        hits: Iterable[Hit],
        *,
        texts: Mapping[str, str] | None = None,
        stages: Iterable[StageFacts] = (),
        query: str | None = None,
    ) -> None:
        """Check what is explained; see `explain`."""
        self.hits: tuple[Hit, ...] = _checked("hits", hits, Hit)
        self.stages: tuple[StageFacts, ...] = _checked("stages", stages, StageFacts)
        self.texts: Mapping[str, str] = {} if texts is None else texts
        self.query: str | None = query
        if not isinstance(self.texts, Mapping):
            raise InvalidParameterError("texts", texts, "give a dict of id to text")

    @property
    def channels(self) -> list[str]:
        """Names of the channels, in the order in which the hits name them."""
        return list(dict.fromkeys(name for hit in self.hits for name in hit.channels))

    def notes(self, hit: Hit) -> list[str]:
        """Return what happened to a hit, beside its places in the channels.

        Args:
            hit: One of the hits.

        Returns:
            A line for each step.
        """
        placed = tuple(f"{name}: rank " for name in hit.channels)
        asked = [] if hit.query in (None, self.query) else [f"found by: {hit.query}"]
        own = [reason for reason in hit.reasons if not reason.startswith(placed)]
        told = [
            f"{stage.name}: {stage.notes[hit.id]}" for stage in self.stages if hit.id in stage.notes
        ]
        return list(dict.fromkeys([*asked, *own, *told]))

    @property
    def fell_out(self) -> list[FellOut]:
        """What was found and is not in the result, in the order in which it fell out."""
        kept = {hit.id for hit in self.hits}
        last = {id_: stage for stage in self.stages for id_ in stage.dropped if id_ not in kept}
        return [
            FellOut(id_, stage.name, stage.notes.get(id_, ""), self._places(id_))
            for id_, stage in last.items()
        ]

    def _places(self, id_: str) -> dict[str, int]:
        # Channels alone take nothing: what they give is their ranking.
        return {
            stage.name: stage.given.index(id_) + 1
            for stage in self.stages
            if not stage.taken and id_ in stage.given
        }

    def __str__(self) -> str:
        """Return the explanation for a terminal."""
        return text_of(self)

    def __repr__(self) -> str:
        """Return the explanation, so that a prompt shows it."""
        return str(self)

    def _repr_html_(self) -> str:
        """Return the explanation for a notebook: one element with its own style."""
        return page_of(self)


def explain(
    found: Iterable[Hit] | Retrieved[Hit],
    *,
    texts: Mapping[str, str] | None = None,
    stages: Iterable[StageFacts] | None = None,
    query: str | None = None,
) -> Explanation:
    """Explain a result: why each passage is there, and what fell out where.

    Args:
        found: Hits, best first; or a result that has `hits` and `stages`.
        texts: Id to text, so that passages are shown and not only their ids.
        stages: What each stage did, in order. Default: the result's own.
        query: What was asked.

    Returns:
        The explanation; show it in a notebook, or print it.

    Raises:
        InvalidParameterError: Something else is among the hits or the stages.

    >>> from easyrag_core.types import ChannelScore
    >>> hit = Hit("a", 0.5, 1, {"bm25": ChannelScore(2, 7.5)}, reasons=("mmr: gain 0.7",))
    >>> print(explain([hit], texts={"a": "Ranks are fused."}, query="How?"))
    1 passage for: How?
    #  score  bm25     passage
    1    0.5  2 (7.5)  Ranks are fused.
                       · mmr: gain 0.7
    """
    if isinstance(found, Retrieved):
        stages = found.stages if stages is None else stages
        found = found.hits
    return Explanation(found, texts=texts, stages=stages or (), query=query)


def _checked(name: str, values: Any, kind: type[Any]) -> tuple[Any, ...]:
    if not isinstance(values, Iterable) or isinstance(values, str | Mapping):
        raise InvalidParameterError(name, values, f"give a list of {kind.__name__}")
    listed = tuple(values)
    for at, value in enumerate(listed):
        if not isinstance(value, kind):
            raise InvalidParameterError(f"{name}[{at}]", value, f"give a {kind.__name__}")
    return listed
