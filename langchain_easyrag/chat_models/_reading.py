"""What a router must know of LangChain's messages: whether they say something, and their text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk

from easyrag_core import DeltaReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langchain_core.messages import AIMessage, BaseMessage

__all__ = ["READER", "as_chunk", "capabilities_of", "is_blank", "sees_images"]

_PICTURES = frozenset({"image", "image_url", "input_image"})
# What integrations put beside the content.
_BESIDE = ("reasoning_content", "refusal", "function_call", "tool_calls", "audio")
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


def is_blank(message: AIMessage) -> bool:
    """Tell whether an answer has neither text nor reasoning, a refusal, a tool call or a medium.

    Args:
        message: The answer, or a chunk of it.

    Returns:
        Whether nothing in it is more than white space.
    """
    calls = getattr(message, "tool_call_chunks", ()) or message.tool_calls
    return not (
        calls
        or message.invalid_tool_calls
        or _says(message.content)
        or any(_says(message.additional_kwargs.get(name)) for name in _BESIDE)
    )


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


READER: Final[DeltaReader[AIMessageChunk]] = DeltaReader(
    carries_content=lambda message: not is_blank(message),
    # In pieces: `text` of a message may be made of blocks.
    text_of=lambda message: str(message.text),
)


def capabilities_of(model: BaseChatModel) -> frozenset[str]:
    """Guess what a model is able to do.

    Args:
        model: A chat model.

    Returns:
        "tools" when it binds tools, "structured_output" when it has its own or binds tools,
        "vision" unless its profile says that it takes no images, "thinking" when its profile
        says so.
    """
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
