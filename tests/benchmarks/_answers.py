"""Questions whose answers have a place in a document, and how well found passages cover them.

Tokens are words, and single characters where a script has no spaces between words. A token is in
a passage if the whole of it is.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from easyrag_core import Bootstrap
from tests.benchmarks.collections import data_root

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from easyrag_core import Estimate

__all__ = ["LAYOUTS", "Document", "Question", "Scores", "Setting", "interval", "read"]

_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W\u3040-\u9fff\uf900-\ufaff]+")

_T = TypeVar("_T")

SEED = 20
PARAGRAPHS_TOGETHER = 20
ARTICLES_TOGETHER = 4


class Question(NamedTuple):
    """A question and where its answer stands.

    Attributes:
        text: The question.
        document: Number of the document.
        start: First code point of the answer.
        end: One past its last.
        paragraph: Number of the paragraph that was asked about: those questions hang together.
    """

    text: str
    document: int
    start: int
    end: int
    paragraph: int


class Document:
    """A text that knows its tokens.

    >>> document = Document("He has 24 cats. 有24只猫")
    >>> document.tokens(0, 9), document.tokens(8, 23), document.widened(8, 18)
    (3, 5, (7, 19))
    """

    def __init__(self, text: str) -> None:
        """Keep the text; tokens are looked for when they are asked for."""
        self.text = text

    @cached_property
    def _edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        spans = [match.span() for match in _TOKEN.finditer(self.text)]
        starts, ends = zip(*spans, strict=True) if spans else ((), ())
        return np.array(starts, np.int64), np.array(ends, np.int64)

    def tokens(self, start: int, end: int) -> int:
        """Count the tokens that lie wholly in a span."""
        starts, ends = self._edges
        first, stop = np.searchsorted(starts, start), np.searchsorted(ends, end, side="right")
        return max(0, int(stop - first))

    def widened(self, start: int, end: int) -> tuple[int, int]:
        """Return a span with the tokens whole that it cuts."""
        starts, ends = self._edges
        first = int(np.searchsorted(ends, start, side="right"))
        stop = int(np.searchsorted(starts, end))
        if first >= stop:
            return start, end
        return min(start, int(starts[first])), max(end, int(ends[stop - 1]))


@dataclass(frozen=True)
class Setting:
    """Long documents with the questions about them.

    Attributes:
        language: `en` or `zh`.
        layout: How the documents were put together, a key of `LAYOUTS`.
        documents: The documents.
        questions: The questions about them.
    """

    language: str
    layout: str
    documents: list[Document]
    questions: list[Question]


class Scores(NamedTuple):
    """How well the first `k` passages cover one answer.

    Attributes:
        recall: Share of the answer's tokens that were found.
        precision: Share of the found tokens that are the answer's; what is found twice is read
            twice, so it counts twice.
        iou: Tokens in both over tokens in either.
    """

    recall: float
    precision: float
    iou: float

    @classmethod
    def of(
        cls, question: Question, found: Sequence[tuple[int, int, int]], documents: list[Document]
    ) -> Scores:
        """Score passages, given as document, start and end.

        >>> documents = [Document("one two three four")]
        >>> Scores.of(Question("?", 0, 4, 13, 0), [(0, 0, 7), (0, 4, 18)], documents)
        Scores(recall=1.0, precision=0.4, iou=0.4)
        """
        document = documents[question.document]
        wanted = document.tokens(question.start, question.end)
        read = sum(documents[number].tokens(start, end) for number, start, end in found)
        both, reached = 0, question.start
        for start, end in sorted(span for number, *span in found if number == question.document):
            start, end = max(start, reached), min(end, question.end)  # noqa: PLW2901
            if start < end:
                both += document.tokens(start, end)
                reached = end
        return cls(both / wanted, both / read if read else 0.0, both / (read + wanted - both))


def interval(values: Sequence[float], clusters: Sequence[int]) -> Estimate:
    """Bootstrap the mean over clusters: questions about one paragraph hang together.

    Args:
        values: One figure a question.
        clusters: The paragraph of each.

    Returns:
        The mean and the 2.5 and 97.5 percentiles; the same in every run.
    """
    return Bootstrap(seed=SEED).estimate(values, clusters)


class _Paragraph(NamedTuple):
    number: int
    text: str
    questions: list[tuple[str, int, int]]


class _Article(NamedTuple):
    title: str
    paragraphs: list[_Paragraph]


def read(language: str, layout: str) -> Setting | None:
    """Read the questions of one language; `None` where they are missing.

    Args:
        language: `en` or `zh`.
        layout: A key of `LAYOUTS`.
    """
    path = data_root() / "xquad" / f"xquad.{language}.json"
    if not path.is_file():
        return None
    articles, numbers = [], itertools.count()
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        paragraphs = []
        for paragraph in article["paragraphs"]:
            questions = [
                (asked["question"], answer["answer_start"], len(answer["text"]))
                for asked in paragraph["qas"]
                for answer in asked["answers"][:1]
            ]
            paragraphs.append(_Paragraph(next(numbers), paragraph["context"], questions))
        articles.append(_Article(article["title"].replace("_", " "), paragraphs))
    return _setting(language, layout, LAYOUTS[layout](articles))


def _setting(language: str, layout: str, books: list[list[str | _Paragraph]]) -> Setting:
    """Join the parts of each document by blank lines and move the answers along."""
    documents, questions = [], []
    for book in books:
        asked, length = [], 0
        for part in book:
            if isinstance(part, _Paragraph):
                asked += [
                    (text, length + start, length + start + size, part.number)
                    for text, start, size in part.questions
                ]
            length += len(_text(part)) + 2
        document = Document("\n\n".join(map(_text, book)))
        questions += [
            Question(text, len(documents), *document.widened(start, end), paragraph)
            for text, start, end, paragraph in asked
        ]
        documents.append(document)
    answered = [asked for asked in questions if documents[asked.document].tokens(*asked[2:4])]
    return Setting(language, layout, documents, answered)


def _text(part: str | _Paragraph) -> str:
    return part if isinstance(part, str) else part.text


def _by_article(articles: list[_Article]) -> list[list[str | _Paragraph]]:
    return [list(article.paragraphs) for article in articles]


def _shuffled(articles: list[_Article]) -> list[list[str | _Paragraph]]:
    paragraphs: list[str | _Paragraph] = [one for each in articles for one in each.paragraphs]
    random.Random(SEED).shuffle(paragraphs)
    return _groups(paragraphs, PARAGRAPHS_TOGETHER)


def _markdown(articles: list[_Article]) -> list[list[str | _Paragraph]]:
    """Several articles a document; each is a section with two sections below it."""
    books: list[list[str | _Paragraph]] = []
    for group in _groups(articles, ARTICLES_TOGETHER):
        books.append([])
        for title, paragraphs in group:
            half = len(paragraphs) // 2
            books[-1] += [f"# {title}", "## 1", *paragraphs[:half], "## 2", *paragraphs[half:]]
    return books


def _groups(things: list[_T], size: int) -> list[list[_T]]:
    return [things[at : at + size] for at in range(0, len(things), size)]


LAYOUTS: dict[str, Callable[[list[_Article]], list[list[str | _Paragraph]]]] = {
    "articles": _by_article,
    "shuffled": _shuffled,
    "markdown": _markdown,
}
"""Name to how paragraphs become documents: one article each; twenty paragraphs of anything, drawn
by a fixed seed; four articles under headings."""
