"""Other regions are built while a hierarchy is on the screen: it stays what it is."""

from __future__ import annotations

import numpy as np
from windows import scene_of, settle, status

from napari_agglo.widgets import DataWidget, HierarchyWidget


def test_the_segmentation_stays_until_the_next_merge(viewer, opened, project):
    hierarchy = HierarchyWidget(viewer)
    hierarchy.show()
    hierarchy.run.button.click()
    settle(project)
    assert status(HierarchyWidget, project) == "done"
    layer = scene_of(viewer).segmentation
    before = np.asarray(layer.data).copy()
    first = project.graph
    opened.superpixels.options["min_size"].value = 80
    opened.run.button.click()
    settle(project)
    assert project.regions.graph is not first
    assert status(DataWidget, project) == "done"
    assert status(HierarchyWidget, project) == "stale"
    np.testing.assert_array_equal(np.asarray(layer.data), before)
    project.threshold = project.threshold * 0.9
    lut = project.tree.lut(project.threshold)
    np.testing.assert_array_equal(np.asarray(layer.data), lut[first.superpixels.image])
    hierarchy.run.button.click()
    settle(project)
    assert project.graph is project.regions.graph
    assert status(HierarchyWidget, project) == "done"
    shown = np.asarray(scene_of(viewer).segmentation.data)
    lut = project.tree.lut(project.threshold)
    np.testing.assert_array_equal(shown, lut[project.regions.graph.superpixels.image])
