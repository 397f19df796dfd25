"""Keys that move the threshold, from wherever the mouse is on the canvas."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from napari_agglo.widgets._project import Project, project_of
from napari_agglo.widgets.hierarchy._scale import step
from napari_agglo.widgets.hierarchy._ticks import Ticks

# Keys that neither napari's viewer nor its Labels and Image layers use.
KEYS = {
    "A": (-1, False),
    "D": (+1, False),
    "Shift-A": (-1, True),
    "Shift-D": (+1, True),
}
_bound: weakref.WeakSet[Any] = weakref.WeakSet()


def bind_keys(viewer: Any) -> None:
    """Bind the keys of a viewer, once, however many widgets ask for it."""
    if viewer in _bound:
        return
    _bound.add(viewer)
    for key, (direction, single) in KEYS.items():
        viewer.bind_key(key, _mover(project_of(viewer), direction, single), overwrite=True)


def _mover(project: Project, direction: int, single: bool) -> Callable[[Any], None]:
    held = weakref.ref(project)

    def move(_: Any) -> None:
        live = held()
        if live is not None and live.tree is not None:
            step(live, Ticks(live.tree.heights), direction, single=single)

    return move
