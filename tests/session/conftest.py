"""Fixtures of all tests of sessions."""

from __future__ import annotations

import os

import numpy as np
import pytest

import napari_agglo as agglo
from napari_agglo import Session
from napari_agglo.session import warm_up


@pytest.fixture(scope="session", autouse=True)
def _compiled_edits():
    """Compile what edits need before the first test, which would seem to take minutes otherwise."""
    if os.environ.get("NUMBA_DISABLE_JIT") != "1":
        warm_up(["edit"])


@pytest.fixture(scope="session")
def grid():
    """Return a graph of 5 x 5 superpixels with a random cue, and a gold standard of two halves."""
    labels = np.repeat(np.repeat(np.arange(1, 26).reshape(5, 5), 4, 0), 4, 1)
    cue = np.random.default_rng(0).random(labels.shape).astype("f4")
    return agglo.region_graph(labels, cue), (labels > 12) + 1


@pytest.fixture
def grid_session(tmp_path, grid):
    """Return a session on the grid, at the threshold 0."""
    with Session.create(tmp_path / "a.agglo", grid[0]) as session:
        session.threshold = 0.0
        yield session
