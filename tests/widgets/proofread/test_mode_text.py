"""Words on the canvas come a few new letters at a time, and all of them in the end."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from windows import draw, proofreader_of, settle, text_overlay

from napari_agglo.widgets.proofread._mode import OverlayText, fitting_text


def test_new_letters_come_a_few_at_a_time(qtbot):
    overlay = SimpleNamespace(text="")
    writing = OverlayText()
    writing.write(overlay, "PROOFREADING")
    assert overlay.text == "", "the first letter waits for its own turn"
    qtbot.waitUntil(lambda: overlay.text == "P", timeout=5000)
    qtbot.waitUntil(lambda: overlay.text == "PROO", timeout=5000)
    assert (overlay.opacity, overlay.box) == (0, False), "half a text would look cut off"
    qtbot.waitUntil(lambda: overlay.text == "PROOFREADING", timeout=5000)
    assert (overlay.opacity, overlay.box) == (1, True)
    writing.write(overlay, "FRIDA")
    assert overlay.text == "FRIDA", "all of them are known"


def test_the_last_text_stands(qtbot):
    overlay = SimpleNamespace(text="")
    writing = OverlayText()
    writing.write(overlay, "one and two and three")
    writing.write(overlay, "quick brown fox")
    qtbot.waitUntil(lambda: overlay.text == "quick brown fox", timeout=5000)
    writing.write(overlay, "jumps over the lazy dog")
    writing.stop()
    overlay.text = "what was there before"
    qtbot.wait(200)
    assert overlay.text == "what was there before"


@pytest.mark.parametrize("width", [0, 90, 150, 190, 300, 388, 600])
def test_a_text_is_shorter_or_smaller_on_a_narrow_canvas(width):
    long, short = "PROOFREADING · no segment active", "PROOFREADING"
    text, points = fitting_text((long, short), width)
    assert (text == long) == (width > 390)
    assert (points < 11) == (width < 190)
    assert points >= 6


def test_the_first_banner_is_invisible_until_it_is_complete(viewer, shown, step, qtbot):
    """Each frame has the whole text or none of it."""
    overlay, frames = text_overlay(viewer), []
    canvas = viewer.window._qt_viewer.canvas._scene_canvas
    canvas.events.draw.connect(lambda _: frames.append((overlay.opacity, overlay.text)))
    step.bar.run.button.click()
    settle(shown)
    whole = (proofreader_of(viewer).mode.text, "PROOFREADING")
    qtbot.waitUntil(lambda: frames[-1][0] == 1 and frames[-1][1] in whole, timeout=20_000)
    assert {text for opacity, text in frames if opacity == 0} - {""}, "the letters are drawn"
    assert {text for opacity, text in frames if opacity == 1} <= {"", *whole}
    assert overlay.box


@pytest.mark.slow
def test_the_banner_has_room_on_both_sides_of_a_narrow_canvas(painted, hands):
    """Pixels of the banner's colour do not reach the edges of the canvas."""
    viewer = hands.viewer
    for width in (1280, 1000, 820):
        viewer.window.resize(width, 700)
        for _ in range(60):
            draw()
        assert text_overlay(viewer).text.startswith("PROOFREADING")
        picture = viewer.screenshot(canvas_only=True, flash=False)[:70, :, :3].astype(int)
        box = np.asarray(text_overlay(viewer).box_color)[:3] * 255
        columns = (np.abs(picture - box).max(axis=2) < 6).any(axis=0)
        assert columns.any(), "test invalid"
        assert not columns[:2].any()
        assert not columns[-2:].any()
