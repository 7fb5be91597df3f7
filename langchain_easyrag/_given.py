"""Documents as others hand them over: a user, or a runnable in a retriever's place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, TypeGuard, TypeVar

from langchain_core.documents import Document
from pydantic import BaseModel

from easyrag_core import InvalidParameterError

__all__ = [
    "AnswerError",
    "as_documents",
    "documents_of_texts",
    "given_documents",
    "is_listing",
]

T = TypeVar("T")

# All of these can be iterated, and none of them gives what its writer meant by it.
_NO_LISTING = (str, bytes, bytearray, Mapping, AbstractSet, BaseModel)


class AnswerError(InvalidParameterError, TypeError):
    """A runnable in a retriever's place gave something else than documents."""


def is_listing(value: object) -> TypeGuard[Iterable[Any]]:
    """Tell whether a value is a list, tuple, generator or the like: items in an order."""
    return isinstance(value, Iterable) and not isinstance(value, _NO_LISTING)


def given_documents(documents: Iterable[Document], *, name: str = "documents") -> list[Document]:
    """Return the documents that a user gave as a list.

    Args:
        documents: A list, or anything else that gives documents in an order.
        name: The argument's name, for the message.

    Returns:
        The documents, as they are.

    Raises:
        InvalidParameterError: It is one document, a text or a mapping, or holds something else
            than documents.
    """
    return _checked(documents, (Document,), name, InvalidParameterError)


def as_documents(answer: Iterable[Any]) -> list[Document]:
    """Return a retriever's answer as a list of documents; plain strings become documents.

    Args:
        answer: What any runnable in a retriever's place gave.

    Returns:
        The documents, as they are.

    Raises:
        AnswerError: The answer is no list, tuple, generator or the like, or something in it is
            neither a document nor a string.
    """
    found = _checked(answer, (Document, str), "answer", AnswerError)
    return [Document(item) if isinstance(item, str) else item for item in found]


def _checked(
    values: Any, kinds: tuple[type, ...], name: str, error: type[InvalidParameterError]
) -> list[Any]:
    wanted = "a list of Documents is expected"
    if not is_listing(values):
        raise error(name, values, f"{wanted}, not {_kind(values)}")
    listed = list(values)
    for number, value in enumerate(listed):
        if not isinstance(value, kinds):
            raise error(f"{name}[{number}]", value, f"{wanted}, and this is {_kind(value)}")
    return listed


def _kind(value: object) -> str:
    return "None" if value is None else f"one {type(value).__name__}"


def documents_of_texts(
    texts: Iterable[str],
    metadatas: Iterable[dict[Any, Any] | None] | None = None,
    ids: Iterable[str | None] | None = None,
) -> list[Document]:
    """Make one document per text.

    Args:
        texts: The texts.
        metadatas: One dict per text, copied shallowly.
        ids: One id per text; `None` for a document without.

    Returns:
        Documents in the order of the texts.

    Raises:
        InvalidParameterError: There are more or fewer metadata or ids than texts, or `texts` is
            one string.
    """
    if isinstance(texts, str):
        raise InvalidParameterError("texts", texts, "give a list of texts")
    texts = list(texts)
    given = _one_each("metadatas", metadatas, len(texts))
    names = _one_each("ids", ids, len(texts))
    return [
        Document(text, id=id_, metadata=dict(metadata or {}))
        for text, metadata, id_ in zip(texts, given, names, strict=True)
    ]


def _one_each(name: str, values: Iterable[T | None] | None, texts: int) -> list[T | None]:
    found: list[T | None] = [None] * texts if values is None else list(values)
    if len(found) != texts:
        allowed = f"give one per text, there are {texts} texts"
        raise InvalidParameterError(f"len({name})", len(found), allowed)
    return found
