"""What a caller hands in to be indexed, checked and cut into batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from easyrag_core.errors import InvalidParameterError, check_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Documents"]

_BATCH_DOCUMENTS: Final = 8192
_BATCH_CHARACTERS: Final = 1 << 22
_BATCHES_PER_WORKER: Final = 4


class Documents(NamedTuple):
    """Ids with what is indexed under them.

    Attributes:
        rows: Id to the row that counts, in the order in which the ids came first.
        texts: (n,) the texts.
        fields: Name to (n,) texts of each further field.
    """

    rows: dict[str, int]
    texts: list[str]
    fields: dict[str, list[str]]

    @classmethod
    def checked(
        cls, ids: Sequence[str], texts: Sequence[str], fields: Mapping[str, Sequence[str]] | None
    ) -> Documents:
        """Pair ids with texts; of an id that comes twice the last row counts.

        Args:
            ids: One id per text.
            texts: The texts.
            fields: Further texts per document, by field.

        Returns:
            The documents.

        Raises:
            InvalidParameterError: For different lengths, or values that are no strings.
        """
        listed_ids, listed = check_texts("ids", ids), check_texts("texts", texts)
        others = {
            name: check_texts(f"fields[{name!r}]", its) for name, its in (fields or {}).items()
        }
        for name, values in (("texts", listed), *others.items()):
            if len(values) != len(listed_ids):
                given = f"{len(listed_ids)} ids and {len(values)} texts"
                raise InvalidParameterError(name, given, "give one text per id")
        rows = dict(zip(listed_ids, range(len(listed_ids)), strict=True))
        return cls(rows, listed, others)

    @property
    def characters(self) -> int:
        """How much text there is to read."""
        return sum(self._sizes())

    def batches(self, *, workers: int) -> Iterator[Documents]:
        """Cut documents into batches that are inverted at once.

        Args:
            workers: How many processes take turns in reading them; 0 for none.

        Yields:
            A part of the documents, each with a row of its own.
        """
        sizes = self._sizes()
        most = _BATCH_CHARACTERS
        if workers:
            most = min(most, sum(sizes) // (_BATCHES_PER_WORKER * workers))
        ids: list[str] = []
        characters = 0
        for id_, row in self.rows.items():
            ids.append(id_)
            characters += sizes[row]
            if len(ids) >= _BATCH_DOCUMENTS or characters >= most:
                yield self._only(ids)
                ids, characters = [], 0
        if ids:
            yield self._only(ids)

    def _sizes(self) -> list[int]:
        """Count the characters of each document."""
        columns = (self.texts, *self.fields.values())
        return list(map(sum, zip(*(map(len, texts) for texts in columns), strict=True)))

    def _only(self, ids: list[str]) -> Documents:
        rows = [self.rows[id_] for id_ in ids]
        return Documents(
            dict(zip(ids, range(len(ids)), strict=True)),
            [self.texts[row] for row in rows],
            {name: [its[row] for row in rows] for name, its in self.fields.items()},
        )
