"""Hypothesis strategies for texts that break splitters and analyzers."""

from __future__ import annotations

from hypothesis import strategies as st

__all__ = ["FRAGMENTS", "nasty_texts", "paragraphs"]

FRAGMENTS = (
    "The cat sat on the mat. ",
    "Dr. Smith paid $3.50 at 5 p.m. today! ",
    "e.g. this; and, that: those… ",
    "检索增强生成很有用。",
    "“真的吗？”他问：（是的！）",
    "今天天气很好，我们去公园玩吧！",
    "「はい」と彼は言った。カタカナ ",
    "สวัสดีครับ ",
    "नमस्ते दुनिया। ",
    "한국어 문장입니다. ",
    "👨‍👩‍👧‍👦",
    "👍🏽",
    "🇩🇪🇫🇷🇨🇳",
    "e\u0301e\u0301",
    "\u1100\u1161\u11a8\u1100\u1161\u11a8",
    "\ud83d",
    "\udc00",
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\n\n",
    "\r",
    "\u2028",
    "\x0b\x0c\x85",
    "\ufeff",
    "\u3000\u3000",
    "\u00a0",
    "\t",
    "    def f(x):\n        return x\n",
    "x" * 90,
    "(a) [b] {c} 《d》",
    "v2.3 3.14 1,000 C++ ",
    "# Heading\n",
    "\x00",
)
"""Pieces that each break some splitter: joined at random they make the worst documents."""


def nasty_texts(*, max_fragments: int = 40) -> st.SearchStrategy[str]:
    """Texts rich in CRLF, BOM, CJK, emoji families, combining marks, surrogates, long words."""
    fragment = st.one_of(
        st.sampled_from(FRAGMENTS),
        st.text(alphabet=st.characters(), max_size=12),
    )
    return st.lists(fragment, max_size=max_fragments).map("".join)


def paragraphs() -> st.SearchStrategy[str]:
    """Ordinary prose in English and Chinese, in paragraphs."""
    sentence = st.sampled_from(
        (
            "Rankings are fused by rank.",
            "Every chunk knows its place!",
            "Is the limit kept?",
            "每个片段都知道自己的位置。",
            "排序由名次融合而成！",
        )
    )
    paragraph = st.lists(sentence, min_size=1, max_size=6).map(" ".join)
    return st.lists(paragraph, min_size=1, max_size=8).map("\n\n".join)
