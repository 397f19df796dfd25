"""The hierarchy with edits is a value, which later edits do not change."""

from __future__ import annotations

import numpy as np

import napari_agglo as agglo
from napari_agglo import Session


def test_later_divisions_do_not_change_it(tmp_path):
    superpixels = np.array([[5, 5, 5, 5, 9, 9, 9, 9]] * 3)
    graph = agglo.region_graph(superpixels, np.tile(np.linspace(0, 1, 8), (3, 1)))
    with Session.create(tmp_path / "a.agglo", graph) as session:
        session.threshold = 0.1
        session.cut(5, points=[[(0, 0)], [(0, 3)]])
        tree = session.tree
        seen = session.labels()
        np.testing.assert_array_equal(tree.segment(0.1), seen)
        session.cut(9, points=[[(0, 4)], [(0, 7)]])
        assert (session.labels() != seen).any(), "test invalid"
        np.testing.assert_array_equal(tree.segment(0.1), seen)
        session.undo()
        session.undo()
        np.testing.assert_array_equal(tree.segment(0.1), seen)
