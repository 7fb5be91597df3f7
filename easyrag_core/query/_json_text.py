"""JSON as models write it: with comments, full-width signs, bare keys, or cut off."""

from __future__ import annotations

import json
import re
from typing import Any, Final

__all__ = ["holds_json", "json_start", "repaired_json", "whole_json"]

_OPENS: Final = (
    r"(?:[\[［]\s*+[\"'“”‘{｛\[]"
    r"|[{｛]\s*+(?:\\?[\"'“”‘}｝]|//|/\*|[^\W\d]\w{0,40}\s{0,9}[:：](?!:)))"
)
_OPENING: Final = re.compile(_OPENS)
# Where a label or a line of prose may end.
_START: Final = re.compile(rf"(?:\A\s*+|[\n:：][^\S\n]*+)(?={_OPENS})")
_NAME: Final = r"\\?[\"'“”‘][^\"'“”’\n]{1,60}\\?[\"'“”’]\s{0,9}[:：]"
# A key in an object, or in front of a quoted text whose brackets are lost.
_KEY: Final = re.compile(rf"[{{｛]\s*+{_NAME}|\A{_NAME}(?=\s{{0,9}}[\"“])")

_COMMENT: Final = re.compile(
    r"(\"(?:[^\"\\\n]|\\.){0,5000}\")|//[^\n]{0,500}|/\*.{0,500}?\*/", re.DOTALL
)
_FULL_QUOTED: Final = re.compile(
    r"(?<=[{\[,:，：｛［\s])[“”]([^“”\n]{0,2000})[“”](?=\s*+[,:\]}，：｝］])"
)
_SINGLE_QUOTED: Final = re.compile(
    r"(?<=[{\[,:\s])'((?:[^'\\\n]|\\.|'(?!\s*[,:\]}])){0,400})'(?=\s*[,:\]}])"
)
_BARE_KEY: Final = re.compile(r"([{,]\s*+)([^\W\d]\w{0,40})(?=\s{0,9}:\s{0,9}[\"\[{\d])")
_TRAILING_COMMA: Final = re.compile(r",(\s*[}\]])")
# Full-width signs between values; inside a text they are its own.
_FULL_SIGN: Final = re.compile(
    r"[｛［](?=\s*+[\"{\[｛［])|(?<=[\"\]}｝］\d])\s{0,9}[｝］]|(?<=\")\s{0,9}：(?=\s*+[\"\[{｛［\d])"
    r"|(?<=[\"\]}｝］\d])\s{0,9}，(?=\s*+[\"\[{｛［])"
)
_HALF_WIDTH: Final = str.maketrans("｛｝［］：，", "{}[]:,")
_TOKEN: Final = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|[\[\]{}\"]")
_CLOSERS: Final = {"{": "}", "[": "]"}
_MOST_ENDS: Final = 5
_DEEPEST: Final = 20
_LONGEST: Final = 100_000


def json_start(text: str) -> int | None:
    """Return where JSON begins a text, a line of it, or follows a colon.

    >>> json_start('Sure: {"a": 1}'), json_start("What does {x} mean?"), json_start("[ ] a")
    (6, None, None)
    """
    found = _START.search(text)
    return found.end() if found else None


def holds_json(text: str, said: str = "") -> bool:
    """Say whether a text begins with JSON, or holds an object, that was not said before.

    Args:
        text: What would be searched.
        said: What question and history hold.

    Returns:
        Whether brackets and keys would be searched that nobody wrote.

    >>> holds_json('{"answer": "Redis"}'), holds_json("Redis {name} syntax")
    (True, False)
    >>> holds_json('How to sort {"a": 1} by key', 'How to sort {"a": 1}?')
    False
    """
    known = "".join(said.split())
    opening = _OPENING.match(text)
    found = [opening[0]] if opening else []
    found += [key[0] for key in _KEY.finditer(text)]
    return any("".join(piece.split()) not in known for piece in found)


def repaired_json(text: str) -> str:
    """Return a text whose JSON is as the standard wants it.

    Comments go; full-width signs, single quotes and bare keys are replaced, a comma too many too.

    >>> repaired_json("{query: 'a', // note")
    '{"query": "a", '
    >>> repaired_json("｛“改写”：“你好”｝")
    '{"改写":"你好"}'
    """
    text = _SINGLE_QUOTED.sub(lambda found: json.dumps(found[1].replace("\\'", "'")), text)
    text = _FULL_QUOTED.sub(lambda found: json.dumps(found[1], ensure_ascii=False), text)
    text = _COMMENT.sub(lambda found: found[1] or "", text)
    text = _FULL_SIGN.sub(lambda found: found[0].translate(_HALF_WIDTH), text)
    return _TRAILING_COMMA.sub(r"\1", _BARE_KEY.sub(r'\1"\2"', text))


def whole_json(text: str) -> Any:
    """Return the JSON value that a text begins with, as far as it was written.

    >>> whole_json('{"queries": ["a", "b"]} Enjoy'), whole_json('{"queries": ["a", "b')
    ({'queries': ['a', 'b']}, {'queries': ['a']})
    >>> whole_json("no") is None
    True
    """
    text = text[:_LONGEST]
    repaired = repaired_json(text)
    for candidate in (text, repaired, *_closed(repaired)):
        try:
            return json.JSONDecoder(strict=False).raw_decode(candidate)[0]
        except (ValueError, RecursionError):
            continue
    return None


def _closed(text: str) -> list[str]:
    """Cut behind each of the last values that are complete, and close what is open there."""
    ends: list[tuple[int, str]] = []
    open_: list[str] = []
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign == '"' or (sign in "]}" and not open_):
            break
        if sign in _CLOSERS:
            open_.append(_CLOSERS[sign])
            continue
        if sign in "]}":
            open_.pop()
        if len(open_) <= _DEEPEST:
            ends = [*ends[1 - _MOST_ENDS :], (token.end(), "".join(reversed(open_)))]
    return [text[:end] + closers for end, closers in reversed(ends)]
