"""Scripted models and the two forms of a router, so that one test body serves both."""

from __future__ import annotations

import asyncio
import threading

from easyrag_core import DeltaReader, ModelCandidate, ModelRouter

HANG = object()
"""Nothing comes until the test is over."""

TOOL = ("tool",)
ROLE = ("role",)
"""Chunks without text; a plain string is a chunk with text."""

# So long that only what never comes makes a test fail.
PATIENT = 30.0
SHORT = 0.05


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def text_of(chunk):
    return chunk if isinstance(chunk, str) else ""


READER = DeltaReader(
    carries_content=lambda chunk: chunk is TOOL or bool(text_of(chunk).strip()), text_of=text_of
)


class Model:
    """Answers each call by the next of its turns, the last one for ever.

    A turn is one answer, or for a stream a list of chunks; an error is raised where it stands.
    """

    def __init__(self, *turns):
        self.turns = list(turns)
        self.calls = 0
        self.prefills = []
        self.closed = 0

    def next_turn(self):
        self.calls += 1
        return self.turns[min(self.calls, len(self.turns)) - 1]


def routed(*models, settings=(), **router):
    """A router over models called a, b, c …; `settings` are those of its first candidate."""
    first = dict(settings)
    candidates = [
        ModelCandidate(name, model, **(first if name == "a" else {}))
        for name, model in zip("abcdef", models, strict=False)
    ]
    return ModelRouter(candidates, **router)


class Sync:
    """Runs in threads where there are limits."""

    name = "sync"

    def __init__(self):
        self.over = threading.Event()

    def do(self, item):
        if item is HANG:
            self.over.wait(PATIENT)
        if isinstance(item, BaseException):
            raise item
        return item

    def call(self, router, **more):
        return router.call(lambda candidate: self.do(candidate.model.next_turn()), **more)

    def open(self, candidate, prefill):
        model = candidate.model
        model.prefills.append(prefill)
        turn = model.next_turn()
        try:
            for item in turn:
                yield self.do(item)
        finally:
            model.closed += 1

    def stream(self, router, seen=None, reader=READER, **more):
        seen = [] if seen is None else seen
        for chunk in router.stream(self.open, reader, **more):
            seen.append(chunk)
        return seen

    def read(self, router, count):
        """Read so many chunks, then close the stream."""
        chunks = router.stream(self.open, READER)
        seen = [next(chunks) for _ in range(count)]
        chunks.close()
        return seen

    def close(self):
        self.over.set()


class Async:
    """The same as tasks of one event loop."""

    name = "async"

    async def do(self, item):
        if item is HANG:
            await asyncio.Event().wait()
        if isinstance(item, BaseException):
            raise item
        return item

    def call(self, router, **more):
        return asyncio.run(
            router.acall(lambda candidate: self.do(candidate.model.next_turn()), **more)
        )

    async def open(self, candidate, prefill):
        model = candidate.model
        model.prefills.append(prefill)
        turn = model.next_turn()
        try:
            for item in turn:
                yield await self.do(item)
        finally:
            model.closed += 1

    def stream(self, router, seen=None, reader=READER, **more):
        seen = [] if seen is None else seen

        async def read():
            async for chunk in router.astream(self.open, reader, **more):
                seen.append(chunk)

        asyncio.run(read())
        return seen

    def read(self, router, count):
        async def read():
            chunks = router.astream(self.open, READER)
            seen = [await anext(chunks) for _ in range(count)]
            await chunks.aclose()
            return seen

        return asyncio.run(read())

    def close(self):
        pass


FORMS = [Sync, Async]
