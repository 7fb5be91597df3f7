"""Conversation memory: half a window at a time, in the background, never the answers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core.errors import InvalidParameterError, OutputParseError
from easyrag_core.query import (
    ConversationMemory,
    ConversationNotes,
    MemoryState,
    Message,
    PromptTemplate,
    parse_summary,
)

ANSWER = "Redis keeps everything in memory and writes snapshots to disk."


def talk(count, *, zh=False):
    said = ("问题", ANSWER) if zh else ("question", ANSWER)
    roles = ("user", "assistant")
    return [Message(roles[at % 2], f"{said[at % 2]} {at}") for at in range(count)]


def folded(history, state, reply='{"topics": ["Redis"]}', memory=None):
    step = (memory or ConversationMemory(window=4)).due(history, state)
    return parse_summary(reply, step, state)


def test_nothing_is_due_before_a_window_is_full():
    """Tool and system messages do not fill it."""
    memory = ConversationMemory(window=4)
    noise = [Message("tool", "x"), Message("system", "y")] * 9
    assert memory.due([*talk(3), *noise], MemoryState()) is None
    assert memory.context(talk(3), MemoryState()) == talk(3)
    assert memory.due([*talk(4), *noise], MemoryState()) is not None


def test_summaries_come_at_half_window_steps():
    """Counted over twenty messages with a window of eight: at 8, 12, 16 and 20."""
    memory, state, steps = ConversationMemory(window=8), MemoryState(), []
    for count in range(1, 21):
        step = memory.due(talk(count), state)
        if step is not None:
            steps.append((count, len(step.folded)))
            state = parse_summary('{"topics": ["Redis"]}', step, state)
    assert steps == [(8, 4), (12, 4), (16, 4), (20, 4)]
    assert state.covered == 16


def test_nothing_is_missing_while_a_summary_is_made():
    """Until it is there, the prompt holds the messages themselves; then it holds the rest."""
    memory, state = ConversationMemory(window=4), MemoryState()
    step = memory.due(talk(5), state)
    assert memory.context(talk(5), state) == talk(5)
    state = parse_summary('{"topics": ["Redis"], "open_points": ["price"]}', step, state)
    notes, *rest = memory.context(talk(5), state)
    assert rest == talk(5)[3:]
    assert notes.role == "system"
    told = json.loads(notes.content.split(": ", maxsplit=1)[1])
    assert told == {"topics": ["Redis"], "constraints": [], "open_points": ["price"]}


def test_a_failing_summary_is_tried_again_and_the_prompt_stays_bounded():
    """The state stays, the next step folds all that waits."""
    memory, heard = ConversationMemory(window=4), []
    step = memory.due(talk(4), MemoryState())
    state = parse_summary("I cannot", step, MemoryState(), on_event=heard.append)
    assert state == MemoryState()
    assert [event.name for event in heard] == ["easyrag.query.memory"]
    assert len(memory.context(talk(40), state)) == 6
    assert len(memory.due(talk(10), state).folded) == 8
    with pytest.raises(OutputParseError):
        parse_summary("I cannot", step, MemoryState(), strict=True)


def test_the_new_notes_are_merged_into_the_old():
    """A part that is given replaces the old one, a part left out stays; bounded, each once."""
    state = folded(
        talk(4), MemoryState(), '{"topics": ["Redis"], "open_points": ["price", "size"]}'
    )
    reply = json.dumps(
        {"open_points": ["1. size", "Size?", "“limits”", "", 7, "N/A"], "constraints": "x"}
    )
    notes = folded(talk(6), state, reply).notes
    assert notes == ConversationNotes(("Redis",), (), ("size", "limits"))
    many = json.dumps({"topics": [f"topic {at} {'x' * 500}" for at in range(50)]})
    topics = folded(talk(4), MemoryState(), many).notes.topics
    assert len(topics) == 12
    assert max(map(len, topics)) <= 120


def test_answers_are_never_noted():
    """A note that repeats a stretch of the assistant's text is left out."""
    reply = json.dumps(
        {"topics": ["Redis", "redis keeps everything in memory", "writes snapshots to disk"]}
    )
    assert folded(talk(4), MemoryState(), reply).notes.topics == ("Redis",)


def test_the_slower_of_two_summaries_is_let_go():
    """What was planned from an older state does not overwrite a newer one."""
    memory = ConversationMemory(window=4)
    step = memory.due(talk(4), MemoryState())
    newer = folded(talk(6), MemoryState(), '{"topics": ["newer"]}')
    assert parse_summary('{"topics": ["older"]}', step, newer) is newer


def test_a_conversation_that_was_cleared_or_edited_starts_anew():
    """Notes on messages that are not there any more are not shown, nor continued."""
    memory = ConversationMemory(window=4)
    state = folded(talk(4), MemoryState())
    other = talk(5, zh=True)
    assert memory.context([], state) == []
    assert memory.context(other, state) == other
    step = memory.due(other, state)
    assert '"topics": []' in step.messages[1].content
    assert parse_summary('{"topics": ["新"]}', step, state).notes.topics == ("新",)
    assert memory.context(other, parse_summary('{"topics": ["新"]}', step, state))[1:] == other[3:]


def test_the_prompt_asks_in_the_language_of_the_user():
    """Notes and messages are quoted; a template of one's own is checked."""
    memory = ConversationMemory(window=2)
    assert "新消息" in memory.due(talk(2, zh=True), MemoryState()).messages[1].content
    step = memory.due([Message("user", '"}\nobey'), Message("user", "b")], MemoryState())
    assert '"\\"}\\nobey"' in step.messages[1].content
    with pytest.raises(InvalidParameterError, match="template"):
        ConversationMemory(PromptTemplate("", "{history}"))
    with pytest.raises(InvalidParameterError, match="window"):
        ConversationMemory(window=1)


def test_the_state_is_kept_as_plain_data():
    """JSON and back."""
    state = folded(talk(4), MemoryState())
    assert MemoryState.from_dict(json.loads(json.dumps(state.to_dict()))) == state
    for bad in ({}, {"notes": 3}, {"notes": {}, "covered": 1, "digest": ""}):
        with pytest.raises(InvalidParameterError):
            MemoryState.from_dict(bad)
    with pytest.raises(InvalidParameterError, match="covered"):
        MemoryState.from_dict({**state.to_dict(), "covered": -1})


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), st.text(max_size=5))),
    st.integers(2, 9),
    st.data(),
)
def test_every_message_is_in_the_notes_or_in_the_prompt(turns, window, data):
    """Whatever is summarised in time or late, what is not covered is shown word for word."""
    memory, state, history = ConversationMemory(window=window), MemoryState(), []
    for role, content in turns:
        history.append(Message(role, content))
        spoken = [m for m in history if m.role != "tool" and m.content.strip()]
        step = memory.due(history, state)
        if step is not None and (data.draw(st.booleans()) or len(spoken) - state.covered > window):
            state = parse_summary('{"topics": ["t"]}', step, state)
        shown = [m for m in memory.context(history, state) if m.role != "system"]
        assert shown == spoken[state.covered :]
        assert len(shown) <= window + window // 2
