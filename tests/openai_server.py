"""A small server that speaks the OpenAI API on loopback and answers by script.

    with OpenAIServer([Status(503), Reply("Hello")]) as server:
        client = openai.OpenAI(base_url=server.base_url, api_key="key", max_retries=0)

A script is one action for all requests, a list with one action per request, or a function from
the request to its action. Each answer is given as the request asks for it, in one piece or as a
stream. Nothing sleeps: what waits is let go by a `Gate`, by the client's leaving, or by the end
of the server.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from typing import Any, Self

from tests.openai_script import (
    CUT,
    EMPTY,
    HANG,
    KEEP_ALIVE,
    MALFORMED,
    ROLE,
    Action,
    Cut,
    Frame,
    Gate,
    Hang,
    Part,
    Reasoning,
    Reply,
    Request,
    Script,
    Status,
    Stream,
    ToolCall,
    ToolCalls,
    ToolDelta,
    Vectors,
    Wait,
    json_reply,
)

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
    "OpenAIServer",
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
    "refused_url",
]

PATIENT = 30.0
"""Seconds after which only a broken test is still waiting."""


class _GoneError(Exception):
    """The client has left, or the server is told to stop."""


class _CutError(_GoneError):
    """The script wants the connection closed here."""


class Exchange(BaseHTTPRequestHandler):
    """One connection with its requests, one after the other."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener
    request: Request  # type: ignore[assignment]

    def setup(self) -> None:
        super().setup()
        self.server.owner.connected(self.connection)

    def finish(self) -> None:
        with suppress(ConnectionError):
            super().finish()
        self.server.owner.disconnected(self.connection)

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length", 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = json.loads(self.rfile.read(size) or b"null")
        self.request = Request(self.path.removeprefix("/v1"), headers, body)
        owner, left = self.server.owner, False
        owner.asked(self.request)
        try:
            owner.next_action(self.request).answer(self)
        except (_GoneError, ConnectionError) as error:
            self.close_connection = True
            left = not isinstance(error, _CutError)
        finally:
            owner.answered(left=left)

    def log_message(self, *_: object) -> None:
        """Say nothing: the requests are kept for the test."""

    def send_json(self, status: int, body: Any, extra: Status | None = None) -> None:
        written = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(written)))
        for name, value in (extra.headers if extra else {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(written)

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def send(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def send_event(self, chunk: Mapping[str, Any]) -> None:
        self.send(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n")

    def end_stream(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def halted_by(self, part: Part) -> bool:
        """Do what a part without content asks for; false for the others."""
        if isinstance(part, Cut):
            self.connection.shutdown(socket.SHUT_RDWR)
            raise _CutError
        if isinstance(part, Wait):
            self.wait(part.gate, part.seconds)
        return isinstance(part, Wait)

    def wait(self, gate: Gate | None, seconds: float | None) -> None:
        with selectors.DefaultSelector() as selector:
            for watched in (self.connection, self.server.owner.stopping, gate):
                if watched is not None:
                    selector.register(watched, selectors.EVENT_READ)
            ready = {key.fileobj for key, _ in selector.select(seconds)}
        # A client that waits for its answer sends nothing, so what comes is its end.
        if self.connection in ready or self.server.owner.stopping in ready:
            raise _GoneError


class _Listener(ThreadingHTTPServer):
    """Takes connections, each in its thread; `server_close` waits for all of them."""

    daemon_threads = False
    request_queue_size = 512
    owner: OpenAIServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client may end its connection at any time, also by a reset.
        if not isinstance(sys.exception(), ConnectionError):
            self.owner.failed()


class OpenAIServer:
    """Answers by script while the `with` block lasts.

    Leaving the block fails the test when a request came for which the script had no action, or
    when the script itself failed.
    """

    def __init__(self, script: Script):
        if isinstance(script, Sequence):
            self._script: Any = iter(script)
        else:
            self._script = script if callable(script) else repeat(script)
        self._changed = threading.Condition()
        self._connections: set[socket.socket] = set()
        self._ended = False
        self.requests: list[Request] = []
        self.faults: list[str] = []
        self.in_flight = 0
        self.disconnects = 0

    def __enter__(self) -> Self:
        self.stopping = Gate()
        self._listener = _Listener(("127.0.0.1", 0), Exchange)
        self._listener.owner = self
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._listener.shutdown()
        self._thread.join()
        self.stopping.open()
        with self._changed:
            self._ended = True
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._listener.server_close()
        self.stopping.close()
        if kind is None:
            assert not self.faults, "\n".join(self.faults)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._listener.server_address[1]}/v1"

    @property
    def open_connections(self) -> int:
        """Connections that a client holds, also those that it keeps for its next request."""
        with self._changed:
            return len(self._connections)

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Return when something comes true of the counts and requests; fail when nothing does."""
        with self._changed:
            assert self._changed.wait_for(holds, PATIENT), "waited in vain for the server"

    def wait_idle(self) -> None:
        """Return when no request is being answered any more."""
        self.wait_until(lambda: self.in_flight == 0)

    # What the connections report.

    @contextmanager
    def _change(self) -> Iterator[None]:
        with self._changed:
            yield
            self._changed.notify_all()

    def connected(self, connection: socket.socket) -> None:
        with self._change():
            self._connections.add(connection)
            if self._ended:
                connection.shutdown(socket.SHUT_RDWR)

    def disconnected(self, connection: socket.socket) -> None:
        with self._change():
            self._connections.discard(connection)

    def asked(self, request: Request) -> None:
        with self._change():
            self.requests.append(request)
            self.in_flight += 1

    def next_action(self, request: Request) -> Action:
        if callable(self._script):
            return self._script(request)
        with self._changed:
            action = next(self._script, None)
        if action is not None:
            return action
        self.faults.append(f"no action is left for {request}")
        return Status(500)

    def answered(self, *, left: bool) -> None:
        with self._change():
            self.in_flight -= 1
            self.disconnects += left

    def failed(self) -> None:
        with self._change():
            self.faults.append(traceback.format_exc())


@contextmanager
def refused_url() -> Iterator[str]:
    """A base URL at which every connection is refused: the port is held, nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}/v1"
