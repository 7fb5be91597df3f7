"""Puts one request to candidates by way of a router, and tells handlers of each attempt."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.instrumentation.span import active_span_id

from easyrag_core import StreamReset
from easyrag_core.routing.aside import Places, given_back, set_aside

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterable,
        AsyncIterator,
        Generator,
        Iterable,
        Iterator,
    )

    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.llms import LLM

    from easyrag_core import ModelCandidate, ModelRouter
    from llamaindex_easyrag.llms._calls import Call

__all__ = ["Asking"]

A = TypeVar("A")


def _failure_told(names: Mapping[str, Any], _: BaseException) -> BaseException | None:
    """Return the failure that a handler was told of: LlamaIndex hears all that handlers raise."""
    payload = names.get("payload")
    failure = payload.get(EventPayload.EXCEPTION) if isinstance(payload, Mapping) else None
    return failure if isinstance(failure, BaseException) else None


# Where LlamaIndex calls handlers: what one raises is for the caller, and no model's failure.
_HANDLING: Final[Places] = {
    ("llama_index.core.callbacks.base", name): _failure_told
    for name in ("on_event_start", "on_event_end", "start_trace", "end_trace")
}


@dataclass
class Asking(Generic[A]):
    """One request on its way.

    Candidates tell their own handlers and the instrumentation themselves. The routed model's
    handlers are told of each candidate's call as if the candidate had them, and nobody twice.
    """

    router: ModelRouter[LLM]
    manager: CallbackManager
    call: Call[A]
    route: dict[str, Any]
    asked: list[str] = field(default_factory=list)
    # A stream is opened after the caller's span has ended: it stays the parent.
    span: str | None = field(default_factory=active_span_id.get)

    def __post_init__(self) -> None:
        """Add what the request needs by itself."""
        known = self.router.capabilities
        self.route["wants"] |= self.call.wants(known)

    def whole(self) -> A:
        """Get the whole answer."""
        with self.manager.as_trace(self.call.trace), given_back():
            return self.router.call(self._run, is_blank=self.call.is_blank, **self.route)

    async def awhole(self) -> A:
        """Get the whole answer: the async twin."""
        with self.manager.as_trace(self.call.trace), given_back():
            return await self.router.acall(self._arun, is_blank=self.call.is_blank, **self.route)

    def stream(self) -> Generator[A, None, None]:
        """Get the answer chunk by chunk. What the router refuses is raised at once."""
        return self._given(self.router.stream(self._open, self.call.reader, **self.route))

    def astream(self) -> AsyncGenerator[A, None]:
        """Get the answer chunk by chunk: the async twin."""
        return self._agiven(self.router.astream(self._aopen, self.call.reader, **self.route))

    def _given(self, stream: Iterator[A | StreamReset]) -> Generator[A, None, None]:
        try:
            with given_back():
                for given in stream:
                    chunk = self._reset(given) if isinstance(given, StreamReset) else given
                    if chunk is not None:
                        yield chunk
        finally:
            _close(stream)

    async def _agiven(self, stream: AsyncIterator[A | StreamReset]) -> AsyncGenerator[A, None]:
        try:
            with given_back():
                async for given in stream:
                    chunk = self._reset(given) if isinstance(given, StreamReset) else given
                    if chunk is not None:
                        yield chunk
        finally:
            await _aclose(stream)

    def _run(self, candidate: ModelCandidate[LLM]) -> A:
        facts = self._facts(candidate)
        with set_aside(_HANDLING), self._told(candidate.model) as ended:
            answer = self.call.marked(self.call.run(candidate.model, ""), facts)
            ended(answer)
        return answer

    async def _arun(self, candidate: ModelCandidate[LLM]) -> A:
        facts = self._facts(candidate)
        with set_aside(_HANDLING), self._told(candidate.model) as ended:
            answer = self.call.marked(await self.call.run(candidate.model, "a"), facts)
            ended(answer)
        return answer

    def _open(self, candidate: ModelCandidate[LLM], prefill: str) -> Generator[A, None, None]:
        facts = self._facts(candidate)
        chunk: A | None = None
        with set_aside(_HANDLING), self._told(candidate.model) as ended:
            with _inside(self.span):
                stream = self.call.run(candidate.model, "stream_", prefill)
            with closing(_each(stream, self.span)) as steps:
                for step in steps:
                    chunk = self.call.marked(step, facts, prefill)
                    yield chunk
            ended(chunk)

    async def _aopen(self, candidate: ModelCandidate[LLM], prefill: str) -> AsyncGenerator[A, None]:
        facts = self._facts(candidate)
        chunk: A | None = None
        with set_aside(_HANDLING), self._told(candidate.model) as ended:
            with _inside(self.span):
                stream = await self.call.run(candidate.model, "astream_", prefill)
            async with aclosing(_aeach(stream, self.span)) as steps:
                async for step in steps:
                    chunk = self.call.marked(step, facts, prefill)
                    yield chunk
            ended(chunk)

    def _facts(self, candidate: ModelCandidate[LLM]) -> dict[str, Any]:
        self.asked.append(candidate.name)
        return {"candidate": candidate.name, "asked": [*self.asked]}

    def _reset(self, given: StreamReset) -> A | None:
        return self.call.reset(given, {"candidate": given.candidate, "asked": [*self.asked]})

    @contextmanager
    def _told(self, model: LLM) -> Iterator[Any]:
        """Tell handlers of a call that begins, and hand out what tells of its answer."""
        manager = _manager_beside(self.manager, model.callback_manager)
        if not manager.handlers:
            yield lambda _: None
            return
        payload = {**self.call.begun(), EventPayload.SERIALIZED: model.to_payload()}
        event = manager.on_event_start(CBEventType.LLM, payload=payload)
        answers: list[A | None] = []
        try:
            yield answers.append
        except BaseException as error:
            payload = {EventPayload.EXCEPTION: error}
            manager.on_event_end(CBEventType.LLM, payload=payload, event_id=event)
            raise
        payload = self.call.ended(answers[-1])
        manager.on_event_end(CBEventType.LLM, payload=payload, event_id=event)


def _manager_beside(ours: CallbackManager, theirs: CallbackManager) -> CallbackManager:
    """Leave out the handlers that a candidate tells itself."""
    known = [id(handler) for handler in theirs.handlers]
    rest = [handler for handler in ours.handlers if id(handler) not in known]
    if len(rest) == len(ours.handlers):
        return ours
    manager = copy.copy(ours)
    manager.handlers = rest
    return manager


@contextmanager
def _inside(span: str | None) -> Iterator[None]:
    token = active_span_id.set(span)
    try:
        yield
    finally:
        active_span_id.reset(token)


def _each(stream: Iterable[A], span: str | None) -> Generator[A, None, None]:
    """Take each step of a stream within a span: many a model is only asked at the first."""
    steps, end = iter(stream), object()
    try:
        while True:
            with _inside(span):
                step: Any = next(steps, end)
            if step is end:
                return
            yield step
    finally:
        _close(stream)


async def _aeach(stream: AsyncIterable[A], span: str | None) -> AsyncGenerator[A, None]:
    """The async twin of `_each`."""
    steps, end = aiter(stream), object()
    try:
        while True:
            with _inside(span):
                step: Any = await anext(steps, end)
            if step is end:
                return
            yield step
    finally:
        await _aclose(stream)


def _close(stream: Any) -> None:
    # An iterator need not have it.
    if hasattr(stream, "close"):
        stream.close()


async def _aclose(stream: Any) -> None:
    if hasattr(stream, "aclose"):
        await stream.aclose()
