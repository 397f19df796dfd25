"""Clicks and edits while napari-orthogonal-views shows the volume from two more sides.

That package is no requirement: `make test-orthogonal` installs it in an environment of its own.
"""

from __future__ import annotations

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from widgets.proofread.conftest import Hands
from windows import add_sample, draw, settle, show

from napari_agglo.widgets import Dock

views = pytest.importorskip(
    "napari_orthogonal_views.ortho_view_manager", reason="needs napari-orthogonal-views"
)


def beside(viewer):
    """Show the orthogonal views, and return the two of them."""
    views.show_orthogonal_views(viewer)
    draw()
    manager = views._get_manager(viewer)
    assert manager.is_shown()
    return manager.right_widget, manager.bottom_widget


def shown_in(view, name="Segmentation"):
    """Return the ids in the plane of a view, by the order of the volume's axes."""
    model = view.vm_container.viewer_model
    layer = model.layers[name]
    plane = np.asarray(layer._slice.image.raw)
    return plane, model


def expected(project, model):
    """Return the segments in the plane that a view is to show."""
    table, image = project.table(), project.graph.superpixels.image
    axis = model.dims.order[0]
    plane = np.take(table[image], model.dims.current_step[axis], axis)
    rows, columns = model.dims.displayed
    return plane if rows < columns else plane.T


def follow(project, both):
    draw()
    settle(project, 300)
    for view in both:
        plane, model = shown_in(view)
        np.testing.assert_array_equal(plane, expected(project, model))


class MainHands(Hands):
    """Hands on the main view, one of the three canvases of the window."""

    @property
    def canvas(self):
        return views._get_manager(self.viewer)._original_qt_viewer.canvas.native


@pytest.mark.slow
def test_proofreading_beside_orthogonal_views(
    make_napari_viewer, viewer, project, block, dataset3d, painted
):
    add_sample(viewer, block)
    dock = Dock(viewer)
    viewer.window.add_dock_widget(dock, name="Agglo", area="right")
    show(project, dataset3d)
    settle(project, 300)
    both = beside(viewer)
    follow(project, both)
    for threshold in (0.6, 0.1, 0.3):
        project.threshold = threshold
        follow(project, both)
    project.step_requested.emit("proofread")
    draw()
    step = dock.guide.steps["proofread"]
    QTest.mouseClick(step.bar.run.button, Qt.MouseButton.LeftButton)
    hands = MainHands(viewer)
    hands.settle()
    assert project.session is not None
    follow(project, both)
    at, beyond = neighbours(hands, viewer.dims.current_step[0])
    hands.click(at)
    assert project.active == hands.name_at(at)
    before = hands.name_at(beyond)
    hands.click(beyond, "shift")
    assert hands.name_at(beyond) == hands.name_at(at) != before
    follow(project, both)
    # The other views have no gestures.
    active, table = project.active, project.table().copy()
    canvas = both[0].qt_viewer.canvas.native
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=canvas.rect().center())
    hands.settle()
    assert project.active == active
    np.testing.assert_array_equal(project.table(), table)
    hands.press("undo")
    assert hands.name_at(beyond) != hands.name_at(at)
    follow(project, both)
    viewer.dims.set_current_step(0, 3)
    viewer.dims.set_current_step(1, 20)
    follow(project, both)
    step.bar.close_.click()
    settle(project, 300)
    follow(project, both)
    views.delete_and_cleanup(viewer)
    draw()


def neighbours(hands, plane):
    """Return two pixels beside each other in a plane, of two segments, in the middle of it."""
    image = hands.project.graph.superpixels.image
    table = hands.project.table()[image[plane]]
    pairs = np.argwhere((table[:, :-1] != table[:, 1:]) & (table[:, :-1] > 0) & (table[:, 1:] > 0))
    row, column = pairs[np.abs(pairs - np.array(table.shape) / 2).sum(1).argmin()]
    return (plane, row, column), (plane, row, column + 1)
