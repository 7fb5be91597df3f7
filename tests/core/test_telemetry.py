"""Events as spans, through the real OpenTelemetry SDK to memory."""

from __future__ import annotations

import builtins
import threading

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from easyrag_core import Event, MissingDependencyError, OpenTelemetryHandler, emit, run_channels


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracer(exporter):
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("test")


def test_an_event_becomes_a_span_with_its_own_times_and_attributes(tracer, exporter):
    """Name, attributes of every type that OpenTelemetry takes, beginning and end to the µs."""
    attributes = {
        "openinference.span.kind": "RETRIEVER",
        "gen_ai.operation.name": "retrieval",
        "input.value": "什么是 RAG?",
        "easyrag.channel.count": 20,
        "easyrag.channel.weight": 0.5,
        "easyrag.channel.late": False,
        "easyrag.channel.ids": ["a", "b"],
    }
    OpenTelemetryHandler(tracer)(Event("easyrag.channel", attributes, 0.25, ended_at=1000.5))
    (span,) = exporter.get_finished_spans()
    assert span.name == "easyrag.channel"
    assert dict(span.attributes) == {**attributes, "easyrag.channel.ids": ("a", "b")}
    assert (span.start_time, span.end_time) == (1_000_250_000_000, 1_000_500_000_000)
    assert span.status.status_code is trace.StatusCode.UNSET
    assert span.parent is None


def test_what_failed_is_a_failed_span(tracer, exporter):
    """OpenTelemetry's own name for an error makes the status."""
    OpenTelemetryHandler(tracer)(Event("easyrag.channel", {"error.type": "TimeoutError"}))
    (span,) = exporter.get_finished_spans()
    assert span.status.status_code is trace.StatusCode.ERROR
    assert span.status.description == "TimeoutError"
    assert span.start_time == span.end_time


def test_what_no_exporter_can_send_is_replaced(tracer, exporter):
    """A lone surrogate would keep the whole batch of spans from being sent."""
    told = {"input.value": "q\ud800?", "ids": ["a", "\udfff"], "error.type": "E\ud800"}
    OpenTelemetryHandler(tracer)(Event("easyrag.channel", told))
    (span,) = exporter.get_finished_spans()
    assert dict(span.attributes) == {"input.value": "q??", "ids": ("a", "?"), "error.type": "E?"}
    assert span.status.description == "E?"


def test_channels_in_threads_stand_below_the_callers_span(tracer, exporter):
    """One trace: what parallel channels report is a child of the span around the call."""
    handler = OpenTelemetryHandler(tracer)
    together = threading.Barrier(3, timeout=10)

    def channel(name: str) -> None:
        together.wait()
        emit(handler, "easyrag.channel", {"easyrag.channel.name": name}, seconds=0.01)

    with tracer.start_as_current_span("answer") as around:
        run_channels({name: lambda name=name: channel(name) for name in ("a", "b", "c")})
    *channels, answer = exporter.get_finished_spans()
    assert answer.name == "answer"
    assert sorted(span.attributes["easyrag.channel.name"] for span in channels) == ["a", "b", "c"]
    assert {span.parent.span_id for span in channels} == {around.get_span_context().span_id}
    assert {span.context.trace_id for span in channels} == {answer.context.trace_id}


def test_a_parent_may_be_given(tracer, exporter):
    """A thread that does not carry the context still reports into the same trace."""
    with tracer.start_as_current_span("answer") as around:
        handler = OpenTelemetryHandler(tracer, context=trace.set_span_in_context(around))
    thread = threading.Thread(target=handler, args=(Event("easyrag.late"),))
    thread.start()
    thread.join()
    late = exporter.get_finished_spans()[-1]
    assert late.parent.span_id == around.get_span_context().span_id


def test_without_a_tracer_it_takes_the_global_one():
    """With no provider set up, spans go nowhere and nothing fails."""
    assert OpenTelemetryHandler()(Event("easyrag.test")) is None


def test_without_opentelemetry_it_says_what_to_install(monkeypatch):
    """The pip line is in the message; the core itself imports all the same."""
    real = builtins.__import__

    def refuses(name, *arguments, **settings):
        if name.startswith("opentelemetry"):
            raise ImportError(name)
        return real(name, *arguments, **settings)

    monkeypatch.setattr(builtins, "__import__", refuses)
    with pytest.raises(MissingDependencyError, match=r"easyrag-core\[otel\]"):
        OpenTelemetryHandler()
