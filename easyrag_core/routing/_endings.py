"""Why a blank answer ended, as the provider tells it: by a filter, by its length, or for nothing.

Providers agree on neither the place nor the word. The places are those of LangChain's and
LlamaIndex's answers and of the raw ones of OpenAI, Anthropic, Gemini, Bedrock and Ollama.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

__all__ = ["BlankAnswerError", "ending_of"]

_REASONS: Final = (
    "finish_reason",
    "finishReason",
    "stop_reason",
    "stopReason",
    "done_reason",
    "block_reason",
    "blockReason",
)
# Elsewhere this word may speak of anything.
_INCOMPLETE: Final = "incomplete_details"
_PLACES: Final = (
    "response_metadata",
    "generation_info",
    "raw",
    "choices",
    "candidates",
    "prompt_feedback",
    "promptFeedback",
    _INCOMPLETE,
)
_DEEPEST: Final = 3
_WORDS: Final = (
    (
        "content_filter",
        re.compile(
            r"(?<!un)(?<!no_)filter|safety|refusal|guardrail|prohibit|blocklist|blocked(?!_reason)|moderat|sensitive|toxic|recitation|spii"
        ),
    ),
    ("length", re.compile("length|max_?(output_|completion_)?tokens|token_limit|context_window")),
)


class BlankAnswerError(ValueError):
    """A model answered, and said nothing: neither text nor a tool call.

    Attributes:
        answers: What it gave all the same: an answer, or the chunks of a stream.
        code: Why it ended: "content_filter", "length", or `None`.
    """

    def __init__(
        self, name: str, answers: Sequence[object] = (), *, code: str | None = None
    ) -> None:
        """Say whose answer was blank, and why if that is told."""
        self.answers: tuple[object, ...] = tuple(answers)
        self.code: str | None = code or ending_of(self.answers)
        why = {"content_filter": ": a filter ended it", "length": ": its length limit ended it"}
        super().__init__(f"{name!r} gave a blank answer{why.get(self.code or '', '')}")
        self._name = name

    def __reduce__(self) -> tuple[object, tuple[str, str | None]]:
        """Pickle without the answers, so that worker processes can report it."""
        return _rebuilt, (self._name, self.code)


def _rebuilt(name: str, code: str | None) -> BlankAnswerError:
    return BlankAnswerError(name, code=code)


def ending_of(answers: Sequence[object]) -> str | None:
    """Read why an answer ended.

    Args:
        answers: An answer, or the chunks of one.

    Returns:
        "content_filter", "length", or `None` for every other end and where nothing is told.

    >>> ending_of([{"choices": [{"finish_reason": "SAFETY"}]}]), ending_of(["text"])
    ('content_filter', None)
    """
    told = [reason for answer in answers for reason in _reasons(answer, _REASONS, _DEEPEST)]
    return next((code for code, words in _WORDS if any(map(words.search, told))), None)


def _reasons(place: object, names: Sequence[str], depth: int) -> Iterator[str]:
    """All reasons at a place and within, in lower case."""
    if isinstance(place, list | tuple):
        for each in place:
            yield from _reasons(each, names, depth)
        return
    for name in names:
        reason = _field(place, name)
        word = reason if isinstance(reason, str) else getattr(reason, "name", None)
        if isinstance(word, str):
            yield word.lower()
    for name in _PLACES if depth else ():
        within = _field(place, name)
        if within is not None:
            further = (*_REASONS, "reason") if name == _INCOMPLETE else _REASONS
            yield from _reasons(within, further, depth - 1)


def _field(place: object, name: str) -> object:
    if isinstance(place, Mapping):
        return place.get(name)
    try:
        return getattr(place, name, None)
    except Exception:  # noqa: BLE001 - an answer's own property that fails says nothing
        return None
