"""The queries in a model's JSON, whatever it calls their keys."""

from __future__ import annotations

import re
import unicodedata
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from easyrag_core.query._reply import unmarked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["listed", "named_list", "named_text", "only_text", "spread"]

# What a model thinks or notes beside its queries, and what it was given.
_ASIDE: Final = re.compile(
    r".*(?:thought|think|reason|rational|analy[sz]|expla|comment|remark|justif|reflect|scratch"
    r"|context(?!ual)|history(?!aware)|original|confid|score|language|strateg"
    r"|思考|思路|思维|推理|推断|分析|理由|原因|说明|解释|备注|注释|反思|上下文|历史|语言|类型|编号|序号|策略|意图).*"
    r"|notes?|steps?|cot|summary|步骤|总结|input|user(?:s?question|query)|.*type|\w{0,9}id|lang|plan|angle|aspect|focus"
    r"|perspective|intent|topic|title|model|count|total|status"
    r"|(?:用户的?)?原(?:始|来|有|先|本)?的?(?:问题|查询|问句|问|句|文)?|用户(?:问题|提问|输入)|角度|注意|主题|状态"
)
_ANSWER: Final = re.compile(r".*(?:answer|回答|答案|答复).*")
_NO_QUERY: Final = re.compile(r"respon[sc]es?|reply|replies|errors?|messages?|回复|错误|消息")

_NAMES: Final = (
    re.compile(
        r".*(?:rewrit|rewrote|rephras|reformul|standalone|selfcontained|condensed|paraphras"
        r"|contextuali[sz]ed)"
        r"\w{0,6}(?:search|standalone)?(?:query|question|text|version)?\d*"
        r"|(?:被?(?:改写|重写|独立|完整|优化)(?:之?后)?的?)(?:完整|独立|检索)?"
        r"(?:问题|查询|问句|句子|检索词|结果|内容|文本|版本)?"
    ),
    re.compile(
        r"(?:search|final|new|sub|alternative|improved|optimi[sz]ed|standalone"
        r"|contextual|historyaware|resolved|complete)?"
        r"(?:query|question)(?:text)?\d*|search"
        r"|(?:子|新|最终|检索|搜索|查询)?的?(?:问题|查询|问句|问法|检索词|检索语句|检索)"
    ),
)
_ITEM_NAMES: Final = (*_NAMES, re.compile(r"q|text|content|value|文本|内容"))
_LISTS: Final = re.compile(
    r".*(?:queries|questions|searches|variants|variations|alternatives|rewrites|paraphrases"
    r"|rephrasings|reformulations|versions)"
    r"|.*(?:问题|查询|问法|检索词|改写|变体|问句)(?:列表|们|集)?"
)
_NUMBERED: Final = re.compile(r".{0,40}\d\s*")
_DEEPEST: Final = 4
# Two questions in one text; another line break only folds a line.
_NEXT_QUESTION: Final = re.compile(r"(?<=[?？])\s*[\r\n]\s*")


def named_text(value: Any, depth: int = 0) -> str | None:
    """Return the text of the key that names a query, in an object or a list of one.

    >>> named_text({"Rewritten_Query": {"text": "Redis price"}}), named_text({"answer": "4"})
    ('Redis price', None)
    """
    if isinstance(value, list) and len(value) == 1 and depth <= _DEEPEST:
        return named_text(value[0], depth + 1)
    if not isinstance(value, dict) or depth > _DEEPEST:
        return None
    told = _told(value)
    for found in _named(told, _NAMES):
        if (text := _text(found, depth)) is not None:
            return text
    below = (named_text(found, depth + 1) for found in told.values() if isinstance(found, dict))
    return next((text for text in below if text is not None), None)


def only_text(value: Any, depth: int = 0) -> str | None:
    """Return the only text of an object of one key, unless the key says that it is an answer.

    >>> only_text({"reasoning": "It?", "result": "Redis price"}), only_text({"answer": "4"})
    ('Redis price', None)
    """
    if isinstance(value, list) and len(value) == 1 and depth <= _DEEPEST:
        return only_text(value[0], depth + 1)
    if not isinstance(value, dict) or depth > _DEEPEST:
        return None
    told = _told(value)
    if len(told) != 1 or any(_ANSWER.fullmatch(key) or _NO_QUERY.fullmatch(key) for key in told):
        return None
    return _text(next(iter(told.values())), depth)


def listed(value: Any, depth: int = 0) -> list[str]:
    """Return the texts of a JSON list, or of the list in an object that is named for it.

    >>> listed({"thoughts": ["x"], "queries": [{"query": "a"}, "b", 3]})
    ['a', 'b']
    """
    if isinstance(value, list):
        return _items(value, depth + 1)
    if not isinstance(value, dict) or depth > _DEEPEST:
        return []
    told = {key: found for key, found in _told(value).items() if not _ANSWER.fullmatch(key)}
    named = [found for key, found in told.items() if _LISTS.fullmatch(key)]
    below = [found for found in told.values() if isinstance(found, list | dict)]
    wanted = (_under_list_key(found, depth + 1) for found in named)
    others = (listed(found, depth + 1) for found in below)
    numbered = [found for key, found in told.items() if _NUMBERED.fullmatch(key)]
    return next(filter(None, chain(wanted, others)), _items(numbered, depth + 1))


def named_list(value: Any, names: re.Pattern[str], depth: int = 0) -> list[str]:
    """Return the texts of the list under a key of these names, in an object or one inside it.

    >>> named_list({"result": {"Sub_Questions": ["a"], "b": ["c"]}}, re.compile("subquestions"))
    ['a']
    """
    if not isinstance(value, dict) or depth > _DEEPEST:
        return []
    told = _told(value)
    named = (listed(found, depth + 1) or _lines(found) for found in _named(told, (names,)))
    below = (named_list(found, names, depth + 1) for found in told.values())
    return next(filter(None, chain(named, below)), [])


def spread(value: Any) -> list[str]:
    """Return the texts of an object under keys that name queries, else under all keys.

    >>> spread({"first": "a", "second": "b", "reasoning": "c"}), spread({"query": "a", "by": "b"})
    (['a', 'b'], ['a'])
    """
    if isinstance(value, str):
        return _texts([value])
    if not isinstance(value, dict):
        return []
    told = _told(value)
    told = {
        key: found
        for key, found in told.items()
        if not (_ANSWER.fullmatch(key) or _NO_QUERY.fullmatch(key))
    }
    return _texts(_named(told, _NAMES)) or _texts(told.values())


def _told(value: dict[str, Any]) -> dict[str, Any]:
    """Fold the keys: neither case nor `_` counts; what is said beside the queries is left out."""
    told: dict[str, Any] = {}
    for key, found in value.items():
        if "?" in key or "？" in key:
            # A question as a key: its value says something of it.
            continue
        plain = unicodedata.normalize("NFKC", key).casefold()
        told.setdefault("".join(filter(str.isalnum, plain)), found)
    return {key: found for key, found in told.items() if not _ASIDE.fullmatch(key)}


def _named(told: dict[str, Any], names: tuple[re.Pattern[str], ...]) -> Iterator[Any]:
    for name in names:
        yield from (found for key, found in told.items() if name.fullmatch(key))


def _text(found: Any, depth: int) -> str | None:
    found = found[0] if isinstance(found, list) and len(found) == 1 else found
    if isinstance(found, str):
        return " ".join(found.split())
    text = named_text(found, depth + 1)
    return only_text(found, depth + 1) if text is None else text


def _items(values: Iterable[Any], depth: int) -> list[str]:
    return [text for item in values for text in _item(item, depth)]


def _under_list_key(found: Any, depth: int) -> list[str]:
    texts = listed(found, depth) or _lines(found) or spread(found)
    if texts or not isinstance(found, dict) or depth > _DEEPEST:
        return texts
    return _items(_told(found).values(), depth + 1)


def _lines(found: Any) -> list[str]:
    """Return the lines of a text that should have been a list, if it has several."""
    lines = found.splitlines() if isinstance(found, str) else []
    lines = [line.strip() for line in lines if line.strip()]
    marked = [line for line in lines if unmarked(line)[1]]
    # Above marked lines stands what announces them.
    lines = marked if len(marked) > 1 else lines
    return lines if len(lines) > 1 else []


def _item(item: Any, depth: int) -> list[str]:
    if isinstance(item, list) and depth <= _DEEPEST:
        return listed(item, depth + 1)
    if isinstance(item, dict) and depth <= _DEEPEST:
        told = _told(item)
        text = next((found for found in _named(told, _ITEM_NAMES) if isinstance(found, str)), None)
        text = only_text(item) if text is None else text
        return listed(item, depth + 1) if text is None else _texts([text])
    return _texts([item])


def _texts(values: Any) -> list[str]:
    found = [value for value in values if isinstance(value, str)]
    parts = [" ".join(part.split()) for text in found for part in _parts(text)]
    return [part for part in parts if part]


def _parts(text: str) -> list[str]:
    lines = _lines(text)
    is_list = sum(unmarked(line)[1] for line in lines) > 1
    return lines if is_list else _NEXT_QUESTION.split(text)
