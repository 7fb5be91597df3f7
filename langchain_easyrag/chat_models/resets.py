"""A stream that begins anew, such that what was added up before it is void."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from langchain_core.messages import AIMessage, AIMessageChunk
from typing_extensions import override

if TYPE_CHECKING:
    from easyrag_core import StreamReset

__all__ = ["RESET_EVENT", "StreamResetChunk", "reset_chunk", "reset_facts", "voidable"]

RESET_EVENT: Final = "easyrag_stream_reset"
"""The name of the custom event that is dispatched at a reset."""


class _Voidable(AIMessageChunk):
    """What a reset may follow: LangChain adds up all at once, by the first one's `+`."""

    # LangChain makes a chunk's message by calling the first parent of its class: this one.
    def __new__(cls, *_: Any, **fields: Any) -> Any:
        """Make a whole message, unless it is for one of the chunks below."""
        return AIMessage(**fields) if cls is _Voidable else super().__new__(cls)

    @classmethod
    @override
    def lc_id(cls) -> list[str]:
        """Be serialised as the plain chunk."""
        return AIMessageChunk.lc_id()

    @override
    def __add__(self, other: Any) -> AIMessageChunk:  # type: ignore[override]
        """Add what comes after the last reset; the sum is a plain chunk."""
        chunks = [self, *(other if isinstance(other, list) else [other])]
        resets = [n for n, chunk in enumerate(chunks) if isinstance(chunk, StreamResetChunk)]
        first, *rest = chunks[resets[-1] if resets else 0 :]
        if isinstance(first, _Voidable):
            first = first._plain()
        return cast("AIMessageChunk", first + rest) if rest else first

    def _plain(self) -> AIMessageChunk:
        return AIMessageChunk.model_construct(**dict(self))


class _VoidableChunk(_Voidable):
    """A chunk with content."""


class StreamResetChunk(_Voidable):
    """Stands in a stream where another model starts anew: the text before it is void.

    It has no content. Adding it to the chunks before it throws them away, so that the usual sum
    over a stream is the second model's answer alone. Who shows text while it comes clears it
    here. Its `response_metadata["easyrag_reset"]` has `candidate`, `partial` and `error`.

    >>> from langchain_core.messages import AIMessageChunk
    >>> before, after = AIMessageChunk(content="Hel"), AIMessageChunk(content="Good morning")
    >>> (before + StreamResetChunk(content="") + after).content
    'Good morning'
    """

    def __radd__(self, other: object) -> AIMessageChunk:
        """Throw away what was added up. Python asks here first, this being the subclass."""
        return self._plain()

    @override
    def _plain(self) -> AIMessageChunk:
        return AIMessageChunk(content="", id=self.id)


def reset_facts(reset: StreamReset) -> dict[str, str]:
    """Tell a reset in plain JSON types.

    Args:
        reset: The router's word.

    Returns:
        `candidate`, who starts anew; `partial`, the text that is void; `error`, why.
    """
    error = f"{type(reset.error).__name__}: {reset.error}"
    return {"candidate": reset.candidate, "partial": reset.partial, "error": error}


def reset_chunk(reset: StreamReset) -> StreamResetChunk:
    """Take a reset for a chunk.

    Args:
        reset: The router's word.

    Returns:
        The chunk.
    """
    metadata = {"easyrag_reset": reset_facts(reset)}
    return StreamResetChunk(content="", response_metadata=metadata)


def voidable(chunk: AIMessageChunk) -> AIMessageChunk:
    """Make a chunk one that a reset may follow.

    Args:
        chunk: Any chunk.

    Returns:
        The same as a chunk whose sum heeds resets.
    """
    return _VoidableChunk.model_construct(**dict(chunk))
