"""Connections on loopback that real clients share, closed with the test."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

__all__ = ["Http", "http_clients"]


@dataclass(frozen=True)
class Http:
    """What all clients of a test speak through, so that all of it is closed with the test."""

    plain: httpx.Client
    awaited: httpx.AsyncClient
    runner: asyncio.Runner


@contextmanager
def http_clients():
    # Nothing is encrypted on loopback, and reading certificates takes most of a test.
    with httpx.Client(verify=False) as plain, asyncio.Runner() as runner:
        http = Http(plain, httpx.AsyncClient(verify=False), runner)
        try:
            yield http
        finally:
            runner.run(http.awaited.aclose())
