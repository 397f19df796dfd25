"""The options of a pipeline on the small files, and comparison of its results."""

from __future__ import annotations

import numpy as np

from napari_agglo.volumes import open_volume

PIPELINE = ["--superpixels", "superpixels.tif", "--cues", "boundary=boundary.tif"]


def read(name):
    return open_volume(name).load()


def same_partition(a, b):
    pairs = np.unique(np.stack([a.ravel(), b.ravel()]).astype(np.int64), axis=1)
    return pairs.shape[1] == np.unique(a).size == np.unique(b).size
