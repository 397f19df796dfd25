"""Fixtures for all tests, and how hypothesis behaves."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# The same examples each time, so that a failure is repeatable; no deadline, for the first call of a
# kernel compiles it. Plain-Python kernels are slow, and a few examples exercise every line.
settings.register_profile(
    "house",
    derandomize=True,
    deadline=None,
    max_examples=10 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")


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
