"""The Data step without a window but its own, and layers to choose from.

The whole step in napari's window is in `test_story` and `test_interruptions`.
"""

from __future__ import annotations

import pytest
from windows import add_sample, draw

from napari_agglo.widgets import DataWidget


@pytest.fixture
def viewer(layers_only):
    """Return the layers of a viewer: the step knows no more of it."""
    return layers_only


@pytest.fixture
def step(viewer, project):
    """Return the Data step on the screen."""
    widget = DataWidget(viewer)
    widget.show()
    draw()
    yield widget
    widget.close()


@pytest.fixture
def opened(viewer, step, crop):
    """Return the Data step with the layers of a small sample."""
    add_sample(viewer, crop)
    return step
