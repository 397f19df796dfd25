"""The Proofread step: sessions, gestures on the canvas, cuts by seeds, tables and history.

::

    Proofreader   the parts of a viewer, independent of docks:
      Selection, Commands  the active segment and the selected ones, and edits of them
      Seeds, SeededCut     seeds and the preview of a cut
      Gestures, Mode       mouse and keys, and their current mode
      ErrorQueue, Relearn  the next probable error; a policy fitted to the edits
    ProofreadWidget   the step on the screen
"""

from __future__ import annotations

from napari_agglo.widgets.proofread._open_run import open_run
from napari_agglo.widgets.proofread._open_session import create_session, open_session
from napari_agglo.widgets.proofread._widget import ProofreadWidget

__all__ = ["ProofreadWidget", "create_session", "open_run", "open_session"]
