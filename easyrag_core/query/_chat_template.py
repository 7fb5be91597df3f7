"""What a chat template leaves in a model's text: turns, their headers, control tokens."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["answer_turn", "begins_line"]

_ROLE: Final = r"(?P<{}>assistant|model|user|human|system|tool|developer|ipython)"
_HEADER: Final = re.compile(
    rf"<[|｜]im_start[|｜]>\s{{0,9}}{_ROLE.format('a')}?[ \t:：]*+\n?"
    rf"|<[|｜]start_header_id[|｜]>\s{{0,9}}{_ROLE.format('b')}\s{{0,9}}<[|｜]end_header_id[|｜]>"
    rf"|<start_of_turn>\s{{0,9}}{_ROLE.format('c')}?[ \t]*+\n?"
    rf"|<[|｜]{_ROLE.format('d')}[|｜]>"
    r"|(?P<asked>\[INST\])|(?P<answered>\[/INST\])"
    r"|(?P<end><[|｜](?:im_end|eot_id|eom_id|endoftext|end_of_text|end|end[▁_]of[▁_]sentence)[|｜]>"
    r"|</s>|<end_of_turn>|<eos>)",
    re.IGNORECASE,
)
_TOKEN: Final = re.compile(r"<[|｜][\w▁.-]{1,40}[|｜]>|</?s>|<(?:bos|eos|pad|unk)>")
_END: Final = re.compile(r"\s*+\Z")
# The header of a turn whose control tokens the tokenizer has left out.
_BARE_ROLE: Final = re.compile(r"\s*+(?:assistant|model|助手)[ \t]*+\n+", re.IGNORECASE)


def answer_turn(text: str, said: str = "") -> str:
    r"""Return the model's own turn of a text in the marks of a chat template.

    Args:
        text: What the model gave: a turn, an echo of the prompt before it, more turns behind it.
        said: What the user said: a token from there inside a line is asked about.

    Returns:
        The first turn of the assistant that says something, without control tokens.

    >>> answer_turn("<|im_start|>assistant\nRedis price<|im_end|>")
    'Redis price'
    >>> answer_turn("[INST] Its price? [/INST] Redis price")
    ' Redis price'
    """
    known = said.casefold()
    role, last, answer = "assistant", 0, None
    headers = [header for header in _HEADER.finditer(text) if not _is_asked(header, known)]
    for header in [*headers, None]:
        turn = _without(_TOKEN, text[last : header.start() if header else len(text)], known)
        if answer is None and role == "assistant" and turn.strip():
            answer = turn
        if header is not None:
            role, last = _role(header), header.end()
    if answer is None:
        answer = _without(_TOKEN, _without(_HEADER, text, known), known)
    bare = _BARE_ROLE.match(answer)
    return answer[bare.end() :] if bare else answer


def begins_line(text: str, at: int) -> bool:
    r"""Say whether only blanks stand before a place in its line.

    >>> begins_line("a\n b", 3), begins_line("a b", 2)
    (True, False)
    """
    return not text[text.rfind("\n", 0, at) + 1 : at].strip()


def _is_asked(mark: re.Match[str], known: str) -> bool:
    """Whether the user's own words hold a mark, which neither begins a line nor ends the text."""
    text, token = mark.string, mark[0].strip()
    if token.casefold() not in known or begins_line(text, mark.start()):
        return False
    return _END.match(text, mark.end()) is None


def _without(marks: re.Pattern[str], text: str, known: str) -> str:
    return marks.sub(lambda mark: mark[0] if _is_asked(mark, known) else "", text)


def _role(header: re.Match[str]) -> str:
    if header["answered"]:
        return "assistant"
    named = next((header[name] for name in "abcd" if header[name]), None)
    if named is None:
        return "user" if header["asked"] or header["end"] else "assistant"
    return "assistant" if named.casefold() in ("assistant", "model") else "user"
