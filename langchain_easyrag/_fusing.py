"""Rankings of documents into one."""

from __future__ import annotations

import logging
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from easyrag_core import (
    FusedItem,
    InvalidParameterError,
    reciprocal_rank_fusion,
    reciprocal_rank_scores,
    score_fusion,
)
from easyrag_core.errors import check_choice
from langchain_easyrag._convert import facts_of, facts_of_fused, given_score, with_facts
from langchain_easyrag._given import is_listing
from langchain_easyrag._identity import fusion_keys
from langchain_easyrag._settings import check_votes

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from langchain_core.documents import Document

__all__ = ["fuse_documents", "fused_with_facts", "with_failed"]

_logger = logging.getLogger(__name__)

_NOTHING: Any = object()


def fuse_documents(
    rankings: Sequence[Sequence[Document]],
    *,
    weights: Sequence[float] | None = None,
    rank_constant: float = 60,
    fusion: str = "rrf",
    id_key: str | None = None,
    score_key: str | None = None,
    k: int | None = None,
) -> list[Document]:
    """Fuse rankings of documents.

    Args:
        rankings: Documents, best first, one sequence per ranking.
        weights: One finite number >= 0 per ranking. Default: 1 each.
        rank_constant: Finite, >= 0; the larger, the less the first ranks stand out.
        fusion: `"rrf"` fuses ranks; `"score"` adds scores that were brought to [0, 1] per
            ranking. A ranking without any score is then taken by its ranks.
        id_key: Documents with the same metadata value under this key are taken for one.
            Default: by id, else by content and source.
        score_key: Metadata key of scores that are not ours.
        k: How many to return; `None` returns all.

    Returns:
        Documents, best first, uncopied, each from the ranking that puts it highest.

    Raises:
        InvalidParameterError: A setting is not as above.

    >>> from langchain_core.documents import Document
    >>> a, b, c = (Document(text, id=text) for text in "abc")
    >>> [document.id for document in fuse_documents([[a, b], [b, c]], k=2)]
    ['b', 'a']
    """
    check_votes(weights, rank_constant)
    if not all(type(ranking) is list or is_listing(ranking) for ranking in rankings):
        raise InvalidParameterError("rankings", rankings, "each one is a list of Documents")
    fused = _Fusion(rankings, id_key=id_key, score_key=score_key)
    if fusion == "rrf":
        return fused.best_by_rank(weights=weights, rank_constant=rank_constant, k=k)
    items = fused.items(fusion, weights=weights, rank_constant=rank_constant, k=k)
    return [fused.best(item) for item in items]


def fused_with_facts(
    rankings: Mapping[str, Sequence[Document]],
    *,
    fusion: str = "rrf",
    weights: Sequence[float] | None = None,
    rank_constant: float = 60,
    id_key: str | None = None,
    score_key: str | None = None,
    k: int | None = None,
) -> list[Document]:
    """Fuse named rankings; like `fuse_documents`, but returns copies with their facts.

    Args:
        rankings: Documents, best first, by the name of the ranking.
        fusion: `"rrf"` or `"score"`.
        weights: One finite number >= 0 per ranking. Default: 1 each.
        rank_constant: Finite, >= 0.
        id_key: Metadata key that tells documents apart.
        score_key: Metadata key of scores that are not ours.
        k: How many to return; `None` returns all.

    Returns:
        Copies, best first.

    Raises:
        InvalidParameterError: A setting is not as above.
    """
    fused = _Fusion(list(rankings.values()), id_key=id_key, score_key=score_key)
    items = fused.items(fusion, weights=weights, rank_constant=rank_constant, k=k)
    explained = []
    for rank, item in enumerate(items, start=1):
        facts = facts_of_fused(item, rank, fused.sources(item, rankings))
        explained.append(with_facts(fused.best(item), facts))
    return explained


class _Fusion:
    """Rankings with their keys, to find the document behind a fused key again."""

    def __init__(
        self,
        rankings: Sequence[Sequence[Document]],
        *,
        id_key: str | None,
        score_key: str | None,
    ) -> None:
        self._rankings = rankings
        self._keys = fusion_keys(rankings, id_key=id_key)
        self._score_key = score_key

    def best_by_rank(
        self, *, weights: Sequence[float] | None, rank_constant: float, k: int | None
    ) -> list[Document]:
        scores = reciprocal_rank_scores(
            self._keys, weights=weights, rank_constant=rank_constant, k=k
        )
        found: dict[Hashable, Document] = {}
        missing = set(scores)
        keys, rankings = self._keys, self._rankings
        if weights is not None and not all(weights):  # who has no vote puts nothing anywhere
            keys = [its for its, weight in zip(keys, weights, strict=True) if weight]
            rankings = [its for its, weight in zip(rankings, weights, strict=True) if weight]
        # The best are found among the first ranks, long before the lists end.
        for key, document in zip(_by_rank(keys), _by_rank(rankings), strict=True):
            if key in missing:
                found[key] = document
                missing.remove(key)
                if not missing:
                    break
        return [found[key] for key in scores]

    def items(
        self,
        fusion: str,
        *,
        weights: Sequence[float] | None,
        rank_constant: float,
        k: int | None,
    ) -> list[FusedItem[Hashable]]:
        if check_choice("fusion", fusion, ("rrf", "score")) == "rrf":
            return reciprocal_rank_fusion(
                self._keys, weights=weights, rank_constant=rank_constant, k=k
            )
        pairs = [
            list(zip(keys, self._scores(ranking), strict=True))
            for keys, ranking in zip(self._keys, self._rankings, strict=True)
        ]
        return score_fusion(pairs, weights=weights, unscored="append", k=k)

    def _scores(self, ranking: Sequence[Document]) -> list[float | None]:
        scores = [given_score(document, score_key=self._score_key) for document in ranking]
        if any(score is not None for score in scores):
            return scores
        if ranking:
            _logger.warning("A ranking gives no scores: its ranks are taken in their place.")
        return [-float(rank) for rank in range(len(ranking))]

    def best(self, item: FusedItem[Hashable]) -> Document:
        best = min(filter(None, item.ranks))  # there is no rank 0
        return self._document(item.ranks.index(best), item)

    def sources(
        self, item: FusedItem[Hashable], names: Iterable[str]
    ) -> dict[str, Document | None]:
        return {
            name: None if rank is None else self._document(number, item)
            for number, (name, rank) in enumerate(zip(names, item.ranks, strict=True))
        }

    def _document(self, number: int, item: FusedItem[Hashable]) -> Document:
        # By rank when ranks were fused; when scores were, a ranking may have been unsorted.
        keys, rank = self._keys[number], item.ranks[number]
        if rank is not None and rank <= len(keys) and keys[rank - 1] == item.key:
            return self._rankings[number][rank - 1]
        return self._rankings[number][keys.index(item.key)]


def _by_rank(rows: Sequence[Sequence[Any]]) -> Iterable[Any]:
    """Give all first items, all second ones, …; where a row has ended, what no key equals."""
    return chain.from_iterable(zip_longest(*rows, fillvalue=_NOTHING))


def with_failed(documents: list[Document], errors: Mapping[str, BaseException]) -> list[Document]:
    """Tell failed channels in the facts of those documents that were found all the same.

    Args:
        documents: What the other channels found.
        errors: Channel name to its error.

    Returns:
        The documents; copies, where a channel failed.
    """
    if not errors:
        return documents
    failed = {name: repr(error) for name, error in errors.items()}
    return [with_facts(found, {**facts_of(found), "failed": failed}) for found in documents]
