"""Other regions are built while a hierarchy is on the screen: it stays what it is."""

from __future__ import annotations

import numpy as np
from windows import settle

from napari_agglo.widgets import DataWidget
from napari_agglo.widgets._qt import per_viewer
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets._steps import Status
from napari_agglo.widgets.hierarchy import HierarchyWidget


def test_what_is_seen_stays_until_it_is_merged_anew(viewer, opened, project):
    hierarchy = HierarchyWidget(viewer)
    viewer.window.add_dock_widget(hierarchy, name="Hierarchy")
    hierarchy.run.button.click()
    settle(project)
    assert HierarchyWidget.status(project) is Status.DONE
    layer = per_viewer(viewer, Scene).segmentation
    before = np.asarray(layer.data).copy()
    first = project.graph
    opened.superpixels.options["min_size"].value = 80
    opened.run.button.click()
    settle(project)
    assert project.regions.graph is not first
    assert DataWidget.status(project) is Status.DONE
    assert HierarchyWidget.status(project) is Status.STALE
    np.testing.assert_array_equal(np.asarray(layer.data), before)
    project.threshold = project.threshold * 0.9
    lut = project.tree.lut(project.threshold)
    np.testing.assert_array_equal(np.asarray(layer.data), lut[first.superpixels.image])
    hierarchy.run.button.click()
    settle(project)
    assert project.graph is project.regions.graph
    assert HierarchyWidget.status(project) is Status.DONE
    shown = np.asarray(per_viewer(viewer, Scene).segmentation.data)
    lut = project.tree.lut(project.threshold)
    np.testing.assert_array_equal(shown, lut[project.regions.graph.superpixels.image])
