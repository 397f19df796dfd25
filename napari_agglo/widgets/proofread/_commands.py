"""What a person may do to the selected segments, each as an edit for the editor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from napari_agglo._progress import ProgressCallback
from napari_agglo.session import Change, Session
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._session_worker import Act, Editor, Task, dense


class Acts:
    """Asks the editor for edits of the active segment."""

    def __init__(self, project: Project, editor: Editor) -> None:
        self.project = project
        self.editor = editor

    def merge(self, others: Sequence[int]) -> None:
        """Merge the active segment with others, by dense names; it keeps its id."""
        project = self.project
        if not project.active:
            self.editor.said.emit("Click a segment first: it becomes the active one.")
            return
        wanted = [one for one in dict.fromkeys(others) if one not in (0, project.active)]
        if not wanted:
            self.editor.said.emit("That is the active segment itself: nothing to merge.")
            return
        ids = [project.id_of(name) for name in (project.active, *wanted)]

        def merging(force: bool) -> Act:
            def act(session: Session, progress: ProgressCallback | None) -> Change:
                return session.merge(*ids, force=force, progress=progress)

            return act

        long = len(ids) > 2
        self.editor.do(Task("Merging", merging(False), long, self._activate, merging(True)))

    def merge_selected(self) -> None:
        """Merge all that is selected."""
        if not self.project.selected:
            self.editor.said.emit("Select more segments first: right-click them, or in the table.")
            return
        self.merge(self.project.selected)

    def cut(
        self, segment: int, groups: list[list[int]], method: str, done: object, *, points: bool
    ) -> None:
        """Cut a segment, by its dense name, between groups of superpixel ids or of pixels."""
        name = self.project.id_of(segment)

        def act(session: Session, progress: ProgressCallback | None) -> Change:
            between: dict[str, Any] = {"points" if points else "seeds": groups}
            return session.cut(name, method=method, progress=progress, **between)

        def then(change: Change) -> None:
            self._activate(change)
            if callable(done):
                done()

        self.editor.do(Task("Cutting", act, True, then))

    def cut_children(self) -> None:
        """Cut the active segment into what it was made of."""
        name = self._active("cut")
        if name:
            self._long("Cutting", lambda session, p: session.cut_children(name, progress=p))

    def detach(self, segment: int, superpixel: int) -> None:
        """Take a superpixel out of the segment that holds it, both by dense ids."""
        holder, taken = self.project.id_of(segment), self.project.id_of(superpixel)
        self._long("Detaching", lambda session, p: session.detach(holder, [taken], progress=p))

    def up(self) -> None:
        """Show what the active segment next becomes part of."""
        name = self._active("moved up its branch")
        if name:
            self.editor.do(Task("Up", lambda session, _: session.up(name)))

    def down(self) -> None:
        """Show what the active segment was made of."""
        name = self._active("moved down its branch")
        if name:
            self.editor.do(Task("Down", lambda session, _: session.down(name)))

    def lock(self) -> None:
        """Lock the active segment, or unlock it."""
        name = self._active("locked")
        if name:

            def act(session: Session, progress: ProgressCallback | None) -> Change:
                if session.is_locked(name):
                    return session.unlock(name, progress=progress)
                return session.lock(name, progress=progress)

            self._long("Locking", act)

    def review(self, reviewed: bool | None = None, name: int = 0) -> None:
        """Mark a segment as reviewed or not, the active one if none is named; None: turn it."""
        segment = self.project.id_of(name) if name else self._active("reviewed")
        if segment:

            def act(session: Session, _: ProgressCallback | None) -> Change:
                wanted = not session.marks.of(segment).reviewed if reviewed is None else reviewed
                return session.marks.review(segment, wanted)

            self.editor.do(Task("Reviewing", act))

    def rename(self, name: str, segment: int = 0) -> None:
        """Name a segment, the active one if none is given."""
        wanted = self.project.id_of(segment) if segment else self._active("renamed")
        if wanted:
            self.editor.do(Task("Renaming", lambda session, _: session.marks.rename(wanted, name)))

    def comment(self, comment: str) -> None:
        """Comment on the active segment."""
        name = self._active("commented on")
        if name:
            self.editor.do(
                Task("Commenting", lambda session, _: session.marks.comment(name, comment))
            )

    def undo(self) -> None:
        """Take back what was done last."""
        self.editor.do(Task("Undo", lambda session, _: session.undo(), quiet=True))

    def redo(self) -> None:
        """Do again what was undone last."""
        self.editor.do(Task("Redo", lambda session, p: session.redo(p), quiet=True))

    def go_to(self, steps: int) -> None:
        """Undo so many actions, or redo them if negative, as one."""
        if not steps:
            return

        def act(session: Session, progress: ProgressCallback | None) -> Change:
            for _ in range(abs(steps)):
                change = session.undo() if steps > 0 else session.redo(progress)
            return (
                Change(f"{'undone' if steps > 0 else 'redone'}: {abs(steps)} actions", ())
                if (abs(steps) > 1)
                else change
            )

        self._long("Going there", act)

    def _long(self, title: str, act: Act) -> None:
        self.editor.do(Task(title, act, True))

    def _active(self, verb: str) -> int:
        if not self.project.active:
            self.editor.said.emit(f"No segment is active, so none can be {verb}: click one first.")
            return 0
        return self.project.id_of(self.project.active)

    def _activate(self, change: Change) -> None:
        project = self.project
        names = dense(project, change.segments[:1])
        if names and (project.selected or names != (project.active,)):
            project.select(*names)
