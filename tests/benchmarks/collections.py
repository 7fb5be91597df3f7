"""Reads the retrieval collections that lie outside the repository."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Collection", "collection_names", "data_root", "read_collection", "reduced"]

_BESIDE_THE_REPOSITORY = Path(__file__).resolve().parents[3] / "shared" / "data"


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents, questions, and which documents answer which question how well.

    Attributes:
        name: The folder's name.
        ids: The documents' ids.
        texts: Title and text of each document, joined by a space where there is a title. (On
            Cranfield, whose texts begin with the title again, this weighs it twice: nDCG@10 with
            the English stemmer is .371 so, and .360 with the text alone.)
        queries: Question id to question.
        grades: Question id to document id to grade.
        titles: Document id to title, for those that have one.
    """

    name: str
    ids: list[str]
    texts: list[str]
    queries: dict[str, str]
    grades: dict[str, dict[str, int]]
    titles: dict[str, str] = field(default_factory=dict)


def data_root() -> Path:
    """Return where the data are: `$EASYRAG_DATA`, else beside the repository."""
    return Path(os.environ.get("EASYRAG_DATA", _BESIDE_THE_REPOSITORY))


def collection_names() -> list[str]:
    """List the collections that are there; none where the data are missing."""
    return sorted(folder.parent.name for folder in (data_root() / "ir").glob("*/corpus.jsonl"))


def read_collection(name: str) -> Collection:
    """Read one collection.

    Args:
        name: A folder under `ir/`.

    Returns:
        The collection; questions without a graded document are left out.
    """
    folder = data_root() / "ir" / name
    documents = list(_lines(folder / "corpus.jsonl"))
    grades: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        if int(grade) > 0:
            grades.setdefault(query, {})[document] = int(grade)
    return Collection(
        name=name,
        ids=[document["_id"] for document in documents],
        texts=[f"{document['title']} {document['text']}".strip() for document in documents],
        queries={
            query["_id"]: query["text"]
            for query in _lines(folder / "queries.jsonl")
            if query["_id"] in grades
        },
        grades=grades,
        titles={document["_id"]: document["title"] for document in documents if document["title"]},
    )


def reduced(collection: Collection, *, questions: int = 20, others: int = 80) -> Collection:
    """Take the first questions, the documents that answer them and some that do not.

    Args:
        collection: Any collection.
        questions: How many questions at most.
        others: How many further documents at most.

    Returns:
        A collection that is measured in a moment.
    """
    asked = dict(islice(collection.queries.items(), questions))
    wanted = {id_ for query in asked for id_ in collection.grades[query]}
    rest = [id_ for id_ in collection.ids if id_ not in wanted][:others]
    kept = wanted.union(rest)
    pairs = zip(collection.ids, collection.texts, strict=True)
    texts = {id_: text for id_, text in pairs if id_ in kept}
    grades = {query: collection.grades[query] for query in asked}
    return replace(
        collection, ids=list(texts), texts=list(texts.values()), queries=asked, grades=grades
    )


def _lines(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)
