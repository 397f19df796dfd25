"""From a bare image to a hierarchy in one window: strokes by mouse, cues, superpixels, merges."""

from __future__ import annotations

import numpy as np
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QWidget
from widgets.test_story import Person
from windows import camera, draw, selection_of, settle_strokes

LEFT = Qt.MouseButton.LeftButton


def dab(viewer, layer, index):
    """Touch the canvas with the brush at a pixel of a layer."""
    canvas = next(
        child
        for window in QApplication.topLevelWidgets()
        if window.isVisible() and window.windowTitle() == viewer.title
        for child in window.findChildren(QWidget)
        if type(child).__name__.startswith("CanvasBackend")
    )
    world, lens = layer.data_to_world(index), camera(viewer)
    x = canvas.width() / 2 + (world[-1] - lens.center[-1]) * lens.zoom
    y = canvas.height() / 2 + (world[-2] - lens.center[-2]) * lens.zoom
    QTest.mouseClick(canvas, LEFT, pos=QPoint(round(x), round(y)))
    draw()


def places(mask, n=12):
    """Return a few pixels of a mask, far from its border."""
    found = np.argwhere(mask)
    return found[np.linspace(0, len(found) - 1, n).astype(int)]


def test_from_a_bare_image_to_segments(viewer, crop):
    viewer.add_image(crop.image, name="tissue", scale=crop.spacing)
    person = Person(viewer)
    data = person.open("data")
    assert selection_of(viewer).image.name == "tissue"
    person.press(data.paint.begin)
    painter = data.paint.painter
    painter.strokes.brush_size = 1
    draw()
    boundary = crop.cues["boundary"]
    inner = (slice(6, -6), slice(6, -6))
    for number, mask in enumerate((boundary > 0.9, boundary < 0.05)):
        data.paint.list.setCurrentRow(number)
        for index in places(mask[inner]) + 6:
            dab(viewer, painter.strokes, index)
    assert min(painter.counts()) >= 8
    settle_strokes(painter)
    live = painter.preview()["boundary"].data
    assert live[boundary > 0.9].mean() > live[boundary < 0.05].mean() + 0.4
    assert viewer.layers[-1] is painter.strokes, "strokes stay on top"

    before = painter.counts()
    painter.strokes.undo()  # Ctrl + Z on the canvas
    settle_strokes(painter)
    assert painter.counts() != before

    person.press(data.paint.run.button)
    person.rest()
    assert list(person.project.dataset.cues) == ["boundary", "cytoplasm"]
    assert not painter.preview()
    person.press(data.run.button)
    person.rest()
    hierarchy = person.open("hierarchy")
    person.press(hierarchy.run.button)
    person.rest()
    person.project.threshold = 0.4
    assert 1 < person.project.n_segments < person.project.graph.n_regions
