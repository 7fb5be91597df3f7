"""Which number a term has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from easyrag_core.errors import IndexFormatError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from easyrag_core.index.bm25._strings import StringTable

__all__ = ["Vocabulary", "damaged_terms"]


class Vocabulary(dict[str, int]):
    """Term to number, over a table of terms that stays on disk.

    Subscription numbers a new term and is the writer's alone; `number_of` does not. What the
    writer looked up in the table is remembered, so that a common word costs one look into a dict.
    """

    def __init__(
        self, saved: StringTable | None = None, numbered: Mapping[str, int] | None = None
    ) -> None:
        """Start with the terms of a saved index, or with none.

        Args:
            saved: Terms that have the first numbers.
            numbered: Terms that are known by their numbers, in the order of the new ones.
        """
        super().__init__(numbered or {})
        self._saved = saved
        self._first_new = 0 if saved is None else len(saved)
        self._next = max(self._first_new, 1 + max(self.values(), default=-1))

    @classmethod
    def of(cls, terms: list[str]) -> Vocabulary:
        """Number terms in their order.

        Raises:
            IndexFormatError: If one comes twice: it was not found where a damaged file has it.
        """
        numbered = dict(zip(terms, range(len(terms)), strict=True))
        if len(numbered) < len(terms):
            raise damaged_terms()
        return cls(numbered=numbered)

    def __missing__(self, term: str) -> int:
        """Look a term up in the table, or number it as a new one."""
        number = None if self._saved is None else self._saved.find(term)
        if number is None:
            number = self._next
            self._next += 1
        self[term] = number
        return number

    def number_of(self, term: str) -> int | None:
        """Return the number of a term; `None` for one that no document ever had."""
        number = self.get(term)
        if number is None and self._saved is not None:
            number = self._saved.find(term)
        return number

    def terms(self) -> list[str]:
        """Return all terms, by number."""
        # One step of the interpreter: a writer may be at work.
        numbered = list(self.items())
        saved = [] if self._saved is None else list(self._saved)
        return saved + [term for term, number in numbered if number >= self._first_new]

    def __copy__(self) -> Vocabulary:
        """Copy what a writer changes."""
        return type(self)(self._saved, self)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the terms by number, wherever they came from."""
        return type(self).of, (self.terms(),)


def damaged_terms() -> IndexFormatError:
    """Return the error for terms that a damaged file does not hold, or holds twice."""
    return IndexFormatError("The terms of the saved index are damaged: rebuild it.")
