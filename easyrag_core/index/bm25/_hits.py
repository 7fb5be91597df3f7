"""Ranked documents as hits."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Final

from easyrag_core.types import ChannelScore, Hit

if TYPE_CHECKING:
    from easyrag_core.index.bm25._search import Ranked

__all__ = ["CHANNEL", "hits_of"]

CHANNEL: Final = "bm25"


# A frozen dataclass guards each assignment of its constructor, which would then take a third of
# the time of a search among ten thousand documents. The slots themselves are written here.
_new: Final = Hit.__new__
_set_id, _set_score, _set_rank, _set_channels, _set_query, _set_reasons = (
    getattr(Hit, field.name).__set__ for field in fields(Hit)
)


def hits_of(ranked: Ranked) -> list[Hit]:
    """Return a hit for each document, with the channel `"bm25"`."""
    hits = []
    for rank, (id_, score) in enumerate(zip(*ranked, strict=True), 1):
        hit = _new(Hit)
        _set_id(hit, id_)
        _set_score(hit, score)
        _set_rank(hit, rank)
        _set_channels(hit, {CHANNEL: ChannelScore(rank, score)})
        _set_query(hit, None)
        _set_reasons(hit, ())
        hits.append(hit)
    return hits
