"""What is wrong with a text that a model offers as a query."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from easyrag_core.query._json_text import holds_json
from easyrag_core.query._scripts import CJK, is_in_script_of, prompt_language
from easyrag_core.query.history import text_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from easyrag_core.query.prompts import Message

__all__ = ["fault_of_query", "fault_of_rewrite", "is_refusal", "longest_query"]

_TIMES_LONGER: Final = 4
_ALWAYS_ALLOWED: Final = 200

_REFUSAL: Final = re.compile(
    r"(?:i(?:'m| am) (?:so |very )?(?:sorry|unable|afraid|not (?:able|sure))\b|sorry\b|apologies\b"
    r"|(?:i|my) apolog\w+|as an? (?:ai|artificial|large language|language) \w+|unfortunately\b"
    r"|i (?:cannot|can't|can not|could not|couldn't|don't|do not|won't|will not|am unable to)"
    r" (?:help|assist|answer|rewrite|rephrase|provide|fulfill?|comply|determine|generate|create"
    r"|process|browse|see any|find (?:any|the)|have (?:access|enough|information|context|any|the"
    r"|real-time)|know\b)"
    r"|there is (?:no|not enough|insufficient) (?:\w+ )?(?:history|context|information)"
    r"|(?:no|insufficient|not enough) (?:context|information|history)\b"
    r"|(?:could you )?(?:please )?(?:provide|clarify|share|specify) (?:more|the|your|what|a|me)"
    r"|(?:could|can|would) you (?:please )?(?:clarify|provide|specify|share|elaborate)"
    r"|what do you mean\b|请问(?:您|你)(?:指|说)"
    r"|none$|n/?a$|null$|undefined$|unknown$|empty$|no (?:rewrite|change|answer)\b"
    r"|(?:很|非常)?抱歉|对不起|不好意思|我?(?:无法|不能|没法|没有办法)(?:为您|为你|给您)?"
    r"(?:回答|提供|改写|重写|确定|满足|帮助|处理|理解|判断|访问|生成|拆分|协助)"
    r"|作为(?:一个|一名)?(?:ai|人工智能|大?语言模型|智能助手)|我是(?:一个|一名)?(?:ai|人工智能|大?语言模型)"
    r"|没有(?:足够|提供|相关的?(?:历史|上下文))|(?:您|你)(?:没有|未|尚未)提供|请(?:您|你)?(?:提供|补充|说明一?下?您)"
    r"|(?:缺少|缺乏|信息不足|上下文不足)|无$|无需改写|不需要改写|暂无$)",
    re.IGNORECASE,
)
_ANSWER: Final = re.compile(
    r"(?:(?:yes|no|yeah|nope)\s*[,.!，]|(?:the )?(?:short |final )?answer(?: is|:|：)|a\s*[:：]"
    r"|(?:based on|according to|from|given) (?:the|your|our|my) (?:above |previous |provided )?"
    r"(?:context|history|conversation|information|documents?|chat|text|passage)"
    r"|(?:是的|不是的?|对的|没错|可以的|不可以|不能)\s*[,，。.!！]|答案(?:是|：|:)|答\s*[:：]|回答\s*[:：]"
    r"|(?:根据|依据|基于)(?:上下文|历史|对话|以上|上述|上面|前面|资料|文档|提供|我们))",
    re.IGNORECASE,
)
_ASKS: Final = re.compile(
    r"[?？]|\b(?:who|whom|whose|what|which|when|where|why|how|is there|are there|whether|list"
    r"|explain|describe|show|tell|give|find|compare|define|summari[sz]e|translate|name|search"
    r"|provide|outline|discuss|write|look up|please|can|could|does|did|do|should|would)\b"
    r"|什么|怎么|怎样|如何|为何|为什么|哪|谁|多少|几|吗|呢|是否|能否|可否|(?<!申)请(?!假)|介绍|列出|说明|解释|比较|对比|查询|总结|描述|分析|告诉|给出",
    re.IGNORECASE,
)
# A subject that nobody can look up: a rewrite would have replaced it.
_PRONOUN_FIRST: Final = re.compile(
    r"(?:It|They|it|they)\s+(?:\w{2,}s|is|are|was|were|have|had)\b"
    r"|[Tt]hey\s+(?:support|use|provide|include|offer)\b"
    r"|(?:它们?|他们)(?:支持|包括|包含|有|提供|是|使用|需要|分为|采用|具有)(?!的)"
)
_LISTS_FROM: Final = re.compile(
    r"\b(?:supports?|includes?|has|have|offers?|provides?|is|are|uses?|contains?|needs?|requires?)\s"
    r"|支持|包括|包含|提供|分为|使用|需要|采用|具有|是|有"
)
_LISTED: Final = re.compile(r"[、,，]|\band\b|\bor\b|和|以及|及")
_STATEMENT_END: Final = re.compile(r"(?:[^.\s]{2}\.|[。!！])[\"”’')）]*\Z")
_SENTENCE_END: Final = re.compile(r"(?<=[a-z)\]][.!])\s+(?=[A-Z])|(?<=[。！])\s*(?=\S)|\n\s*\n")
# Half of a character, as a reply has it that was cut: nothing can encode it.
_HALF: Final = re.compile("[\ud800-\udfff]")
_ECHO: Final = re.compile(
    r"\{\s*\"role\"\s*:|<\|im_|^\s*(?:user|assistant|human|ai)\s*[:：]", re.IGNORECASE
)
_WORD: Final = re.compile(rf"[^\W_{CJK}]+|[{CJK}]")
_STEM: Final = 4
_QUOTED_ENOUGH: Final = 40
_QUOTED_ENOUGH_ZH: Final = 12
_KNOWN_SHARE: Final = 0.4
# One or two new words may be another way to say it.
_NEW_ITEMS: Final = 2
# Words that a complete question may need whatever it is about.
_FUNCTION_WORDS: Final = frozenset(
    [
        *"""a an the this that these those i me my we us our you your he him his she her it its
        they them their who whom whose what which when where why how and or but nor if then than
        so as of at by for with about against between into through during before after above
        below to from up down in out on off over under again there all any both each few more
        most other some such no not only own same too very can could will would shall should may
        might must do does did done doing have has had having be is are was were been being s t
        re ve ll d m please tell explain describe list show give find compare difference
        differences much many long far often kind type mean work use used using get make made
        happen besides aside else also""".split(),  # noqa: SIM905 - a list would be a page
        *"的了吗呢吧啊是有在和与及或于对把被从向到给为以之其这那个些它他她们我你您什么怎样如何哪里谁几多少时",
        *"候请问能可否会要应该需不都也还就用做介绍一下关具体方法步骤主因原区别比较相同种支持进行使得地上中所者并来去说明",
    ]
)


def longest_query(question: str) -> int:
    """Return how long a query for a question may be, in characters.

    >>> longest_query("short"), longest_query("x" * 300)
    (800, 1200)
    """
    return _TIMES_LONGER * max(len(question), _ALWAYS_ALLOWED)


def is_refusal(text: str) -> bool:
    """Say whether a model declines, in English or Chinese.

    >>> (
    ...     is_refusal("I'm sorry, I cannot help"),
    ...     is_refusal("抱歉，我无法回答"),
    ...     is_refusal("无法登录"),
    ... )
    (True, True, False)
    """
    return _REFUSAL.match(text.strip().replace("’", "'")) is not None


def fault_of_query(text: str, question: str) -> str | None:
    """Return what is wrong with a query, or `None`.

    Args:
        text: A single query, cleaned.
        question: What the user asked.

    Returns:
        `empty`, `broken text`, `too long`, `refusal`, `answer`, `wrong script`, `raw JSON`, or
        `None`.

    >>> fault_of_query("What is Redis?", "Redis 是什么")
    'wrong script'
    """
    return _fault(text, question) or ("raw JSON" if holds_json(text, question) else None)


def _fault(text: str, question: str) -> str | None:
    if not text_key(text) or not any(map(str.isalnum, text)):
        return "empty"
    if _HALF.search(text):
        return "broken text"
    if len(text) > longest_query(question):
        return "too long"
    if is_refusal(text) and not is_refusal(question):
        return "refusal"
    if _is_answer(text, question):
        return "answer"
    return None if is_in_script_of(text, question) else "wrong script"


def fault_of_rewrite(
    text: str, question: str, history: Sequence[Message], *, rewrite: str = ""
) -> str | None:
    """Return what is wrong with a rewritten question or a part of it, or `None`.

    Args:
        text: The rewrite or the part, cleaned.
        question: What the user asked.
        history: The messages that the model saw.
        rewrite: For a part: the accepted rewrite of the whole.

    Returns:
        As `fault_of_query`, or `copy` (said before) or `drift` (about something else).
    """
    if fault := _fault(text, question):
        return fault
    key = text_key(text)
    if key == text_key(question) or (rewrite and key in text_key(f"{question}\n{rewrite}")):
        return None
    sources = [question, rewrite, *(message.content for message in history)]
    if _is_echo(text, sources) or any(_is_copy(key, message) for message in history):
        return "copy"
    if holds_json(text, "\n".join(sources)):
        return "raw JSON"
    if _tells(text, question, sources):
        return "answer"
    return None if _is_grounded(text, sources) else "drift"


def _is_answer(text: str, question: str) -> bool:
    if _ANSWER.match(text) and not _ANSWER.match(question):
        return True
    if len(_SENTENCE_END.split(text)) > 1 + max(1, len(_SENTENCE_END.split(question))):
        return True
    # A query needs no full stop. A statement under a question that has none is its answer.
    ends = _STATEMENT_END.search(text) and not _STATEMENT_END.search(question)
    return bool(ends) and not _ASKS.search(text)


def _tells(text: str, question: str, sources: Sequence[str]) -> bool:
    """Whether a statement without an end mark answers: of "it", or listing what nobody said."""
    if _ASKS.search(text) or not _ASKS.search(question):
        return False
    pronoun = _PRONOUN_FIRST.match(text)
    # "it" may be the name of a department in small letters.
    if pronoun and not (pronoun[0].startswith("it") and pronoun[0] in question.casefold()):
        return True
    verb = _LISTS_FROM.search(text)
    known = set().union(*map(_words, sources))
    items = map(_content, _LISTED.split(text[verb.end() :]) if verb else ())
    return sum(bool(item) and known.isdisjoint(item) for item in items) > _NEW_ITEMS


def _is_echo(text: str, sources: Sequence[str]) -> bool:
    known = "\n".join(sources).casefold()
    return any(echo[0].casefold().strip() not in known for echo in _ECHO.finditer(text))


def _is_copy(key: str, message: Message) -> bool:
    said = text_key(message.content)
    if key == said or message.role != "assistant":
        return key == said
    enough = _QUOTED_ENOUGH_ZH if prompt_language(key) == "zh" else _QUOTED_ENOUGH
    return len(key) >= enough and key in said and not _ASKS.search(key)


def _words(text: str) -> set[str]:
    return {word[:_STEM] for word in _WORD.findall(text.casefold())}


def _content(text: str) -> list[str]:
    words = dict.fromkeys(_WORD.findall(text.casefold()))
    words = {word: None for word in words if len(word) > 1 or not word.isascii()}
    return [word[:_STEM] for word in words if word not in _FUNCTION_WORDS]


def _is_grounded(text: str, sources: Iterable[str]) -> bool:
    """Whether enough of the content words were said before."""
    known = set().union(*map(_words, sources))
    letters = {word for word in _words(text) & known if len(word) == 1 and word.isascii()}
    # "R" and "x" are names where the user says so.
    content = [*_content(text), *(letters - _FUNCTION_WORDS)]
    return sum(word in known for word in content) >= _KNOWN_SHARE * len(content)
