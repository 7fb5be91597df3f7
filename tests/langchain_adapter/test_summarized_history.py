"""`SummarizedChatHistory`: last turns word for word, notes on the rest, made in the background."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory

from easyrag_core import InvalidParameterError, MemoryState
from langchain_easyrag import SummarizedChatHistory
from tests.langchain_adapter.query_samples import AllRuns, ScriptedModel
from tests.langchain_adapter.samples import WAIT

NOTES = json.dumps({"topics": ["question 0"], "constraints": ["short"], "open_points": []})


class ListHistory(BaseChatMessageHistory):
    """Keeps messages in a list."""

    def __init__(self):
        self.messages = []

    def add_messages(self, messages):
        self.messages = [*self.messages, *messages]

    def clear(self):
        self.messages = []


def turn(number):
    return [HumanMessage(f"question {number}"), AIMessage(f"answer {number}")]


def texts(history):
    return [message.content for message in history.messages]


def test_notes_take_the_place_of_the_older_half():
    """After a full window: one call, notes in front, the newer half as it was said."""
    kept, model = ListHistory(), ScriptedModel(NOTES)
    history = SummarizedChatHistory(kept, model, window=4)
    history.add_messages(turn(0))
    assert (texts(history), model.calls) == (["question 0", "answer 0"], 0)
    history.add_messages(turn(1))
    history.join(WAIT)
    first, *rest = history.messages
    assert first.type == "system"
    assert '"topics": ["question 0"]' in first.content
    assert [message.content for message in rest] == ["question 1", "answer 1"]
    assert model.calls == 1
    assert len(kept.messages) == 4


async def test_the_async_form_takes_notes_in_a_task():
    """The model's own async form is awaited, and `aget_messages` shows the same."""
    model = ScriptedModel(NOTES)
    history = SummarizedChatHistory(ListHistory(), model, window=4)
    await history.aadd_messages([*turn(0), *turn(1)])
    await history.ajoin()
    assert model.loops == [True]
    assert await history.aget_messages() == history.messages
    assert history.messages[0].type == "system"
    await history.aclear()
    assert await history.aget_messages() == []


def test_nobody_waits_for_the_notes():
    """While the model thinks, messages are there as they are, and no second call is made."""
    thinking, release = threading.Event(), threading.Event()
    calls = []

    def think(_):
        calls.append(1)
        thinking.set()
        assert release.wait(WAIT)
        return NOTES

    history = SummarizedChatHistory(ListHistory(), RunnableLambda(think), window=4)
    history.add_messages([*turn(0), *turn(1)])
    assert thinking.wait(WAIT)
    history.add_messages(turn(2))
    assert len(texts(history)) == 6
    assert calls == [1]
    release.set()
    history.join(WAIT)
    assert texts(history)[1:] == ["question 1", "answer 1", "question 2", "answer 2"]


@pytest.mark.parametrize("reply", [ConnectionError("gone"), "no notes today"])
def test_a_failed_summary_is_tried_again(reply):
    """An event, all messages still there, and the next message asks again."""
    heard = []
    model = ScriptedModel(reply, NOTES)
    history = SummarizedChatHistory(ListHistory(), model, window=4, on_event=heard.append)
    history.add_messages([*turn(0), *turn(1)])
    history.join(WAIT)
    assert [event.name for event in heard] == ["easyrag.query.memory"]
    assert len(texts(history)) == 4
    history.add_messages([ToolMessage("{}", tool_call_id="1")])
    history.join(WAIT)
    assert model.calls == 2
    assert history.messages[0].type == "system"


def test_the_state_can_be_kept_and_used_again():
    """Plain JSON; with it the notes are there without a call."""
    kept, model = ListHistory(), ScriptedModel(NOTES)
    history = SummarizedChatHistory(kept, model, window=4)
    history.add_messages([*turn(0), *turn(1)])
    history.join(WAIT)
    state = MemoryState.from_dict(json.loads(json.dumps(history.state.to_dict())))
    again = SummarizedChatHistory(kept, model, window=4, state=state)
    assert texts(again) == texts(history)
    assert model.calls == 1


def test_notes_of_a_cleared_conversation_are_let_go():
    """A summary that comes after `clear` does not bring the old topics back."""
    thinking, release = threading.Event(), threading.Event()

    def think(_):
        thinking.set()
        assert release.wait(WAIT)
        return NOTES

    history = SummarizedChatHistory(ListHistory(), RunnableLambda(think), window=4)
    history.add_messages([*turn(0), *turn(1)])
    assert thinking.wait(WAIT)
    history.clear()
    release.set()
    history.join(WAIT)
    history.add_messages(turn(7))
    assert texts(history) == ["question 7", "answer 7"]


def test_notes_are_no_part_of_the_callers_run():
    """The background call has neither the caller's callbacks nor its parent run."""
    runs = AllRuns()
    history = SummarizedChatHistory(ListHistory(), ScriptedModel(NOTES), window=4)

    def talk(_):
        history.add_messages([*turn(0), *turn(1)])
        history.join(WAIT)

    RunnableLambda(talk).invoke("x", {"callbacks": [runs]})
    assert runs.named("model") == []


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainDeprecationWarning")
@pytest.mark.parametrize("way", ["sync", "async"])
def test_in_a_runnable_with_message_history(way):
    """The chain is given notes and last turns in the place of the whole conversation."""
    history = SummarizedChatHistory(ListHistory(), ScriptedModel(NOTES), window=4)
    seen = []

    def answer(given):
        seen.append([message.type for message in given["chat_history"]])
        return AIMessage(f"answer {len(seen)}")

    talk = RunnableWithMessageHistory(
        RunnableLambda(answer),
        lambda: history,
        input_messages_key="input",
        history_messages_key="chat_history",
        history_factory_config=[],
    )

    async def awaited():
        for number in range(3):
            await talk.ainvoke({"input": f"question {number}"})
            await history.ajoin()

    if way == "async":
        asyncio.run(awaited())
    else:
        for number in range(3):
            talk.invoke({"input": f"question {number}"})
            history.join(WAIT)
    assert seen == [[], ["human", "ai"], ["system", "human", "ai"]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"history": []},
        {"llm": "gpt"},
        {"window": 1},
        {"state": {}},
        {"structured": "xml"},
        {"prompt": "x"},
    ],
)
def test_bad_settings_are_refused(wrong):
    """At construction."""
    with pytest.raises(InvalidParameterError):
        SummarizedChatHistory(**{"history": ListHistory(), "llm": ScriptedModel(NOTES), **wrong})
