"""What a router must know of LangChain's messages: whether they say something, and their text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk

from easyrag_core import DeltaReader, ModelRouter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langchain_core.messages import AIMessage, BaseMessage

__all__ = ["READER", "as_chunk", "capabilities_of", "is_blank", "sees_images"]

_PICTURES = frozenset({"image", "image_url", "input_image"})
# What integrations put beside the content.
_THOUGHTS = ("reasoning_content",)
_BESIDE = ("refusal", "function_call", "tool_calls", "audio")
# Blocks of these types say what is in these fields; every other type speaks by being there.
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("text",),
    "text-plain": ("text",),
    "output_text": ("text",),
    "refusal": ("refusal",),
    "reasoning": ("reasoning", "summary", "content", "text"),
    "reasoning_content": ("reasoning_content",),
    "thinking": ("thinking",),
}
# What does not stand in another model's way, so that it can go on from the text.
_PLAIN = frozenset({*_FIELDS, "redacted_thinking"}) - {"refusal"}


def is_blank(message: AIMessage) -> bool:
    """Tell whether an answer has neither text nor reasoning, a refusal, a tool call or a medium.

    Args:
        message: The answer, or a chunk of it.

    Returns:
        Whether nothing in it is more than white space.
    """
    return not (
        _calls_tools(message)
        or _says(message.content)
        or _says_beside(message, _THOUGHTS + _BESIDE)
    )


def _calls_tools(message: AIMessage) -> bool:
    chunks = getattr(message, "tool_call_chunks", ())
    return bool(chunks or message.tool_calls or message.invalid_tool_calls)


def _says_beside(message: AIMessage, names: Iterable[str]) -> bool:
    return any(_says(message.additional_kwargs.get(name)) for name in names)


def _says(value: object) -> bool:
    """Whether something, as deep as it is, is more than white space."""
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, list):
        return any(map(_says, value))
    if isinstance(value, dict):
        fields = _FIELDS.get(value.get("type", "text" if "text" in value else ""))
        return fields is None or any(_says(value.get(name)) for name in fields)
    return bool(value)


def _has_only_text(message: AIMessage) -> bool:
    """Whether another model could go on from the text alone; nobody needs another's thoughts."""
    beyond = [block for block in _blocks(message) if not _is_text_or_thought(block)]
    return not (_calls_tools(message) or _says(beyond) or _says_beside(message, _BESIDE))


def _is_text_or_thought(block: object) -> bool:
    return isinstance(block, str) or (isinstance(block, dict) and block.get("type") in _PLAIN)


READER: Final[DeltaReader[AIMessageChunk]] = DeltaReader(
    carries_content=lambda message: not is_blank(message),
    # In pieces: `text` of a message may be made of blocks.
    text_of=lambda message: str(message.text),
    continuable=_has_only_text,
)


def capabilities_of(model: BaseChatModel) -> frozenset[str]:
    """Guess what a model is able to do.

    Args:
        model: A chat model.

    Returns:
        "tools" when it binds tools, "structured_output" when it has its own or binds tools,
        "vision" unless its profile says that it takes no images, "thinking" when its profile
        says so. A routed model is able to do what any of its candidates is.
    """
    router = getattr(model, "router", None)
    if isinstance(router, ModelRouter):
        return router.capabilities
    profile: Mapping[str, Any] = getattr(model, "profile", None) or {}
    own = type(model)
    tools = own.bind_tools is not BaseChatModel.bind_tools
    structured = own.with_structured_output is not BaseChatModel.with_structured_output
    able = {
        "tools": tools and profile.get("tool_calling", True),
        "structured_output": tools or structured,
        "vision": profile.get("image_inputs", not profile),
        "thinking": profile.get("reasoning_output", False),
    }
    return frozenset(name for name, is_able in able.items() if is_able)


def sees_images(messages: Sequence[BaseMessage]) -> bool:
    """Tell whether there is an image in what is asked.

    Args:
        messages: What a model is asked.

    Returns:
        Whether a message has a block with an image.
    """
    return any(
        isinstance(block, dict) and block.get("type") in _PICTURES
        for message in messages
        for block in _blocks(message)
    )


def _blocks(message: BaseMessage) -> Iterable[object]:
    return message.content if isinstance(message.content, list) else ()


def as_chunk(message: AIMessage) -> AIMessageChunk:
    """Take a model's whole answer for the only chunk of its stream.

    Args:
        message: What came from a stream.

    Returns:
        The chunk itself, or one that is the last.
    """
    if isinstance(message, AIMessageChunk):
        return message
    fields = message.model_dump(exclude={"type"})
    return AIMessageChunk(**fields, chunk_position="last")
