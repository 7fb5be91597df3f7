"""What a router reads in LangChain's messages and models."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessageChunk

from easyrag_core import InvalidParameterError, ModelCandidate
from langchain_easyrag import RoutedChatModel
from langchain_easyrag.chat_models._reading import READER

TOOL: Any = {"type": "function", "function": {"name": "weather", "parameters": {}}}
CALL: Any = {"name": "weather", "args": '{"ci', "id": "1", "index": 0}
CONTINUABLE = {
    "text": AIMessageChunk("Hel"),
    "nothing": AIMessageChunk(""),
    "a block of text": AIMessageChunk([{"type": "text", "text": "Hel", "index": 0}]),
    "a thought": AIMessageChunk([{"type": "reasoning", "reasoning": "Hm"}]),
    "a signed thought": AIMessageChunk([{"type": "redacted_thinking", "data": "x"}]),
    "a thought beside": AIMessageChunk("", additional_kwargs={"reasoning_content": "Hm"}),
}
FINAL = {
    "a call": AIMessageChunk("", tool_call_chunks=[CALL]),
    "a call with text": AIMessageChunk("Let me see", tool_call_chunks=[CALL]),
    "a block of a call": AIMessageChunk(["Let me see", {"type": "tool_use", "id": "1"}]),
    "an old call": AIMessageChunk("Let me see", additional_kwargs={"function_call": {"name": "w"}}),
    "a picture": AIMessageChunk(["Look", {"type": "image_url", "image_url": "x"}]),
    "a refusal": AIMessageChunk("", additional_kwargs={"refusal": "No"}),
    "a block of a refusal": AIMessageChunk([{"type": "refusal", "refusal": "No"}]),
}


@pytest.mark.parametrize("chunk", CONTINUABLE.values(), ids=CONTINUABLE)
def test_text_and_thoughts_can_be_continued(chunk):
    """The text is sent to the next model, and nobody needs another's thoughts."""
    assert READER.leaves_continuable(chunk)


@pytest.mark.parametrize("chunk", FINAL.values(), ids=FINAL)
def test_what_is_more_than_text_cannot_be_continued(chunk):
    """Also where there is text beside it."""
    assert not READER.leaves_continuable(chunk)


class Able(FakeListChatModel):
    """Takes tools, and forgets them."""

    def bind_tools(self, tools, **kwargs):
        return self.bind()


def test_a_routed_model_within_another_has_what_its_candidates_have():
    """One without tools is left out where there are tools, and breaks nothing."""
    plain = FakeListChatModel(responses=["plain"])
    inner, able = RoutedChatModel([plain]), Able(responses=["able"])
    outer = RoutedChatModel([inner, able])
    first, second = outer.router.candidates
    assert "tools" not in first.capabilities
    assert "structured_output" not in first.capabilities
    assert "tools" in second.capabilities
    assert outer.bind_tools([TOOL]).invoke("Hi").text == "able"
    mixed = RoutedChatModel([RoutedChatModel([plain, able])])
    assert "tools" in mixed.router.candidates[0].capabilities
    assert mixed.bind_tools([TOOL]).invoke("Hi").text == "able"
    with pytest.raises(InvalidParameterError, match="none of them has 'tools'"):
        RoutedChatModel([inner]).bind_tools([TOOL])
    told = RoutedChatModel(candidates=[ModelCandidate("a", plain, capabilities={"mine"})])
    assert RoutedChatModel([told]).router.capabilities == {"mine"}
