from __future__ import annotations

import numpy as np
import pytest

import napari_agglo as agglo


@pytest.fixture(scope="module")
def drawn():
    """Forty superpixels in a plane, two trees of them, an image and a gold standard."""
    rng = np.random.default_rng(0)
    superpixels = np.kron(np.arange(1, 41).reshape(5, 8), np.ones((6, 6), int))
    boundary = rng.random(superpixels.shape)
    graph = agglo.region_graph(superpixels, boundary)
    trees = {"mean": agglo.agglomerate(graph), "random": agglo.agglomerate(graph, "random")}
    gold = np.kron(np.arange(1, 5).reshape(2, 2), np.ones((15, 24), int))
    return graph, trees, boundary, gold
