"""Helpers for Qt and napari: notices, questions, connections, one object of a class per viewer."""

from __future__ import annotations

import inspect
import logging
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from napari.utils.notifications import show_error, show_warning
from qtpy.QtCore import QEvent, QObject, QRectF, Qt, QTimer
from qtpy.QtGui import QColor, QIcon, QPainter, QPaintEvent, QPen, QResizeEvent, QWheelEvent
from qtpy.QtWidgets import (
    QAbstractButton,
    QApplication,
    QBoxLayout,
    QCheckBox,
    QComboBox,
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLayout,
    QMainWindow,
    QMessageBox,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QStyle,
    QStyleOptionComboBox,
    QStylePainter,
    QTabBar,
    QTableView,
    QTableWidget,
    QTableWidgetItem,
    QTabWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from superqt import QCollapsible

from napari_agglo._registry import raised_by
from napari_agglo.errors import AggloError, Cancelled, DataWarning
from napari_agglo.widgets._colours import FOCUS, GREY
from napari_agglo.widgets._remedies import window_sentence

# Objects by viewer and class. The keys are weak: an object must not refer to its viewer.
Part = TypeVar("Part")
Widget = TypeVar("Widget", bound=QWidget)
_parts: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()


def real_viewer(viewer: Any) -> Any:
    """Return the viewer itself: napari passes a proxy to plugins."""
    return getattr(viewer, "__wrapped__", viewer)


def per_viewer(viewer: Any, cls: Callable[[Any], Part]) -> Part:
    """Return the object of a class for a viewer, created at the first call."""
    real = real_viewer(viewer)
    parts = _parts.setdefault(real, {})
    if cls not in parts:
        parts[cls] = cls(real)
    part: Part = parts[cls]
    return part


_log = logging.getLogger("napari_agglo")


def tell_error(error: BaseException) -> None:
    """Show an error in the window, with its remedy."""
    if isinstance(error, Cancelled):
        return
    if not isinstance(error, (AggloError, MemoryError, OSError)):
        # A bug of the plugin: the log has the details for a report.
        _log.error("unexpected error", exc_info=error)
    show_error(error_text(error))


def tell_warnings(warnings: Iterable[DataWarning]) -> None:
    """Show warnings of data in the window, with their remedies."""
    for warning in warnings:
        show_warning(window_sentence(warning))


def error_text(error: BaseException) -> str:
    """Return an error as a sentence, with its remedy."""
    if isinstance(error, AggloError):
        return window_sentence(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory. Crop the image, or close other programs."
    if isinstance(error, OSError):
        return f"A file could not be read or written: {error}"
    origin = raised_by(error)
    if origin is not None:  # the code of a user, or of another package
        return (
            f"{type(error).__name__} {origin}: {error}. Your data and edits are unchanged. Fix it, "
            "or tell its author the steps that led to it."
        )
    return (
        f"Unexpected error ({type(error).__name__}: {error}). Your data and edits are "
        "unchanged. Please report it with the steps that led to it."
    )


def guarded(action: Callable[[], object]) -> None:
    """Call an action; show the error that it raises."""
    try:
        action()
    except Exception as error:
        tell_error(error)


_open_questions: set[QMessageBox] = set()  # references to those without a parent


def ask(title: str, text: str, choices: dict[str, Callable[[], object]]) -> QMessageBox:
    """Ask a question, without blocking the window; each answer but Cancel calls its action."""
    windows = [one for one in QApplication.topLevelWidgets() if isinstance(one, QMainWindow)]
    parent = QApplication.activeWindow() or next(iter(windows), None)  # for napari's style
    box = QMessageBox(QMessageBox.Icon.NoIcon, title, text, parent=parent)
    box.setObjectName("agglo question")
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    for answer, action in choices.items():
        button = box.addButton(answer, QMessageBox.ButtonRole.AcceptRole)
        button.setObjectName(answer)
        button.clicked.connect(lambda _=False, act=action: guarded(act))
    box.setEscapeButton(box.addButton("Cancel", QMessageBox.ButtonRole.RejectRole))
    _open_questions.add(box)
    box.finished.connect(lambda: _open_questions.discard(box))
    box.open()
    return box


# Widgets of all steps. Tests and style sheets find a widget by its object name.


def named(widget: Widget, name: str, tooltip: str = "") -> Widget:
    """Return a widget with an object name and a tooltip, and an accessible name without text."""
    widget.setObjectName(name)
    widget.setToolTip(tooltip)
    if not isinstance(widget, (QAbstractButton, QLabel)):
        widget.setAccessibleName(name)
    return widget


def button(
    text: str, tooltip: str, action: Callable[[], object] | None = None, name: str | None = None
) -> QPushButton:
    """Return a button that calls `action`; its name is its text by default."""
    push = named(QPushButton(text), text if name is None else name, tooltip)
    if action is not None:
        push.clicked.connect(lambda: action())
    return push


def tool_button(text: str, tooltip: str, name: str, *, checkable: bool = False) -> QToolButton:
    """Return a small button with a border, which napari's style lacks."""
    tool = named(QToolButton(), name, tooltip)
    tool.setText(text)
    tool.setAccessibleName(name)
    tool.setCheckable(checkable)
    tool.setStyleSheet(f"QToolButton {{ border: 1px solid {GREY}; border-radius: 3px; }}")
    tool.setMinimumSize(28, 22)
    return tool


class FoldedLabel(QLabel):
    """A text that reserves the height of its lines at its width.

    A column of widgets does not grow with text that wraps, and a narrow dock would cut off the
    widgets below it.
    """

    least = 0  # pixels
    _is_placed = False
    _reserved: object = None  # text and width for which lines are reserved

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        """Reserve the lines at the new width."""
        super().resizeEvent(event)
        self._is_placed = True
        self._reserve()

    def setText(self, text: str | None) -> None:
        """Show a text, and reserve its lines."""
        super().setText(text)
        self._reserve()

    def changeEvent(self, event: QEvent | None) -> None:
        """Reserve the lines in another font or style."""
        super().changeEvent(event)
        kinds = (QEvent.Type.FontChange, QEvent.Type.StyleChange)
        if event is not None and event.type() in kinds:
            self._reserved = None
            self._reserve()

    def _reserve(self) -> None:
        # Only once for a text and a width: each change of the minimum makes Qt lay out the dock.
        state = (self.text(), self.width(), self.least, self._is_placed)
        if state == self._reserved:
            return
        self._reserved = state
        if self.minimumHeight() > self.least:
            self.setMinimumHeight(self.least)  # heightForWidth is never below the minimum
        needed = self.heightForWidth(self.width()) if self.text() and self._is_placed else 0
        height = max(self.least, needed)
        if height != self.minimumHeight():
            self.setMinimumHeight(height)


# napari's own style pads labels above and below too, and Qt indents text at the top or left of a
# label by half a letter on both sides, which pushes the last line out of a label of a given height.
STILL = "padding: 0 5px;"


def label(name: str, tooltip: str = "", *, bold: bool = False, lines: int = 0) -> FoldedLabel:
    """Return a label of text that wraps, with room for so many lines at least."""
    text = named(FoldedLabel(), name, tooltip)
    text.least = lines * text.fontMetrics().lineSpacing()
    text.setMinimumHeight(text.least)
    if lines:
        text.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        text.setIndent(0)
    text.setWordWrap(True)
    text.setStyleSheet(f"{STILL if lines else ''}{'font-weight: bold;' if bold else ''}")
    return text


def check_box(text: str, tooltip: str, name: str, toggled: Callable[[bool], object]) -> QCheckBox:
    """Return a box to tick that calls `toggled`."""
    box = named(QCheckBox(text), name, tooltip)
    box.toggled.connect(toggled)
    return box


class _ShortenedBox(QComboBox):
    """Drop-down list whose text ends in an ellipsis where there is no room for it."""

    def paintEvent(self, _: QPaintEvent | None) -> None:
        """Draw the list as Qt does, with a text that fits."""
        option, painter = QStyleOptionComboBox(), QStylePainter(self)
        self.initStyleOption(option)
        field = QStyle.SubControl.SC_ComboBoxEditField
        room = self.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, field, self)
        text = self.placeholderText() if self.currentIndex() < 0 else option.currentText
        option.currentText = self.fontMetrics().elidedText(
            text, Qt.TextElideMode.ElideRight, room.width() - _ROUND
        )
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)


_ROUND = 4  # pixels at the ends of the text of a drop-down list


def combo_box(name: str, tooltip: str, items: Iterable[str] = ()) -> QComboBox:
    """Return a drop-down list; long entries do not widen the dock."""
    box: QComboBox = named(_ShortenedBox(), name, tooltip)
    keep_narrow(box)
    box.addItems(list(items))
    return box


def keep_narrow(box: QComboBox) -> None:
    """Let a drop-down list shrink to a few letters, and grow with its room."""
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    box.setMinimumContentsLength(5)
    box.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)


def pixel_word(ndim: int, n: int = 0) -> str:
    """Return the word for `n` elements of an image, such as pixels of a plane; else voxels.

    Examples
    --------
    >>> pixel_word(2), pixel_word(3), pixel_word(3, 1)
    ('pixels', 'voxels', 'voxel')
    """
    return f"{'pixel' if ndim == 2 else 'voxel'}{'' if n == 1 else 's'}"


def shortened(name: str, room: int) -> str:
    """Return a name shortened to so many letters: its beginning and its end.

    Examples
    --------
    >>> shortened("layer membranes of May, second try", 20)
    'layer memb…econd try'
    """
    if len(name) <= room or room < 5:
        return name
    end = (room - 1) // 2
    return f"{name[: room - 1 - end]}…{name[-end:]}"


class _TabBar(QTabBar):
    """Titles of tabs that a wheel does not switch: it scrolls the dock."""

    def wheelEvent(self, event: QWheelEvent | None) -> None:
        """Leave the event to the dock."""
        if event is not None:
            event.ignore()


def tab_widget(name: str, *tabs: tuple[str, str, QWidget]) -> QTabWidget:
    """Return tabs, each from its title, tooltip and content."""
    widget = named(QTabWidget(), name)
    widget.setTabBar(_TabBar())
    widget.setUsesScrollButtons(True)  # so that the tabs do not widen a narrow dock
    widget.tabBar().setStyleSheet("QTabBar::tab { padding: 3px 4px; }")
    widget.tabBar().setAccessibleName(name)
    for at, (title, tooltip, content) in enumerate(tabs):
        widget.addTab(content, title)
        widget.setTabToolTip(at, tooltip)
    return widget


_WIDEST, _NARROWEST = 360, 270  # pixels of a dock at first


def dock_width(widget: QWidget) -> int:
    """Return the first width of a dock: that of a form, and less in a small window."""
    window = parent_of(widget, QMainWindow)
    share = _WIDEST if window is None else window.width() * 9 // 32
    return min(_WIDEST, max(_NARROWEST, share))


class SteadyScrollArea(QScrollArea):
    """Scroll area whose content may change its height while it is resized.

    Qt's own resizes the content from within each resize of the content. If texts that wrap reserve
    other heights there, that goes on until the stack of the process is used up.
    """

    _is_following = False

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Follow a resize of the content, but none that follows from that."""
        if event is None or event.type() != QEvent.Type.Resize:
            return super().eventFilter(watched, event)
        if self._is_following:
            return False
        self._is_following = True
        try:
            return super().eventFilter(watched, event)
        finally:
            self._is_following = False


def scroll_area(widget: QWidget, content: QWidget) -> QScrollArea:
    """Fill a widget with content that scrolls."""
    area = named(SteadyScrollArea(), "content")
    area.setWidgetResizable(True)
    area.setWidget(content)
    area.setFrameShape(QScrollArea.Shape.NoFrame)
    FocusRings(content)
    column(widget, area)
    return area


class FocusRing(QWidget):
    """A frame around a control while it has the focus of the keyboard."""

    def __init__(self, control: QWidget) -> None:
        super().__init__(control.parentWidget())
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.control = control
        control.installEventFilter(self)
        self._place()
        self.show()

    def eventFilter(self, control: QObject | None, event: QEvent | None) -> bool:
        """Follow the control, and go with its focus."""
        kind = None if event is None else event.type()
        if kind in (QEvent.Type.Move, QEvent.Type.Resize):
            self._place()
        elif kind in (QEvent.Type.FocusOut, QEvent.Type.Hide):
            self.hide()
            self.deleteLater()
        return False

    def paintEvent(self, _: QPaintEvent | None) -> None:
        """Draw the frame."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(FOCUS), 2))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 3, 3)

    def _place(self) -> None:
        parent = self.parentWidget()
        if parent is not None:
            self.setGeometry(self.control.geometry().adjusted(-2, -2, 2, 2) & parent.rect())
            self.raise_()


class FocusRings(QObject):
    """Frames for the controls inside a widget: napari's style does not show the focus.

    Only where the focus came by a key, as a click needs no frame.
    """

    def __init__(self, owner: QWidget) -> None:
        super().__init__(owner)
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._follow)

    def _follow(self, _: QWidget | None, control: QWidget | None) -> None:
        owner, parent = self.parent(), None if control is None else control.parentWidget()
        if control is None or parent is None or not isinstance(owner, QWidget):
            return
        if not owner.isAncestorOf(control):
            return
        by_key = control.window().testAttribute(Qt.WidgetAttribute.WA_KeyboardFocusChange)
        if by_key and QApplication.mouseButtons() == Qt.MouseButton.NoButton:
            rings = parent.findChildren(FocusRing)
            if not any(one.control is control and one.isVisibleTo(parent) for one in rings):
                FocusRing(control)  # a step inside the dock has frames of its own


def single_shot(action: Callable[[], object], milliseconds: int = 0) -> QTimer:
    """Return a timer that calls an action once, so long after its last start."""
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
    """Lay out parts one below the other in a widget, with a margin at the top only."""
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


ROW_HEIGHT = 24  # pixels
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


def style_table(table: QTableView, name: str, tooltip: str = "") -> None:
    """Give a table the common look, without row numbers; Tab leaves the table."""
    named(table, name, tooltip).setWordWrap(False)
    table.setTabKeyNavigation(False)  # arrow keys move between the cells
    # napari has no style for check boxes in a table: on dark they are invisible.
    table.setStyleSheet(
        f"QTableView::indicator:unchecked {{ border: 1px solid {GREY}; width: 11px; height: 11px }}"
    )
    table.verticalHeader().setVisible(False)
    table.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
    table.horizontalHeader().setHighlightSections(False)


def read_only_table(name: str, titles: Sequence[str], tooltip: str) -> QTableWidget:
    """Return an empty table of texts, whose first column takes the spare room."""
    table = QTableWidget(0, len(titles))
    style_table(table, name, tooltip)
    table.setHorizontalHeaderLabels(titles)
    table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
    table.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
    header = table.horizontalHeader()
    header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
    return table


def write_row(table: QTableWidget, row: int, texts: Sequence[str], tooltip: str = "") -> None:
    """Write the texts of a row; after the first they are numbers, aligned right."""
    for at, text in enumerate(texts):
        item = QTableWidgetItem(text)
        item.setToolTip(tooltip or text)
        if at:
            item.setTextAlignment(_RIGHT)
        table.setItem(row, at, item)


def close_up(folding: QCollapsible) -> None:
    """Remove the margins of a collapsible part, and give its button a tooltip and an arrow.

    The arrow is text, as an icon would stay black on dark.
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
        folding.content().setVisible(is_open)  # hidden controls take no focus

    folding.toggled.connect(turn)
    turn(folding.isExpanded())
    for widget in (folding, folding.content().parentWidget()):
        layout = None if widget is None else widget.layout()
        if layout is not None:
            layout.setContentsMargins(0, 0, 0, 0)
            layout.setSpacing(2)


# Actions at the end of a widget. This set refers to them: Python may collect a widget with all its
# own references, clear these first, and crash when Qt then calls one.
_ends: set[Callable[[], None]] = set()


def link(method: Callable[..., Any], *signals: Any) -> Callable[[], None]:
    """Call a method of a widget whenever one of the signals, of psygnal or napari, is emitted.

    The connection ends with the Qt widget, which may be destroyed before its Python object, or
    when the function that is returned is called.
    """
    widget: QObject = method.__self__  # type: ignore[attr-defined]
    reference = weakref.WeakMethod(method)
    n = len(inspect.signature(method).parameters)

    def call(*arguments: Any) -> None:
        live = reference()
        if live is not None:
            live(*arguments[:n])

    def unlink() -> None:
        for signal in signals:
            signal.disconnect(call)

    for signal in signals:
        signal.connect(call)
    when_gone(widget, unlink)
    return unlink


def parent_of(widget: QObject | None, kind: type) -> Any:
    """Return the nearest parent of a class, or the widget itself; None if there is none."""
    while widget is not None and not isinstance(widget, kind):
        widget = widget.parent()
    return widget


def when_gone(owner: QObject, action: Callable[[], object]) -> None:
    """Call `action` when Qt destroys an object, to which it must not refer."""

    def end() -> None:
        _ends.discard(end)
        try:
            action()
        except Exception:  # in a slot it would abort the program, which is closing
            _log.debug("already destroyed", exc_info=True)

    _ends.add(end)
    owner.destroyed.connect(end)
