"""Helpers for Qt and napari: notices, questions, connections, one object of a class per viewer."""

from __future__ import annotations

import inspect
import logging
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from napari.utils.notifications import show_error, show_info, show_warning
from psygnal import SignalInstance
from qtpy.QtCore import QObject, Qt, QTimer
from qtpy.QtGui import QIcon
from qtpy.QtWidgets import (
    QApplication,
    QBoxLayout,
    QCheckBox,
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLayout,
    QMainWindow,
    QMessageBox,
    QPushButton,
    QScrollArea,
    QTableView,
    QTableWidget,
    QTableWidgetItem,
    QTabWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from superqt import QCollapsible

from napari_agglo.errors import AggloError, Cancelled
from napari_agglo.widgets._colours import GREY
from napari_agglo.widgets._remedies import window_sentence

# One object of a class for each viewer. The viewer is held weakly: an object must not refer to it.


Part = TypeVar("Part")
_parts: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()


def real_viewer(viewer: Any) -> Any:
    """Return the viewer itself: a plugin is handed a proxy."""
    return getattr(viewer, "__wrapped__", viewer)


def per_viewer(viewer: Any, cls: Callable[[Any], Part]) -> Part:
    """Return the object of a class that belongs to a viewer; it is made at the first call."""
    real = real_viewer(viewer)
    parts = _parts.setdefault(real, {})
    if cls not in parts:
        parts[cls] = cls(real)
    part: Part = parts[cls]
    return part


# Notices for the user, as napari notifications: never a traceback to read in a terminal.


_log = logging.getLogger("napari_agglo")


def tell(message: str) -> None:
    """Say that something is so."""
    show_info(message)


def warn(message: str) -> None:
    """Say what should be known before going on."""
    show_warning(message)


def tell_error(error: BaseException) -> None:
    """Say what went wrong, and what to do."""
    if isinstance(error, Cancelled):
        return
    if isinstance(error, AggloError):
        show_error(window_sentence(error))
    elif isinstance(error, MemoryError):
        show_error("There is not enough memory for this. Crop the image, or close other programs.")
    elif isinstance(error, OSError):
        show_error(f"A file could not be read or written: {error}")
    else:
        # A fault of ours. The log has the details for a report; the window says what is lost.
        _log.error("unexpected error", exc_info=error)
        show_error(
            f"Something unexpected went wrong ({type(error).__name__}: {error}). Nothing that was "
            "there before has changed. Please report it with what you did."
        )


def guarded(action: Callable[[], object]) -> None:
    """Call an action; tell the error that it raises."""
    try:
        action()
    except Exception as error:
        tell_error(error)


# A question with a few answers, which does not keep the window waiting.


_asked: set[QMessageBox] = set()  # Python would let go of one without a parent at once


def ask(title: str, text: str, choices: dict[str, Callable[[], object]]) -> QMessageBox:
    """Ask; a click on an answer calls what belongs to it, Cancel calls nothing."""
    windows = [one for one in QApplication.topLevelWidgets() if isinstance(one, QMainWindow)]
    parent = QApplication.activeWindow() or next(iter(windows), None)  # it has napari's style
    box = QMessageBox(QMessageBox.Icon.NoIcon, title, text, parent=parent)
    box.setObjectName("agglo question")
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    answers: dict[Any, Callable[[], object]] = {}
    for words, action in choices.items():
        button = box.addButton(words, QMessageBox.ButtonRole.AcceptRole)
        button.setObjectName(words)
        answers[button] = action
    box.setEscapeButton(box.addButton("Cancel", QMessageBox.ButtonRole.RejectRole))

    def answered(button: Any) -> None:
        guarded(answers.get(button, lambda: None))

    box.buttonClicked.connect(answered)
    _asked.add(box)
    box.finished.connect(lambda: _asked.discard(box))
    box.open()
    return box


# Widgets that are made in many places. The name of an object is how tests and style sheets find it.


def button(
    text: str, tooltip: str, action: Callable[[], object] | None = None, name: str | None = None
) -> QPushButton:
    """Return a button that calls `action`; its name is by default its text."""
    made = QPushButton(text)
    made.setObjectName(text if name is None else name)
    made.setToolTip(tooltip)
    if action is not None:
        made.clicked.connect(lambda: action())
    return made


def tool_button(text: str, tooltip: str, name: str, *, checkable: bool = False) -> QToolButton:
    """Return a small button, with a border: napari's style has none, as if it were text."""
    made = QToolButton()
    made.setObjectName(name)
    made.setText(text)
    made.setToolTip(tooltip)
    made.setCheckable(checkable)
    made.setStyleSheet(f"QToolButton {{ border: 1px solid {GREY}; border-radius: 3px; }}")
    made.setMinimumSize(28, 22)
    return made


def label(name: str, tooltip: str = "", *, bold: bool = False, lines: int = 0) -> QLabel:
    """Return a label for text that wraps, with room for so many lines.

    A tab does not grow with text that wraps, so in tabs the room must be there before the text.
    """
    made = QLabel()
    made.setMinimumHeight(lines * made.fontMetrics().lineSpacing())
    if lines:
        made.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
    made.setObjectName(name)
    made.setToolTip(tooltip)
    made.setWordWrap(True)
    if bold:
        made.setStyleSheet("font-weight: bold;")
    return made


def check_box(text: str, tooltip: str, name: str, toggled: Callable[[bool], object]) -> QCheckBox:
    """Return a box to tick that calls `toggled`."""
    made = QCheckBox(text)
    made.setObjectName(name)
    made.setToolTip(tooltip)
    made.toggled.connect(toggled)
    return made


def tab_widget(name: str, *tabs: tuple[str, str, QWidget]) -> QTabWidget:
    """Return tabs, each by its title, tooltip and content."""
    made = QTabWidget()
    made.setObjectName(name)
    for at, (title, tooltip, content) in enumerate(tabs):
        made.addTab(content, title)
        made.setTabToolTip(at, tooltip)
    return made


def scroll_area(widget: QWidget, content: QWidget) -> QScrollArea:
    """Fill a widget with content that scrolls if it is too high."""
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setWidget(content)
    area.setFrameShape(QScrollArea.Shape.NoFrame)
    column(widget, area)
    return area


def single_shot(action: Callable[[], object], milliseconds: int = 0) -> QTimer:
    """Return a timer that calls an action once, so long after it was started last."""
    timer = QTimer()
    timer.setSingleShot(True)
    timer.setInterval(milliseconds)
    timer.timeout.connect(action)
    return timer


Parts = QWidget | QLayout


def row(*parts: Parts, spacing: int = 4) -> QHBoxLayout:
    """Return a layout of parts side by side."""
    return _filled(QHBoxLayout(), parts, spacing)


def column(widget: QWidget | None, *parts: Parts, spacing: int = 4, top: int = 0) -> QVBoxLayout:
    """Lay out parts one below the other in a widget, without margins but one at the top."""
    return _filled(QVBoxLayout(widget), parts, spacing, top)


Box = TypeVar("Box", bound=QBoxLayout)


def _filled(layout: Box, parts: tuple[Parts, ...], spacing: int, top: int = 0) -> Box:
    layout.setContentsMargins(0, top, 0, 0)
    layout.setSpacing(spacing)
    for part in parts:
        if isinstance(part, QLayout):
            layout.addLayout(part)
        else:
            layout.addWidget(part)
    return layout


# Tables.


ROW_HEIGHT = 24  # pixels
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


def style_table(table: QTableView, name: str, tooltip: str = "") -> None:
    """Give a table the look of all tables of the plugin, without numbers of rows."""
    table.setObjectName(name)
    table.setToolTip(tooltip)
    table.setWordWrap(False)
    # napari has no style for boxes to tick in a table: on dark they could not be seen.
    table.setStyleSheet(
        f"QTableView::indicator:unchecked {{ border: 1px solid {GREY}; width: 11px; height: 11px }}"
    )
    table.verticalHeader().setVisible(False)
    table.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
    table.horizontalHeader().setHighlightSections(False)


def read_only_table(name: str, titles: Sequence[str], tooltip: str) -> QTableWidget:
    """Return an empty table of texts, of which the first column has all room to spare."""
    made = QTableWidget(0, len(titles))
    style_table(made, name, tooltip)
    made.setHorizontalHeaderLabels(titles)
    made.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
    made.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
    header = made.horizontalHeader()
    header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
    return made


def write_row(table: QTableWidget, row: int, texts: Sequence[str], tooltip: str = "") -> None:
    """Write the texts of a row; those after the first are numbers, aligned at their right."""
    for at, text in enumerate(texts):
        item = QTableWidgetItem(text)
        item.setToolTip(tooltip or text)
        if at:
            item.setTextAlignment(_RIGHT)
        table.setItem(row, at, item)


# Parts that are folded away take no room while they are.


def close_up(folding: QCollapsible) -> None:
    """Take away the margins around a part that folds; its button says what is in it.

    Its arrow is text like that of the steps, not an icon, which would stay black on dark.
    """
    button, title = folding.toggleButton(), folding.text()
    button.setToolTip(folding.toolTip())
    button.setStyleSheet(
        "QPushButton, QPushButton:checked { background: none; border: none; text-align: left; }"
    )
    folding.setFrameShape(QFrame.Shape.NoFrame)
    folding.setCollapsedIcon(QIcon())
    folding.setExpandedIcon(QIcon())

    def turn(is_open: bool) -> None:
        button.setText(f"{'▾' if is_open else '▸'}  {title}")

    folding.toggled.connect(turn)
    turn(folding.isExpanded())
    for widget in (folding, folding.content().parentWidget()):
        layout = None if widget is None else widget.layout()
        if layout is not None:
            layout.setContentsMargins(0, 0, 0, 0)
            layout.setSpacing(2)


# Actions for the end of a widget. They are kept here: Python may collect a widget together with all
# that only the widget refers to, take that apart first, and crash when Qt then calls it.
_ends: set[Callable[[], None]] = set()


def link(widget: QWidget, signal: SignalInstance, method: Callable[..., Any]) -> None:
    """Call `method`, of `widget`, whenever `signal` is emitted.

    Qt destroys a widget before Python lets go of it; a signal that came between would call into
    nothing, so the connection ends with the widget.
    """
    reference = weakref.WeakMethod(method)
    n = len(inspect.signature(method).parameters)

    def call(*arguments: Any) -> None:
        live = reference()
        if live is not None:
            live(*arguments[:n])

    signal.connect(call)
    when_gone(widget, lambda: signal.disconnect(call, missing_ok=True))


def when_gone(thing: QObject, action: Callable[[], object]) -> None:
    """Call `action` when Qt destroys a thing, to which it must not refer."""

    def end() -> None:
        _ends.discard(end)
        try:
            action()
        except Exception:  # an error in a slot ends the program; here it is ending by itself
            _log.debug("something was gone already", exc_info=True)

    _ends.add(end)
    thing.destroyed.connect(end)


# Connect a widget to an event of the viewer, for as long as the widget lives.


def link_viewer(widget: QWidget, emitter: Any, method: Callable[[], Any]) -> None:
    """Call `method`, of `widget`, whenever napari's `emitter` has an event; as `link` does."""
    reference = weakref.WeakMethod(method)

    def call(_: object = None) -> None:
        live = reference()
        if live is not None:
            live()

    emitter.connect(call)
    when_gone(widget, lambda: emitter.disconnect(call))
