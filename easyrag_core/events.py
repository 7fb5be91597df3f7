"""What happens inside, told as it happens: one kind of event, one way to hand it on."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = ["AttributeValue", "Event", "EventHandler", "emit"]

_logger = logging.getLogger(__name__)

AttributeValue: TypeAlias = (
    str | bool | int | float | Sequence[str] | Sequence[bool] | Sequence[int] | Sequence[float]
)
"""What OpenTelemetry takes as the value of an attribute."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, and how long it took.

    Attributes:
        name: Dotted, `easyrag.` and the place that reports.
        attributes: Named as OpenInference or OpenTelemetry's GenAI conventions name them where
            they do, `easyrag.*` elsewhere.
        seconds: How long it took; 0 for a moment.
        ended_at: When it ended, in seconds since 1970.
    """

    name: str
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict, hash=False)
    seconds: float = 0.0
    ended_at: float = field(default_factory=time.time)

    @property
    def started_at(self) -> float:
        """When it began, in seconds since 1970."""
        return self.ended_at - self.seconds


EventHandler: TypeAlias = Callable[[Event], None]
"""Takes each event where it happens: in the thread or task of the work, so it must be quick."""


def emit(
    handler: EventHandler | None,
    name: str,
    attributes: Mapping[str, AttributeValue] | None = None,
    *,
    seconds: float = 0.0,
    ended_at: float | None = None,
) -> None:
    """Hand an event to who listens. Who fails to listen is logged and stops nothing.

    Args:
        handler: Who listens; `None` is nobody, and costs nothing.
        name: The event's name.
        attributes: The event's attributes.
        seconds: How long it took; 0 for a moment.
        ended_at: When it ended, in seconds since 1970; now, if not given.

    >>> heard = []
    >>> emit(heard.append, "easyrag.channel", {"easyrag.channel.name": "bm25"}, seconds=0.5)
    >>> heard[0].name, heard[0].seconds, dict(heard[0].attributes)
    ('easyrag.channel', 0.5, {'easyrag.channel.name': 'bm25'})
    """
    if handler is None:
        return
    try:
        ended = time.time() if ended_at is None else ended_at
        handler(Event(name, dict(attributes or {}), seconds, ended))
    except Exception:
        _logger.warning("An event handler failed on %r", name, exc_info=True)
