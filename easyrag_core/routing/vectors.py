"""Vectors of one embedding model that stands in several places."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from easyrag_core.errors import (
    DimensionMismatchError,
    InvalidParameterError,
    check_count,
    check_texts,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from easyrag_core.routing.candidates import ModelCandidate
    from easyrag_core.routing.router import ModelRouter

__all__ = ["VectorRouter"]

M = TypeVar("M")


class VectorRouter(Generic[M]):
    """Asks a router's candidates for vectors, and hands on those of one space only.

    Vectors of two models cannot be compared. The first vector settles how many dimensions there
    are, if nobody told; a candidate that then gives another number has failed, and the next one
    is asked. Safe to share between threads and tasks.

    >>> from easyrag_core import ModelCandidate, ModelRouter
    >>> places = [ModelCandidate("one", [0.0, 1.0, 2.0]), ModelCandidate("two", [0.5, 1.0])]
    >>> vectors = VectorRouter(ModelRouter(places), name_of=lambda model: None, dimensions=2)
    >>> vectors.call(lambda model, texts: [model], ["a text"])
    [[0.5, 1.0]]
    """

    def __init__(
        self,
        router: ModelRouter[M],
        *,
        name_of: Callable[[M], str | None],
        same_model: bool = False,
        dimensions: int | None = None,
    ) -> None:
        """Refuse candidates that are several models, as far as can be told.

        Args:
            router: The router; what its models have as `dimensions` counts as told.
            name_of: A model's name, or `None` where it has none.
            same_model: The names may differ, as those of deployments do.
            dimensions: How many dimensions the vectors have, where it is known; at least 1.

        Raises:
            InvalidParameterError: Names or numbers of dimensions differ, or `dimensions` is no
                number of at least 1.
        """
        if dimensions is not None:
            check_count("dimensions", dimensions, minimum=1)
        models = [candidate.model for candidate in router.candidates]
        if not same_model:
            _check_one("model names", [name_of(model) for model in models])
        told = [dimensions, *(getattr(model, "dimensions", None) for model in models)]
        _check_one("numbers of dimensions", told)
        self._router = router
        self._dimensions = next((size for size in told if size), None)
        self._lock = threading.Lock()

    @property
    def dimensions(self) -> int | None:
        """How many dimensions the vectors have, once it is known."""
        return self._dimensions

    def call(
        self, embed: Callable[[M, list[str]], list[list[float]]], texts: Iterable[str]
    ) -> list[list[float]]:
        """Get vectors.

        Args:
            embed: Asks a model for the vectors of texts.
            texts: The texts; without any nobody is asked.

        Returns:
            (n, d) vectors of the first candidate that gives them, one per text.

        Raises:
            InvalidParameterError: `texts` is no list of texts. No candidate is to blame for it.
            Exception: As `ModelRouter.call`.
        """
        listed = check_texts("texts", texts)

        def run(candidate: ModelCandidate[M]) -> list[list[float]]:
            return self._checked(embed(candidate.model, listed), len(listed), candidate.name)

        return self._router.call(run) if listed else []

    async def acall(
        self, embed: Callable[[M, list[str]], Awaitable[list[list[float]]]], texts: Iterable[str]
    ) -> list[list[float]]:
        """Get vectors: the async twin of `call`.

        Args:
            embed: Asks a model for the vectors of texts.
            texts: The texts; without any nobody is asked.

        Returns:
            (n, d) vectors of the first candidate that gives them, one per text.

        Raises:
            InvalidParameterError: `texts` is no list of texts. No candidate is to blame for it.
            Exception: As `ModelRouter.acall`.
        """
        listed = check_texts("texts", texts)

        async def run(candidate: ModelCandidate[M]) -> list[list[float]]:
            vectors = await embed(candidate.model, listed)
            return self._checked(vectors, len(listed), candidate.name)

        return await self._router.acall(run) if listed else []

    def _checked(self, vectors: list[list[float]], count: int, name: str) -> list[list[float]]:
        """Refuse vectors of another space, and answers that are short of some."""
        if len(vectors) != count:
            raise ValueError(f"{name!r} gave {len(vectors)} vectors for {count} texts")
        # Of two candidates that are asked at the same time, one settles it.
        with self._lock:
            expected = self._dimensions or len(vectors[0])
            for vector in vectors:
                if len(vector) != expected or not expected:
                    raise DimensionMismatchError(expected, len(vector), f"a vector of {name!r}")
            self._dimensions = expected
        return vectors


def _check_one(what: str, told: Sequence[Any]) -> None:
    known = {each for each in told if each is not None}
    if len(known) > 1:
        allowed = f"their {what} differ; members share one vector space, so give one model only"
        raise InvalidParameterError("models", sorted(map(str, known)), allowed)
