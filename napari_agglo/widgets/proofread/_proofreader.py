"""All of proofreading that belongs to a viewer, not to a widget: docks come and go, this stays."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import QTimer

from napari_agglo.widgets._qt import ask, per_viewer
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets._session_worker import Editor, Resting, Task
from napari_agglo.widgets.proofread._active_segment import Selection
from napari_agglo.widgets.proofread._commands import Acts
from napari_agglo.widgets.proofread._error_queue import Queue
from napari_agglo.widgets.proofread._gestures import Grammar
from napari_agglo.widgets.proofread._mode import Mode
from napari_agglo.widgets.proofread._relearn import Relearning
from napari_agglo.widgets.proofread._seeded_cut import Cutting
from napari_agglo.widgets.proofread._seeds import Seeds
from napari_agglo.widgets.proofread._view_state import State, state_of, write_state

_EVERY = 20_000  # milliseconds between two looks at whether the view has changed


class Proofreader:
    """The parts of proofreading in one viewer, joined."""

    def __init__(self, viewer: Any) -> None:
        self.scene = scene = per_viewer(viewer, Scene)
        self.project = scene.project
        self.selection = Selection(self.project)
        self.editor = Editor(self.project)
        self.acts = Acts(self.project, self.editor)
        self.seeds = Seeds(scene)
        self.cutting = Cutting(scene, self.seeds, self.acts)
        self.mode = Mode(scene, self.seeds)
        self.grammar = Grammar(scene, self.selection, self.seeds, self.cutting, self.acts)
        self.queue = Queue(scene, self.editor)
        self.relearning = Relearning(scene, self.editor, self.acts)
        self.resting = Resting(self.editor, self.seeds)
        self._saved: State = {}
        self._timer = QTimer()
        self._timer.setInterval(_EVERY)
        self._timer.timeout.connect(self.save_view)
        self.editor.said.connect(self._say)
        self.editor.doubted.connect(self._ask)
        self.project.hierarchy_changed.connect(self._follow)
        self.project.closing.connect(self._close)
        self._follow()

    def save_view(self) -> None:
        """Keep beside the session how the viewer looks, if that has changed."""
        session = self.project.session
        if session is None or session.read_only:
            return
        scene = self.scene
        seeds = self.seeds.layer

        def ours(layer: Any) -> bool:
            return scene.owns(layer) or layer is seeds

        state = state_of(scene.viewer, self.project.placement, ours)
        if state != self._saved:
            write_state(session.path, state)
            self._saved = state

    def close_session(self) -> None:
        """Close the session; the view of it is kept."""
        self.save_view()
        self.project.close_session()

    def _follow(self) -> None:
        self._saved = {}
        if self.project.session is not None:
            self._timer.start()
        else:
            self._timer.stop()

    def _say(self, words: str) -> None:
        self.scene.viewer.status = words

    def _ask(self, why: str, task: Task) -> None:
        ask("Merge all the same?", why, {"Merge all the same": lambda: self.editor.do(task)})

    def _close(self) -> None:
        self._timer.stop()
        try:
            self.save_view()
        except RuntimeError:  # the viewer has gone already
            return
