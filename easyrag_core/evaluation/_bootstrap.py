"""How sure a mean is: percentile intervals by drawing the questions again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from easyrag_core.errors import InvalidParameterError, check_count, check_number

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from numpy.typing import NDArray

__all__ = ["Bootstrap", "Estimate"]

# So many counts are held at a time: 16 MB.
_CELLS: Final = 2_000_000


class Estimate(NamedTuple):
    """A mean over questions, and between which bounds it may lie.

    Attributes:
        mean: Over the questions that were asked.
        low: Lower end of the interval.
        high: Upper end.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Draws as many questions as there are, with replacement, and looks how the mean moves.

    The same values give the same intervals in every run. Efron, "Bootstrap methods: another
    look at the jackknife", Annals of Statistics 1979; percentile intervals.

    Attributes:
        samples: How many times to draw, at least 1.
        confidence: Share of the means that lie in the interval, above 0 and below 1.
        seed: Of the draw, at least 0.

    >>> told = Bootstrap(samples=500).estimate([0.0, 1.0] * 50)
    >>> [round(value, 2) for value in told]
    [0.5, 0.4, 0.6]
    """

    samples: int = 2000
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            InvalidParameterError: One is not as above.
        """
        check_count("samples", self.samples, minimum=1)
        check_count("seed", self.seed)
        allowed = "give a number above 0 and below 1"
        if not 0 < check_number("confidence", self.confidence, allowed=allowed) < 1:
            raise InvalidParameterError("confidence", self.confidence, allowed)

    @staticmethod
    def checked(bootstrap: Bootstrap | None) -> Bootstrap:
        """Return it, or the usual one for `None`.

        Raises:
            InvalidParameterError: It is something else.
        """
        given: object = Bootstrap() if bootstrap is None else bootstrap
        if not isinstance(given, Bootstrap):
            raise InvalidParameterError("bootstrap", given, "give a Bootstrap or None")
        return given

    def estimate(
        self, values: Sequence[float] | NDArray[np.float64], groups: Sequence[Hashable] = ()
    ) -> Estimate:
        """Return a mean with its interval.

        Args:
            values: One for each question, at least one.
            groups: What each question hangs together with, such as its document: those are drawn
                together. Default: each stands alone.

        Returns:
            The mean and the interval.

        Raises:
            InvalidParameterError: There are no values, or another number of groups.

        >>> Bootstrap(samples=100).estimate([0.25, 0.25], ["one page", "one page"])
        Estimate(mean=0.25, low=0.25, high=0.25)
        """
        return self.estimates(np.asarray(values, np.float64)[:, np.newaxis], groups)[0]

    def estimates(
        self, values: NDArray[np.float64], groups: Sequence[Hashable] = ()
    ) -> list[Estimate]:
        """Return the means of several columns, from the same draws.

        O(samples * questions) time for the draws, and as much again for each column.

        Args:
            values: Shape (questions, columns).
            groups: As in `estimate`.

        Returns:
            One estimate for each column.

        Raises:
            InvalidParameterError: As in `estimate`.
        """
        if not len(values):
            raise InvalidParameterError("values", [], "give at least one")
        units = _numbered(groups) if len(groups) else np.arange(len(values))
        if len(units) != len(values):
            allowed = f"give one group for each value, here {len(values)}"
            raise InvalidParameterError("len(groups)", len(units), allowed)
        tail = 50 * (1 - self.confidence)
        low, high = np.percentile(self._means(values, units), [tail, 100 - tail], axis=0)
        columns = zip(values.mean(axis=0), low, high, strict=True)
        return [Estimate(*map(float, column)) for column in columns]

    def _means(self, values: NDArray[np.float64], units: NDArray[np.int64]) -> NDArray[np.float64]:
        """Give the means of each column in each draw."""
        sizes = np.bincount(units)
        count = len(sizes)
        sums = np.zeros((count, values.shape[1]))
        np.add.at(sums, units, values)
        draw = np.random.default_rng(self.seed)
        means = np.empty((self.samples, values.shape[1]))
        block = max(1, _CELLS // count)
        for start in range(0, self.samples, block):
            rows = min(block, self.samples - start)
            places = draw.integers(count, size=(rows, count))
            places += np.arange(rows)[:, np.newaxis] * count
            times = np.bincount(places.ravel(), minlength=rows * count).reshape(rows, count)
            means[start : start + rows] = (times @ sums) / (times @ sizes)[:, np.newaxis]
        return means


def _numbered(groups: Iterable[Hashable]) -> NDArray[np.int64]:
    """Number groups in the order in which they come."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(group, len(numbers)) for group in groups], np.int64)
