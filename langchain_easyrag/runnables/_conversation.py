"""Questions and conversations as LangChain hands them over, as the core's messages and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    convert_to_messages,
)

from easyrag_core import InvalidParameterError, Message
from langchain_easyrag._given import is_listing

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Asked", "asked_in", "framework_messages", "spoken"]

_ROLES: Final = {"human": "user", "ai": "assistant", "system": "system"}
_CLASSES: Final = {"system": SystemMessage, "assistant": AIMessage, "user": HumanMessage}


class Asked(NamedTuple):
    """A question with what was said before it.

    Attributes:
        question: The text.
        history: The conversation before it, oldest first.
        given: The whole input, if it is a mapping.
    """

    question: str
    history: list[Message]
    given: Mapping[str, Any]


def asked_in(value: Any, *, input_key: str = "input", history_key: str = "chat_history") -> Asked:
    """Read what a runnable was given.

    Args:
        value: A text; a mapping with the question and, perhaps, the conversation; or the
            conversation's messages, the question last.
        input_key: Where the question is.
        history_key: Where the conversation is.

    Returns:
        Question and history.

    Raises:
        InvalidParameterError: The input is none of these.
    """
    if isinstance(value, Mapping):
        if input_key not in value:
            raise InvalidParameterError("input", sorted(map(str, value)), f"give {input_key!r}")
        return Asked(_text(value[input_key]), spoken(value.get(history_key)), value)
    if is_listing(value) and (messages := spoken(value)):
        return Asked(messages[-1].content, messages[:-1], {})
    return Asked(_text(value), [], {})


def _text(value: Any) -> str:
    if isinstance(value, BaseMessage):
        return str(value.text)
    if not isinstance(value, str):
        raise InvalidParameterError("input", value, "give the question as a text")
    return value


def spoken(history: Any) -> list[Message]:
    """Return a conversation as messages of the core.

    Args:
        history: Messages, or what LangChain takes for them: pairs of role and text, dicts.
            `None` and an empty text stand for no conversation.

    Returns:
        One message for each, oldest first.

    Raises:
        InvalidParameterError: It is no list of messages.
    """
    if history is None or history == "":
        return []
    if not is_listing(history):
        raise InvalidParameterError("chat_history", history, "give a list of messages")
    try:
        messages = convert_to_messages(list(history))
    except (LookupError, NotImplementedError, TypeError, ValueError) as error:
        raise InvalidParameterError("chat_history", history, "give a list of messages") from error
    return [Message(_role(message), str(message.text)) for message in messages]


def _role(message: BaseMessage) -> str:
    kind = message.role if isinstance(message, ChatMessage) else message.type
    return _ROLES.get(kind, kind)


def framework_messages(messages: Iterable[Message]) -> list[BaseMessage]:
    """Return messages of the core as LangChain's.

    Args:
        messages: Those of system, user and assistant.

    Returns:
        One message for each.
    """
    return [_CLASSES[message.role](message.content) for message in messages]
