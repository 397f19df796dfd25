"""The heart of a session: an action is applied, written down, and only then done."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import Division, RegionGraph
from napari_agglo.policy import Policy
from napari_agglo.session._actions import Action
from napari_agglo.session._history import History
from napari_agglo.session._resuming import NAME as SNAPSHOT
from napari_agglo.session._resuming import state_arrays
from napari_agglo.session._rules import Refused
from napari_agglo.session._state import Applied, State
from napari_agglo.session._store import NotSaved, Report, Store
from napari_agglo.session._view import Seen

Touched = NDArray[np.int32]
# So many entries are replayed before one would notice.
_WORTH_KEEPING = 20


@dataclass(frozen=True)
class Change:
    """What an action did.

    Attributes
    ----------
    words : str
        What was done.
    segments : tuple of int
        The segments that are there now where it was done, the one that kept its id first; none
        of what was undone or redone at another threshold.
    notes : tuple of str
        What else should be known, a sentence each.
    """

    words: str
    segments: tuple[int, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join([f"{self.words}.", *self.notes])


class Core:
    """A store, the state that its journal amounts to, and what is seen of it."""

    def __init__(
        self, store: Store, state: State, history: History, threshold: float, kept: int = 0
    ) -> None:
        self._store = store
        self._state = state
        self._history = history
        self._seen = Seen(state, threshold)
        self._kept = kept  # the entry that a snapshot was made after
        self._lock = threading.RLock()  # a worker may look while a person clicks

    # What it is.

    @property
    def path(self) -> Path:
        """The session folder."""
        return self._store.path

    @property
    def report(self) -> Report:
        """What was found wrong with the folder when it was opened, in words."""
        return self._store.report

    @property
    def read_only(self) -> bool:
        """Whether nothing can be changed: opened so, closed, or given up after a disk error."""
        return self._store.read_only

    @property
    def graph(self) -> RegionGraph:
        """The superpixels as they are divided now; not to be kept through edits."""
        return self._state.graph

    @property
    def policy(self) -> Policy:
        """The policy by which segments are merged."""
        return self._state.policy

    @property
    def history(self) -> History:
        """All actions in words, oldest first; `can_undo`, `can_redo` and `redoable` beside them."""
        return self._history

    # Doing.

    def _perform(
        self,
        action: Action,
        divisions: Sequence[Sequence[Division]] = (),
        progress: ProgressCallback | None = None,
    ) -> Applied:
        """Do an action: it is on the disk when this returns; if it fails, nothing has changed."""
        self._require_writing()
        with self._lock:
            applied = self._state.apply(action, tuple(divisions), progress)
            try:
                self._write(action.to_json(), action)
            except BaseException:
                self._state.take_back()
                raise
            self._update(applied)
            return applied

    def undo(self) -> Change:
        """Take back what was done last, whatever it was, without limit and through restarts.

        Returns
        -------
        Change
            With the words of what is undone.
        """
        self._require_writing()
        with self._lock:
            if not self._history.done:
                raise Refused("There is nothing to undo.")
            entry = self._history.done[-1]
            touched = self._state.touched(self._state.done[-1])
            overrides = self._state.overrides
            self._write({"action": "undo", "of": entry.number, "threshold": self._seen.threshold})
            applied = self._state.take_back()
            self._show(applied.action, touched, overrides != self._state.overrides)
            return Change(f"undone: {entry.action.words}", self._there(entry.action, touched))

    def redo(self, progress: ProgressCallback | None = None) -> Change:
        """Do again what was undone last; after another action there is nothing to redo."""
        self._require_writing()
        with self._lock:
            if not self._history.undone:
                raise Refused("There is nothing to redo.")
            entry = self._history.undone[-1]
            applied = self._state.apply(entry.action, progress=progress)
            try:
                said = {"action": "redo", "of": entry.number, "threshold": self._seen.threshold}
                self._write(said)
            except BaseException:
                self._state.take_back()
                raise
            touched = self._update(applied)
            return Change(f"redone: {entry.action.words}", self._there(entry.action, touched))

    def _write(self, plain: dict[str, object], action: Action | None = None) -> None:
        record = self._store.append(plain)
        self._history.read(record.seq, record.time, record.entry, action)

    def _update(self, applied: Applied) -> Touched:
        """Bring what is seen up to date after an action; return what it touched."""
        touched = self._state.touched(applied)
        self._show(applied.action, touched, applied.overrides != self._state.overrides)
        return touched

    def _show(self, action: Action, touched: Touched, moved: bool) -> None:
        scale = self._seen.threshold
        here = any(override.scale == scale for override in self._state.overrides)
        learned = action.policy is not None
        # Locking changes nothing at its own scale, but at others.
        if moved or learned or (action.steps and (here or action.threshold != scale)):
            self._seen.forget()
        elif action.steps:
            self._seen.refresh(touched)

    def _there(self, action: Action, touched: Touched) -> tuple[int, ...]:
        """Return the segments where an action was made, the largest first.

        None if it was made at another scale: it would take a look to know.
        """
        state = self._state
        if action.threshold != self._seen.threshold or not len(touched):
            return ()
        here = touched[touched <= state.graph.n_regions]
        names, which = np.unique(self._seen.names()[here], return_inverse=True)
        sizes = np.bincount(which.reshape(-1), state.graph.sizes[here], minlength=len(names))
        order = np.argsort(-sizes, kind="stable")
        return tuple(int(k) for k in state.graph.ids[names[order]])

    def _require_writing(self) -> None:
        if self._store.read_only:
            raise NotSaved(
                f"{self.path} is closed, or open read-only, so nothing in it can be changed; open "
                "it for writing."
            )

    # The end.

    def checkpoint(self) -> bool:
        """Write down what opening this session would have to compute again.

        Closing does so, too. It is a cache, of a few megabytes and more for a large volume, which
        spares opening the work of a long history after a crash; no edit depends on it.

        Returns
        -------
        bool
            Whether it was written; False if there was nothing new, or no room.
        """
        with self._lock:
            self._require_writing()
            entries = len(self._store.journal.records)
            if entries == self._kept:
                return False
            kept = self._store.snapshot(SNAPSHOT, state_arrays(self._state))
            self._kept = entries if kept else self._kept
            return kept

    @property
    def to_replay(self) -> int:
        """How many entries opening would have to replay if it were not closed: since a checkpoint.

        Closing makes one, too, if that is worth while.
        """
        return len(self._store.journal.records) - self._kept

    def close(self) -> None:
        """Let others write; all edits are on the disk already."""
        try:
            # Neither a cache nor where the slider was is worth an error: the folder may be gone.
            with suppress(InvalidInput, OSError):
                if not self._store.read_only:
                    if self.to_replay >= _WORTH_KEEPING:
                        self.checkpoint()
                    self._store.save_settings(self._settings())
        finally:
            self._store.close()

    def _settings(self) -> dict[str, object]:
        entries = len(self._store.journal.records)
        return {"threshold": self._seen.threshold, "entries": entries}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def last_threshold(settings: dict[str, object], records: Sequence[object]) -> float:
    """Return the threshold that was looked at last: as saved, or with the last entry since."""
    saved = settings.get("threshold", 0.5)
    if settings.get("entries") != len(records) and records:
        saved = getattr(records[-1], "entry", {}).get("threshold", saved)
    return float(saved) if isinstance(saved, (int, float)) and np.isfinite(saved) else 0.5
