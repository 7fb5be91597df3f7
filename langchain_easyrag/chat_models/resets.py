"""A stream that begins anew, such that what was added up before it is void."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from typing_extensions import override

if TYPE_CHECKING:
    from easyrag_core import StreamReset

__all__ = [
    "RESET_EVENT",
    "RoutedGenerationChunk",
    "StreamResetChunk",
    "generation_chunk",
    "reset_facts",
]

RESET_EVENT: Final = "easyrag_stream_reset"
"""The name of the custom event that is dispatched at a reset."""


def reset_facts(reset: StreamReset) -> dict[str, str]:
    """Tell a reset in plain JSON types.

    Args:
        reset: The router's word.

    Returns:
        `candidate`, who starts anew; `partial`, the text that is void; `error`, why.
    """
    error = f"{type(reset.error).__name__}: {reset.error}"
    return {"candidate": reset.candidate, "partial": reset.partial, "error": error}


class StreamResetChunk(AIMessageChunk):
    """Stands in a stream where another model starts anew: the text before it is void.

    It has no content. Adding it to the chunks before it throws them away, so that the usual sum
    over a stream is the second model's answer alone. Who shows text while it comes clears it
    here. Its `response_metadata["easyrag_reset"]` has `candidate`, `partial` and `error`.

    >>> from langchain_core.messages import AIMessageChunk
    >>> before, after = AIMessageChunk("Hel"), AIMessageChunk("Good morning")
    >>> (before + StreamResetChunk("") + after).content
    'Good morning'
    """

    @override
    def __add__(self, other: Any) -> AIMessageChunk:  # type: ignore[override]
        """Begin a sum; the chunk itself adds nothing."""
        return _empty(self) + cast("AIMessageChunk", other)

    def __radd__(self, other: object) -> AIMessageChunk:
        """Throw away what was added up. Python asks here first, this being the subclass."""
        return _empty(self)


class RoutedGenerationChunk(ChatGenerationChunk):
    """A chunk as LangChain adds it up itself: all at once, by the first one's `+`."""

    @override
    def __add__(self, other: Any) -> ChatGenerationChunk:
        """Add what comes after the last reset."""
        chunks = [self, *(other if isinstance(other, list) else [other])]
        resets = [n for n, each in enumerate(chunks) if isinstance(each.message, StreamResetChunk)]
        first, *rest = [_plain(each) for each in chunks[resets[-1] if resets else 0 :]]
        return first + rest if rest else first


def generation_chunk(given: AIMessageChunk | StreamReset) -> RoutedGenerationChunk:
    """Take what a router gives for what `_stream` gives.

    Args:
        given: A chunk or a reset.

    Returns:
        Either as a chunk.
    """
    if isinstance(given, AIMessageChunk):
        return RoutedGenerationChunk(message=given)
    metadata = {"easyrag_reset": reset_facts(given)}
    return RoutedGenerationChunk(message=StreamResetChunk(content="", response_metadata=metadata))


def _empty(reset: AIMessageChunk) -> AIMessageChunk:
    return AIMessageChunk(content="", id=reset.id)


def _plain(chunk: ChatGenerationChunk) -> ChatGenerationChunk:
    message = chunk.message
    if isinstance(message, StreamResetChunk):
        message = _empty(message)
    return ChatGenerationChunk(message=message, generation_info=chunk.generation_info)
