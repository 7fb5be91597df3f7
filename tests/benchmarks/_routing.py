"""What routing adds before the first token: the routed model against the model alone."""

from __future__ import annotations

import asyncio
import statistics
import time
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from tests.benchmarks._timing import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.benchmarks.speed import Settings

__all__ = ["first_token"]

_STREAMS = 50
_WARM = 10


def first_token(settings: Settings) -> Iterator[Row]:
    """Over models in memory, with the deadline for the first token that is the default."""
    from langchain_core.language_models import FakeListChatModel
    from llama_index.core.llms import ChatMessage, MockLLM

    from langchain_easyrag import RoutedChatModel
    from llamaindex_easyrag import RoutedLLM

    chat, llm = FakeListChatModel(responses=["It rains in Oslo"]), MockLLM()
    asked = [ChatMessage(content="Hi")]

    async def chatted(model: Any) -> Any:
        return model.astream("Hi")

    rooms: dict[str, tuple[Any, Any, Callable[[Any], Any], Callable[[Any], Any]]] = {
        "LangChain": (chat, RoutedChatModel([chat, chat]), lambda m: m.stream("Hi"), chatted),
        "LlamaIndex": (
            llm,
            RoutedLLM([llm, llm]),
            lambda m: m.stream_chat(asked),
            lambda m: m.astream_chat(asked),
        ),
    }
    for room, (alone, routed, stream, astream) in rooms.items():
        forms = {"sync": partial(_waits, stream), "async": partial(_awaits, astream)}
        for form, waits in forms.items():
            ours, theirs = _medians(waits, routed, alone, rounds=settings.rounds)
            yield Row(
                name="routing",
                work=f"{room}, {form}, to the first token",
                ours=ours,
                note=f"{(ours - theirs) * 1e3:.2f} ms over the model alone; under 1 ms are asked",
            )


def _medians(
    waits: Callable[[Any], list[float]], routed: Any, alone: Any, *, rounds: int
) -> tuple[float, float]:
    """Return the median seconds of each, measured in turns."""
    taken = [(waits(routed), waits(alone)) for _ in range(rounds)]
    ours, theirs = (statistics.median(chain(*each)) for each in zip(*taken, strict=True))
    return ours, theirs


def _waits(stream: Callable[[Any], Any], model: Any) -> list[float]:
    return [_wait(stream, model) for _ in range(_WARM + _STREAMS)][_WARM:]


def _wait(stream: Callable[[Any], Any], model: Any) -> float:
    started = time.perf_counter()
    opened = stream(model)
    next(opened)
    taken = time.perf_counter() - started
    opened.close()
    return taken


def _awaits(stream: Callable[[Any], Any], model: Any) -> list[float]:
    async def waits() -> list[float]:
        return [await _await(stream, model) for _ in range(_WARM + _STREAMS)]

    return asyncio.run(waits())[_WARM:]


async def _await(stream: Callable[[Any], Any], model: Any) -> float:
    started = time.perf_counter()
    opened = await stream(model)
    await anext(opened)
    taken = time.perf_counter() - started
    await opened.aclose()
    return taken
