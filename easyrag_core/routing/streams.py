"""What a router knows of the chunks of a stream, and the word it puts between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["DeltaReader", "StreamReset"]

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class DeltaReader(Generic[C]):
    """What a router must know of a chunk; the chunk itself is opaque to it.

    Attributes:
        carries_content: Whether the chunk has text, reasoning or a tool call. Chunks that have
            a role, usage or nothing do not end the wait for the first token. White space alone
            should not either: held and replayed like the others, it is not lost, and an answer
            that never gets beyond it can still be another model's.
        text_of: The chunk's own text, "" when it has none: joined it is the partial text.
        continuable: Whether the text so far is all that another model needs in order to go on
            after this chunk. By default not after content without text, such as a tool call.
        is_answer: Whether all the chunks of a stream that came to its end without content are an
            answer even so, as an object without values is. By default they are blank.
    """

    carries_content: Callable[[C], bool]
    text_of: Callable[[C], str]
    continuable: Callable[[C], bool] | None = None
    is_answer: Callable[[Sequence[C]], bool] | None = None

    def leaves_continuable(self, chunk: C) -> bool:
        """Ask `continuable`, or say what it says by default.

        Args:
            chunk: A chunk that was handed over.

        Returns:
            Whether the stream can be continued from its text.
        """
        if self.continuable is not None:
            return self.continuable(chunk)
        return bool(self.text_of(chunk)) or not self.carries_content(chunk)


@dataclass(frozen=True, slots=True)
class StreamReset:
    """Stands in a stream before the chunks of another model: what came before is void.

    Attributes:
        candidate: The name of the model that starts anew.
        partial: The text that was handed over and is to be thrown away.
        error: Why the stream before it ended.
    """

    candidate: str
    partial: str
    error: BaseException
