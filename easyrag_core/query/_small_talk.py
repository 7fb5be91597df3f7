"""Greetings, thanks and feedback: what is said, not asked."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["is_small_talk"]

_LONGEST: Final = 120
_BETWEEN: Final = re.compile(r"[\s,，.。!！~～…;；、:：)）(（\-—]+")
_CLAUSE: Final = re.compile(r"[,，.。!！~～…;；、:：)）(（—\n]+|\s-\s")
_PICTURE: Final = re.compile("[\u2600-\u27bf\ufe0f\u200d\U0001f000-\U0001faff]+")

_ENGLISH: Final = re.compile(
    r"(?:(?:oh|ok|okay|great|well|hey|hi|hello|and|so|alright|yes|no|wow|ah|cool|perfect)\s+)*"
    r"(?:"
    r"hi|hiya|hey|hello|howdy|greetings|good (?:morning|afternoon|evening|night|day)|how are you"
    r"(?: doing)?(?: today)?|nice to meet you|(?:hi|hello|hey) (?:there|all|everyone|again)"
    r"|(?:(?:ok|okay)\s+)?(?:many |a lot of )?(?:thanks|thank you|thankyou|thx|ty|cheers|tysm)"
    r"(?: you)?(?: (?:so|very) much| a lot| a million| again| anyway| all| everyone)?"
    r"(?: for (?:(?:your|the|all|all your|that|this|your quick|the quick)\s?)"
    r"(?:help|answer|answers|explanation|info|information|reply|response|time|clarification"
    r"|support)?)?"
    r"|much appreciated|i appreciate (?:it|that|your help)|you(?:'re| are) welcome|no problem"
    r"|ok|okay|k|kk|alright|all right|got it|i (?:see|understand|got it)|understood|makes sense"
    r"|that makes sense|cool|great|nice|perfect|awesome|excellent|wonderful|amazing|good|fine"
    r"|very (?:good|helpful|clear|useful)|good (?:job|answer|bot|one)|great (?:job|answer)"
    r"|well done|nice (?:one|job|answer)|(?:this|that|it|the answer|your answer|everything)"
    r"(?:'s| is| was)(?: now)?(?: (?:very|so|really|quite|super|all|much|perfectly|extremely))?"
    r"(?: (?:clear|clearer|helpful|great|good|perfect|useful|right|correct|wrong|fine|nice"
    r"|excellent|awesome|amazing|what i (?:needed|wanted)|all|it|wonderful|enough|not helpful"
    r"|not right|not correct))(?: now| to me)?"
    r"|(?:that|this|it) (?:really )?(?:helps|helped|worked|works)(?: a lot| me)?"
    r"|(?:that's|that is) (?:all|it)(?: for (?:now|today))?|bye|goodbye|bye bye|see you"
    r"(?: later| soon| tomorrow)?|have a (?:nice|good|great) (?:day|one|evening|weekend)"
    r"|take care|lol|haha+|wow"
    r")(?:\s+(?:too|then|there|again|everyone|all|bot|buddy|man|mate|sir|friend|now))*"
)
_CHINESE: Final = re.compile(
    r"(?:嗯|哦|噢|啊|那|好的?|真的?|非常|太|多|十分|很)*"
    r"(?:"
    r"(?:你|您|大家)们?好呀?|哈喽|哈罗|嗨|早上?好?|(?:上午|中午|下午|晚上)好|晚安|在吗|在么|在不在|有人吗"
    r"|多?谢谢?(?:了|啦|你|您|大家)*(?:的?(?:帮助|回答|解答|讲解|解释|耐心|分享|指导|回复))?|谢+|感谢(?:你|您)?"
    r"(?:的?(?:帮助|回答|解答|讲解|解释|分享|指导|回复|耐心))*|辛苦(?:了|您了|你了)|麻烦(?:了|你了|您了)|不客气|不用谢|没关系"
    r"|好|好的|好吧|好嘞|好滴|行|行吧|可以|可以了|嗯|哦|ok|okay|收到|知道了|我?知道了|我?明白了?|我?懂了|我?了解了?|清楚了?|原来如此"
    r"|(?:你|您|这个?|那个?|上面的?|刚才的?)?的?(?:回答|解释|答案|讲解|说明|解答|内容|总结|介绍|说|讲|写|做)(?:得|的)?(?:很|非常|太|真|挺|十分|特别|已经|不够|不太|不)*"
    r"(?:清楚|清晰|好|棒|详细|对|准确|正确|有用|有帮助|到位|专业|全面|满意|赞|明白|错)(?:了|啦|呀|啊)?"
    r"|(?:很|非常|太|真|挺|十分|特别|不)?(?:棒|赞|厉害|好|清楚|清晰|有用|有帮助|详细|不错|完美|给力|优秀|满意|对|正确)(?:了|啦|呀|啊|极了|哦)?"
    r"|(?:对|这对)?我?(?:很|非常|特别)?有(?:帮助|用)(?:了)?|帮(?:大忙|到我)了?|解决了|没(?:有)?(?:别的)?问题了?|没事了?|没了"
    r"|再见|拜拜|拜|88|回头见|下次见|先这样(?:吧)?|就这样(?:吧)?|哈+|呵+|嘻+|哇+"
    r")(?:了|啦|呀|啊|哦|哈|吧|呢|嘛|哟|的|~)*"
)


def is_small_talk(text: str) -> bool:
    """Say whether a text is nothing but greeting, thanks or feedback, in English or Chinese.

    Args:
        text: What the user typed.

    Returns:
        True only when every clause is; a question behind a greeting is a question.

    >>> is_small_talk("谢谢，回答很清楚"), is_small_talk("Thanks, that's clear")
    (True, True)
    >>> is_small_talk("Thanks! And what does it cost?"), is_small_talk("你好，怎么请年假")
    (False, False)
    """
    if len(text) > _LONGEST:
        return False
    plain = _PICTURE.sub(" ", unicodedata.normalize("NFKC", text).casefold().replace("’", "'"))
    if "?" in plain and "how are you" not in plain and "在" not in plain and "有人吗" not in plain:
        return False
    clauses = [_tidy(clause) for clause in _CLAUSE.split(plain.replace("?", ","))]
    spoken = [clause for clause in clauses if clause]
    return bool(spoken or _PICTURE.search(text)) and all(map(_is_talk, spoken))


def _tidy(clause: str) -> str:
    return _BETWEEN.sub(" ", clause).strip()


def _is_talk(clause: str) -> bool:
    if _ENGLISH.fullmatch(clause):
        return True
    # Chinese is written with or without spaces: each part may stand for itself.
    return all(_CHINESE.fullmatch(part) or _ENGLISH.fullmatch(part) for part in clause.split())
