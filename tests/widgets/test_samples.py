"""Samples come as layers that lie on top of each other and say what they are for."""

from __future__ import annotations

import time

import napari
import numpy as np
import pytest
from qtpy.QtCore import QTimer
from windows import replace_samples, role_of, text_overlay

import napari_agglo as agglo
from napari_agglo.widgets.__main__ import main


@pytest.mark.parametrize("kind", ["neuropil2d", "cells2d"])
def test_layers(layers_only, kind):
    drawn = agglo.sample(kind)
    layers_only.open_sample("napari-agglo", kind)
    layers = list(layers_only.layers)
    assert [role_of(layer) for layer in layers] == [
        ("image", ""), *(("cue", name) for name in drawn.cues), ("gold", "")
    ]  # fmt: skip
    for layer in layers:
        np.testing.assert_allclose(layer.scale, drawn.spacing)
        assert all(str(unit) == "micrometer" for unit in layer.units)
        assert layer.name.startswith(kind)
    np.testing.assert_array_equal(layers[-1].data, drawn.gold)
    assert [layer.visible for layer in layers] == [True] + [False] * (len(layers) - 1)


def test_a_volume_is_made_while_the_window_stays_alive(viewer, project, monkeypatch, block):
    events = []

    def slow(kind):
        time.sleep(0.3)
        return block

    timer = QTimer()
    timer.timeout.connect(lambda: events.append(project.jobs.running()))
    timer.start(20)
    replace_samples(monkeypatch, slow)
    viewer.open_sample("napari-agglo", "neuropil3d")
    timer.stop()
    assert ["sample"] in events
    assert [role_of(layer)[0] for layer in viewer.layers] == ["image", "cue", "cue", "cue", "gold"]


def test_without_a_viewer_it_comes_at_once(layers_only, monkeypatch, block):
    replace_samples(monkeypatch, lambda kind: block)
    layers_only.open_sample("napari-agglo", "neuropil3d")
    assert len(layers_only.layers) == 5


def test_from_the_menu(viewer):
    viewer.open_sample("napari-agglo", "cells2d")
    assert "cells2d boundary" in viewer.layers


def test_the_window_with_a_sample_says_when_it_is_loaded(viewer, crop, monkeypatch):
    replace_samples(monkeypatch, lambda _: crop)
    monkeypatch.setattr(napari, "Viewer", lambda title: viewer)
    monkeypatch.setattr(napari, "run", lambda: None)
    main("neuropil2d")
    assert len(viewer.layers) > 1
    assert "Loading" not in str(viewer.status)
    assert not text_overlay(viewer).visible
