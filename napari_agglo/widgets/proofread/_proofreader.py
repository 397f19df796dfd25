"""The parts of proofreading in a viewer, independent of docks."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QPushButton

from napari_agglo.widgets._qt import ask, per_viewer
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets._session_worker import Edit
from napari_agglo.widgets.proofread._commands import Commands, Selection
from napari_agglo.widgets.proofread._error_queue import ErrorQueue
from napari_agglo.widgets.proofread._gestures import Gestures
from napari_agglo.widgets.proofread._input_layers import Inputs
from napari_agglo.widgets.proofread._mode import Mode
from napari_agglo.widgets.proofread._relearn import Relearn
from napari_agglo.widgets.proofread._seeded_cut import SeededCut, Seeds
from napari_agglo.widgets.proofread._shapes import Shapes
from napari_agglo.widgets.proofread._view_state import State, state_of, write_state

_EVERY = 20_000  # milliseconds between two checks for a changed view


class Proofreader:
    """The parts of proofreading in one viewer, connected."""

    def __init__(self, viewer: Any) -> None:
        self.scene = scene = per_viewer(viewer, Scene)
        self.project = scene.project
        self.selection = Selection(self.project)
        self.worker = self.project.worker
        self.commands = Commands(self.project)
        self.seeds = Seeds(scene)
        self.cut = SeededCut(scene, self.seeds, self.commands)
        self.mode = Mode(scene, self.seeds)
        self.gestures = Gestures(scene, self.selection, self.seeds, self.cut, self.commands)
        self.queue = ErrorQueue(scene)
        self.relearn = Relearn(scene, self.commands)
        self.inputs = per_viewer(viewer, Inputs)
        self.shapes = Shapes(scene)
        self.seeds.changed.connect(self.worker.stir)
        self._saved: State = {}
        self._timer = QTimer()
        self._timer.setInterval(_EVERY)
        self._timer.timeout.connect(self.save_view)
        self.worker.doubted.connect(self._ask)
        self.project.hierarchy_changed.connect(self._follow)
        self.project.closing.connect(self._close)
        self._follow()

    def save_view(self) -> None:
        """Save the view beside the session, if it has changed."""
        session = self.project.session
        if session is None or session.read_only:
            return
        scene = self.scene
        seeds = self.seeds.layer

        def ours(layer: Any) -> bool:
            return scene.owns(layer) or layer is seeds

        state = state_of(scene.viewer, self.project.placement, ours, self.inputs.layers)
        state["hidden"] = [name for name in state["hidden"] if not self.shapes.hides(name)]
        if state != self._saved:
            write_state(session.path, state)
            self._saved = state

    def close_session(self) -> None:
        """Save the view, and close the session."""
        self.save_view()
        self.project.close_session()

    def _follow(self) -> None:
        self._saved = {}
        if self.project.session is not None:
            self._timer.start()
        else:
            self._timer.stop()

    def _ask(self, why: str, edit: Edit) -> None:
        box = ask("Merge anyway?", why, {"Merge anyway": lambda: self.worker.edit(edit)})
        cancel = box.escapeButton()
        assert isinstance(cancel, QPushButton)
        box.setDefaultButton(cancel)  # Enter must not do what was doubted

    def _close(self) -> None:
        self._timer.stop()
        with suppress(RuntimeError):  # the viewer may be closed already
            self.save_view()
