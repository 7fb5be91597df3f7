"""What a worker process does."""

from __future__ import annotations

import sys

from easyrag_core.index.analyzer._reading import numbered_texts
from easyrag_core.index.analyzer._registry import analyzer_from_settings
from easyrag_core.index.analyzer._wire import receive, send_numbered

__all__ = ["main"]


def main() -> None:
    """Build an analyzer and read texts until the other side closes."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what prints must not get among the answers
    try:
        analyzer = analyzer_from_settings(receive(source))
        while True:
            send_numbered(sink, numbered_texts(analyzer, receive(source)))
    except EOFError:
        return
