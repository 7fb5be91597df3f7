"""What a router reads in LangChain's messages and models."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk

from langchain_easyrag.chat_models._reading import READER

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
