"""Words of Chinese by jieba's dictionary, silently."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from easyrag_core.errors import MissingDependencyError
from easyrag_core.index.analyzer._characters import CJK, normalize

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Segmenter", "loaded_tokenizer"]

# jieba holds some hundred bytes per character while it cuts a run.
_LONGEST: Final = 10_000


class Segmenter:
    """Cuts runs of Chinese as jieba's search mode does, by the dictionary alone.

    Jieba's model for unknown words is left out: it takes time in the square of a run's length
    and obeys a list that is global to the process.
    """

    def __init__(self, words: Iterable[str]) -> None:
        """Find jieba; the dictionary is read when the first run is cut.

        Args:
            words: Words beside those of the dictionary.

        Raises:
            MissingDependencyError: If jieba is not installed.
        """
        self._words = [run for word in words for run in CJK.findall(normalize(word))]
        self._tokenizer: Any = None
        self._loading = Lock()
        self.version = str(_jieba().__version__)

    def __call__(self, run: str) -> list[str]:
        """Return the words of three or more characters, in order; shorter ones are n-grams."""
        cut = self._loaded().cut_for_search
        pieces = (run[start : start + _LONGEST] for start in range(0, len(run), _LONGEST))
        return [word for piece in pieces for word in cut(piece, HMM=False) if len(word) > 2]

    def _loaded(self) -> Any:
        with self._loading:
            if self._tokenizer is None:
                self._tokenizer = loaded_tokenizer(self._words)
            return self._tokenizer


def loaded_tokenizer(words: Iterable[str] = ()) -> Any:
    """Return a tokenizer of jieba's with its dictionary, loaded without a word or a file.

    Args:
        words: Further words, of Chinese characters alone.

    Returns:
        A `jieba.Tokenizer`.
    """
    frequencies, total = _dictionary()
    tokenizer = _jieba().Tokenizer()
    # Its own way to load logs to the error stream and writes a cache for all users.
    tokenizer.FREQ, tokenizer.total = dict(frequencies) if words else frequencies, total
    tokenizer.initialized = True
    for word in words:
        tokenizer.add_word(word)
    return tokenizer


@cache
def _dictionary() -> tuple[dict[str, int], int]:
    """Read half a million words and beginnings of words; they are never changed."""
    jieba = _jieba()
    # The reader closes the file.
    file = (Path(jieba.__file__).parent / jieba.DEFAULT_DICT_NAME).open("rb")
    frequencies, total = jieba.Tokenizer.gen_pfdict(file)
    return frequencies, total


def _jieba() -> Any:
    with warnings.catch_warnings():
        # Of its age: escapes that Python no longer knows, and pkg_resources.
        warnings.simplefilter("ignore")
        try:
            import jieba  # noqa: PLC0415  # an optional package
        except ImportError:
            raise MissingDependencyError("jieba", "zh") from None
    return jieba
