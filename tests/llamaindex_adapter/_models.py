"""Models that answer by script: the simplest kind that the framework has."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import CustomLLM


class ScriptedLLM(CustomLLM):
    """Says one thing, or raises it; keeps what it was asked."""

    says: Any = ""
    _asked: list[str] = PrivateAttr(default_factory=list)

    @property
    def asked(self) -> list[str]:
        return self._asked

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: FBT001, FBT002 - theirs
        self._asked.append(prompt)
        if isinstance(self.says, Exception):
            raise self.says
        text = self.says(prompt) if callable(self.says) else self.says
        return CompletionResponse(text=text)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002 - theirs
        yield self.complete(prompt, formatted, **kwargs)
