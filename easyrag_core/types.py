"""What a chunk, a hit and a stage are: the values that every room exchanges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

__all__ = ["ChannelScore", "Chunk", "Hit", "LengthFunction", "StageFacts"]

LengthFunction: TypeAlias = Callable[[str], int]
"""Measures a text: `len`, a token counter, anything. It may be slow and not additive."""


@dataclass(slots=True)
class Chunk:
    """A passage of a document, with its exact place.

    `source[start:end] == text` holds for every chunk that a chunker makes, in code points of
    the text as the caller gave it.

    Attributes:
        id: Stable lower-case hex; depends on document, headings and text, not on the position.
        document_id: The document's id.
        index: Position among the document's chunks, from 0.
        text: What a reader and a model see; always a slice of the source.
        start: First code point of the slice.
        end: One past the last code point.
        start_line: Line of the first character, from 1.
        end_line: Line of the last character, from 1.
        heading_path: Titles above the chunk, outermost first.
        embedding_text: What is indexed and embedded; the text itself unless context was added.
        parent_id: Id of the larger chunk that holds this one.
        kind: `text`, `code`, `table`, `image`, `parent`, ….
        language: Programming language, or the empty string.
        metadata: Plain JSON values of the caller's.
    """

    id: str
    document_id: str
    index: int
    text: str
    start: int
    end: int
    start_line: int = 1
    end_line: int = 1
    heading_path: tuple[str, ...] = ()
    embedding_text: str = ""
    parent_id: str | None = None
    kind: str = "text"
    language: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Without added context, what is embedded is what is read."""
        if not self.embedding_text:
            self.embedding_text = self.text


class ChannelScore(NamedTuple):
    """Where one channel put a hit.

    Attributes:
        rank: From 1.
        score: The channel's own raw score; `None` where it gives none.
    """

    rank: int
    score: float | None


@dataclass(frozen=True, slots=True)
class Hit:
    """A scored result: an id and why it is there. Content is looked up by id.

    Attributes:
        id: The chunk's id.
        score: The final score of the search that made this hit; higher is better.
        rank: From 1.
        channels: Channel name to its rank and raw score.
        query: The query that found it, where several were asked.
        reasons: What happened to it on the way, in words.
    """

    id: str
    score: float
    rank: int
    channels: Mapping[str, ChannelScore] = field(default_factory=dict, hash=False)
    query: str | None = None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StageFacts:
    """What one stage of a retrieval did: a channel, the fusion, a postprocessor.

    Attributes:
        name: The stage's name; a channel's is the one under which its hits carry their rank.
        taken: Ids that went in, best first; none for a channel, which only gives.
        given: Ids that came out, best first.
        seconds: How long it took.
        error: How it failed, as `repr` tells the exception; `None` where it did not.
        notes: Id to what the stage did to it, in words: a gain, a merge, why it was left out.
    """

    name: str
    taken: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    seconds: float = 0.0
    error: str | None = None
    notes: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Ids that went in and did not come out, in the order in which they went in.

        >>> StageFacts("top 1", taken=("a", "b"), given=("a",)).dropped
        ('b',)
        """
        given = frozenset(self.given)
        return tuple(id_ for id_ in self.taken if id_ not in given)
