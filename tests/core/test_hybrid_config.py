"""Settings of a hybrid index: what is allowed, what is refused, what stays as it was."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from easyrag_core import HybridConfig, InvalidParameterError


@pytest.mark.parametrize(
    "settings",
    [
        {"bm25_k": 0},
        {"bm25_k": 1.5},
        {"bm25_k": True},
        {"vector_k": -1},
        {"vector_k": "10"},
        {"fusion": "RRF"},
        {"fusion": None},
        {"rank_constant": -1},
        {"rank_constant": float("nan")},
        {"rank_constant": float("inf")},
        {"rank_constant": "60"},
        {"rank_constant": None},
        {"merge_threshold": 0},
        {"merge_threshold": 1.01},
        {"merge_threshold": float("nan")},
        {"merge_threshold": "0.5"},
        {"merge_threshold": True},
        {"weights": {"bm25": -1}},
        {"weights": {"bm25": float("nan")}},
        {"weights": {"vector": float("inf")}},
        {"weights": {"words": 1}},
        {"weights": {"bm25": None}},
        {"weights": {"bm25": "1"}},
        {"weights": {"bm25": 0, "vector": 0}},
        {"weights": [1, 1]},
        {"weights": 5},
        {"channel_timeout": 0},
        {"channel_timeout": -1.0},
        {"channel_timeout": float("nan")},
        {"channel_timeout": "15"},
        {"channel_timeout": True},
    ],
    ids=repr,
)
def test_settings_that_cannot_work_are_refused(settings):
    """At construction, by a typed error that names the setting."""
    with pytest.raises(InvalidParameterError) as refused:
        HybridConfig(**settings)
    assert refused.value.name in settings
    assert refused.value.name in str(refused.value)


def test_defaults_and_frozenness():
    """The documented defaults; settings cannot be changed, not through the given weights either."""
    config = HybridConfig()
    assert (config.bm25_k, config.vector_k, config.fusion) == (10, 10, "rrf")
    assert (config.rank_constant, config.merge_threshold) == (60, 0.5)
    assert (config.weights, config.channel_timeout) == (None, 15.0)
    with pytest.raises(FrozenInstanceError):
        config.bm25_k = 3
    weights = {"bm25": 2.0}
    kept = HybridConfig(weights=weights)
    weights["bm25"] = -1
    assert kept.weights_of(["vector", "bm25"]) == [1.0, 2.0]


def test_edges_of_the_settings_are_allowed():
    """No timeout, an endless one, a constant of 0, a threshold of 1, one channel without vote."""
    for settings in (
        {"channel_timeout": None},
        {"channel_timeout": float("inf")},
        {"rank_constant": 0},
        {"merge_threshold": 1},
        {"weights": {"bm25": 0}},
        {"weights": {}},
    ):
        HybridConfig(**settings)
