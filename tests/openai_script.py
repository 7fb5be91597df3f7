"""What a scripted server says: parts of an answer, and the actions that are made of them."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from tests.openai_server import Exchange

__all__ = [
    "CUT",
    "EMPTY",
    "HANG",
    "KEEP_ALIVE",
    "MALFORMED",
    "ROLE",
    "Action",
    "Cut",
    "Frame",
    "Gate",
    "Hang",
    "Part",
    "Reasoning",
    "Reply",
    "Request",
    "Script",
    "Status",
    "Stream",
    "ToolCall",
    "ToolCalls",
    "ToolDelta",
    "Vectors",
    "Wait",
    "json_reply",
]


class Gate:
    """Shut until `open` is called, then open for everybody for good."""

    def __init__(self):
        self._inside, self._outside = socket.socketpair()

    def fileno(self) -> int:
        return self._inside.fileno()

    def open(self) -> None:
        # The other end sees the end of file for ever, so any number may wait for it.
        self._outside.close()

    def close(self) -> None:
        self._outside.close()
        self._inside.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class Request:
    """What a client asked: path below `/v1`, headers in lower case, the JSON body."""

    path: str
    headers: Mapping[str, str]
    json: Any = None

    @property
    def model(self) -> str:
        return (self.json or {}).get("model", "")

    @property
    def streams(self) -> bool:
        return bool((self.json or {}).get("stream"))


# Parts of an answer. A plain string is a content delta, a dict is a delta as it goes out.


@dataclass(frozen=True)
class Reasoning:
    """A delta of the model's reasoning, as reasoning models send it."""

    text: str


@dataclass(frozen=True)
class ToolDelta:
    """A piece of a tool call; the first of an index brings id and name."""

    arguments: str = ""
    index: int = 0
    id: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class Frame:
    """Bytes of the stream as they are, in or out of the protocol."""

    data: str


@dataclass(frozen=True)
class Wait:
    """Silence until the gate opens or the seconds are over; without either, for ever."""

    gate: Gate | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Cut:
    """The connection is closed here, in the middle of the answer."""


KEEP_ALIVE = Frame(": keep-alive\n\n")
MALFORMED = Frame('data: {"choices": [{"delta": \n\n')
ROLE: Mapping[str, Any] = {"role": "assistant", "content": ""}
EMPTY: Mapping[str, Any] = {}
HANG = Wait()
CUT = Cut()

Part = str | Mapping[str, Any] | Reasoning | ToolDelta | Frame | Wait | Cut


# Actions.


@dataclass(frozen=True)
class Stream:
    """An answer in parts; joined when the request asks for one piece.

    The stream begins with a chunk that has a role and no content, as OpenAI's does, unless
    `role` is false. `usage` is the prompt's and the answer's number of tokens.
    """

    parts: Sequence[Part] = ()
    usage: tuple[int, int] = (7, 3)
    finish: str | None = "stop"
    role: bool = True

    def answer(self, exchange: Exchange) -> None:
        if exchange.request.streams:
            self._stream(exchange)
        else:
            self._whole(exchange)

    def _stream(self, exchange: Exchange) -> None:
        exchange.begin_stream()
        parts = [ROLE, *self.parts] if self.role else self.parts
        for part in parts:
            if exchange.halted_by(part):
                continue
            if isinstance(part, Frame):
                exchange.send(part.data)
            else:
                exchange.send_event(self._chunk(exchange, _delta(part)))
        if self.finish is not None:
            exchange.send_event(self._chunk(exchange, {}, self.finish))
        if (exchange.request.json.get("stream_options") or {}).get("include_usage"):
            exchange.send_event(_envelope(exchange, "chat.completion.chunk", [], self._usage()))
        exchange.send("data: [DONE]\n\n")
        exchange.end_stream()

    def _whole(self, exchange: Exchange) -> None:
        kept = [part for part in self.parts if not exchange.halted_by(part)]
        choice = {"index": 0, "message": _message(kept), "finish_reason": self.finish or "stop"}
        exchange.send_json(200, _envelope(exchange, "chat.completion", [choice], self._usage()))

    def _chunk(
        self, exchange: Exchange, delta: Mapping[str, Any], finish: str | None = None
    ) -> dict[str, Any]:
        choice = {"index": 0, "delta": dict(delta), "finish_reason": finish}
        return _envelope(exchange, "chat.completion.chunk", [choice], None)

    def _usage(self) -> dict[str, int]:
        prompt, answer = self.usage
        return {
            "prompt_tokens": prompt,
            "completion_tokens": answer,
            "total_tokens": prompt + answer,
        }


class Reply(Stream):
    """An answer in one delta; blank when there is no text."""

    def __init__(self, text: str = "", usage: tuple[int, int] = (7, 3), finish: str = "stop"):
        super().__init__([text], usage, finish)


def json_reply(value: object, **settings: Any) -> Reply:
    """Answer with an object, as a model in JSON mode does."""
    return Reply(json.dumps(value, ensure_ascii=False), **settings)


@dataclass(frozen=True)
class ToolCall:
    """One call that the model asks for; arguments that are a string go out as they are."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = "call_1"

    def written(self) -> str:
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False)


class ToolCalls(Stream):
    """Calls of tools; in a stream each is whole, or cut into deltas of `letters` letters."""

    def __init__(self, *calls: ToolCall, letters: int | None = None, usage=(7, 3)):
        parts: list[Part] = []
        for index, call in enumerate(calls):
            written = call.written()
            size = letters or max(len(written), 1)
            pieces = [written[at : at + size] for at in range(0, len(written), size)]
            first = "" if letters else "".join(pieces)
            parts.append(ToolDelta(first, index, call.id, call.name))
            parts += [ToolDelta(piece, index) for piece in pieces if letters]
        super().__init__(parts, usage, "tool_calls")


@dataclass(frozen=True)
class Status:
    """An error in OpenAI's form, or with a body of one's own."""

    code: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def answer(self, exchange: Exchange) -> None:
        said = {"message": f"scripted {self.code}", "type": "scripted", "code": None, "param": None}
        exchange.send_json(self.code, {"error": said} if self.body is None else self.body, self)


@dataclass(frozen=True)
class Hang:
    """No byte of an answer until the gate opens; then the next action answers."""

    gate: Gate | None = None
    then: Stream | Status = field(default_factory=Reply)

    def answer(self, exchange: Exchange) -> None:
        exchange.wait(self.gate, None)
        self.then.answer(exchange)


def hashed_vector(text: object) -> list[float]:
    """Eight numbers that depend on the text alone."""
    digest = hashlib.sha256(str(text).encode()).digest()[:8]
    return [byte / 255 for byte in digest]


@dataclass(frozen=True)
class Vectors:
    """An embedding of every input, by a function of one text."""

    embed: Callable[[Any], Sequence[float]] = hashed_vector

    def answer(self, exchange: Exchange) -> None:
        asked = exchange.request.json
        texts = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
        vectors: list[Any] = [list(self.embed(text)) for text in texts]
        if asked.get("encoding_format") == "base64":
            packed = [struct.pack(f"<{len(vector)}f", *vector) for vector in vectors]
            vectors = [base64.b64encode(data).decode() for data in packed]
        data = [
            {"object": "embedding", "index": index, "embedding": vector}
            for index, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        body = {"object": "list", "model": asked["model"], "data": data, "usage": usage}
        exchange.send_json(200, body)


Action = Stream | Status | Hang | Vectors
Script = Action | Sequence[Action] | Callable[[Request], Action]


def _delta(part: Part) -> Mapping[str, Any]:
    if isinstance(part, str):
        return {"content": part}
    if isinstance(part, Reasoning):
        return {"reasoning_content": part.text}
    if isinstance(part, ToolDelta):
        function = {"name": part.name} if part.name else {}
        call = {"index": part.index, "function": {**function, "arguments": part.arguments}}
        return {"tool_calls": [call | ({"id": part.id, "type": "function"} if part.id else {})]}
    return part


def _message(parts: Sequence[Part]) -> dict[str, Any]:
    """Join the parts into the message that an answer in one piece has."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, Any]] = {}
    for part in parts:
        if isinstance(part, str):
            message["content"] = (message["content"] or "") + part
        elif isinstance(part, Reasoning):
            message["reasoning_content"] = message.get("reasoning_content", "") + part.text
        elif isinstance(part, ToolDelta):
            empty = {"id": part.id, "type": "function", "function": {"name": part.name}}
            function = calls.setdefault(part.index, empty)["function"]
            function["arguments"] = function.get("arguments", "") + part.arguments
        elif isinstance(part, Mapping):
            message |= {name: value for name, value in part.items() if value}
    return message | ({"tool_calls": list(calls.values())} if calls else {})


def _envelope(exchange: Exchange, kind: str, choices: list[Any], usage: Any) -> dict[str, Any]:
    model = exchange.request.model
    return {
        "id": "chatcmpl-scripted",
        "object": kind,
        "created": 1,
        "model": model,
        "choices": choices,
        "usage": usage,
    }
