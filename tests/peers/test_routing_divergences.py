"""`with_fallbacks` and `RoutedChatModel` over the same script: where the two part, and why ours.

Each test names what LangChain's own fallbacks do today; when one of them fails, theirs moved.
"""

from __future__ import annotations

import pytest

from easyrag_core import StreamInterruptedError
from langchain_easyrag import RoutedChatModel
from tests.openai_server import (
    CUT,
    HANG,
    MALFORMED,
    OpenAIServer,
    Reply,
    Status,
    Stream,
)

pytest.importorskip("langchain_openai")

from tests.langchain_adapter.listener import Listener, total
from tests.langchain_adapter.routed import TOOL, http_clients, openai_model


@pytest.fixture
def both():
    """Makes ours and theirs over the same two servers."""
    with http_clients() as http:

        def make(bad, good, **settings):
            first, second = (openai_model(server.base_url, http) for server in (bad, good))
            ours = RoutedChatModel([first, second], **settings)
            return ours, first.with_fallbacks([second])

        yield make


def test_divergence_an_empty_first_chunk_disarms_fallbacks(both):
    """Theirs takes the role chunk for success and raises what comes after it."""
    for end in (CUT, MALFORMED):
        with OpenAIServer(Stream([end])) as bad, OpenAIServer(Reply("two")) as good:
            ours, theirs = both(bad, good)
            assert total(ours.stream("Hi")).text == "two"
            with pytest.raises(Exception, match=r"closed|Expecting"):
                list(theirs.stream("Hi"))


def test_divergence_a_blank_answer_is_a_success_to_fallbacks(both):
    """Theirs hands it on."""
    with OpenAIServer(Reply("")) as bad, OpenAIServer(Reply("two")) as good:
        ours, theirs = both(bad, good)
        assert ours.invoke("Hi").text == total(ours.stream("Hi")).text == "two"
        assert theirs.invoke("Hi").text == total(theirs.stream("Hi")).text == ""


def test_divergence_a_dead_model_is_asked_on_every_call_by_fallbacks(both):
    """Ours asks it twice, then leaves it alone."""
    with OpenAIServer(Status(500)) as bad, OpenAIServer(Reply("two")) as good:
        ours, theirs = both(bad, good)
        for model, asked in ((ours, 2), (theirs, 5)):
            bad.requests.clear()
            assert [model.invoke("Hi").text for _ in range(5)] == ["two"] * 5
            assert len(bad.requests) == asked


def test_divergence_a_bad_request_is_sent_to_everybody_by_fallbacks(both):
    """Ours raises it: it is as bad elsewhere."""
    with OpenAIServer(Status(400)) as bad, OpenAIServer(Reply("two")) as good:
        ours, theirs = both(bad, good)
        with pytest.raises(Exception, match="scripted 400"):
            ours.invoke("Hi")
        assert good.requests == []
        assert theirs.invoke("Hi").text == "two"


def test_divergence_a_cut_stream_loses_its_text_in_fallbacks(both):
    """Ours tells the text in the error, or begins anew; theirs raises the client's error."""
    with OpenAIServer(Stream(["Hel", CUT])) as bad, OpenAIServer(Reply("two")) as good:
        ours, theirs = both(bad, good)
        with pytest.raises(StreamInterruptedError) as error:
            list(ours.stream("Hi"))
        assert error.value.partial == "Hel"
        with pytest.raises(Exception, match="closed") as other:
            list(theirs.stream("Hi"))
        assert not hasattr(other.value, "partial")
        restarting, _ = both(bad, good, mid_stream="restart")
        assert total(restarting.stream("Hi")).text == "two"


def test_divergence_fallbacks_wait_for_ever(both):
    """Ours leaves a model that gives no content in time; theirs has no such setting."""
    with OpenAIServer(Stream([HANG])) as bad, OpenAIServer(Reply("two")) as good:
        ours, theirs = both(bad, good, first_token_timeout=0.15)
        assert total(ours.stream("Hi")).text == "two"
        assert "timeout" not in " ".join(type(theirs).model_fields)


def test_divergence_the_trace_is_lost_by_invoke_of_fallbacks(both):
    """Runs under theirs have no parent; ours are children of the model's run."""
    with OpenAIServer(Status(500)) as bad, OpenAIServer(Reply("two")) as good:
        ours, theirs = both(bad, good)
        told, lost = Listener(), Listener()
        ours.invoke("Hi", {"callbacks": [told]})
        theirs.invoke("Hi", {"callbacks": [lost]})
        assert [each["parent"] for each in told.starts] == [None] + [told.starts[0]["run"]] * 2
        assert [each["parent"] for each in lost.starts] == [None] * 2


def test_fallbacks_keep_tools_as_ours_does(both):
    """No divergence: this client's `bind_tools` has an annotation, on which theirs depends."""
    with OpenAIServer(Status(500)) as bad, OpenAIServer(Reply("two")) as good:
        for model in both(bad, good):
            assert model.bind_tools([TOOL]).invoke("Hi").text == "two"
