"""Which segments are selected, and what becomes of them as segments change."""

from __future__ import annotations

import numpy as np

from napari_agglo.widgets._project import Project


class Selection:
    """Keeps the selection of a project on segments that there are.

    The active segment is the one at a superpixel, its anchor: when the threshold moves, or an edit
    takes a segment away, whatever is there now is the active one.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self._anchor = 0
        project.selection_changed.connect(self._on_selection)
        project.threshold_changed.connect(self._settle)
        project.edited.connect(self._settle)

    def activate(self, name: int, superpixel: int = 0) -> None:
        """Make a segment the active one, and the only one; 0 is none."""
        self._anchor = superpixel
        self.project.select(name)

    def toggle(self, name: int, superpixel: int = 0) -> None:
        """Add a segment to the selected ones, or take it away."""
        project = self.project
        if project.active == 0:
            self.activate(name, superpixel)
        elif name == project.active:
            self._anchor = 0
            project.select(*(project.selected or (0,)))
        elif name in project.selected:
            project.select(project.active, *(one for one in project.selected if one != name))
        else:
            project.select(project.active, *project.selected, name)

    def _on_selection(self) -> None:
        """Find an anchor for what another part of the program has selected."""
        name, table = self.project.active, self.project.table()
        if name and not (self._anchor < len(table) and table[self._anchor] == name):
            found = np.flatnonzero(table == name)
            self._anchor = int(found[0]) if found.size else 0

    def _settle(self) -> None:
        project, table = self.project, self.project.table()
        if project.active == 0:
            return
        active = int(table[self._anchor]) if 0 < self._anchor < len(table) else 0
        here = np.zeros(max(len(table), 1 + max(project.selected, default=0)), bool)
        here[table] = True
        others = tuple(one for one in project.selected if here[one] and one != active)
        if (active, others) != (project.active, project.selected):
            project.select(active, *others)
