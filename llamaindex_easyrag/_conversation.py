"""Conversations as LlamaIndex hands them over, as the core's messages and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatMessage

from easyrag_core import InvalidParameterError, Message

if TYPE_CHECKING:
    from easyrag_core.query import PromptTemplate

__all__ = ["chat_messages", "said_in", "spoken", "template_messages"]


def spoken(history: Any) -> list[Message]:
    """Return a conversation as messages of the core.

    Args:
        history: Chat messages, oldest first; `None` stands for no conversation.

    Returns:
        One message for each that has a text.

    Raises:
        InvalidParameterError: It is no list of chat messages.
    """
    if history is None:
        return []
    listed = list(history) if isinstance(history, Iterable) else [history]
    for message in listed:
        if not isinstance(message, ChatMessage):
            raise InvalidParameterError("chat_history", message, "give a list of ChatMessage")
    return [Message(said.role.value, said.content) for said in listed if said.content]


def chat_messages(messages: Iterable[Message]) -> list[ChatMessage]:
    """Return messages of the core as LlamaIndex's.

    Args:
        messages: Those of system, user and assistant.

    Returns:
        One message for each.
    """
    return [ChatMessage(role=message.role, content=message.content) for message in messages]


def template_messages(template: PromptTemplate) -> list[ChatMessage]:
    """Return a template of the core as messages with the same placeholders."""
    told = [("system", template.system), ("user", template.user)]
    return [ChatMessage(role=role, content=text) for role, text in told if text]


def said_in(messages: Iterable[Message]) -> str:
    """Return a conversation as the framework's own prompts show one."""
    return "\n".join(f"{message.role}: {message.content}" for message in messages)
