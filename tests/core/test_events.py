"""Events: told to who listens, never in the way."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from easyrag_core import Event, emit

if TYPE_CHECKING:
    import pytest


def test_an_event_says_when_it_began_and_ended() -> None:
    """An event is stamped where it ends; its beginning follows from how long it took."""
    before = time.time()
    heard: list[Event] = []
    emit(heard.append, "easyrag.test", {"a": 1}, seconds=2.5)
    (event,) = heard
    assert before <= event.ended_at <= time.time()
    assert event.ended_at - event.started_at == 2.5


def test_attributes_are_the_events_own() -> None:
    """What the caller does to its attributes afterwards does not reach the event."""
    heard: list[Event] = []
    attributes = {"a": 1}
    emit(heard.append, "easyrag.test", attributes)
    attributes["a"] = 2
    assert heard[0].attributes == {"a": 1}


def test_a_failing_listener_is_logged_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """The work that reports is never the listener's victim."""

    def fails(_event: Event) -> None:
        raise RuntimeError("exporter is down")

    with caplog.at_level(logging.WARNING, "easyrag_core"):
        emit(fails, "easyrag.test")
    assert "easyrag.test" in caplog.text
    assert "exporter is down" in caplog.text


def test_nobody_listens() -> None:
    """Without a listener nothing happens."""
    assert emit(None, "easyrag.test") is None
