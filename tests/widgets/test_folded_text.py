"""Long texts of the dock are cut after two lines, and shown as a whole by a click on *more*."""

from __future__ import annotations

import pytest
from qtpy.QtWidgets import QWidget
from windows import draw

from napari_agglo.widgets._folded_text import FoldedText
from napari_agglo.widgets._qt import column

LONG = "Learned from the other half: 0.23 bits false merge & 0.14 false split at 0.5, a < b. " * 3
RICH = "<b>VI 0.087</b> = 0.046 false merge + 0.041 false split. <i>On its own data</i>. " * 3


@pytest.fixture(params=[LONG, RICH], ids=["plain", "rich"])
def folded(qtbot, request):
    """Return a folded text in a widget of its own."""
    place = QWidget()
    text = FoldedText("summary", rich=request.param is RICH)
    column(place, text).addStretch(1)
    qtbot.addWidget(place)
    text.setText(request.param)
    place.resize(260, 300)
    place.show()
    draw()
    yield text
    place.close()


def lines(text):
    """Return the number of lines that are shown."""
    return round(text.label.heightForWidth(text.width()) / text.label.fontMetrics().lineSpacing())


def drawn_below_the_button(text):
    """Return the colours of the label where the button lies."""
    box = text.button.geometry()
    text.button.setVisible(False)
    picture = text.grab(box).toImage()
    text.button.setVisible(True)
    return {picture.pixel(x, y) for x in range(picture.width()) for y in range(picture.height())}


@pytest.mark.parametrize("width", [180, 260, 333])
def test_two_lines_and_a_button_at_their_end(folded, width, qtbot):
    whole = folded.text()
    folded.window().resize(width, 300)
    qtbot.waitUntil(lambda: folded.width() == width)
    draw()
    assert folded.label.text() != whole
    assert "…" in folded.label.text()
    assert lines(folded) == 2
    assert folded.label.height() >= folded.label.heightForWidth(folded.width())
    assert folded.button.isVisible()
    assert folded.button.text() == "more"
    assert folded.rect().contains(folded.button.geometry())
    assert len(drawn_below_the_button(folded)) == 1, "the button lies on letters"
    folded.button.click()
    draw()
    assert folded.text() == whole
    assert folded.button.text() == "less"
    assert lines(folded) >= 4
    assert "…" not in folded.label.text()
    assert folded.rect().contains(folded.button.geometry())
    assert len(drawn_below_the_button(folded)) == 1
    assert folded.label.text().count("false merge") == 3
    folded.button.click()
    draw()
    assert lines(folded) == 2


def test_a_text_that_fits_has_no_button(folded, qtbot):
    folded.setText("Short & sweet: 1 < 2.")
    draw()
    assert not folded.button.isVisible()
    assert lines(folded) == 1
    folded.setText(LONG)
    assert folded.button.isVisible()
    folded.window().resize(3000, 300)
    qtbot.waitUntil(lambda: not folded.button.isVisible())
    folded.setText("")
    assert not folded.button.isVisible()
    assert folded.text() == ""
