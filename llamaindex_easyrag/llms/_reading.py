"""What a router must know of LlamaIndex's answers: whether they say something, and their text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
)

from easyrag_core import DeltaReader, ModelRouter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.llms import LLM
    from pydantic import BaseModel

__all__ = [
    "CHAT_READER",
    "COMPLETION_READER",
    "OBJECT_READER",
    "capabilities_of",
    "is_blank_chat",
    "is_blank_completion",
    "message_after",
    "sees_images",
]

# Where integrations keep calls of tools beside the blocks.
_CALLS = ("tool_calls", "function_call")


def is_blank_chat(response: ChatResponse) -> bool:
    """Tell whether an answer has neither text nor thoughts, a tool call or a medium.

    Args:
        response: The answer, or what there is of it.

    Returns:
        Whether nothing in it is more than white space.
    """
    message = response.message
    return not (_calls_tools(message) or any(map(_says, message.blocks)))


def is_blank_completion(response: CompletionResponse) -> bool:
    """Tell whether a completion has no text.

    Args:
        response: The answer, or what there is of it.

    Returns:
        Whether it is white space at most.
    """
    return not response.text.strip()


def _says(block: object) -> bool:
    if isinstance(block, TextBlock):
        return bool(block.text.strip())
    if isinstance(block, ThinkingBlock):
        return bool((block.content or "").strip())
    return True


def _calls_tools(message: ChatMessage) -> bool:
    return any(message.additional_kwargs.get(name) for name in _CALLS)


def _has_only_text(response: ChatResponse) -> bool:
    """Whether another model could go on from the text alone; nobody needs another's thoughts."""
    message = response.message
    plain = all(isinstance(block, TextBlock | ThinkingBlock) for block in message.blocks)
    return plain and not _calls_tools(message)


CHAT_READER: Final[DeltaReader[ChatResponse]] = DeltaReader(
    carries_content=lambda chunk: bool((chunk.delta or "").strip()) or not is_blank_chat(chunk),
    text_of=lambda chunk: chunk.delta or "",
    # Every chunk has the whole message so far, so that the last one speaks for all.
    continuable=_has_only_text,
)

COMPLETION_READER: Final[DeltaReader[CompletionResponse]] = DeltaReader(
    carries_content=lambda chunk: bool((chunk.delta or chunk.text).strip()),
    text_of=lambda chunk: chunk.delta or "",
    continuable=lambda _: True,
)


def _has_fields(given: BaseModel | list[BaseModel]) -> bool:
    # Several calls in parallel are several objects.
    objects = given if isinstance(given, list) else [given]
    return any(value is not None for each in objects for value in each.model_dump().values())


OBJECT_READER: Final[DeltaReader[Any]] = DeltaReader(
    carries_content=_has_fields,
    text_of=lambda _: "",
    # An object that is half made cannot be handed to another model.
    continuable=lambda _: False,
    # At first nothing is filled in; what is so at the end was meant that way.
    is_answer=bool,
)


def message_after(text: str, message: ChatMessage) -> ChatMessage:
    """Put a text before the text of a message.

    Args:
        text: What another model has said before.
        message: What is said after it; it is left as it is.

    Returns:
        One message with both.
    """
    blocks = list(message.blocks)
    at = next((n for n, block in enumerate(blocks) if isinstance(block, TextBlock)), None)
    if at is None:
        blocks.insert(0, TextBlock(text=text))
    else:
        said = blocks[at]
        blocks[at] = said.model_copy(update={"text": text + getattr(said, "text", "")})
    return message.model_copy(update={"blocks": blocks})


def capabilities_of(model: LLM) -> frozenset[str]:
    """Say what a model is able to do.

    Args:
        model: An LLM.

    Returns:
        "tools" when its metadata say that it calls functions, and it has the methods for it. A
        routed model is able to do what any of its candidates is.
    """
    router = getattr(model, "router", None)
    if isinstance(router, ModelRouter):
        return router.capabilities
    calls = model.metadata.is_function_calling_model and hasattr(model, "chat_with_tools")
    return frozenset({"tools"} if calls else ())


def sees_images(messages: Sequence[ChatMessage]) -> bool:
    """Tell whether there is an image in what is asked.

    Args:
        messages: What a model is asked.

    Returns:
        Whether a message has a block with an image.
    """
    return any(isinstance(block, ImageBlock) for message in messages for block in message.blocks)
