"""Plots in real windows."""

from __future__ import annotations

import pytest
from qtpy.QtWidgets import QApplication


@pytest.fixture
def shown(qtbot):
    """Return a function that shows a widget in a window as large as a dock."""

    def show(widget, width=300, height=260):
        qtbot.addWidget(widget)
        widget.resize(width, height)
        with qtbot.waitExposed(widget):
            widget.show()
        QApplication.processEvents()
        return widget

    return show
