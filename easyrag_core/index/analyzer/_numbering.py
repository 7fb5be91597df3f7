"""The terms of many texts as numbers, which is what an index needs of them."""

from __future__ import annotations

from array import array
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["Numbered", "numbered_lists", "numbered_tokens"]


class Numbered(NamedTuple):
    """The terms of some texts, end to end.

    Attributes:
        terms: The distinct terms, in the order in which they came first.
        numbers: (p,) for each term of each text its place in `terms`.
        lengths: (n,) how many terms each text has.
    """

    terms: list[str]
    numbers: NDArray[np.int32]
    lengths: NDArray[np.int32]

    def lists(self) -> list[list[str]]:
        """Return the terms of each text."""
        found = map(self.terms.__getitem__, self.numbers.tolist())
        return [list(islice(found, length)) for length in self.lengths.tolist()]


class _Numbers(dict[str, int]):
    """Gives each new string the next number."""

    def __missing__(self, string: str) -> int:
        number = self[string] = len(self)
        return number


def numbered_lists(lists: Sequence[Sequence[str]]) -> Numbered:
    """Number the terms of texts that are analysed already.

    Args:
        lists: The terms of each text.

    Returns:
        The same terms. O(p) time.
    """
    numbers = _Numbers()
    numbered = _integers(map(numbers.__getitem__, chain.from_iterable(lists)))
    return Numbered(list(numbers), numbered, _integers(map(len, lists)))


def numbered_tokens(
    token_lists: Iterable[Sequence[str]], terms_of: Mapping[str, Sequence[str]]
) -> Numbered:
    """Number the terms of texts that are cut into tokens.

    What a token gives is asked for once, however often it comes: the rest is arithmetic.

    Args:
        token_lists: The tokens of each text; each list may be dropped before the next is made.
        terms_of: Token to its terms.

    Returns:
        The terms of each text, token by token. O(p) time.
    """
    tokens, counts, flat = _Numbers(), array("i"), array("i")
    for its in token_lists:
        counts.append(len(its))
        flat.extend(map(tokens.__getitem__, its))
    terms, numbers, sizes = numbered_lists([terms_of[token] for token in tokens])
    repeats = sizes[flat]
    ends = np.concatenate(([0], np.cumsum(repeats, dtype=np.int64)))
    # Each token's terms stand end to end: from where they do to where they go is one step.
    steps = (np.cumsum(sizes, dtype=np.int64) - sizes)[flat] - ends[:-1]
    places = np.repeat(steps, repeats)
    places += np.arange(places.size)
    borders = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    return Numbered(terms, numbers[places], np.diff(ends[borders]).astype(np.int32))


def _integers(values: Iterable[int]) -> NDArray[np.int32]:
    return np.array(array("i", values), np.int32)
