"""Windows under a length function that may be slow and need not be additive.

Every size is measured on the final string. The search for the fullest window is an
interpolation with a bisection behind it, so that a tokenizer is called a few times a window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from easyrag_core.chunking._boundaries import BLANK_LINE
from easyrag_core.chunking._measured import measured
from easyrag_core.chunking._windows import DOES_NOT_FIT
from easyrag_core.text import content_end, grapheme_boundary_after, strip_span

if TYPE_CHECKING:
    from collections.abc import Callable

    from easyrag_core.chunking._windows import Cutter, Span
    from easyrag_core.types import LengthFunction

__all__ = ["MeasuringRuler", "widest"]

# A window of fewer units is too small to expect anything from its density.
_FEW = 12
# A window this full is taken where a wider one did not fit.
_FULL = 0.75
# Words just beyond the expected reach are looked for as far as this.
_NEAR = 32
# After so many calls the interpolation has shown that it does not converge: bisect.
_INTERPOLATIONS = 4


class MeasuringRuler:
    """Measures with the caller's length function, in the caller's unit."""

    def __init__(
        self,
        text: str,
        cutter: Cutter,
        *,
        size: int,
        overlap: int,
        strip: bool,
        length_function: LengthFunction,
    ) -> None:
        """Take the settings; nothing is measured yet.

        Args:
            text: The text.
            cutter: Chooses the places.
            size: The longest window, in units of the length function.
            overlap: The longest overlap, in the same unit.
            strip: Move spans past blank edges, and measure without them.
            length_function: The measure.
        """
        self.text = text
        self.cutter = cutter
        self.size = size
        self.overlap = overlap
        self.strip = strip
        self._measure = length_function
        self._length = content_end(text) if strip else len(text)
        # Bytes a unit took in the last window: steadier than characters where the script changes.
        self._bytes_per_unit = 1.0
        self._last_width = size

    def end(self, start: int, floor: int) -> tuple[int, int]:
        """Return where the fullest window from `start` ends, after `floor`, and how strongly."""
        strengths: dict[int, int] = {}

        def propose(reach: int) -> int:
            position, strength = self._cut(start, start + reach, floor)
            strengths[position - start] = strength
            return position - start

        width, units = widest(
            propose,
            lambda distance: self._units(start, start + distance),
            limit=self.size,
            guess=max(self._guess(start), floor - start + 1),
            most=self._length - start,
        )
        if not width:
            return grapheme_boundary_after(self.text, floor, floor=floor), DOES_NOT_FIT
        self._remember(start, start + width, units)
        return start + width, strengths[width]

    def begin(self, anchor: int, floor: int, high: int, limit: int) -> int:
        """Return the first start in `(floor, high)` from which `anchor` is within `limit`."""
        if floor + 1 >= high:
            return high

        def propose(reach: int) -> int:
            low = max(floor + 1, anchor - reach)
            position = self.cutter.earliest(self.text, low, high, floor)
            return anchor - position if position < high else 0

        width, _ = widest(
            propose,
            lambda distance: self._units(anchor - distance, anchor),
            limit=limit,
            guess=max(1, self._last_width * limit // self.size) + anchor - high,
            most=anchor - floor - 1,
        )
        return anchor - width if width else high

    def glide(self, start: int, plain: int, floor: int, spans: list[Span]) -> tuple[int, int, int]:  # noqa: ARG002
        """Go nowhere: each window has to be measured."""
        return start, plain, floor

    def _cut(self, start: int, high: int, floor: int) -> tuple[int, int]:
        if high >= self._length:
            return self._length, BLANK_LINE
        if high <= floor:
            return start, DOES_NOT_FIT
        width = high - start - 1
        return self.cutter.latest(self.text, start + width // 4, start + width // 2, high, floor)

    def _units(self, start: int, end: int) -> int:
        if self.strip:
            start, end = strip_span(self.text, start, end)
        return measured(self._measure, self.text[start:end], start=start, end=end)

    def _guess(self, start: int) -> int:
        """Expect as many bytes a unit as in the last window, in the script that stands here."""
        ahead = self.text[start : start + self._last_width]
        bytes_per_char = _bytes(ahead) / max(1, len(ahead))
        return max(1, int(self.size * self._bytes_per_unit / bytes_per_char))

    def _remember(self, start: int, end: int, units: int) -> None:
        if units > 0:
            self._bytes_per_unit = _bytes(self.text[start:end]) / units
            self._last_width = end - start


def widest(
    propose: Callable[[int], int],
    measure: Callable[[int], int],
    *,
    limit: int,
    guess: int,
    most: int,
) -> tuple[int, int]:
    """Find the widest proposal that measures at most `limit`, with few measurements.

    Args:
        propose: From a reach in characters to the width of the best window within it, 0 for
            none; a wider reach never gives a narrower window.
        measure: From a width to its length in the limit's unit.
        limit: The length allowed.
        guess: The reach to begin with.
        most: The widest reach possible.

    Returns:
        The width and its length; `(0, 0)` when nothing fits. O(log most) measurements, and one
        or two where lengths grow evenly.
    """
    best = best_units = calls = 0
    bad, bad_units = most + 1, limit + 1
    reach = min(guess, most)
    while True:
        width = propose(reach)
        if best < width < bad:
            units = measure(width)
            calls += 1
            if units <= limit:
                best, best_units = width, units
            else:
                bad, bad_units = width, units
            if bad - best <= 1 or (units == limit and calls > _INTERPOLATIONS):
                break
            reach = _next_reach(best, best_units, bad, bad_units, limit, most, calls)
        elif best_units >= _FEW and (bad > most or best_units >= limit * _FULL):
            break  # nothing more within the reach that the limit is expected at
        else:
            last = min(bad - 1, most, 2 * _expected(best, best_units, limit, guess) + _NEAR)
            if reach >= last:
                break
            reach = last if bad <= most else min(last, reach + reach // 4 + 1)
    return best, best_units


def _expected(best: int, best_units: int, limit: int, guess: int) -> int:
    return best * limit // best_units if best_units else guess


def _next_reach(
    best: int, best_units: int, bad: int, bad_units: int, limit: int, most: int, calls: int
) -> int:
    """Interpolate between what fits and what does not; bisect when that takes too long."""
    if bad > most:
        reach = best * limit // max(1, best_units) + 1
        return max(best + 1, min(reach, most, 2 * best + 1))
    if calls > _INTERPOLATIONS:
        reach = (best + bad) // 2
    else:
        reach = best + (bad - best) * (limit - best_units) // max(1, bad_units - best_units)
    return max(best + 1, min(reach, bad - 1))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
