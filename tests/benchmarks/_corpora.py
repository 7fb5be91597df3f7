"""Where the real data lies, and texts of any size made from it or by code."""

from __future__ import annotations

import os
import random
import sysconfig
from pathlib import Path

__all__ = [
    "MARKDOWN",
    "corpus",
    "data_folder",
    "python_source",
    "repeat_to",
    "without_separators",
    "word_windows",
]

MARKDOWN = {"en": "md_rust_book_en", "zh": "md_vue_zh"}
"""Language to its folder under `md/` of the data."""

_ENGLISH = (
    "Rankings are fused by rank, not by score. ",
    "Every passage knows its exact place in the text, e.g. line 42. ",
    "Is the limit kept? It is, also for Dr. Smith's notes! ",
)
_CHINESE = (
    "检索增强生成把检索和生成结合起来。",
    "每个片段都知道自己的位置，",
    "上限守住了吗？守住了！",
)


def data_folder() -> Path | None:
    """The folder of real data: `EASYRAG_DATA`, else `../shared/data`; `None` where neither is."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("EASYRAG_DATA") or beside)
    return folder if folder.is_dir() else None


def corpus(language: str, size: int) -> tuple[str, str]:
    """A text of about `size` UTF-8 bytes and the name of what it was made from.

    Args:
        language: `en` or `zh`.
        size: Bytes of UTF-8.

    Returns:
        The text, and `md_rust_book_en`, `md_vue_zh` or `made by code`.
    """
    folder = data_folder()
    files = sorted((folder / "md" / MARKDOWN[language]).rglob("*.md")) if folder else []
    if files:
        source = "\n\n".join(path.read_text(encoding="utf-8") for path in files)
        return repeat_to(source, size), MARKDOWN[language]
    return repeat_to(_made(language), size), "made by code"


def python_source(size: int) -> str:
    """About `size` bytes of Python's own library, its tests and what is installed left out."""
    parts, length = [], 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if length > size or {"test", "tests", "site-packages"} & set(path.parts):
            continue
        parts.append(path.read_text(encoding="utf-8", errors="replace"))
        length += len(parts[-1])
    return repeat_to("\n".join(parts), size)


def _made(language: str) -> str:
    sentences = _ENGLISH if language == "en" else _CHINESE
    draw = random.Random(7)
    paragraphs = ("".join(draw.choices(sentences, k=draw.randint(1, 9))) for _ in range(400))
    return "\n\n".join(
        f"## {at}\n\n{text}" if at % 5 == 0 else text for at, text in enumerate(paragraphs)
    )


def repeat_to(text: str, size: int) -> str:
    """Tile a text and cut it to about `size` bytes of UTF-8."""
    width = len(text.encode("utf-8", "surrogatepass"))
    tiled = text * (size // width + 1)
    return tiled[: int(len(tiled) * size / (width * (size // width + 1)))]


def without_separators(size: int) -> str:
    """`size` letters without a space, a line end or a mark: the worst case for splitters."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return (letters * (size // len(letters) + 1))[:size]


def word_windows(count: int, *, seed: int = 3) -> list[str]:
    """`count` documents of 60 to 100 words of English, or of made words with Zipf's frequencies."""
    text, source = corpus("en", 2_000_000)
    draw = random.Random(seed)
    if source == "made by code":
        vocabulary = [f"w{at}" for at in range(50_000)]
        weights = [1 / (rank + 1) for rank in range(len(vocabulary))]
        words = draw.choices(vocabulary, weights, k=1_000_000)
    else:
        words = text.split()
    starts = (draw.randrange(len(words) - 100) for _ in range(count))
    return [" ".join(words[start : start + draw.randint(60, 100)]) for start in starts]
