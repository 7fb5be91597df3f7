"""Count what lies on the shelves. 统计货架上的货物。"""

from __future__ import annotations

import functools
from dataclasses import dataclass

LIMIT = 12


@dataclass(
    frozen=True,
    slots=True,
)
class Shelf:
    """One shelf. 一个货架。"""

    name: str
    items: tuple[str, ...] = ()

    @property
    def is_full(self) -> bool:
        return len(self.items) >= LIMIT

    @functools.cached_property
    def label(self) -> str:
        if self.is_full:

            return f"{self.name}（满）"

        return self.name


# Shelves are walked in the order
# in which they were put up.
@functools.lru_cache
async def total(shelves: tuple[Shelf, ...]) -> int:
    count = 0
    for shelf in shelves:
        count += len(shelf.items)

    return count


if __name__ == "__main__":
    print(total(()))
