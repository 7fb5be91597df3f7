"""Markdown that splitters get wrong, and what the tests of several splitters share."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.strategies import FRAGMENTS

__all__ = ["GUIDE", "markdown_texts", "places", "sized", "words"]

GUIDE = """\
---
title: Guide
---
# Guide

Read this first. 先读这里。

## Install

Run the installer. Then restart the machine.

| key | value |
|-----|-------|
| a | one |
| b | two |
| c | three |

```python
def main():
    return 1
```

## 使用

先建索引，再提问。每个片段都知道自己的位置。
"""

_MARKDOWN = (
    "# One\n",
    "## Two\n",
    "### 三级标题\n",
    "####### not a heading\n",
    "Title\n=====\n",
    "Sub\n---\n",
    "\n---\n\n",
    "---\ntitle: x\n---\n",
    "- item one\n  - inner\n",
    "1. first\n2. second\n",
    "> quoted\n> # not ours\n",
    "```py\n# no heading\n",
    "```\n",
    "~~~~\nx = 1\n~~~~\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n",
    "<!-- # comment -->\n",
    "    # indented code\n",
)


def markdown_texts(*, max_fragments: int = 30) -> st.SearchStrategy[str]:
    """Markdown in pieces, joined at random with texts that break splitters."""
    fragment = st.sampled_from((*_MARKDOWN, *_MARKDOWN, *FRAGMENTS, "\n\n"))
    return st.lists(fragment, max_size=max_fragments).map("".join)


def words(text: str) -> int:
    """Counts words: a length function that is not additive."""
    return len(text.split())


def sized(text: str) -> int:
    """Counts as a tokenizer does that puts a mark at each end."""
    return len(text) + 2


def places(chunks, text):
    """The part of the source that each chunk says it is."""
    return [text[c.metadata["start_index"] : c.metadata["end_index"]] for c in chunks]
