"""The table of gestures and keys on the canvas, for key bindings and for the help."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from qtpy.QtWidgets import QPushButton

from napari_agglo.widgets._qt import button, guarded


@dataclass(frozen=True)
class Gesture:
    """A line of the help: the gesture, its effect, and the key of each command in it."""

    gesture: str
    effect: str
    keys: Mapping[str, str] = field(default_factory=dict)


# Keys that neither napari's viewer nor its Image layers use; keys of its Labels layer are restored
# when the session is closed.
GESTURES = (
    Gesture("click", "make a segment the active one"),
    Gesture("Shift + click", "merge with the active segment"),
    Gesture("Ctrl + click", "place a seed for a cut"),
    Gesture("G", "next group of seeds", {"next group": "G"}),
    Gesture("Enter", "cut, while there are seeds", {"cut": "Enter"}),
    Gesture("Escape", "clear the seeds", {"clear seeds": "Escape"}),
    Gesture(
        ", and .",
        "split or grow the active segment along the hierarchy",
        {"down": ",", "up": "."},
    ),
    Gesture(
        "Ctrl + Z",
        "undo; Ctrl + Shift + Z redoes",
        {"undo": "Control-Z", "redo": "Control-Shift-Z"},
    ),
    Gesture(
        "right-click",
        "select several; W merges them with the active one",
        {"merge selected": "W"},
    ),
    Gesture("K", "take the superpixel under the mouse out of its segment", {"detach": "K"}),
    Gesture("H", "lock or unlock the active segment", {"lock": "H"}),
    Gesture("U", "mark the active segment as reviewed, or not", {"review": "U"}),
    Gesture(
        "Y, N and S",
        "answer yes, no or skip to the next probable error, or to “Same object?”",
        {"yes": "Y", "no": "N", "skip": "S"},
    ),
    Gesture(
        "A and D",
        "threshold one step down or up; with Shift, one merge",
        {"step down": "A", "step up": "D", "merge down": "Shift-A", "merge up": "Shift-D"},
    ),
    Gesture(
        "J",
        "click with the keyboard's pointer, which Shift + arrows move (Ctrl + Shift: faster); "
        "with Shift merge, with Ctrl place a seed, with both select; Shift + Escape leads back",
        {
            "click": "J",
            "merge here": "Shift-J",
            "seed here": "Control-J",
            "select here": "Control-Shift-J",
        },
    ),
)
KEY_OF = {command: key for gesture in GESTURES for command, key in gesture.keys.items()}

Actions = Mapping[str, Callable[[], object]]  # by command


def answer_button(answer: str, tooltip: str, action: Callable[[], object]) -> QPushButton:
    """Return a button of an answer, yes, no or skip, with its key."""
    return button(f"{answer.capitalize()} ({KEY_OF[answer]})", tooltip, action, answer)


class KeyBindings:
    """Key bindings of commands on viewers and layers, which can be restored."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []  # owner, key, and its former action

    def bind(self, owner: Any, actions: Actions) -> None:
        """Bind the keys of commands on a viewer or a layer; None is no owner."""
        if owner is not None:
            for command, action in actions.items():
                key = KEY_OF[command]
                before = owner.bind_key(key, lambda _, act=action: guarded(act), overwrite=True)
                self._before.append((owner, key, before))

    def release(self, actions: Actions | None = None) -> None:
        """Restore the keys of some commands, or of all."""
        keys = None if actions is None else {KEY_OF[command] for command in actions}
        kept = []
        for owner, key, before in reversed(self._before):
            if keys is None or key in keys:
                owner.bind_key(key, before, overwrite=True)
            else:
                kept.append((owner, key, before))
        self._before = kept[::-1]
