"""How texts go to a worker process and terms come back.

A message is its length and its bytes. The first one holds an analyzer's settings; each further
one holds texts and is answered by two: the distinct terms with the length of each list, and the
number of each term. A million terms cross as four megabytes of numbers, not as a million words.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from easyrag_core.index.analyzer._numbering import Numbered

if TYPE_CHECKING:
    from typing import IO

__all__ = ["receive", "receive_numbered", "send", "send_numbered"]


def send(sink: IO[bytes], value: Any) -> None:
    """Write a JSON value as a message; lone surrogates stay what they are."""
    _write(sink, json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def receive(source: IO[bytes]) -> Any:
    """Read what `send` wrote.

    Raises:
        EOFError: The other side has closed.
    """
    return json.loads(_read(source).decode("utf-8", "surrogatepass"))


def send_numbered(sink: IO[bytes], numbered: Numbered) -> None:
    """Write the terms of several texts."""
    send(sink, [numbered.terms, numbered.lengths.tolist()])
    _write(sink, numbered.numbers.tobytes())


def receive_numbered(source: IO[bytes]) -> Numbered:
    """Read what `send_numbered` wrote.

    Raises:
        EOFError: The other side has closed.
    """
    terms, lengths = receive(source)
    numbers = np.frombuffer(_read(source), np.int32)
    return Numbered(terms, numbers, np.array(lengths, np.int32))


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
