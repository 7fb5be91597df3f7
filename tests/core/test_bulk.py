"""The garbage collector is as it was before, whatever happens in between."""

from __future__ import annotations

import gc

import pytest

from easyrag_core.bulk import collection_paused


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("when", [True, False])
def test_the_collector_goes_on_as_it_was(enabled, when) -> None:
    """Paused only if it ran and if it was asked for, and afterwards as before."""
    (gc.enable if enabled else gc.disable)()
    try:
        with collection_paused(when=when):
            assert gc.isenabled() is (enabled and not when)
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


def test_an_error_does_not_leave_it_paused() -> None:
    """What raises inside gets the collector back."""
    with pytest.raises(KeyError), collection_paused():
        raise KeyError
    assert gc.isenabled()
