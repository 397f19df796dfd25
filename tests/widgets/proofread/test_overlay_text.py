"""Words on the canvas come a few new letters at a time, and all of them in the end."""

from __future__ import annotations

from types import SimpleNamespace

from napari_agglo.widgets.proofread._mode import OverlayText


def test_new_letters_come_a_few_at_a_time(qtbot):
    overlay = SimpleNamespace(text="")
    writing = OverlayText()
    writing.write(overlay, "PROOFREADING")
    assert overlay.text == "", "the first letter waits for its own turn"
    qtbot.waitUntil(lambda: overlay.text == "P", timeout=5000)
    qtbot.waitUntil(lambda: overlay.text == "PROO", timeout=5000)
    qtbot.waitUntil(lambda: overlay.text == "PROOFREADING", timeout=5000)
    writing.write(overlay, "FRIDA")
    assert overlay.text == "FRIDA", "all of them are known"


def test_what_is_written_last_stands(qtbot):
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
