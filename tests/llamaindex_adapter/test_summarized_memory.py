"""`SummarizedMemory`: the last messages word for word, and notes on the rest."""

from __future__ import annotations

import asyncio
import pickle
import threading
from copy import deepcopy

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.memory import ChatMemoryBuffer, Memory

from easyrag_core import InvalidParameterError, MemoryState
from llamaindex_easyrag import QueryRewriteTransform, SummarizedMemory
from tests.llamaindex_adapter._models import ScriptedLLM

NOTES = '{"topics": ["Redis"], "constraints": ["under 10 euros"], "open_points": []}'


def talk(number):
    roles = ("user", "assistant")
    return [ChatMessage(role=roles[at % 2], content=f"said {at}") for at in range(number)]


def buffer():
    return ChatMemoryBuffer.from_defaults(llm=ScriptedLLM())


def contents(messages):
    return [message.content for message in messages]


def filled(memory, number, *, waits=False):
    """Put messages one by one, in the sync or in the async form."""

    async def put():
        for message in talk(number):
            await memory.aput(message)
            await memory.ajoin()

    if waits:
        asyncio.run(put())
        return
    for message in talk(number):
        memory.put(message)
        memory.join(10)


@pytest.mark.parametrize("waits", [False, True])
def test_the_older_half_of_a_window_becomes_notes(waits):
    """Nothing is lost, the notes stand before the last messages, the model is asked once."""
    llm = ScriptedLLM(says=NOTES)
    memory = SummarizedMemory(buffer(), llm, window=4)
    filled(memory, 5, waits=waits)
    shown = memory.get()
    assert contents(shown[1:]) == ["said 2", "said 3", "said 4"]
    assert "under 10 euros" in shown[0].content
    assert contents(memory.get_all()) == [f"said {at}" for at in range(5)]
    assert contents(asyncio.run(memory.aget())) == contents(shown)
    assert len(llm.asked) == 1


def test_nobody_waits_for_notes():
    """Until they are done the messages themselves are there."""
    gate = threading.Event()

    def answer(_):
        assert gate.wait(10)
        return NOTES

    memory = SummarizedMemory(buffer(), ScriptedLLM(says=answer), window=4)
    memory.put_messages(talk(4))
    assert contents(memory.get()) == ["said 0", "said 1", "said 2", "said 3"]
    gate.set()
    memory.join(10)
    assert contents(memory.get())[1:] == ["said 2", "said 3"]


@pytest.mark.parametrize("says", [RuntimeError("down"), "no idea"])
@pytest.mark.parametrize("waits", [False, True])
def test_where_notes_fail_the_next_message_tries_again(says, waits, caplog):
    """With a warning; the messages stay."""
    heard = []
    llm = ScriptedLLM(says=says)
    memory = SummarizedMemory(buffer(), llm, window=4, on_event=heard.append)
    filled(memory, 5, waits=waits)
    assert contents(memory.get()) == [f"said {at}" for at in range(5)]
    assert len(llm.asked) == 2
    assert {event.name for event in heard} == {"easyrag.query.memory"}
    assert "goes on without the model" in caplog.text


def test_the_state_is_kept_beside_the_conversation():
    """A new object goes on where the last one was; another conversation is noticed."""
    memory = SummarizedMemory(buffer(), ScriptedLLM(says=NOTES), window=4)
    filled(memory, 4)
    kept = MemoryState.from_dict(memory.state.to_dict())
    again = SummarizedMemory(memory.memory, ScriptedLLM(), window=4, state=kept)
    assert contents(again.get()) == contents(memory.get())
    again.set(talk(1))
    assert contents(again.get()) == ["said 0"]
    memory.reset()
    assert (memory.get(), memory.state) == ([], MemoryState())
    asyncio.run(again.areset())
    assert again.state == MemoryState()


def test_a_copy_has_messages_and_notes():
    """Pickled or copied deep; what is said to the copy is not said to the original."""
    memory = SummarizedMemory(buffer(), ScriptedLLM(says=NOTES), window=4)
    filled(memory, 5)
    for copied in (pickle.loads(pickle.dumps(memory)), deepcopy(memory)):
        assert contents(copied.get()) == contents(memory.get())
        copied.put_messages(talk(1))
        copied.join(10)
    assert len(memory.get_all()) == 5


def test_tool_messages_are_kept_and_not_shown():
    """Nor is a message without text."""
    memory = SummarizedMemory(buffer(), ScriptedLLM(), window=4)
    memory.put_messages([*talk(1), ChatMessage(role="tool", content="{}")])
    assert contents(memory.get()) == ["said 0"]
    assert len(memory.get_all()) == 2


def test_in_a_chat_engine_and_before_a_rewrite():
    """Wherever a memory may stand."""
    llm = ScriptedLLM(says="said by the model")
    memory = SummarizedMemory(buffer(), llm, window=8)
    SimpleChatEngine.from_defaults(llm=llm, memory=memory).chat("What is Redis?")
    assert contents(memory.get()) == ["What is Redis?", "said by the model"]
    rewriter = ScriptedLLM(says="What does Redis cost?")
    transform = QueryRewriteTransform(rewriter, memory=memory)
    assert transform.run("What does it cost?").query_str == "What does Redis cost?"


async def test_around_the_frameworks_default_memory():
    """Which keeps messages in a database."""
    memory = SummarizedMemory.from_defaults(llm=ScriptedLLM(says=NOTES), window=4)
    assert isinstance(memory.memory, Memory)
    await memory.aput_messages(talk(4))
    await memory.ajoin()
    assert contents(await memory.aget())[1:] == ["said 2", "said 3"]
    await memory.memory.sql_store._async_engine.dispose()
    assert memory.to_dict()["class_name"] == "SummarizedMemory"


@pytest.mark.parametrize(
    "settings",
    [{"memory": []}, {"llm": "gpt"}, {"window": 1}, {"state": {}}, {"prompt": "notes"}],
)
def test_misuse_is_refused(settings):
    """When it is made."""
    with pytest.raises(InvalidParameterError):
        SummarizedMemory(**({"memory": buffer(), "llm": ScriptedLLM()} | settings))
