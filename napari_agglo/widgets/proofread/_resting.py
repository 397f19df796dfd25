"""While a person rests: what opening the session after a crash would compute is written down."""

from __future__ import annotations

import threading
from contextlib import suppress

from qtpy.QtCore import QTimer

from napari_agglo.errors import AggloError
from napari_agglo.session import Session
from napari_agglo.widgets._notices import tell_error
from napari_agglo.widgets.proofread._editor import Editor
from napari_agglo.widgets.proofread._latest import Latest
from napari_agglo.widgets.proofread._seeds import Seeds

_LONGEST = 10  # seconds to wait for one that is being written when the session is let go of


class Resting:
    """Writes a checkpoint of the session, in a worker, when nothing has been done for a while.

    It is a cache: if it cannot be written nothing is lost, and nothing is said.

    Attributes
    ----------
    rest : int
        For how many milliseconds nothing must have been done.
    worth : int
        After how many entries of the journal it is worth while.
    """

    rest = 30_000
    worth = 100

    def __init__(self, editor: Editor, seeds: Seeds) -> None:
        self.project = editor.project
        self._editor = editor
        self._written = threading.Event()  # cleared while a worker writes
        self._written.set()
        self._worker = Latest(self.project.hold, self.project.release)
        self._timer = QTimer()
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._on_rest)
        project = self.project
        for signal in (project.edited, project.threshold_changed, project.selection_changed):
            signal.connect(self.stir)
        seeds.changed.connect(self.stir)
        project.hierarchy_changed.connect(self._let_go)
        project.closing.connect(self._close)

    @property
    def busy(self) -> bool:
        """Whether a checkpoint is being written."""
        return not self._written.is_set()

    def stir(self) -> None:
        """Say that the person does something: the rest begins anew."""
        session = self.project.session
        if session is not None and not session.read_only:
            self._timer.start(self.rest)

    def _on_rest(self) -> None:
        project, session = self.project, self.project.session
        if session is None or session.read_only:
            return
        if not project.settled or self._editor.waiting:
            self.stir()  # something is under way, which is no rest
        elif session.to_replay >= self.worth:
            self._written.clear()
            self._worker.ask(lambda: self._write(session), lambda _: None, _failed)

    def _write(self, session: Session) -> None:
        try:
            session.checkpoint()
        finally:
            self._written.set()

    def _let_go(self) -> None:
        """Leave nobody writing in the folder of a session that is closed."""
        self._timer.stop()
        self._written.wait(_LONGEST)

    def _close(self) -> None:
        with suppress(RuntimeError):  # Qt itself may be gone by now
            self._timer.stop()
        self._worker.close()
        self._written.wait(_LONGEST)


def _failed(error: Exception) -> None:
    if not isinstance(error, AggloError):  # such as: the session was closed meanwhile
        tell_error(error)
