"""One request of the pipeline as OpenTelemetry spans, through the real SDK to memory."""

from __future__ import annotations

import json

import pytest
from langchain_core.runnables import RunnableLambda
from llama_index.core.base.base_retriever import BaseRetriever
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import langchain_easyrag as lc
import llamaindex_easyrag as li
from easyrag_core import Dedupe, OpenTelemetryHandler
from tests.parity.frameworks import MODES
from tests.parity.plugs import PASSAGES, bm25s

modes = pytest.mark.parametrize("ask", MODES.values(), ids=MODES)
ASKED = "How are rankings fused?"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracer(exporter):
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("test")


def down(_query):
    raise ConnectionError("gone")


class Down(BaseRetriever):
    """A store that cannot be reached."""

    def _retrieve(self, query_bundle):
        down(query_bundle)


def lines(tracer):
    """A line that goes well and one with a failing channel, each in both frameworks."""
    by_document, by_node = bm25s(PASSAGES, 4)
    watched = {"on_event": OpenTelemetryHandler(tracer)}
    return [
        (
            lc.PipelineRetriever(
                retrievers={"words": by_document, "meaning": other},
                postprocessors=[Dedupe()],
                recall_k=4,
                k=2,
                **watched,
            ),
            li.PipelineRetriever(
                {"words": by_node, "meaning": llama_other},
                node_postprocessors=[Dedupe()],
                recall_k=4,
                similarity_top_k=2,
                **watched,
            ),
        )
        for other, llama_other in ((by_document, by_node), (RunnableLambda(down), Down()))
    ]


def spans_of(ask, line, method, tracer, exporter):
    """What one request reports, and the span that is around it."""
    exporter.clear()
    with tracer.start_as_current_span("answer"):
        ask(line, method, ASKED)
    *below, answer = exporter.get_finished_spans()
    assert answer.name == "answer"
    return below, answer


@modes
@pytest.mark.parametrize("number", [0, 1], ids=["langchain", "llamaindex"])
def test_a_request_is_one_trace_below_the_callers_span(ask, number, tracer, exporter):
    """Channels, fusion, postprocessors and the whole: siblings, each within the caller's time."""
    line = lines(tracer)[0][number]
    below, answer = spans_of(ask, line, ("invoke", "retrieve")[number], tracer, exporter)
    assert [(s.name, s.attributes["openinference.span.kind"]) for s in below] == [
        ("easyrag.channel", "RETRIEVER"),
        ("easyrag.channel", "RETRIEVER"),
        ("easyrag.fusion", "CHAIN"),
        ("easyrag.postprocessor", "RERANKER"),
        ("easyrag.postprocessor", "RERANKER"),
        ("easyrag.retrieval", "RETRIEVER"),
    ]
    assert {s.parent.span_id for s in below} == {answer.context.span_id}
    assert {s.context.trace_id for s in below} == {answer.context.trace_id}
    assert {s.status.status_code for s in below} == {StatusCode.UNSET}
    assert [s.attributes.get("easyrag.channel.name") for s in below[:2]] == ["words", "meaning"]
    whole = below[-1]
    assert whole.attributes["input.value"] == ASKED
    assert whole.attributes["gen_ai.request.top_k"] == 2
    told = json.loads(whole.attributes["gen_ai.retrieval.documents"])
    # "fuse" and "twin" say the same: dedupe keeps one of them.
    assert told[0]["id"] == whole.attributes["retrieval.documents.0.document.id"] == "fuse"
    assert "twin" not in [one["id"] for one in told]
    for span in below:
        assert span.start_time <= span.end_time
        assert whole.start_time <= span.end_time <= whole.end_time or span is whole


@modes
def test_both_frameworks_report_the_same_spans(ask, tracer, exporter):
    """Name for name and attribute for attribute, whether all goes well or a channel fails."""
    for pair in lines(tracer):
        first, second = (
            [
                (s.name, s.status.status_code, s.status.description, dict(s.attributes))
                for s in spans_of(ask, line, method, tracer, exporter)[0]
            ]
            for line, method in zip(pair, ("invoke", "retrieve"), strict=True)
        )
        assert first == second


@modes
@pytest.mark.parametrize("number", [0, 1], ids=["langchain", "llamaindex"])
def test_a_failing_channel_is_a_failed_span(ask, number, tracer, exporter):
    """It alone has the status of an error, with the kind of the error and its words."""
    line = lines(tracer)[1][number]
    below, _ = spans_of(ask, line, ("invoke", "retrieve")[number], tracer, exporter)
    (failed,) = [s for s in below if s.status.status_code is StatusCode.ERROR]
    assert failed.attributes["easyrag.channel.name"] == "meaning"
    assert failed.attributes["error.type"] == "ConnectionError"
    assert failed.status.description == "gone"
