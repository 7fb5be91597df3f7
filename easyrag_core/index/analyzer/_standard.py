"""The default analyzer: every script, identifiers whole and in parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from easyrag_core.errors import check_choice
from easyrag_core.index.analyzer._terms import CJK_NGRAMS
from easyrag_core.index.analyzer._word_analyzer import WordAnalyzer

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["StandardAnalyzer"]


@dataclass(frozen=True, kw_only=True)
class StandardAnalyzer(WordAnalyzer):
    """Analyses text of every script, without a dictionary.

    - Text is brought to NFKC and folded; marks stay with their letter, and signs that only
      shape a word (joiners, soft hyphens, optional vowel points) are dropped.
    - Words are runs of one script: `2010年上海` and `Redis介绍` part. Single letters count.
    - `C++`, `.NET`, `v2.3`, `ORD-0012`, `getUserName` and `get_user_name` are found whole and by
      their parts.
    - Chinese and Japanese give unigrams and bigrams, Korean words also their bigrams.
    - Thai, Lao, Khmer and Burmese give trigrams.

    Instances are immutable, may be shared between threads, pickle, and are equal when their
    settings are.

    Attributes:
        lowercase: Fold case (Unicode case folding).
        stop_words: `None`, the name of a language, or the words themselves.
        stemmer: `None` or a Snowball language such as `"english"`; needs the extra `[stem]`.
        identifiers: Take identifiers whole and in parts; without, every sign but the
            underscore parts words.
        cjk: `"unigram+bigram"`, `"bigram"` or `"unigram"`.

    Raises:
        InvalidParameterError: For an unknown language, or a value of another kind.
        MissingDependencyError: For a stemmer without PyStemmer.

    >>> StandardAnalyzer()("Redis介绍 v2.3")
    ['redis', '介', '绍', '介绍', 'v2.3', 'v2', '2', '3']
    """

    cjk: str = "unigram+bigram"

    _name: ClassVar[str] = "standard"
    _pool_from: ClassVar[int] = 50_000_000

    def _cjk_terms(self) -> Callable[[str], list[str]]:
        return CJK_NGRAMS[check_choice("cjk", self.cjk, tuple(CJK_NGRAMS))]
