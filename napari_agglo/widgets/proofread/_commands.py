"""The selection of segments, and commands on them, each an edit of the session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from psygnal import Signal

from napari_agglo._progress import ProgressCallback
from napari_agglo.session import Change, Session
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import pixel_word
from napari_agglo.widgets._session_worker import Act, Edit


def part_sizes(session: Session, segments: Sequence[int]) -> list[int]:
    """Return the number of pixels of some visible segments, by their ids."""
    table, graph = session.lut(dense=True), session.graph
    names = np.searchsorted(graph.ids, np.array(segments, np.uint64))
    return [int(graph.sizes[: len(table)][table == name].sum()) for name in names]


class Selection:
    """The selection of a project, limited to visible segments.

    The active segment is that of a superpixel, its anchor: when the threshold or an edit changes
    the segments, the segment at the anchor is active.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self._anchor = 0
        project.selection_changed.connect(self._on_selection)
        project.threshold_changed.connect(self._settle)
        project.edited.connect(self._settle)

    def activate(self, name: int, superpixel: int = 0) -> None:
        """Make a segment the only selected one; 0 is none."""
        self._anchor = superpixel
        self.project.select(name)

    def toggle(self, name: int, superpixel: int = 0) -> None:
        """Add a segment to the selection, or remove it."""
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
        """Set the anchor of a segment that another part of the program has selected."""
        name, table = self.project.active, self.project.table()
        if name and not (self._anchor < len(table) and table[self._anchor] == name):
            members = np.flatnonzero(table == name)
            self._anchor = int(members[0]) if members.size else 0

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


class Commands:
    """Edits of the active segment, by the worker of the session."""

    parted = Signal(int)  # the dense name of the smallest part of a cut that chose its own place

    def __init__(self, project: Project) -> None:
        self.project = project
        self.worker = project.worker

    def merge(self, others: Sequence[int]) -> None:
        """Merge the active segment with others, by dense names; it keeps its id."""
        project = self.project
        if not project.active:
            self.worker.message.emit("No segment is active; click one first.")
            return
        wanted = [one for one in dict.fromkeys(others) if one not in (0, project.active)]
        if not wanted:
            self.worker.message.emit(
                "This is the active segment; Shift + click another one to merge."
            )
            return
        ids = [project.id_of(name) for name in (project.active, *wanted)]

        def merge(force: bool) -> Act:
            def act(session: Session, progress: ProgressCallback | None) -> Change:
                return session.merge(*ids, force=force, progress=progress)

            return act

        self.worker.edit(
            Edit("Merging", merge(False), self._activate, long=len(ids) > 2, force=merge(True))
        )

    def merge_selected(self) -> None:
        """Merge all selected segments."""
        if not self.project.selected:
            self.worker.message.emit(
                "Only one segment is selected; right-click others, or select them in the table."
            )
            return
        self.merge(self.project.selected)

    def cut(
        self,
        segment: int,
        groups: list[list[int]],
        method: str,
        done: Callable[[], object],
        *,
        points: bool,
    ) -> None:
        """Cut a segment, by its dense name, between groups of superpixel ids or of pixels."""
        name = self.project.id_of(segment)

        def act(session: Session, progress: ProgressCallback | None) -> Change:
            between: dict[str, Any] = {"points" if points else "seeds": groups}
            return session.cut(name, method=method, progress=progress, **between)

        def then(change: Change) -> None:
            self._activate(change)
            done()

        self.worker.edit(Edit("Cutting", act, then, long=True))

    def detach(self, segment: int, superpixel: int) -> None:
        """Detach a superpixel from its segment, both by dense ids."""
        holder, taken = self.project.id_of(segment), self.project.id_of(superpixel)
        self.worker.edit(
            Edit("Detaching", lambda s, p: s.detach(holder, [taken], progress=p), long=True)
        )

    def cut_children(self) -> None:
        """Cut the active segment into the parts of its last merge."""

        def act(session: Session, name: int, progress: ProgressCallback | None) -> Change:
            change = session.cut_children(name, progress=progress)
            sizes = part_sizes(session, change.segments)
            many = " and ".join(f"{size:,}" for size in sizes)
            words = pixel_word(session.graph.superpixels.image.ndim, sizes[-1])
            return replace(change, notes=(*change.notes, f"The parts have {many} {words}."))

        self._on_active("Cutting", "cut", act, long=True, then=self._show_parts)

    def up(self) -> None:
        """Replace the active segment by the next larger one of the hierarchy."""
        self._on_active("Up", "moved up the hierarchy", lambda s, name, _: s.up(name))

    def down(self) -> None:
        """Replace the active segment by the parts of its last merge."""
        self._on_active("Down", "moved down the hierarchy", lambda s, name, _: s.down(name))

    def lock(self) -> None:
        """Lock or unlock the active segment."""

        def act(session: Session, name: int, progress: ProgressCallback | None) -> Change:
            turn = session.unlock if session.segments.is_locked(name) else session.lock
            return turn(name, progress=progress)

        self._on_active("Locking", "locked", act, long=True)

    def review(self, reviewed: bool | None = None, segment: int = 0) -> None:
        """Mark a segment as reviewed or not, by default the active one; None toggles the mark."""

        def act(session: Session, name: int, _: ProgressCallback | None) -> Change:
            wanted = not session.marks.of(name).reviewed if reviewed is None else reviewed
            return session.marks.review(name, wanted)

        self._on_active("Reviewing", "reviewed", act, segment)

    def rename(self, text: str, segment: int = 0) -> None:
        """Name a segment, by default the active one."""
        self._on_active(
            "Renaming", "renamed", lambda s, name, _: s.marks.rename(name, text), segment
        )

    def comment(self, text: str) -> None:
        """Comment on the active segment."""
        self._on_active(
            "Commenting", "commented on", lambda s, name, _: s.marks.comment(name, text)
        )

    def undo(self) -> None:
        """Undo the last action."""
        self.worker.edit(Edit("Undo", lambda session, _: session.undo(), quiet=True))

    def redo(self) -> None:
        """Redo the last undone action."""
        self.worker.edit(Edit("Redo", lambda session, p: session.redo(p), quiet=True))

    def go_to(self, steps: int) -> None:
        """Undo so many actions, or redo them if negative, as one edit."""
        if not steps:
            return

        def act(session: Session, progress: ProgressCallback | None) -> Change:
            for _ in range(abs(steps)):
                change = session.undo() if steps > 0 else session.redo(progress)
            if abs(steps) == 1:
                return change
            return Change(f"{'undone' if steps > 0 else 'redone'}: {abs(steps)} actions", ())

        self.worker.edit(Edit("Undo" if steps > 0 else "Redo", act, long=True))

    def _on_active(
        self,
        title: str,
        verb: str,
        act: Callable[[Session, int, ProgressCallback | None], Change],
        segment: int = 0,
        *,
        long: bool = False,
        then: Callable[[Change], object] | None = None,
    ) -> None:
        """Edit a segment, by its dense name; by default the active one."""
        segment = segment or self.project.active
        if not segment:
            self.worker.message.emit(
                f"No segment is active, so none can be {verb}; click one first."
            )
            return
        name = self.project.id_of(segment)
        self.worker.edit(Edit(title, lambda session, p: act(session, name, p), then, long=long))

    def _show_parts(self, change: Change) -> None:
        """Outline all parts of a cut, and show the smallest one."""
        project, session = self.project, self.project.session
        names = project.names_of(change.segments)
        if session is not None and len(names) > 1:
            project.select(*names)
            sizes = part_sizes(session, change.segments)
            self.parted.emit(names[sizes.index(min(sizes))])

    def _activate(self, change: Change) -> None:
        project = self.project
        names = project.names_of(change.segments[:1])
        if names and (project.selected or names != (project.active,)):
            project.select(*names)
