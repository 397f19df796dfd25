"""The Data step in a window, and layers to choose from."""

from __future__ import annotations

import pytest
from napari.layers import Layer
from windows import draw

from napari_agglo.widgets._samples import layers_of
from napari_agglo.widgets.data import DataWidget


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
    for one in layers_of(crop):
        viewer.add_layer(Layer.create(*one))
    draw()
    return step
