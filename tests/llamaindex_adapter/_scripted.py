"""LLMs that answer by a script, for the tests of the routed one."""
# ruff: noqa: FBT002 - the signatures are the framework's

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback


class Scripted(CustomLLM):
    """A completion model that says its words, raises an error among them, and notes prompts."""

    name: str = "scripted"
    words: tuple[Any, ...] = ()
    context_window: int = 1000
    num_output: int = 100
    is_chat_model: bool = False
    _asked: list[tuple[str, bool]] = PrivateAttr(default_factory=list)

    @property
    def asked(self) -> list[tuple[str, bool]]:
        return self._asked

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            context_window=self.context_window,
            num_output=self.num_output,
            is_chat_model=self.is_chat_model,
            model_name=self.name,
        )

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: Any = False, **kwargs: Any) -> CompletionResponse:
        return self._answer(prompt, formatted)

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: Any = False, **kwargs: Any) -> Any:
        return self._answer(prompt, formatted)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: Any = False, **kwargs: Any) -> Any:
        return self._chunks(prompt, formatted)

    @llm_completion_callback()
    async def astream_complete(self, prompt: str, formatted: Any = False, **kwargs: Any) -> Any:
        async def chunks():
            for chunk in self._chunks(prompt, formatted):
                yield chunk

        return chunks()

    def _answer(self, prompt: str, formatted: Any) -> CompletionResponse:
        self._asked.append((prompt, formatted))
        return CompletionResponse(text="".join(map(_said, self.words)))

    def _chunks(self, prompt: str, formatted: Any) -> Any:
        self._asked.append((prompt, formatted))
        text = ""
        for word in self.words:
            text += _said(word)
            yield CompletionResponse(text=text, delta=word)


def _said(word: Any) -> str:
    if isinstance(word, Exception):
        # A new one each time: handlers write upon errors that they have been told.
        raise type(word)(*word.args)
    return word


def scripted(name: str, *words: Any, **settings: Any) -> Scripted:
    return Scripted(name=name, words=words, **settings)
