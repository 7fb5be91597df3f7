"""Events as OpenTelemetry spans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from easyrag_core.errors import MissingDependencyError

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Tracer

    from easyrag_core.events import Event

__all__ = ["OpenTelemetryHandler"]

_NANOSECONDS: Final = 1_000_000_000
_ERROR: Final = "error.type"
"""OpenTelemetry's name for what kind of error ended an operation."""

_MESSAGE: Final = "exception.message"


class OpenTelemetryHandler:
    """Takes events and makes a span of each, with its own beginning and end.

    Hand it to whatever takes an `EventHandler`. A span's parent is the span that is current where
    the event happens: one that you open around a call holds all that the call reports, also from
    the threads and tasks of its channels, which carry the caller's context. Attributes go over as
    they are, but for lone surrogates, which no exporter can send: `?` stands for them. An event
    that carries `error.type` makes a span with the status of an error. An event that took no time
    is a span of no length.

    Events are told when they end, so one event is never the parent of another. Instances hold no
    state and may be shared by threads.

    ```python
    from opentelemetry import trace

    handler = OpenTelemetryHandler()
    with trace.get_tracer("app").start_as_current_span("answer"):
        pipeline.search("what is RAG?", on_event=handler)
    ```
    """

    def __init__(self, tracer: Tracer | None = None, *, context: Context | None = None) -> None:
        """Find the tracer.

        Args:
            tracer: Makes the spans. Default: the global provider's, named `easyrag_core`.
            context: Holds the parent of all spans. Default: whichever is current at each event.

        Raises:
            MissingDependencyError: `opentelemetry-api` is not installed.
        """
        try:
            from opentelemetry import trace  # noqa: PLC0415 - an optional package
        except ImportError:
            raise MissingDependencyError("opentelemetry-api", "otel") from None
        self._tracer = trace.get_tracer("easyrag_core") if tracer is None else tracer
        self._context = context
        self._failed = trace.StatusCode.ERROR

    def __call__(self, event: Event) -> None:
        """Make a span of an event."""
        span = self._tracer.start_span(
            event.name,
            context=self._context,
            attributes={name: _sendable(told) for name, told in event.attributes.items()},
            start_time=round(event.started_at * _NANOSECONDS),
        )
        if _ERROR in event.attributes:
            told = event.attributes.get(_MESSAGE, event.attributes[_ERROR])
            span.set_status(self._failed, _sendable(str(told)))
        span.end(end_time=round(event.ended_at * _NANOSECONDS))


def _sendable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list | tuple):
        return [_sendable(each) for each in value]
    return value
