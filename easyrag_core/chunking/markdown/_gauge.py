"""How much fits: sums for characters, few measurements for any other length function."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple, Protocol

from easyrag_core.chunking._measured import measured
from easyrag_core.chunking._pack import MeasuringRuler
from easyrag_core.chunking._windows import CUTTERS, DOES_NOT_FIT, CharacterRuler
from easyrag_core.chunking.markdown._text import (
    content_start,
    last_content,
    paragraph_stop,
    paragraphs_stop_before,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from easyrag_core.chunking._windows import Ruler, Span
    from easyrag_core.types import LengthFunction

__all__ = ["BARE", "CharacterGauge", "Frame", "Gauge", "MeasuringGauge"]

# A length of fewer units tells nothing about how lengths grow.
_FEW = 12
# After so many calls the interpolation has shown that it does not converge: bisect.
_INTERPOLATIONS = 4
# How much more than what is expected to fit is measured to see that it does not.
_FARTHER = 1.25
# By so much, and by two percent, a length may be less than the sum of its parts' lengths.
_SLACK = 4


class Frame(NamedTuple):
    """What stands around a chunk's text where it is embedded.

    Attributes:
        lead: Before it: headings, a table's header, the line that opens a fence.
        trail: Behind it: the line that closes a fence.
    """

    lead: str = ""
    trail: str = ""


BARE = Frame()


class _Fitting(NamedTuple):
    """A stretch that was measured and fits."""

    start: int
    end: int
    frame: Frame
    units: int


class _TooLong(NamedTuple):
    """A stretch that was measured and does not fit, and the characters around it."""

    start: int
    end: int
    around: int
    limit: int

    def tells(self, start: int, end: int, around: int, limit: int) -> bool:
        """Whether another stretch cannot fit either: it holds this one, and has as much around."""
        longer = self.start == start and self.end <= end and self.around <= around
        return longer and limit <= self.limit


class Gauge(Protocol):
    """Measures stretches of one text, each within a frame."""

    limit: int

    def fits(self, start: int, end: int, frame: Frame) -> bool:
        """Whether `text[start:end]` and its frame are within the limit."""
        ...

    def furthest(
        self, start: int, ends: Sequence[int], low: int, frame: Frame, *, limit: int | None = None
    ) -> int:
        """Return how many of `ends` fit from `start` on; no less than `low`, which do."""
        ...

    def paragraphs_end(self, start: int, low: int, high: int, frame: Frame) -> int:
        """Return where the last paragraph of `text[low:high]` ends that fits from `start` on.

        `low` if none does. Both ends of the stretch are content.
        """
        ...

    def length(self, text: str) -> int:
        """Return the length of a string."""
        ...

    def ruler(self, start: int, body: int, end: int, frame: Frame, overlap: int) -> Ruler:
        """Return what cuts `text[start:end]` into windows that fit their frame.

        What stands before `body` goes with the first window, and is never overlapped.
        """
        ...


class CharacterGauge:
    """Measures in code points."""

    def __init__(self, text: str, shadow: str, limit: int) -> None:
        """Take the text.

        Args:
            text: The text.
            shadow: The same, its lines ending at line feeds.
            limit: The length allowed, in code points.
        """
        self._text = text
        self._shadow = shadow
        self.limit = limit

    def fits(self, start: int, end: int, frame: Frame) -> bool:
        """Whether `text[start:end]` and its frame are within the limit."""
        return end - start + len(frame.lead) + len(frame.trail) <= self.limit

    def furthest(
        self, start: int, ends: Sequence[int], low: int, frame: Frame, *, limit: int | None = None
    ) -> int:
        """Return how many of `ends` fit from `start` on; no less than `low`, which do."""
        room = (self.limit if limit is None else limit) - len(frame.lead) - len(frame.trail)
        return bisect_right(ends, start + room, low)

    def paragraphs_end(self, start: int, low: int, high: int, frame: Frame) -> int:
        """Return where the last paragraph of `text[low:high]` ends that fits from `start` on."""
        limit = start + self.limit - len(frame.lead) - len(frame.trail)
        if limit >= high:
            return high
        return paragraphs_stop_before(self._shadow, low, limit) if limit > low else low

    def length(self, text: str) -> int:
        """Return the length of a string."""
        return len(text)

    def ruler(self, start: int, body: int, end: int, frame: Frame, overlap: int) -> Ruler:
        """Return what cuts `text[start:end]` into windows that fit their frame."""
        size = max(1, self.limit - len(frame.lead) - len(frame.trail))
        ruler = CharacterRuler(
            self._text[start:end],
            CUTTERS["sentence"],
            size=size,
            overlap=min(overlap, size // 2),
            strip=True,
        )
        return ruler if body == start else _BodyRuler(ruler, ruler, body - start)


class MeasuringGauge:
    """Measures final strings with the caller's length function."""

    def __init__(self, text: str, shadow: str, limit: int, length_function: LengthFunction) -> None:
        """Take the text; nothing is measured yet.

        Args:
            text: The text.
            shadow: The same, its lines ending at line feeds.
            limit: The length allowed, in units of the length function.
            length_function: The measure.
        """
        self._text = text
        self._shadow = shadow
        self._chars_per_unit = 1.0
        self._fitting = _Fitting(-1, -1, BARE, 0)  # the last stretch that fitted
        self._too_long = _TooLong(-1, -1, 0, 0)  # the last one that did not
        self._length_function = length_function
        self.limit = limit

    def length(self, text: str) -> int:
        """Return the length of a string."""
        return measured(self._length_function, text, start=0, end=0)

    def fits(self, start: int, end: int, frame: Frame) -> bool:
        """Whether `text[start:end]` and its frame are within the limit."""
        return self._within(start, end, frame, self.limit) <= self.limit

    def furthest(
        self, start: int, ends: Sequence[int], low: int, frame: Frame, *, limit: int | None = None
    ) -> int:
        """Return how many of `ends` fit from `start` on; no less than `low`, which do.

        The number is guessed from the length of what was measured last, so that two calls do
        where lengths grow evenly; bisection makes O(log) of the rest.
        """
        limit = self.limit if limit is None else limit
        high, calls, fitting, sure = len(ends), 0, 0, 0
        around = len(frame.lead) + len(frame.trail)
        reach = int(limit * self._chars_per_unit) - around
        while low < high:
            tried = max(low, bisect_right(ends, start + reach, low, high) - 1)
            if calls > _INTERPOLATIONS:
                tried = (low + high) // 2
            width = ends[tried] - start
            if fitting and width > sure:
                high = tried
                continue
            units = self._within(start, ends[tried], frame, limit)
            calls += 1
            if units > limit:
                high = tried
                reach = fitting + (width - fitting) // 2
                continue
            low, fitting = tried + 1, width
            reach = (width + around) * limit // max(1, units) - around
            sure = reach + reach // 2 + around if units >= _FEW else ends[-1] - start
        return low

    def paragraphs_end(self, start: int, low: int, high: int, frame: Frame) -> int:
        """Return where the last paragraph of `text[low:high]` ends that fits from `start` on."""
        shadow, end, stop = self._shadow, low, low
        while stop < high:
            ends = []
            far = max(stop, start) + self._far(self.limit)
            while stop < min(far, high):
                stop = paragraph_stop(shadow, content_start(shadow, stop, high), high)
                ends.append(last_content(shadow, low, stop))
            count = self.furthest(start, ends, 0, frame)
            end = ends[count - 1] if count else end
            if count < len(ends):
                break
        return end

    def ruler(self, start: int, body: int, end: int, frame: Frame, overlap: int) -> Ruler:
        """Return what cuts `text[start:end]` into windows that fit their frame."""
        lead, trail = frame

        def measure(piece: str) -> int:
            return measured(self._length_function, piece, start=start, end=end)

        def ruler(length_function: LengthFunction) -> Ruler:
            return MeasuringRuler(
                self._text[start:end],
                CUTTERS["sentence"],
                size=self.limit,
                overlap=overlap,
                strip=True,
                length_function=length_function,
            )

        windows = ruler(lambda piece: measure(lead + piece + trail))
        if body == start and not overlap:
            return windows
        return _BodyRuler(windows, ruler(measure), body - start)

    def _within(self, start: int, end: int, frame: Frame, limit: int) -> int:
        """Return the length of a stretch in its frame, or something above `limit` if it is.

        What is far longer than can be expected to fit is not measured whole: its beginning is,
        or only what it has more than the longest stretch from this start that fits.
        """
        around = len(frame.lead) + len(frame.trail)
        fitting = self._fitting
        if self._too_long.tells(start, end, around, limit):
            return limit + 1
        if fitting.start == start and fitting.frame == frame:
            if fitting.end == end:
                return fitting.units
            if fitting.end < end and self._is_over(fitting, end, limit):
                return limit + 1
        reach = self._far(limit)
        while start + reach < end:
            units = self._measure(start, start + reach, frame)
            if units > limit + _SLACK:
                self._too_long = _TooLong(start, start + reach, around, limit)
                return units
            reach *= 2
        units = self._measure(start, end, frame)
        if units > limit:
            self._too_long = _TooLong(start, end, around, limit)
        elif fitting.start != start or fitting.end < end:
            self._fitting = _Fitting(start, end, frame, units)
        return units

    def _is_over(self, fitting: _Fitting, end: int, limit: int) -> bool:
        """Whether what follows a stretch that fits is for sure too long to go with it.

        A length of two texts together may be a little less than the sum: where it is close, the
        answer is no, and the whole has to be measured.
        """
        room = limit - fitting.units
        stop = min(end, fitting.end + self._far(room))
        if room < 0 or end - fitting.start < limit * self._chars_per_unit:
            return False
        piece = self._text[fitting.end : stop]
        more = measured(self._length_function, piece, start=fitting.end, end=stop)
        return more > room + _SLACK + limit // 50

    def _far(self, limit: int) -> int:
        return int(limit * self._chars_per_unit * _FARTHER) + 16

    def _measure(self, start: int, end: int, frame: Frame) -> int:
        text = frame.lead + self._text[start:end] + frame.trail
        units = measured(self._length_function, text, start=start, end=end)
        if units > 0:
            self._chars_per_unit = len(text) / units
        return units


class _BodyRuler:
    """Measures a text whose beginning belongs to the first window and to no overlap."""

    def __init__(self, windows: Ruler, overlaps: Ruler, body: int) -> None:
        """Take what measures.

        Args:
            windows: Measures windows in their frame.
            overlaps: Measures overlaps, without it.
            body: Where the text begins that is cut.
        """
        self._windows = windows
        self._overlaps = overlaps
        self._body = body
        self.text = windows.text
        self.cutter = windows.cutter
        self.size = windows.size
        self.overlap = windows.overlap
        self.strip = windows.strip

    def end(self, start: int, floor: int) -> tuple[int, int]:
        """Return where the fullest window from `start` ends, and how strongly."""
        if floor < self._body:
            end, strength = self._windows.end(start, self._body)
            if strength != DOES_NOT_FIT:
                return end, strength
        return self._windows.end(start, floor)

    def begin(self, anchor: int, floor: int, high: int, limit: int) -> int:
        """Return the first start in the body from which `anchor` is within `limit`."""
        ruler = self._overlaps if limit == self.overlap else self._windows
        return ruler.begin(anchor, max(floor, self._body - 1), high, limit)

    def glide(self, start: int, plain: int, floor: int, spans: list[Span]) -> tuple[int, int, int]:  # noqa: ARG002
        """Go nowhere: windows are looked at one by one."""
        return start, plain, floor
