"""Whether a user's reply does no more than name an option."""

from __future__ import annotations

import re
from typing import Final

from easyrag_core.query._scripts import CJK

__all__ = ["is_part_of", "names"]

_TOKEN: Final = re.compile(rf"[{CJK}]+|[^\W_{CJK}]+(?:'[a-z]+)?")
_EDGE: Final = rf"[^\W_{CJK}]"
_MORE_THAN_A_NAME: Final = 14

# Said around a name by someone who chooses it.
_WORDS: Final = frozenset(
    """a an the this that these those i me my mine we our you it its it's is are was be i'm im i'd
    id i'll let's lets that's think guess mean meant say said choose pick select take want wanted
    would like go going with prefer need try about regarding concerning re for to on of in at and
    so well hmm um uh oh then just only please pls plz thanks thank thx ok okay yes yeah yep yup
    sure right correct exactly probably maybe perhaps likely definitely certainly actually should
    must option topic choice answer number category item part section one ones thing things stuff
    related asking asked ask talking looking question hi hello hey here""".split()  # noqa: SIM905
)
# Said behind a name alone: before it they would be about something else.
_WORDS_BEHIND: Final = frozenset(("sounds", "good", "great", "fine", "dept", "department", "team"))
_LEAD: Final = re.compile(
    r"\b(?:how about|(?:could|might|may|would) be|(?:let's|let us|i'll|i'd) do"
    r"|(?:i'm|i am) after)\b"
)
# Behind a name that is a pronoun too: "it sounds good" names no department.
_VERBS: Final = frozenset(("is", "are", "was", "be", "would", "should", "must", "sounds"))
# Turn a name into its opposite, or into what is asked or ordered.
_TURNS: Final = frozenset(
    """not no none never neither nor non except excluding exclude but without unlike besides other
    others else anything everything nothing rather instead wrong never cannot cant dont
    isnt ain't who whom
    whose what which when where why how can could does do did will shall may might has have had
    or""".split()  # noqa: SIM905
)
_ORDERS: Final = frozenset(
    """cancel cancels cancelled canceled delete deleted remove removed stop ignore avoid
    skip""".split()  # noqa: SIM905
)
_BEFORE_ZH: Final = re.compile(
    r"(?:嗯|哦|噢|好的?|那|对|没错|是的?|就是?|我|想|要|需要|问|询问|咨询|了解|知道|看看?|查查?|选项?择?|说|指|讲|的|应该"
    r"|大概|可能|估计|也许|当然|肯定|关于|有关|请|麻烦|帮我|一下|这个|那个|属于|主要|其实|方面|与|跟|和)*"
)
_AFTER_ZH: Final = re.compile(
    r"(?:吧|呢|的|啊|呀|哦|哈|嘛|了|那个|这个|那项|这项|一个|一项|就行|就好|即可|可以|好了|谢谢你?您?|方面|有关|相关|这类|那类"
    r"|类|问题|事情?|内容|部分|选项|主题|话题|规定|谢了|是|对|没错)*"
)
_TURNS_ZH: Final = re.compile(
    r"[不没非无别勿莫否除谁哪吗么几怎]|以外|之外|外的|什么|如何|为何|多少|何时|是否|能否|可否|还是|或"
)
_ORDERS_ZH: Final = re.compile(r"取消|撤销|删除|拒绝")
_LONGEST_TAIL: Final = 4


def names(name: str, reply: str, label: str) -> bool:
    """Say whether a reply names an option and adds nothing that would make it something else.

    Args:
        name: The option's name, in lower case.
        reply: What the user typed, in lower case.
        label: The option's whole path, whose other words may stand beside the name.

    Returns:
        False for a question, a negation, or an order about it.

    >>> names("travel", "i mean travel", "hr / travel"), names("出差", "出差吧", "人事 / 出差")
    (True, True)
    >>> [names("travel", said, "hr / travel") for said in ("not travel", "who approves travel")]
    [False, False]
    """
    if len(reply) > len(name) + _MORE_THAN_A_NAME:
        return False
    own = frozenset(_TOKEN.findall(label))
    return any(
        _is_lead(reply[: found.start()], own, is_word=name in _WORDS)
        and _is_tail(_TOKEN.findall(reply[found.end() :]), own, is_word=name in _WORDS)
        for found in re.finditer(_bordered(name), reply)
    )


def is_part_of(reply: str, name: str) -> bool:
    """Say whether a reply is a stretch of whole words of a name, with one that says something.

    >>> [is_part_of(said, "finance / booking") for said in ("finance", "ok", "book")]
    [True, False, False]
    """
    tokens = _TOKEN.findall(reply)
    # A negation or an order in the name is the option's own; alone a negation says nothing.
    if len(reply) < 2 or all(
        _is_filler(t, _BEFORE_ZH) or _is_filler(t, _AFTER_ZH) or _negates(t) for t in tokens
    ):
        return False
    return re.search(_bordered(reply), name) is not None


def _bordered(name: str) -> str:
    """Latin words have borders, Chinese ones do not; "it's" is no "it"."""
    start = rf"(?<!{_EDGE})(?<!{_EDGE}')" if re.match(_EDGE, name) else ""
    end = rf"(?!'?{_EDGE})" if re.match(_EDGE, name[-1:]) else ""
    return start + re.escape(name) + end


def _is_filler(token: str, chinese: re.Pattern[str]) -> bool:
    return token in _WORDS or chinese.fullmatch(token) is not None


def _is_own(token: str, own: frozenset[str], chinese: re.Pattern[str]) -> bool:
    """Whether it is a word of the option, if Chinese with fillers attached: "人事的"."""
    rests = (token.replace(word, "", 1) for word in own if word in token and not word.isascii())
    return token in own or any(map(chinese.fullmatch, rests))


def _negates(token: str) -> bool:
    """Whether a token only negates or asks."""
    return token in _TURNS or token.endswith("n't") or _TURNS_ZH.fullmatch(token) is not None


def _turns(token: str) -> bool:
    turns_zh = _TURNS_ZH.search(token) or _ORDERS_ZH.search(token)
    return _negates(token) or token in _ORDERS or turns_zh is not None


def _is_lead(before: str, own: frozenset[str], *, is_word: bool) -> bool:
    """Whether fillers and the option's own words stand before its name."""
    # "No, travel" corrects the one who asked; "no travel" does not.
    before = re.sub(r"\A(?:no|nope|不是?|不对)\s{0,9}[,，.。;；]", "", before)
    before = before if is_word else _LEAD.sub(" ", before)
    return all(
        _is_own(token, own, _BEFORE_ZH) or _is_filler(token, _BEFORE_ZH)
        for token in _TOKEN.findall(before)
    )


def _is_tail(tokens: list[str], own: frozenset[str], *, is_word: bool) -> bool:
    """Whether fillers follow, maybe behind one word more: "travel expenses", "年假规定"."""
    tokens = [token for token in tokens if not _is_own(token, own, _AFTER_ZH)]
    if any(map(_turns, tokens)) or (is_word and not _VERBS.isdisjoint(tokens[:1])):
        return False
    others = [
        token for token in tokens if token not in _WORDS_BEHIND and not _is_filler(token, _AFTER_ZH)
    ]
    if not others:
        return True
    is_short = others[0].isascii() or len(others[0]) <= _LONGEST_TAIL
    return others == tokens[:1] and is_short
