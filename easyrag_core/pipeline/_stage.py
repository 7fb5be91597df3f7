"""What a channel and a postprocessor are."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from easyrag_core.errors import InvalidParameterError, check_count, check_number, check_timeout
from easyrag_core.pipeline._channels import in_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from easyrag_core.pipeline._items import Items

__all__ = ["Channel", "PipelineContext", "Postprocessor", "Quick", "aprocessed"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Channel(Generic[T]):
    """One way to find something: an index, a store, a search service.

    Attributes:
        name: Tells it from the others, in facts and events.
        search: The query, and how many are wanted, to hits, best first.
        k: How many it is asked for, and how many of its answer are taken, at least 1.
        weight: How much its vote counts, >= 0; a channel of weight 0 has none.
        timeout: Seconds that it has; `None` waits for ever.
        asearch: The async twin of `search`; without it `search` runs in a thread.
    """

    name: str
    search: Callable[[str, int], Sequence[T]]
    k: int = 20
    weight: float = 1.0
    timeout: float | None = 15.0
    asearch: Callable[[str, int], Awaitable[Sequence[T]]] | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            InvalidParameterError: A value is out of range or of another kind.
        """
        name: object = self.name
        if not name or not isinstance(name, str):
            raise InvalidParameterError("name", name, "give a text that is not empty")
        allowed = "give a function of a query and a number"
        if not callable(self.search):
            raise InvalidParameterError("search", self.search, allowed)
        if self.asearch is not None and not callable(self.asearch):
            raise InvalidParameterError("asearch", self.asearch, f"{allowed}, or None")
        check_count("k", self.k, minimum=1)
        check_number("weight", self.weight, allowed="give a finite number of at least 0")
        check_timeout(self.timeout)


@dataclass(slots=True)
class PipelineContext(Generic[T]):
    """What a postprocessor may want to know, and where it says what it did.

    Attributes:
        query: What was asked.
        k: How many hits are wanted in the end.
        fetch_k: How many candidates there may be.
        items: Reads and writes hits, whatever they are.
        notes: Id to what was done to it, in words; filled by the postprocessor.
    """

    query: str
    k: int
    fetch_k: int
    items: Items[T]
    notes: dict[str, str] = field(default_factory=dict)


class Postprocessor(Protocol[T]):
    """Takes the hits that are left, and gives those that are to stay, in a new order or changed.

    It may also have `aprocess`, the async twin of `process`, which otherwise runs in a thread;
    `limit`, the most hits that it gives; and `timeout`, in seconds.
    """

    @property
    def name(self) -> str:
        """Tells it from the others, in facts and events."""
        ...

    def process(self, hits: Sequence[T], context: PipelineContext[T]) -> Sequence[T]:
        """Process hits.

        Args:
            hits: What is left, best first; neither the list nor a hit is to be changed.
            context: The query, how to read hits, and a place for notes.

        Returns:
            The hits that stay, best first.
        """
        ...


class Quick(Generic[T]):
    """A postprocessor that is done before a thread would have started."""

    def process(self, hits: Sequence[T], context: PipelineContext[T]) -> Sequence[T]:
        """Process hits."""
        raise NotImplementedError

    async def aprocess(self, hits: Sequence[T], context: PipelineContext[T]) -> Sequence[T]:
        """Process hits: the async twin of `process`, without waiting."""
        return self.process(hits, context)


async def aprocessed(
    stage: Postprocessor[T], hits: Sequence[T], context: PipelineContext[T]
) -> Sequence[T]:
    """Run a postprocessor's async twin, or itself in a thread where it has none.

    Args:
        stage: The postprocessor.
        hits: What is left.
        context: As for `process`.

    Returns:
        What it gives.
    """
    twin: Callable[..., Awaitable[Sequence[T]]] | None = getattr(stage, "aprocess", None)
    if twin is None:
        return await in_thread(partial(stage.process, hits, context))
    return await twin(hits, context)
