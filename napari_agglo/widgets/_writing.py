"""Words on the canvas, a few new letters at a time.

napari draws a letter when it is first seen, in some ten milliseconds of the event loop, and a line
has dozens. Afterwards it knows them.
"""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import QTimer

_AT_ONCE = 2  # new letters, so that the window does not wait
_BETWEEN = 30  # milliseconds, in which others have their turn


class Writing:
    """Writes on the text overlay of one canvas."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._words = ""
        self._overlay: Any = None
        self._timer = QTimer()
        self._timer.setSingleShot(True)
        self._timer.setInterval(_BETWEEN)
        self._timer.timeout.connect(self._go_on)

    def write(self, overlay: Any, words: str) -> None:
        """Write words, at once if their letters have been seen."""
        self._overlay, self._words = overlay, words
        self._go_on()

    def stop(self) -> None:
        """Leave the rest unwritten."""
        self._timer.stop()
        self._overlay = None

    def _go_on(self) -> None:
        if self._overlay is None:
            return
        end, new = 0, set[str]()
        while end < len(self._words):
            new |= {self._words[end]} - self._known
            if len(new) > _AT_ONCE:
                break
            end += 1
        self._known |= set(self._words[:end])
        self._overlay.text = self._words[:end]
        if end < len(self._words):
            self._timer.start()
        else:
            self._timer.stop()
