"""A session on the screen, and hands that click and type there."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QMessageBox, QWidget
from windows import camera, draw, scene_of, settle, show

from napari_agglo.widgets._qt import per_viewer
from napari_agglo.widgets.proofread import ProofreadWidget
from napari_agglo.widgets.proofread._proofreader import Proofreader

KEYS = {
    "enter": (Qt.Key.Key_Return, ""),
    "escape": (Qt.Key.Key_Escape, ""),
    "undo": (Qt.Key.Key_Z, "ctrl"),
    "redo": (Qt.Key.Key_Z, "ctrl shift"),
    ",": (Qt.Key.Key_Comma, ""),
    ".": (Qt.Key.Key_Period, ""),
    **{letter: (getattr(Qt.Key, f"Key_{letter}"), "") for letter in "GHKUWADF"},
}


def modifiers(words):
    held = Qt.KeyboardModifier.NoModifier
    if "ctrl" in words:
        held |= Qt.KeyboardModifier.ControlModifier
    if "shift" in words:
        held |= Qt.KeyboardModifier.ShiftModifier
    return held


def occupy(project):
    """Have a worker keep the session until the event that is returned is set."""
    gate, inside = threading.Event(), threading.Event()

    def keep(_):
        with project.session._lock:
            inside.set()
            gate.wait(20)

    project.worker.run("occupy", "Occupying", keep, lambda _: None)
    assert inside.wait(10)
    return gate


class Hands:
    """Clicks at pixels of the volume, and keys, on the canvas of a window."""

    def __init__(self, viewer):
        self.viewer = viewer
        self.scene = scene_of(viewer)
        self.project = self.scene.project
        self.proofreader = per_viewer(viewer, Proofreader)
        draw()

    @property
    def canvas(self):
        # Two viewers have two windows: ours is the one whose canvas has the viewer's size.
        found = [
            child
            for window in QApplication.topLevelWidgets()
            if window.isVisible() and window.windowTitle() == self.viewer.title
            for child in window.findChildren(QWidget)
            if type(child).__name__.startswith("CanvasBackend")
        ]
        return found[0]

    def spot(self, index):
        """Return where on the canvas a pixel of the volume is, in 2-D."""
        world = self.project.placement.to_world(index)
        lens, canvas = camera(self.viewer), self.canvas
        shown = self.viewer.dims.displayed
        row, column = (world[axis] for axis in shown)
        centre = lens.center[-2:]
        x = canvas.width() / 2 + (column - centre[1]) * lens.zoom
        y = canvas.height() / 2 + (row - centre[0]) * lens.zoom
        return QPoint(round(x), round(y))

    def move(self, index):
        QTest.mouseMove(self.canvas, self.spot(index))
        draw()

    def click(self, index, words="", button=Qt.MouseButton.LeftButton):
        self.click_at(self.spot(index), words, button)

    def click_at(self, spot, words="", button=Qt.MouseButton.LeftButton):
        QTest.mouseClick(self.canvas, button, modifiers(words), spot)
        # So near in time, the next one would be a double click.
        QTest.mouseRelease(self.canvas, Qt.MouseButton.NoButton)
        draw()
        self.settle()

    def drag(self, start, end):
        a, b = self.spot(start), self.spot(end)
        QTest.mousePress(self.canvas, Qt.MouseButton.LeftButton, pos=a)
        for k in range(1, 6):
            QTest.mouseMove(self.canvas, a + (b - a) * k / 5)
        QTest.mouseRelease(self.canvas, Qt.MouseButton.LeftButton, pos=b)
        self.settle()

    def press(self, key, wait=True):
        code, words = KEYS[key]
        QTest.keyClick(self.canvas, code, modifiers(words))
        if wait:
            self.settle()

    def settle(self):
        for _ in range(400):
            settle(self.project, 300)  # kernels may have to be compiled
            draw()
            if not (self.project.worker.pending or self.project.jobs.running()):
                return
            QTest.qWait(5)
        raise AssertionError("it never came to rest")

    # What is where.

    def name_at(self, index):
        return int(self.project.table()[self.project.graph.superpixels.image[index]])

    def id_at(self, index):
        return self.project.id_of(self.name_at(index))

    def pixel_of(self, superpixel):
        """Return a pixel well within a dense superpixel."""
        from scipy.ndimage import distance_transform_edt

        inside = self.project.graph.superpixels.image == superpixel
        padded = np.pad(inside, 1)
        depth = distance_transform_edt(padded)[(slice(1, -1),) * inside.ndim]
        return tuple(int(i) for i in np.unravel_index(np.argmax(depth), inside.shape))

    def superpixels_of(self, name):
        return np.flatnonzero(self.project.table() == name)

    def largest(self, n=1):
        """Return the names of the largest segments."""
        sizes = np.bincount(self.project.table(), self.project.graph.sizes)
        sizes[0] = 0
        return [int(k) for k in np.argsort(-sizes)[:n]]

    def neighbour(self, name):
        session, project = self.project.session, self.project
        ids = session.segments.neighbours(project.id_of(name))
        dense = np.searchsorted(project.graph.ids, ids)
        sizes = np.bincount(project.table(), project.graph.sizes, minlength=len(project.graph.ids))
        return int(dense[np.argmax(sizes[dense])])

    def answer(self, words):
        """Click an answer of the question that is being asked."""
        draw()
        (box,) = [w for w in QApplication.topLevelWidgets() if isinstance(w, QMessageBox)]
        (button,) = [b for b in box.buttons() if b.text().replace("&", "") == words]
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)
        self.settle()


@pytest.fixture
def step(viewer, project):
    """Return the Proofread step, docked."""
    widget = ProofreadWidget(viewer)
    viewer.window.add_dock_widget(widget, name="Proofread")
    draw()
    return widget


@pytest.fixture
def free_hands(viewer, step):
    """Return hands on a window without a session."""
    return Hands(viewer)


def started(viewer, project, step):
    """Return hands on a session that was just started by the button."""
    QTest.mouseClick(step.bar.run.button, Qt.MouseButton.LeftButton)
    made = Hands(viewer)
    made.settle()
    assert project.session is not None
    made.step = step
    return made


@pytest.fixture
def hands(viewer, shown, step):
    """Return hands on a session of the corner, with gold."""
    shown.set_gold(shown.regions.dataset.gold)
    return started(viewer, shown, step)


@pytest.fixture
def deep(viewer, project, step, dataset3d):
    """Return hands on a session of a small volume."""
    show(project, dataset3d)
    return started(viewer, project, step)
