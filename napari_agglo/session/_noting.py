"""Marks, errors, and suggestions: what a person says of segments, and is asked about them."""

from __future__ import annotations

from typing import Any

from napari_agglo.session._actions import Action
from napari_agglo.session._annotations import Annotations, MarkChange
from napari_agglo.session._core import Change
from napari_agglo.session._live_vi import Errors, ErrorsNow
from napari_agglo.session._parting import Parting
from napari_agglo.session._rules import Refused
from napari_agglo.session._suggestions import Suggestions


class Noting(Parting):
    """What is said of segments, and what is worth a look."""

    _errors: ErrorsNow | None = None
    _errors_of: int = 0  # the version of what is seen that they are of

    @property
    def marks(self) -> Annotations:
        """Names of segments, comments on them, and what is reviewed."""
        return Annotations(self)  # type: ignore[arg-type]

    @property
    def queue(self) -> Suggestions:
        """The next probable errors, and the answers to them."""
        return Suggestions(self)  # type: ignore[arg-type]

    def _mark(self, segment: int, **said: Any) -> Change:
        with self._lock:
            self._require_writing()
            found = self._find(segment)
            change = MarkChange(found.id, **said)
            action = Action("mark", (found.id,), self.threshold, mark=change)
            self._perform(action)
            return Change(action.words, (found.id,))

    @property
    def has_gold(self) -> bool:
        """Whether the session was created with a gold standard."""
        return self._store.data.has_gold

    @property
    def errors(self) -> Errors:
        """How wrong what is seen is: ``vi``, ``false_merge`` and ``false_split``, in bits.

        After an edit only what has moved is counted again.
        """
        with self._lock:
            names = self._seen.names()
            if self._errors is None:
                gold = self._store.data.gold
                if gold is None:
                    raise Refused(
                        "The session has no gold standard to compare with; create it with "
                        "Session.create(path, graph, policy, gold=...)."
                    )
                self._errors = ErrorsNow(self._state, gold, names)
                self._errors_of = self._seen.version
            moved = self._seen.moved_since(self._errors_of)
            self._errors_of = self._seen.version
            return self._errors.now(self._state, names, moved)
