"""Processes of this interpreter that read texts with one analyzer.

They are started by a command of their own rather than by multiprocessing: nothing of the
caller's script runs again in them, so that a notebook, or a script without a guard, may ask for
them; and no object is pickled.
"""

from __future__ import annotations

import json
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from subprocess import DEVNULL, PIPE, Popen
from typing import TYPE_CHECKING, Final, TypeAlias

from easyrag_core.index.analyzer._numbering import numbered_lists
from easyrag_core.index.analyzer._wire import receive_numbered, send

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import IO

    from easyrag_core.index.analyzer._numbering import Numbered
    from easyrag_core.index.analyzer._protocol import Analyzer

__all__ = ["Read", "reading", "tasks"]

logger = logging.getLogger(__name__)

Read: TypeAlias = "Callable[[Iterable[list[str]]], Iterator[Numbered]]"
"""Gives the terms of each of several lists of texts, in order."""

_CHARACTERS_PER_TASK: Final = 200_000
_COMMAND: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from easyrag_core.index.analyzer._worker import main; main()"
)


@contextmanager
def reading(analyzer: Analyzer, processes: int) -> Iterator[Read]:
    """Start processes that live as long as the context.

    Args:
        analyzer: An analyzer that can be built from its settings.
        processes: How many.

    Yields:
        A function that gives the terms of each of several lists of texts, in order.
    """
    workers = [_Worker(analyzer) for _ in range(processes)]
    threads = ThreadPoolExecutor(processes)
    idle: SimpleQueue[_Worker] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def read(texts: list[str]) -> Numbered:
        worker = idle.get()
        try:
            return worker.read(texts)
        finally:
            idle.put(worker)

    try:
        yield lambda lists: threads.map(read, lists)
    finally:
        for worker in workers:
            worker.end()
        threads.shutdown(cancel_futures=True)


class _Worker:
    """A process that reads texts; once it is gone they are read here."""

    def __init__(self, analyzer: Analyzer) -> None:
        """Start the process."""
        self._analyzer = analyzer
        self._process: Popen[bytes] | None = None
        # Isolated, and then with the paths of this process, whatever made them.
        command = [sys.executable, "-I", "-c", _COMMAND, json.dumps(sys.path)]
        try:
            self._process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)  # noqa: S603
            send(_pipe(self._process.stdin), analyzer.settings())
        except OSError:
            self._give_up()

    def read(self, texts: list[str]) -> Numbered:
        """Return the terms of each text."""
        process = self._process
        if process is not None:
            try:
                send(_pipe(process.stdin), texts)
                return receive_numbered(_pipe(process.stdout))
            except (OSError, ValueError, EOFError):
                if self._process is process:  # it was not ended from here
                    self._give_up()
        # If it was the fault of a text, the error is now raised as itself.
        return numbered_lists([self._analyzer(text) for text in texts])

    def _give_up(self) -> None:
        logger.warning("A worker process failed: what it would read is read in this one.")
        self.end()

    def end(self) -> None:
        """End the process if it is there."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with suppress(OSError), process:  # close the pipes and wait for the end
                pass


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise EOFError("no pipe")
    return pipe


def tasks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Group texts so that a task is worth its way."""
    task: list[str] = []
    characters = 0
    for text in texts:
        task.append(text)
        characters += len(text)
        if characters >= _CHARACTERS_PER_TASK:
            yield task
            task, characters = [], 0
    if task:
        yield task
