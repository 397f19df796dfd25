"""Open a session folder in a viewer, with what to do if it is locked or damaged."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import Cancelled
from napari_agglo.session import Session, SessionDamaged, SessionLocked
from napari_agglo.tree import MergeTree
from napari_agglo.widgets._jobs import Job
from napari_agglo.widgets._notices import tell, tell_error, warn
from napari_agglo.widgets._project import project_of
from napari_agglo.widgets._steps import Step
from napari_agglo.widgets.proofread._ask import ask
from napari_agglo.widgets.proofread._proofreader import proofreader_of
from napari_agglo.widgets.proofread._view_state import (
    State,
    apply_state,
    open_images,
    placement_of,
    read_state,
)
from napari_agglo.widgets.proofread._warm import warm_edits

Opened = tuple[Session, MergeTree, Any, State]


def open_session(
    viewer: Any,
    path: str | PathLike[str],
    *,
    read_only: bool = False,
    steal_lock: bool = False,
) -> Job | None:
    """Open a session in a viewer: its layers, its threshold, and the view of it, as they were.

    The folder is read in a worker. One that another program has open, or that is damaged, is
    asked about.

    Parameters
    ----------
    viewer : napari.Viewer
        Where.
    path : path-like
        The folder, ``NAME.agglo``.
    read_only : bool
        Change nothing; works beside a writer.
    steal_lock : bool
        Take over a lock that was left behind.

    Returns
    -------
    Job or None
        The job that opens it; None if another session is being opened or made.
    """
    viewer = getattr(viewer, "__wrapped__", viewer)
    project = project_of(viewer)
    proofreader_of(viewer)
    folder = Path(path)

    def work(progress: ProgressCallback) -> Opened:
        warm_edits(progress)
        session = Session.open(
            folder, read_only=read_only, steal_lock=steal_lock, progress=progress
        )
        try:
            get_ready(session, progress)
            return session, session.tree, session.gold, read_state(session.path)
        except BaseException:
            session.close()
            raise

    def failed(error: Exception) -> None:
        if isinstance(error, SessionLocked):
            _ask_locked(viewer, folder, error)
        elif isinstance(error, SessionDamaged):
            _ask_damaged(viewer, folder, error)
        else:
            tell_error(error)

    if project.session is not None and project.held:
        warn("Wait until what runs in the open session is done, then open the other one.")
        return None
    return project.jobs.start(
        Step.PROOFREAD.value, f"Opening {folder.name}", closing_if_late(project, work),
        lambda opened: show_session(viewer, *opened), failed,
    )  # fmt: skip


def get_ready(session: Session, progress: ProgressCallback) -> None:
    """Compute what will be asked of a session as soon as it is seen."""
    session.look(progress)
    if session.has_gold:
        report(progress, "comparing with gold", 0, 1)
        _ = session.errors


def closing_if_late(project: Any, work: Callable[..., Opened]) -> Callable[..., Opened]:
    """Return work whose session is closed again if nobody wants it any more when it is there."""

    def careful(progress: ProgressCallback) -> Opened:
        opened = work(progress)
        job = project.jobs[Step.PROOFREAD.value]
        if project.jobs.closed or (job is not None and job.cancelled):
            opened[0].close()
            raise Cancelled("Cancelled.")
        return opened

    return careful


def show_session(
    viewer: Any, session: Session, tree: MergeTree, gold: Any, state: State, fly: bool = True
) -> None:
    """Show a session that is open, and begin to edit it."""
    project = project_of(viewer)
    proofreader = proofreader_of(viewer)
    proofreader.save_view()
    missing = open_images(viewer, state) if fly else []
    placement = project.placement
    if fly or placement is None:
        placement = placement_of(state, session.graph.spacing)
    project.close_session()
    project.gold, project.curve = gold, None
    project.set_session(session, tree, placement)
    project.curve_changed.emit()
    if fly:
        apply_state(viewer, state)
    if session.report.sentences:
        warn(str(session.report))
    if missing:
        tell(f"Not found: {', '.join(missing)}. Open it with File > Open to see it below.")


def _ask_locked(viewer: Any, folder: Path, error: SessionLocked) -> None:
    choices: dict[str, Callable[[], object]] = {
        "Open read-only": lambda: open_session(viewer, folder, read_only=True)
    }
    if error.stale:
        choices["Take over"] = lambda: open_session(viewer, folder, steal_lock=True)
    ask(f"{folder.name} is in use", str(error), choices)


def _ask_damaged(viewer: Any, folder: Path, error: SessionDamaged) -> None:
    def recover() -> None:
        def recovered(report: Any) -> None:
            if report.unmended:
                warn(f"{folder.name} could not be mended. {report}")
            else:
                tell(f"{folder.name} was mended. {report}")
                open_session(viewer, folder)

        project_of(viewer).jobs.start(
            "recover", f"Mending {folder.name}", lambda _: Session.recover(folder), recovered
        )

    ask(f"{folder.name} is damaged", str(error), {"Mend what can be mended": recover})
