"""Conversations as LlamaIndex hands them over, as the core's messages and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatMessage
from pydantic import BaseModel

from easyrag_core import InvalidParameterError, Message

if TYPE_CHECKING:
    from easyrag_core.query import PromptTemplate

__all__ = ["chat_messages", "given_messages", "said_in", "spoken", "template_messages"]


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
    listed = given_messages("chat_history", history)
    return [Message(said.role.value, said.content) for said in listed if said.content]


def given_messages(name: str, messages: Any) -> list[ChatMessage]:
    """Return messages that a caller gave as a list of its own.

    Args:
        name: The argument's name, for the message.
        messages: What was given.

    Returns:
        The same messages.

    Raises:
        InvalidParameterError: It is one message, or no list of chat messages.
    """
    several = isinstance(messages, Iterable) and not isinstance(messages, BaseModel)
    listed: list[Any] = list(messages) if several else [None]
    if not all(isinstance(message, ChatMessage) for message in listed):
        raise InvalidParameterError(name, messages, "give a list of ChatMessage")
    return listed


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
