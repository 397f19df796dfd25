"""One napari window that tests use one after the other, as long as each leaves it as it was.

To open and close napari takes more than a second of processor time, which is longer than most tests
of a window. A window that cannot be brought back to its first state is closed, and the next test
gets a new one: no test depends on the tests before it.
"""

from __future__ import annotations

import gc
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from napari import Viewer
from napari._app_model._app import NapariApplication, _napari_names
from napari._qt._qapp_model.qactions import init_qactions
from napari._qt.qt_viewer import QtViewer
from napari.plugins import _initialize_plugins
from napari.settings import get_settings
from qtpy.QtCore import QEvent
from qtpy.QtWidgets import QApplication, QWidget
from windows import camera, grid, text_overlay

from napari_agglo.widgets import _qt

SIZE = (1280, 800)
APPLICATION = "window of tests"


class SpareWindow:
    """A shown window of 1280 x 800, opened at the first `take` and after each `close`."""

    def __init__(self) -> None:
        self.viewer: Any = None
        self.left: list[dict[str, Any]] = []  # why windows were closed
        self._stack = ExitStack()
        self._first: dict[str, Any] = {}
        self._docks: Any = None  # widths of the areas of docks

    def take(self) -> Any:
        """Return the viewer, as new."""
        if self.viewer is None:
            self._open()
        return self.viewer

    def give_back(self) -> None:
        """Empty the window; close it if something of the test is left in it."""
        if self.viewer is None:
            return
        try:
            self._empty()
            left = {key: value for key, value in self._state().items() if value != self._first[key]}
        except Exception as error:  # closed by the test, or broken by it
            left = {"error": error}
        if left:
            self.left.append(left)
            self.close()

    def close(self) -> None:
        """Close the window, without a trace."""
        if self.viewer is None:
            return
        viewer, self.viewer = self.viewer, None
        if hasattr(viewer.window, "_qt_window"):
            with patch.object(viewer.window._qt_window, "_save_current_window_settings"):
                viewer.close()
        self._stack.close()
        del viewer
        gc.collect()
        QtViewer._instances.clear()

    def _open(self) -> None:
        # As napari's own fixture does: an application, settings and plugins that are new, no thread
        # that checks the status, and no console.
        get_settings().reset()
        application = NapariApplication(APPLICATION)
        application.injection_store.namespace = _napari_names
        enter = self._stack.enter_context
        self._stack.callback(_forget_application)
        enter(patch.object(NapariApplication, "get_app_model", return_value=application))
        enter(patch("napari._qt.threads.status_checker.StatusChecker.start", lambda *_: None))
        enter(patch.object(QtViewer, "_get_console", _no_console))
        _initialize_plugins.cache_clear()
        init_qactions.cache_clear()
        self.viewer = viewer = Viewer(show=True, show_welcome_screen=False)
        viewer.window.resize(*SIZE)
        _process_events()
        self._first = self._state()
        self._docks = viewer.window._qt_window.saveState()

    def _empty(self) -> None:
        viewer = self.viewer
        _qt._parts.pop(viewer, None)
        # Before all else: a part that hears of a new size would write on the canvas again.
        canvas = getattr(viewer, "canvas", None)
        if canvas is not None:  # napari 0.9, which adds listeners of its own at need
            _disconnect(canvas.events)
        viewer.window.remove_dock_widget("all")
        viewer.window._qt_window.restoreState(self._docks)
        for pointer in viewer.window._qt_window.findChildren(QWidget, "key pointer"):
            pointer.deleteLater()  # it is the canvas's, and would go with it
        viewer.dims.ndisplay = 2
        viewer.layers.clear()  # napari resets the axes
        viewer.keymap.clear()
        for callbacks, first in zip(self._callbacks(), self._first["mouse"], strict=True):
            callbacks[:] = first
        for group in self._groups():
            _disconnect(group)
        viewer.theme = self._first["theme"]
        viewer.cursor.style = self._first["cursor"]
        viewer.title = self._first["title"]
        viewer.status = "Ready"
        text_overlay(viewer).update(self._first["text"])
        grid(viewer).update(self._first["grid"])
        camera(viewer).update(self._first["camera"])
        get_settings().reset()
        viewer.window._qt_window.showNormal()
        viewer.window.resize(*SIZE)
        _process_events()
        gc.collect(1)
        viewer.reset_view()
        _process_events()

    def _state(self) -> dict[str, Any]:
        """Return what a test could leave behind in a window without layers."""
        viewer, window = self.viewer, self.viewer.window._qt_window
        return {
            "layers": len(viewer.layers),
            "docks": sorted(viewer.window.dock_widgets),
            "dims": (viewer.dims.ndim, viewer.dims.ndisplay, viewer.dims.order),
            "theme": viewer.theme,
            "title": viewer.title,
            "cursor": viewer.cursor.style,
            "text": {"visible": False, "text": ""}
            | {key: getattr(text_overlay(viewer), key) for key in ("visible", "text", "position")},
            "grid": {
                key: getattr(grid(viewer), key) for key in ("enabled", "stride", "shape", "spacing")
            },
            "camera": {key: getattr(camera(viewer), key) for key in ("angles", "perspective")},
            "keys": sorted(map(str, viewer.keymap)),
            "mouse": [list(callbacks) for callbacks in self._callbacks()],
            "listeners": [_listeners(group) for group in self._groups()],
            "size": (window.width(), window.height()),
            "children": sum(type(w).__module__.startswith("napari_agglo") for w in _all(window)),
        }

    def _callbacks(self) -> list[Any]:
        """Return the lists of functions that are called for the mouse."""
        kinds = ("move", "drag", "wheel", "double_click")
        return [getattr(self.viewer, f"mouse_{kind}_callbacks") for kind in kinds]

    def _groups(self) -> list[Any]:
        """Return the events that the plugin listens to."""
        viewer = self.viewer
        owners = (viewer, viewer.layers, viewer.layers.selection, viewer.dims, camera(viewer))
        return [owner.events for owner in owners]


def _all(window: QWidget) -> list[QWidget]:
    return list(window.findChildren(QWidget))


def _listeners(group: Any) -> int:
    """Return the number of functions that are called for any event of a group."""
    emitters = getattr(group, "emitters", None)
    if emitters is None:  # psygnal
        return sum(len(signal) for signal in group.signals.values())
    return len(group.callbacks) + sum(len(one.callbacks) for one in emitters.values())


def _disconnect(group: Any) -> None:
    """Disconnect all parts of the plugin, whose work has ended, from events of napari."""
    for emitter in (group, *getattr(group, "emitters", {}).values()):
        for callback in getattr(emitter, "callbacks", ()):
            if not isinstance(callback, tuple):
                owner, one = callback, callback
            else:
                owner = callback[0]()
                one = object() if owner is None else (owner, callback[1])  # object(): all dead ones
            module = getattr(owner, "__module__", None) or ""
            if owner is None or module.startswith("napari_agglo"):
                emitter.disconnect(one)


def _no_console(*_: object) -> QWidget:
    console = QWidget()
    console._update_theme = lambda *_: None  # type: ignore[attr-defined]
    return console


def _forget_application() -> None:
    from app_model import Application

    Application.destroy(APPLICATION)
    _initialize_plugins.cache_clear()
    init_qactions.cache_clear()


def _process_events() -> None:
    for _ in range(3):
        QApplication.processEvents()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
