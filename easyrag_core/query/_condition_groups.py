"""The conditions in a model's JSON, and in what groups they stand."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["drawn_conditions", "is_joined_otherwise"]

_NEGATED: Final = "inside a negation"
_ALTERNATIVE: Final = "one of several alternatives"
_UNKNOWN: Final = "inside a group of unknown meaning"

_NOT: Final = re.compile(
    r"(?:must|should|is|are)?not(?:any|in|match|equals?)?|nor|nand|none(?:of)?|negat\w*|exclu\w*"
    r"|except\w*|without"
    r"|invert\w*|inverse|reject\w*|remov\w*|forbid\w*|avoid|ne|nin|blacklist|deny|unless"
    r"|非|不|否定?|取反|不(?:是|含|包含|包括|等于|属于|得|能|应)|(?:必须|应)?(?:排除|除外|除去|除了|剔除|去掉|过滤掉)\w{0,6}"
)
_OR: Final = re.compile(
    r"x?or|ors|should|any|(?:any|one|some)of|either|alternatives?|disjunction|union|optional"
    r"|preferr?e?d?|或者?|任一|任意|任何|其一|其中之一|可选|并集"
)
# Of these one alone is a condition; what is optional stays so.
_ONE_OF: Final = re.compile(
    r"x?or|any(?:of)?|(?:one|some)of|either|disjunction|或者?|任一|任意|其一|其中之一"
)
_AND: Final = re.compile(
    r"(?:and|all|must|required|hard|filter(?:ing)?|search|query|retrieval|metadata|extracted"
    r"|structured)*(?:conditions?|filters?|criteri(?:a|on)|constraints?|restrictions?)"
    r"(?:list|array|set)?"
    r"|and|must|all(?:of)?|every|both|where|clauses?|arguments?|args|operands"
    r"|response|reply|answer|json|metadata|extracted\w*|search|expressions?|rules|items|list|bool|boolean|query|results?|output|data|parameters|params"
    r"|required?|include[sd]?|conjunction|且|并且|和|与|全部|所有|必须|包含"
    r"|(?:元数据|过滤|筛选|检索|查询|搜索|限制|限定|约束|提取|抽取|的)*"
    r"(?:条件|过滤器|筛选器|约束|限制|结果)(?:列表|集合?)?"
)
# What says how the conditions of a group hang together.
_JOINT: Final = re.compile(
    r"op|operators?|logic\w*|condition|combinator|conjunction|connective|connector|type|join"
    r"|relation|mode|bool|boolean|group|match|逻辑\w*|关系|运算符|操作符|连接\w*"
)
_FIELDS: Final = frozenset(("field", "key", "attribute", "name", "column", "字段", "属性", "名称"))
_TRUE: Final = ("true", "yes", "1", "是", "真")
_DEEPEST: Final = 20
# A bracket in prose opens no JSON, and a text in JSON says nothing of what is around it.
_OPENS: Final = r"[\[{]\s{0,9}(?:[\[{\"'“”‘]|\w{1,40}\s{0,9}[:：])"
_TEXT: Final = re.compile(
    r"(?<=[\[{,:：\s])([\"'])(?:(?!\1)[^\\\n]|\\.){0,2000}\1(?=\s{0,9}[,:\]}])"
)
_AROUND: Final = re.compile(
    r"(?:(?<![\w\"'])(?:not|exclud(?:e|es|ed|ing)|except|without|nor|unless)"
    r"|(?<![\"'“])(?:排除|除了|不是|不包括|不包含|不要|非))"
    rf"\s{{0,9}}[:：]?\s{{0,9}}[(（]?\s{{0,9}}{_OPENS}"
    rf"|[}}\])]\s{{0,9}}(?:or|\|\||或者?)\s{{0,9}}[(（]?\s{{0,9}}{_OPENS}",
    re.IGNORECASE,
)


def is_joined_otherwise(text: str) -> bool:
    """Say whether words around JSON negate it, or make it one of several.

    >>> is_joined_otherwise('NOT {"field": "a"}'), is_joined_otherwise('{"not": {}}')
    (True, False)
    """
    return _AROUND.search(_TEXT.sub('""', text)) is not None


def drawn_conditions(value: Any) -> list[tuple[Any, str]] | None:
    """Return what a model drew, each with why it cannot simply be demanded; empty if it can.

    Args:
        value: JSON: a list, a condition, or groups of any depth.

    Returns:
        Pairs of a condition and a reason; `None` when the value holds no conditions.

    >>> drawn_conditions({"must": [{"field": "a"}], "must_not": {"field": "b"}})
    [({'field': 'a'}, ''), ({'field': 'b'}, 'inside a negation')]
    >>> drawn_conditions([1, 2]) is None
    True
    """
    drawn = list(_walked(value, "", 0))
    if isinstance(value, list):
        # A list of numbers is a citation, not a list of conditions.
        return drawn if all(isinstance(one, dict) for one in value) else None
    if not isinstance(value, dict):
        return None
    holds = {"field", "value"} <= value.keys()
    holds = holds or any(group != _UNKNOWN for _, group in _groups(value))
    return drawn if holds or any(one is not value for one, _ in drawn) else None


def _walked(value: Any, why: str, depth: int) -> Iterator[tuple[Any, str]]:
    if isinstance(value, list) and depth < _DEEPEST:
        for one in value:
            yield from _walked(one, why, depth + 1)
    elif isinstance(value, dict) and depth < _DEEPEST:
        yield from _walked_object(value, why or _joint(value), depth)
    else:
        yield value, why


def _walked_object(value: dict[str, Any], why: str, depth: int) -> Iterator[tuple[Any, str]]:
    groups = [] if _is_condition(value) else list(_groups(value))
    found = [
        (one, reason)
        for below, group in groups
        for one, reason in _walked(below, why or group, depth + 1)
        # Under a key that is no group there may be anything.
        if group != _UNKNOWN or _is_condition(one)
    ]
    yield from found
    if not found and all(group == _UNKNOWN for _, group in groups):
        yield value, why


def _is_condition(value: Any) -> bool:
    return isinstance(value, dict) and any(
        isinstance(found, str) and _plain(key) in _FIELDS for key, found in value.items()
    )


def _groups(value: dict[str, Any]) -> Iterator[tuple[Any, str]]:
    """Go through what an object holds below its keys, each with what its key makes of it."""
    alone = _holds_one(value)
    for key, below in value.items():
        if isinstance(below, list | dict):
            yield below, _reason(_plain(key), _UNKNOWN, alone=alone)


def _holds_one(value: dict[str, Any]) -> bool:
    """Whether all that an object holds is one condition or group, without an alternative."""
    held = [below for below in value.values() if isinstance(below, list | dict)]
    one = held[0] if len(held) == 1 and not _is_condition(value) else None
    return _is_condition(one) or (isinstance(one, list) and len(one) == 1)


def _joint(value: dict[str, Any]) -> str:
    """What an object says of itself: `"operator": "or"` of a group, `"negate": true` of any."""
    joint, is_condition, alone = "", _is_condition(value), _holds_one(value)
    for key, said in value.items():
        named = _reason(_plain(key), "", alone=alone)
        if isinstance(said, list | dict):
            # A condition with a group beside it hangs on that group.
            if named and is_condition:
                return named
        elif named == _NEGATED and str(said).strip().casefold() in _TRUE:
            return named
        elif isinstance(said, str) and not is_condition and _JOINT.fullmatch(_plain(key)):
            joint = joint or _reason(_plain(said), "", alone=alone)
    return joint


def _reason(word: str, unknown: str, *, alone: bool = False) -> str:
    if _NOT.fullmatch(word):
        return _NEGATED
    if alone and _ONE_OF.fullmatch(word):
        return ""
    if _OR.fullmatch(word):
        return _ALTERNATIVE
    return "" if _AND.fullmatch(word) else unknown


def _plain(key: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", key).casefold()))
