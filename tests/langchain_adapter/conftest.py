"""What LangChain's conformance suites need to be imported under strict markers."""

from __future__ import annotations


def pytest_configure(config):
    """Declare the marks that the suites for chat models use; no test of ours carries them."""
    for mark in ("benchmark", "vcr"):
        config.addinivalue_line("markers", f"{mark}: used inside langchain-tests")
