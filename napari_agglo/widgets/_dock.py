"""The guided dock, which is shown at once: its steps are imported and built after that."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import suppress
from inspect import GEN_CLOSED, GEN_RUNNING, getgeneratorstate
from typing import TYPE_CHECKING, Any

from qtpy.QtCore import QEvent, QSize, QTimer
from qtpy.QtGui import QShowEvent
from qtpy.QtWidgets import QSizePolicy, QWidget

from napari_agglo.widgets._jobs import when_imported
from napari_agglo.widgets._qt import column, dock_width, label

if TYPE_CHECKING:
    from napari_agglo.widgets._guide import Guide

# A dock says so itself, once it has tried to load the kernels.
warnings.filterwarnings("ignore", message="Compiled kernels cannot be kept")


class Dock(QWidget):
    """The dock of all steps: a line of text until they are imported, then one more step a turn."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.setObjectName("agglo dock")
        self._viewer = napari_viewer
        self._guide: Guide | None = None
        self._parts: Generator[None] = self._build()
        self._next = QTimer(self)
        self._next.setSingleShot(True)
        self._next.timeout.connect(self._build_part)
        self._loading = label("loading", lines=1)
        self._loading.setText("Loading…")
        self._loading.setContentsMargins(8, 4, 8, 4)
        # Otherwise napari would add a stretch, which took half of the height later.
        self._loading.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)
        self._column = column(self, self._loading)
        when_imported(f"{__package__}._guide", self._start)

    @property
    def guide(self) -> Guide:
        """The column of steps, complete: what is left of it is built now."""
        for _ in self._parts:
            pass
        assert self._guide is not None
        return self._guide

    @property
    def complete(self) -> bool:
        """Whether all steps are built."""
        return getgeneratorstate(self._parts) == GEN_CLOSED

    def sizeHint(self) -> QSize:
        """Return a width that has room for the controls and leaves room for the canvas."""
        return QSize(dock_width(self), 640)

    def showEvent(self, event: QShowEvent | None) -> None:
        """Load the kernels in the background."""
        if event is not None:
            super().showEvent(event)
        self._follow_window()

    def changeEvent(self, event: QEvent | None) -> None:
        """Stop compiling when the dock is taken out of the window."""
        if event is not None:
            super().changeEvent(event)
            is_out = event.type() == QEvent.Type.ParentChange and self.parent() is None
            if is_out and self._guide is not None:
                self._guide.stop_warm_up()

    def _build(self) -> Generator[None]:
        from napari_agglo.widgets._guide import Guide

        self._guide = guide = Guide(self._viewer)
        self._column.addWidget(guide)
        self._loading.setVisible(False)
        yield
        yield from guide.build()
        self._follow_window()

    def _start(self) -> None:
        with suppress(RuntimeError):  # the dock may be destroyed by now
            self._next.start()

    def _build_part(self) -> None:
        # A part may handle events before it is complete.
        if getgeneratorstate(self._parts) != GEN_RUNNING:
            with suppress(StopIteration):
                next(self._parts)
                self._next.start()

    def _follow_window(self) -> None:
        """Load the kernels, and close the project with the window, once both are there."""
        if self._guide is not None and self.isVisible():
            self._guide.follow_window()
