"""Each gesture on the canvas, as a person makes it, and each refusal."""

from __future__ import annotations

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest


def test_a_click_activates_and_a_drag_does_not(hands):
    first, second = hands.largest(2)
    a = hands.pixel_of(hands.superpixels_of(first)[0])
    hands.click(a)
    assert hands.project.active == hands.name_at(a) == first
    assert "PROOFREADING" in hands.step.strip.text()
    b = hands.pixel_of(hands.superpixels_of(second)[0])
    hands.drag(b, a)
    assert hands.project.active == first


def test_shift_click_merges_and_undo_takes_it_back(hands):
    first = hands.largest()[0]
    second = hands.neighbour(first)
    a, b = (hands.pixel_of(hands.superpixels_of(name)[0]) for name in (first, second))
    assert hands.id_at(a) != hands.id_at(b), "test invalid"
    before = hands.project.table().copy()
    hands.click(a)
    hands.click(b, "shift")
    assert hands.name_at(b) == first == hands.project.active
    shown = hands.scene.segmentation
    assert int(shown.get_value(hands.project.placement.to_world(b), world=True)) == first
    hands.press("undo")
    np.testing.assert_array_equal(hands.project.table(), before)
    hands.press("redo")
    assert hands.name_at(b) == first
