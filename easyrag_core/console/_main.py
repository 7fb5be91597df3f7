"""One call of the command line, from the words to the exit code."""

from __future__ import annotations

import logging
import sys
import time
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from easyrag_core.console._arguments import parse_arguments
from easyrag_core.console._keeping import (
    bring_up_to_date,
    index_folder,
    open_index,
)
from easyrag_core.console._models import EmbeddingModel, chosen_model
from easyrag_core.console._printing import Report, as_json, as_text
from easyrag_core.errors import EasyRAGError, IndexFormatError
from easyrag_core.files import FilesRead, SourceFile, read_files
from easyrag_core.index._folder import remove_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from easyrag_core.console._arguments import Arguments
    from easyrag_core.index import HybridIndex
    from easyrag_core.types import Chunk, Hit

__all__ = ["Adapter", "run"]

_LOGGERS = ("easyrag_core", "langchain_easyrag", "llamaindex_easyrag")


class Adapter(Protocol):
    """What a framework's room brings: its own splitter and its own retriever."""

    program: str
    framework: str

    def split(self, file: SourceFile) -> list[Chunk]:
        """Cut a file into chunks whose document id is its path."""
        ...

    def search(
        self, index: HybridIndex, question: str, k: int, model: EmbeddingModel | None
    ) -> list[Hit]:
        """Search, fuse and diversify."""
        ...


def run(adapter: Adapter, words: Sequence[str] | None = None) -> int:
    """Search a folder and print what was found.

    Args:
        adapter: The framework's parts.
        words: The command line; `None` takes that of the process.

    Returns:
        The exit code: 0 for an answer (also an empty one), 1 where there is nothing to search or
        something is missing, 2 where the kept index cannot be used.
    """
    arguments = parse_arguments(adapter.program, words)
    try:
        return _answer(adapter, arguments)
    except IndexFormatError as error:
        advice = "" if arguments.rebuild else "\nRun again with --rebuild to build it anew."
        _complain(f"{error}{advice}")
        return 2
    except (EasyRAGError, OSError) as error:
        _complain(str(error))
        return 1


def _answer(adapter: Adapter, arguments: Arguments) -> int:
    timings: dict[str, float] = {}
    warnings: list[str] = []
    root = Path(arguments.path)
    with _timed(timings, "read"):
        read = read_files(root)
    if not read.files:
        _complain(_nothing_to_search(arguments.path, read))
        return 1
    model = chosen_model() if arguments.vectors else None
    folder = arguments.index or index_folder(root, model)
    if arguments.rebuild:
        remove_folder(folder)
    with _timed(timings, "index"):
        index = open_index(folder)
        progress = sys.stderr.isatty() and find_spec("tqdm") is not None
        if bring_up_to_date(index, read.files, adapter.split, model, show_progress=progress):
            index.save(folder)
    with _timed(timings, "search"), _collected(warnings):
        hits = adapter.search(index, arguments.question, arguments.k, model)
        found = zip(hits, index.get_many([hit.id for hit in hits]), strict=True)
    report = Report(
        arguments.question,
        [(hit, chunk) for hit, chunk in found if chunk is not None],
        way=f"{adapter.framework}, {_way(model)}, {len(read.files)} files, {len(index)} chunks",
        skipped=read.skipped,
        notes=[*_notes(read), *dict.fromkeys(warnings)],
        timings={step: round(value, 1) for step, value in timings.items()},
    )
    shown = (
        as_json(report)
        if arguments.json
        else as_text(report, explained_by=index if arguments.explain else None)
    )
    _say(shown)
    return 0


def _way(model: EmbeddingModel | None) -> str:
    return "BM25 alone" if model is None else f"BM25 and vectors of {model.name}"


def _notes(read: FilesRead) -> list[str]:
    return [
        f"{file.path} is not UTF-8 and was read as {file.encoding}."
        for file in read.files
        if file.encoding != "utf-8"
    ]


def _nothing_to_search(path: str, read: FilesRead) -> str:
    if not read.skipped:
        return f"{path} holds no file to search: give a folder with texts."
    reasons = "\n".join(f"  {skipped.path} {skipped.reason}" for skipped in read.skipped)
    return f"{path} holds no text to search. Skipped:\n{reasons}"


@contextmanager
def _timed(timings: dict[str, float], step: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    timings[step] = (time.perf_counter() - start) * 1000


@contextmanager
def _collected(warnings: list[str]) -> Iterator[None]:
    """Take what the parts warn of, so that it is said with the answer and once."""

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            warnings.append(record.getMessage())

    collector = Collector(logging.WARNING)
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addHandler(collector)
        logger.propagate = False
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(collector)
            logger.propagate = True


def _say(text: str) -> None:
    # A terminal of another encoding shows what it cannot print as an escape, not a traceback.
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def _complain(text: str) -> None:
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
