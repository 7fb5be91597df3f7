"""Imports a package in a fresh interpreter and tells what that did.

Run by `test_isolation.py` as `python -W error _probe.py FOLDER PACKAGE [MODULE ...]`: the folder
(or the empty string) goes onto the path, the modules named are imported first, so that only what
the package itself does is told.
"""

from __future__ import annotations

import os
import sys

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EVENTS = (
    "socket.",
    "subprocess.",
    "sqlite3.connect",
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.symlink",
    "os.link",
    "os.truncate",
    "os.chdir",
    "os.putenv",
    "os.unsetenv",
    "os.system",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "os.startfile",
    "_thread.start_new_thread",
    "signal.",
    "urllib.",
    "http.",
    "webbrowser.",
)


def _is_write(event: str, arguments: tuple[object, ...]) -> bool:
    if event != "open":
        return False
    mode, flags = arguments[1], arguments[2]
    if isinstance(mode, str):
        return bool(set(mode) & set("wax+"))
    return isinstance(flags, int) and bool(flags & _WRITES)


def _state() -> dict[str, object]:
    """What an import could change for everybody else in the process."""
    found: dict[str, object] = {
        "environment": dict(os.environ),
        "folder": os.getcwd(),  # noqa: PTH109 - pathlib is not loaded yet
        "path": list(sys.path),
        "excepthook": repr(sys.excepthook),
        "recursion": sys.getrecursionlimit(),
        "files": sorted(os.listdir()),  # noqa: PTH208 - as above
    }
    for name, ask in (("warnings", _warning_filters), ("logging", _loggers), ("gc", _gc)):
        if name in sys.modules:
            found[name] = ask(sys.modules[name])
    return found


def _warning_filters(module) -> object:
    return [str(entry) for entry in module.filters]


def _loggers(module) -> object:
    """The root logger and every logger that is configured: a plain `getLogger` leaves no trace."""
    named = {
        name: (logger.level, len(logger.handlers), logger.propagate, logger.disabled)
        for name, logger in module.Logger.manager.loggerDict.items()
        if isinstance(logger, module.Logger)
    }
    configured = {name: told for name, told in named.items() if told != (0, 0, True, False)}
    return {"root": (module.root.level, len(module.root.handlers)), **configured}


def _gc(module) -> object:
    return [module.isenabled(), module.get_threshold()]


def main(package: str, first: list[str]) -> dict[str, object]:
    """Import, and tell modules, events and changed state."""
    import gc
    import importlib
    import logging
    import threading
    import warnings

    del gc, logging, warnings
    for name in first:
        importlib.import_module(name)
    before, modules_before = _state(), set(sys.modules)
    threads_before = threading.active_count()
    events: list[str] = []

    def listen(event: str, arguments: tuple[object, ...]) -> None:
        if event.startswith(_EVENTS) or _is_write(event, arguments):
            events.append(f"{event} {arguments!r}"[:200])

    sys.addaudithook(listen)
    importlib.import_module(package)
    heard = list(events)
    after = _state()
    return {
        "modules": sorted(set(sys.modules) - modules_before),
        "events": heard,
        "threads": threading.active_count() - threads_before,
        "changed": [name for name in before if before[name] != after[name]],
    }


if __name__ == "__main__":
    if sys.argv[1]:
        sys.path.insert(0, sys.argv[1])
    outcome = main(sys.argv[2], sys.argv[3:])
    import json

    sys.stdout.write(json.dumps(outcome))
