"""Scroll areas whose content changes its height while it is resized."""

from __future__ import annotations

from qtpy.QtWidgets import QScrollArea, QSizePolicy, QWidget

from napari_agglo.widgets._qt import FoldedLabel, scroll_area

MOST = 200  # after so many questions the content is of one height: a plain area would never end


class Restless(QWidget):
    """Content that never wants the height that it has, as texts that wrap may for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_heights = self.resizes = 0
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def heightForWidth(self, width: int) -> int:
        self.asked_heights += 1
        return 550 if self.height() == 500 and self.asked_heights < MOST else 500

    def resizeEvent(self, event) -> None:
        self.resizes += 1
        super().resizeEvent(event)


def resizes(qapp, qtbot, area: QScrollArea, content: Restless, shown: QWidget) -> int:
    """Return how many times the content is resized when the area is."""
    qtbot.addWidget(shown)
    shown.resize(300, 200)
    shown.show()
    qapp.processEvents()
    content.resizes = 0
    shown.resize(320, 200)
    return content.resizes


def test_content_is_not_resized_from_within_its_resize(qapp, qtbot):
    plain, content = QScrollArea(), Restless()
    plain.setWidgetResizable(True)
    plain.setWidget(content)
    assert content.asked_heights < MOST, "test invalid"
    resizes(qapp, qtbot, plain, content, plain)
    assert content.asked_heights >= MOST, "test invalid: Qt no longer does so"

    outer, content = QWidget(), Restless()
    area = scroll_area(outer, content)
    assert 0 < resizes(qapp, qtbot, area, content, outer) <= 5
    assert content.asked_heights < MOST / 4
    assert content.width() == area.viewport().width()


def test_lines_of_a_text_are_reserved_once_for_a_width(qapp, qtbot, monkeypatch):
    label = FoldedLabel("words " * 40)
    label.setWordWrap(True)
    qtbot.addWidget(label)
    label.resize(200, 50)
    label.show()
    qapp.processEvents()
    narrow = label.minimumHeight()
    assert narrow > 0
    heights = []
    monkeypatch.setattr(FoldedLabel, "setMinimumHeight", lambda self, n: heights.append(n))
    label.resize(200, 300)
    qapp.processEvents()
    assert heights == []
    label.setText("words " * 80)
    assert heights[-1] > narrow
