"""The Data step in a window, and layers to choose from."""

from __future__ import annotations

import pytest
from windows import add_sample, draw

from napari_agglo.widgets import DataWidget


@pytest.fixture
def step(viewer, project):
    """Return the Data step, docked."""
    widget = DataWidget(viewer)
    viewer.window.add_dock_widget(widget, name="Data", area="right")
    draw()
    return widget


@pytest.fixture
def opened(viewer, step, crop):
    """Return the Data step with the layers of a small sample."""
    add_sample(viewer, crop)
    return step
