"""How texts go to a worker process and terms come back.

A message is its length and its bytes. The first one holds an analyzer's settings; each further
one holds texts and is answered by two: the distinct terms with the length of each list, and the
number of each term. A million terms cross as four megabytes of numbers, not as a million words.
"""

from __future__ import annotations

import json
from array import array
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO

__all__ = ["receive", "receive_terms", "send", "send_terms"]


def send(sink: IO[bytes], value: Any) -> None:
    """Write a JSON value as a message; lone surrogates stay what they are."""
    _write(sink, json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def receive(source: IO[bytes]) -> Any:
    """Read what `send` wrote.

    Raises:
        EOFError: The other side has closed.
    """
    return json.loads(_read(source).decode("utf-8", "surrogatepass"))


class _Numbers(dict[str, int]):
    """Gives each new term the next number."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


def send_terms(sink: IO[bytes], lists: Sequence[Sequence[str]]) -> None:
    """Write the terms of several texts."""
    numbers = _Numbers()
    numbered = array("i", map(numbers.__getitem__, chain.from_iterable(lists)))
    send(sink, [list(numbers), list(map(len, lists))])
    _write(sink, numbered.tobytes())


def receive_terms(source: IO[bytes]) -> list[list[str]]:
    """Read what `send_terms` wrote.

    Raises:
        EOFError: The other side has closed.
    """
    terms, lengths = receive(source)
    numbered = array("i")
    numbered.frombytes(_read(source))
    found = map(terms.__getitem__, numbered)
    return [list(islice(found, length)) for length in lengths]


def _write(sink: IO[bytes], message: bytes) -> None:
    sink.write(len(message).to_bytes(8, "big"))
    sink.write(message)
    sink.flush()


def _read(source: IO[bytes]) -> bytes:
    head = source.read(8)
    message = source.read(int.from_bytes(head, "big"))
    if len(head) < 8 or len(message) < int.from_bytes(head, "big"):
        raise EOFError("closed")
    return message
