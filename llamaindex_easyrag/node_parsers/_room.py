"""How much of a chunk's size its surroundings take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["NetLength", "Surroundings"]


class Surroundings(NamedTuple):
    """What stands around a node's text when a model reads it.

    Attributes:
        template: The node's text template.
        metadata: The node's metadata text.
    """

    template: str
    metadata: str

    def around(self, text: str) -> str:
        """Return what a model reads.

        Args:
            text: The node's text.

        Returns:
            The text with its surroundings.
        """
        return self.template.format(metadata_str=self.metadata, content=text)


@dataclass(frozen=True, slots=True)
class NetLength:
    """What a text adds to the length of its surroundings, measured on the final string.

    Tokens may merge across the border, so lengths do not simply add up.

    Attributes:
        measure: The length of a text.
        surroundings: What stands around it.
        reserve: The length of the surroundings alone.
    """

    measure: Callable[[str], int]
    surroundings: Surroundings
    reserve: int

    def __call__(self, text: str) -> int:
        """Measure a text within its surroundings.

        Args:
            text: The text.

        Returns:
            Its own share; never below 0, even where tokens merge.
        """
        length = self.measure(self.surroundings.around(text))
        # A length that is none goes on as it is: the chunker says so, with the place.
        return length if length < 0 else max(0, length - self.reserve)
