"""A model's text without what it wraps around the answer."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from easyrag_core.query._chat_template import answer_turn, begins_line
from easyrag_core.query._json_text import repaired_json
from easyrag_core.query.history import text_key

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "fenced",
    "has_label",
    "is_heading",
    "read_json",
    "unlabelled",
    "unmarked",
    "unmarked_alone",
    "unquoted",
    "visible_text",
]

# Here and below `*+` gives nothing back: two runs of spaces side by side would be parted in
# every way, which takes time in the square of their length.
_REASONING: Final = (
    r"(?:\w{1,20}:)?(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|analysis|scratchpad|cot"
    r"|chain[_-]of[_-]thought|inner[_-]monologue|(?:内部|深度)?(?:思考|推理|分析|思路|反思|思维链?)(?:过程)?)"
)
_TAG: Final = re.compile(
    rf"[<＜〈]\s*+([/／]?)\s*+{_REASONING}(?:\s*+|\s[^<>＜＞\n]{{1,80}})[>＞〉]"
    r"|◁(/?)think▷|\[(/?)THINK\]",
    re.IGNORECASE,
)
# Alone it is a heading; with its end it is a block.
_BRACKET_TAG: Final = re.compile(
    rf"[【\[]\s*+([/／]?)\s*+{_REASONING}\s*+[】\]]|<\|(?:begin|(end))_of_thought\|>", re.IGNORECASE
)
_FINAL_CHANNEL: Final = re.compile(r"<\|channel\|>\s*final\s*(?:<\|[a-z_]+\|>\s*)*")
_INVISIBLE: Final = re.compile("[\u200b\u200e\u200f\u2060\ufeff\x00]")
_FENCE: Final = re.compile(r"^[ \t]*+(`{3,}|~{3,})[ \t]*+([^\s`]*+)[ \t]*+$", re.MULTILINE)
_INLINE_FENCE: Final = re.compile(
    r"`{3}(?!`)(?:(?:json|text|txt|markdown|plaintext)\s)?([^`]+)`{3}"
)

_ANSWER_WORDS: Final = (
    r"(?:quer(?:y|ies)|questions?|search(?:es)?|versions?|phras(?:e|es|ings?)|variants?|variations?"
    r"|variation|alternatives?|rewrites?|results?|output|json|sub-?questions?|reformulations?)"
)
_CONSENT: Final = re.compile(
    r"(?:(?:sure(?: thing)?|certainly|of course|absolutely|okay|ok|alright|great|got it|no problem"
    r"|understood)\b(?:\s*[!,.:—–-]+\s*|\s+(?=here\b|i\b)|\s*$)"
    r"|(?:好的?呀?|嗯+|当然(?:可以)?|没问题|可以的?|明白了?|收到|了解了?)(?:\s*[，,。.!！：:~～]+\s*|\s*$))",
    re.IGNORECASE,
)
_ANNOUNCEMENT: Final = re.compile(
    r"(?:"
    r"(?:here(?:'s|’s| is| are)|below (?:is|are)|the following (?:is|are)|these are|this is"
    r"|you (?:could|can|may|might) (?:ask|search|use|try)"
    r"|i(?:'ve|’ve| have| would|'d|’d| will|'ll|’ll)?\s+(?:rewr\w+|rephras\w+|generat\w+"
    r"|reformul\w+|suggest\w*|made|split))\b"
    rf"[^:：\n]{{0,120}}?(?:\b{_ANSWER_WORDS}\b[^:：\n]{{0,80}})?[:：]"
    r"|(?:let me|i(?:'ll|’ll| will| can))\s+(?:rewr|rephras|generat|reformul)\w*[^.:\n]{0,60}\."
    r"|(?:以下|下面|如下|这里|这|这些)(?:是|为)?[^：:\n，。？?]{0,50}[：:]"
    r"|(?:我|已)[^：:\n]{0,12}(?:改写|重写|生成|拆分|优化)[^：:\n]{0,30}[：:]"
    r"|(?:我来|我会|让我)[^。：:\n]{0,20}(?:改写|重写|生成|拆分)[^。：:\n]{0,10}。"
    r"|(?:根据|结合|基于|按照)[^：:\n]{0,40}(?:改写|重写|如下|生成|拆分)[^：:\n]{0,20}[：:]"
    r"|(?:(?:根据|结合|基于)[^，：:\n]{1,20}，)?(?:您|你|用户)(?:想问|要问|问|的问题)的?(?:是|为)?[：:]"
    r")\s*",
    re.IGNORECASE,
)
_REWRITTEN: Final = (
    r"(?:(?:the|my|final|new|your|follow-?up)\s+)*(?:re-?written|re-?phrased|reformulated"
    r"|stand-?alone|self-contained|condensed|improved|optimi[sz]ed|search|final|clear"
    r"|contextuali[sz]ed|complete)"
    r"(?:[\s,-]+(?:standalone|stand-alone|search|user|final|follow-up|version of the))*"
    rf"[\s-]+{_ANSWER_WORDS}(?:\s+(?:is|would be|could be))?"
)
_REWRITTEN_ZH: Final = (
    r"(?:(?:您|你|用户|该|这个|当前)的?(?:问题|提问|查询)?)?(?:可以?|应该?|能)?被?"
    r"(?:最终|最后)?的?(?:改写|重写|优化|转写|完整|独立|标准|检索|搜索|查询|新|规范|最终|最后)"
    r"(?:之?后)?的?(?:完整|独立|检索|搜索|查询|标准|用户)?的?"
    r"(?:问题|查询|问句|句子|语句|检索词|结果|内容|版本|词)?(?:是|为|成|如下)?"
)
_LABEL: Final = re.compile(
    rf"(?:(?:{_REWRITTEN}|{_REWRITTEN_ZH}|(?:follow-?up\s+)?(?:rewrite|rewritten|reformulation))"
    r"\s*(?:[:：]|→|=>|[-–—]\s)"
    r"|(?:output|result|query|question|final answer|(?:输出|结果|问题|问句)(?:是|为|如下)?)\s*[:：]"
    rf"|{_REWRITTEN_ZH}(?<=[是为成])(?=[\"“「『])"
    rf"|[【\[](?:{_REWRITTEN}|{_REWRITTEN_ZH})[】\]]"
    r")\s*",
    re.IGNORECASE,
)
# Names its text so clearly that it may stand behind prose.
_LABEL_INSIDE: Final = re.compile(
    r"\b(?:re-?written|re-?phrased|reformulated|stand-?alone)\s+(?:(?:standalone|search)\s+)?"
    r"(?:question|query)(?:\s+(?:is|would be))?\s*:\s*(?=\S)"
    r"|改写后的?(?:独立|完整|检索)?(?:问题|查询|问句)(?:是|为|如下)?\s*[:：]\s*(?=\S)",
    re.IGNORECASE,
)
_HEADING: Final = re.compile(r"#{1,6}\s+")
_TAGGED: Final = re.compile(
    r"<(query|question|answer|output|result|response|final|rewrite|rewritten"
    r"|(?:rewritten|standalone|final|search)[_-]?(?:query|question))>(.{0,5000}?)</\1>",
    re.IGNORECASE | re.DOTALL,
)

_QUOTES: Final = {
    '"': '"',
    "'": "'",
    "`": "`",
    "“": "”",
    "”": "”",
    "‘": "’",
    "「": "」",
    "『": "』",
    "«": "»",
    "„": "“",
    "＂": "＂",
    "[": "]",
    "【": "】",
}
_EMPHASIS: Final = re.compile(r"(?<!\w)(\*\*|__)(?=\S)(.{1,500}?)(?<=\S)\1(?!\w)")

_BULLET: Final = r"[•·●○▪▸►‣◦∙■□☐☑✓✔➤→]\s*|[-–—*+](?:\s+|(?=[^\W\d_a-zA-Z]))|>\s+"
_CHECKBOX: Final = r"\[\s*[xX✓]?\s*\]\s*"
_CHINESE_NUMBER: Final = r"[一二三四五六七八九十]{1,3}"
_QUESTION_WORD: Final = (
    r"(?:(?:sub-?|search |alternative |rewritten )?(?:question|quer(?:y|ies)|version|variant"
    r"|alternative|option|variation|rephrasing)|step|q)"
)
_CHINESE_WORD: Final = r"(?:子?问题|查询|问法|变体|版本|改写|表述|选项|角度|检索词?|问句|步骤)"
_NUMBER: Final = (
    r"\d{1,2}\ufe0f?\u20e3\s*"
    r"|\d{1,2}\s?(?:[.。]\s?[)）]|[)）][.。:：])\s*|\d{1,2}/\d{1,2}\s?(?:[:：)）]|\.(?!\d))(?!\d)\s*"
    rf"|[(（\[【](?:[a-h]|[ivx]{{1,4}}|\d{{1,2}}/\d{{1,2}})[)）\]】]\s*[.:：]?\s*"
    rf"|第\s?(?:\d{{1,2}}|{_CHINESE_NUMBER})\s?步\s?[:：]\s*"
    r"|[①-⑳⑴-⒇⒈-⒛❶-❿➀-➓㈠-㈩]\s*[.、:：]?\s*"
    rf"|[(（\[【]\s*(?:{_QUESTION_WORD}\s*)?(?:\d{{1,2}}|{_CHINESE_NUMBER})\s*[)）\]】]\s*[.、:：]?\s*"
    r"|\d{1,2}\s*[)）．]\s*|\d{1,2}\s*、(?!\s*\d{1,2}[月日号楼线级层])\s*|\d{1,2}\s*[.。](?!\d|\w+\()\s*|\d{1,2}\s*[:：](?!\s*\d)\s*"
    r"|\d{1,2}\s+[-–—]\s+|\d{1,2}/\s+|#\d{1,2}[.:)]?\s+|[Ⅰ-Ⅻⅰ-ⅻ]\s*[.、)）]\s*"
    rf"|{_QUESTION_WORD}\s+[A-Ha-h]\s*[:：]\s*"
    rf"|{_QUESTION_WORD}\s*#?\s*\d{{1,2}}\s*(?:[:：.)）、](?!\d)|\s[-–—]\s)\s*"
    rf"|第?\s*{_CHINESE_WORD}\s*(?:\d{{1,2}}|{_CHINESE_NUMBER})\s*[:：.)）、](?!\d)\s*"
    rf"|第\s*(?:\d{{1,2}}|{_CHINESE_NUMBER})\s*(?:个|条|种)?\s*{_CHINESE_WORD}?\s*[:：、，](?!\d)\s*"
    rf"|{_CHINESE_NUMBER}\s*[、.．:：](?!{_CHINESE_NUMBER}[^、.．:：])\s*"
    r"|(?:[a-hA-H]|[ivx]{1,4})\.?[)）]\s*|[ivx]{1,4}\.\s+"
)
_STEP: Final = re.compile(rf"step\s|第\s?(?:\d{{1,2}}|{_CHINESE_NUMBER})\s?步", re.IGNORECASE)
_LONGEST_MARK: Final = 100
_MARKER: Final = re.compile(rf"\s*(?:{_BULLET}|{_CHECKBOX}|{_NUMBER})", re.IGNORECASE)

_OPENING: Final = re.compile(r"[{\[]")
_MOST_STARTS: Final = 50
_LONGEST_JSON: Final = 100_000
# After a closing quote: the end, a full stop and prose, or a remark in brackets.
_AFTER_QUOTE: Final = re.compile(
    r"[\s.。,，;；!！]*|\s*[.。\n].*|\s*[(（](?P<remark>[^()（）]*)[)）][\s.。]*", re.DOTALL
)


def visible_text(reply: str, said: str = "") -> str:
    r"""Remove reasoning, closed or not, and what a chat template left behind.

    Args:
        reply: What the model gave.
        said: What the user said: a tag from there inside a line, never closed, is asked about.

    Returns:
        The rest, stripped; empty when all was reasoning.

    >>> visible_text("<think>he means Redis</think>\nRedis price")
    'Redis price'
    >>> visible_text("he means Redis</think>Redis price"), visible_text("<think>he means")
    ('Redis price', '')
    """
    text = _without_reasoning(_INVISIBLE.sub("", _FINAL_CHANNEL.split(reply)[-1]), said)
    # A turn may begin inside a block of reasoning, or behind it.
    return _without_reasoning(answer_turn(text, said), said).strip()


def _without_reasoning(text: str, said: str) -> str:
    pieces: list[str] = []
    depth = last = 0
    for tag in _tags(text, said):
        closes = any(tag.groups())
        if depth == 0 and not closes:
            pieces.append(text[last : tag.start()])
        elif depth == 0:
            # The opening tag was part of the prompt: all before was reasoning.
            pieces.clear()
        depth = max(0, depth + (-1 if closes else 1))
        last = tag.end()
    if depth == 0:
        pieces.append(text[last:])
    return "".join(pieces)


def _tags(text: str, said: str) -> list[re.Match[str]]:
    bracketed = list(_BRACKET_TAG.finditer(text))
    if not any(any(tag.groups()) for tag in bracketed):
        bracketed = []
    tags = sorted([*_TAG.finditer(text), *bracketed], key=lambda tag: tag.start())
    closed = max((tag.end() for tag in tags if any(tag.groups())), default=0)
    asked = {tag[0].casefold() for tag in _TAG.finditer(said)}
    return [
        tag
        for tag in tags
        if tag.start() < closed or tag[0].casefold() not in asked or begins_line(text, tag.start())
    ]


def fenced(text: str) -> str:
    r"""Return what stands in the first code fence or tag, or the text itself without one.

    >>> fenced("Here:\n```text\nRedis price\n```\nGood luck"), fenced("Redis price")
    ('Redis price', 'Redis price')
    """
    if tagged := [found[2].strip() for found in _TAGGED.finditer(text)]:
        text = "\n\n".join(tagged)
    opening = _FENCE.search(text)
    if opening is None:
        inline = _INLINE_FENCE.search(text)
        return inline[1].strip() if inline else text
    mark, inside = opening[1], text[opening.end() :]
    for closing in _FENCE.finditer(inside):
        if closing[1].startswith(mark) and not closing[2]:
            inside = inside[: closing.start()]
            break
    return inside.strip() or text[: opening.start()].strip()


def unlabelled(line: str) -> str:
    """Remove what stands before a query: consent, an announcement, a label.

    Args:
        line: One line.

    Returns:
        The rest, stripped; empty when there is no more.

    >>> unlabelled("Sure! Here is the rewritten query: Redis price")
    'Redis price'
    >>> unlabelled("好的，改写后的问题：Redis 的价格")
    'Redis 的价格'
    """
    text = _plain_line(line)
    for pattern in (_CONSENT, _ANNOUNCEMENT, _LABEL):
        if found := pattern.match(text):
            text = text[found.end() :].strip().removeprefix("**").strip()
    inside = _LABEL_INSIDE.search(text)
    return text[inside.end() :] if inside else text


def _plain_line(line: str) -> str:
    """Remove emphasis and the signs of a heading."""
    return _HEADING.sub("", _EMPHASIS.sub(r"\2", line.strip()), count=1)


def has_label(line: str) -> bool:
    """Say whether a line names what follows: `Rewritten query: …`."""
    text = _plain_line(line)
    return bool(_LABEL.match(text) or _LABEL_INSIDE.search(text))


def is_heading(line: str) -> bool:
    """Say whether a line is a Markdown heading."""
    return _HEADING.match(line.strip()) is not None


def unmarked(line: str) -> tuple[str, bool]:
    """Remove bullets and numbering; a number that belongs to the text stays.

    Args:
        line: One line.

    Returns:
        The rest, and whether there was a mark.

    >>> [unmarked(line)[0] for line in ("1. What?", "（2）为什么", "- [ ] Q3: how", "1.5 inch")]
    ['What?', '为什么', 'how', '1.5 inch']
    """
    text, marked = _EMPHASIS.sub(r"\2", line.strip()), False
    # "- [ ] Q3:" is three marks; a fourth would be content.
    for _ in range(3):
        found = _MARKER.match(text, 0, _LONGEST_MARK)
        if found is None:
            break
        text, marked = text[found.end() :].strip(), True
    return text, marked


def unmarked_alone(line: str, said: str) -> str:
    """Remove the mark of a text that is no item of a list, unless it belongs to the text.

    Args:
        line: The one query of a reply.
        said: What the user said: a mark from there is a part of the query.

    Returns:
        The rest; a step stays a step.

    >>> unmarked_alone("1. Redis price", "price?"), unmarked_alone("Step 2: Redis", "price?")
    ('Redis price', 'Step 2: Redis')
    """
    found = _MARKER.match(line, 0, _LONGEST_MARK)
    mark = found[0].strip(" \t.。:：、") if found else ""
    # A bare number or sign stands in too many texts.
    is_said = len(mark) > 1 and not mark.isdecimal() and mark.casefold() in said.casefold()
    return line if is_said or _STEP.match(line) else unmarked(line)[0]


def unquoted(text: str, said: str = "") -> str:
    """Remove quotes around the whole, also before a remark in prose.

    Args:
        text: One query.
        said: What the user said: words from there in brackets are no remark.

    Returns:
        The text inside.

    >>> unquoted('"Redis price"'), unquoted('"a" and "b"'), unquoted("“Redis 价格”。")
    ('Redis price', '"a" and "b"', 'Redis 价格')
    """
    text = _EMPHASIS.sub(r"\2", text.strip())
    for _ in range(3):
        closing = _QUOTES.get(text[:1])
        end = text.find(closing, 1) if closing else -1
        after = _AFTER_QUOTE.fullmatch(text, end + 1) if end > 0 else None
        if after is None or (after["remark"] and text_key(after["remark"]) in text_key(said)):
            break
        text = text[1:end].strip()
    return text


def read_json(text: str, accepts: Callable[[Any], bool], *, nested: bool = True) -> Any:
    """Return the first JSON value of a wanted shape, wherever it stands in a text.

    What `repaired_json` repairs is forgiven.

    Args:
        text: Prose, fences and all.
        accepts: Says whether a value has the shape.
        nested: Whether to look inside objects that do not have it.

    Returns:
        The value, or `None`.

    >>> read_json('Here [1] it is: {"a": [1, 2,]} Bye', lambda value: "a" in value)
    {'a': [1, 2]}
    """
    text = text[:_LONGEST_JSON]
    found = _first_json(text, accepts, nested=nested)
    if found is None and (repaired := repaired_json(text)) != text:
        found = _first_json(repaired, accepts, nested=nested)
    return found


def _first_json(text: str, accepts: Callable[[Any], bool], *, nested: bool) -> Any:
    decoder = json.JSONDecoder(parse_constant=lambda _: None, strict=False)
    at = 0
    for _ in range(_MOST_STARTS):
        opening = _OPENING.search(text, at)
        if opening is None:
            return None
        at = opening.start()
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        if accepts(value):
            return value
        # What an unwanted object holds may be what is wanted: a list in a wrapper.
        at = at + 1 if nested and isinstance(value, dict) else end
    return None
