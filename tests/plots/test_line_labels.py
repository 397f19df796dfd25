"""Names beside lines stand apart."""

from __future__ import annotations

import numpy as np
from plots.curves import MEAN

from napari_agglo.plots import (
    plot_split_vi,
)


def test_names_stand_apart_and_within():
    close = {str(k): MEAN.assign(false_merge=MEAN["false_merge"] + k / 50) for k in range(5)}
    axes = plot_split_vi(close)
    places = np.array([t.xy for t in axes.texts if t.get_gid() == "name"])
    assert len(places) == 5
    assert ((places >= 0) & (places <= 1)).all()
    apart = np.abs(places[:, None] - places[None]).max(axis=2) + np.eye(5)
    assert apart.min() > 0.015
