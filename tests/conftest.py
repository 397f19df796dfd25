"""Fixtures for all tests, and how hypothesis behaves."""

from __future__ import annotations

import gc
import os
from dataclasses import replace

import pytest
from examples import examples
from hypothesis import HealthCheck, settings
from stored_samples import samples_from_disk

# The same examples each time, so that a failure is repeatable; no deadline, for the first call of a
# kernel compiles it.
settings.register_profile(
    "house",
    examples(50),
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")


def pytest_collection_finish():
    """Leave what was imported out of the garbage collections, and have fewer of them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(autouse=os.environ.get("NUMBA_DISABLE_JIT") == "1")
def trees_of_scikit_learn(monkeypatch):
    """Let scikit-learn grow all trees: our own would take minutes in plain Python."""
    from napari_agglo.learning import _train

    fit = _train.fit

    def fit_exactly(examples, classifier, settings, *arguments):
        return fit(examples, classifier, replace(settings, exact=True), *arguments)

    monkeypatch.setattr(_train, "fit", fit_exactly)


@pytest.fixture(scope="session", autouse=True)
def samples_made_once():
    """Make each embedded sample once for all parts."""
    with samples_from_disk():
        yield


@pytest.fixture(scope="session")
def small_sample():
    """Return image, cues and gold of a crop of the 2-D sample, small enough for plain Python."""
    import napari_agglo as agglo

    drawn = agglo.sample("neuropil2d")
    crop = (slice(0, 48), slice(0, 48))
    return (
        drawn.image[crop],
        {name: cue[crop] for name, cue in drawn.cues.items()},
        drawn.gold[crop],
    )
