"""Open, create and copy session folders in a viewer."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Generator
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from napari.utils.notifications import show_info, show_warning
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.agglomeration import MergeTree
from napari_agglo.errors import AggloError, Cancelled, InvalidInput, SetOption
from napari_agglo.policy import is_training_data
from napari_agglo.session import Session, SessionDamaged, SessionLocked
from napari_agglo.session._store import PackageMissing
from napari_agglo.volumes import replacing
from napari_agglo.widgets._background_compile import start_warm_up
from napari_agglo.widgets._dataset import Dataset
from napari_agglo.widgets._jobs import Job
from napari_agglo.widgets._napari import setting
from napari_agglo.widgets._project import Built, Project, Regions
from napari_agglo.widgets._qt import ask, per_viewer, real_viewer, tell_error
from napari_agglo.widgets._samples import compute_ahead
from napari_agglo.widgets.proofread._proofreader import Proofreader
from napari_agglo.widgets.proofread._recent_sessions import remember_session
from napari_agglo.widgets.proofread._view_state import (
    State,
    apply_layers,
    apply_order,
    apply_state,
    missing_samples,
    open_images,
    placement_of,
    read_state,
)

PROOFREAD = "proofread"  # the job that opens, makes or copies a session
Opened = tuple[Session, Built, State]


def open_session(
    viewer: Any,
    path: str | PathLike[str],
    *,
    read_only: bool = False,
    steal_lock: bool = False,
    policy: str | None = None,
    without_function: bool = False,
    make: Callable[[ProgressCallback], object] | None = None,
) -> Job | None:
    """Open a session in a viewer, with its layers, its threshold and its view.

    The folder is read in a job; None if another session is being opened or created. The user is
    asked about a folder that is locked or damaged. Options are those of `Session.open`. A `policy`,
    the function ``module:function`` of a session that merges by one, is imported only with the
    consent of the user, who is asked by default; `without_function`, the session is opened
    read-only instead. `make` makes the folder first, in the same job.
    """
    viewer = real_viewer(viewer)
    project = per_viewer(viewer, Project)
    per_viewer(viewer, Proofreader)
    folder = Path(path)
    names = {layer.name for layer in viewer.layers}

    def work(progress: ProgressCallback) -> Opened:
        if make is not None:
            make(progress)
        session = Session.open(
            folder, read_only=read_only, steal_lock=steal_lock, policy=policy, progress=progress
        )
        try:
            if policy is None and not without_function:
                _refuse_without_function(session)
            prepare(session, progress)
            state = read_state(session.path)
            for kind in missing_samples(state, names):
                report(progress, "computing the sample", 0, 1)
                compute_ahead(kind)
            dataset = Dataset(folder.stem, placement_of(state, session.graph))
            regions = Regions(dataset, session.graph)
            built = Built(
                session.history.unedited_tree,
                regions,
                session.policy,
                _gold_of(session),
                training=is_training_data(session.policy, session.graph),
            )
            return session, built, state
        except BaseException:
            session.close()
            raise

    def failed(error: Exception) -> None:
        function = _needed_function(error)
        if isinstance(error, SessionLocked):
            _ask_locked(viewer, folder, error)
        elif function and policy is None and not without_function:
            again = partial(
                open_session, viewer, folder, read_only=read_only, steal_lock=steal_lock
            )
            ask(
                f"{folder.name} merges by a function",
                f"{folder.name} merges by the Python function {function}. To open the session for "
                "edits, its module is imported and the function is run. Do this only if you trust "
                "it.",
                {
                    "Run the function": partial(again, policy=function),
                    "Open read-only": partial(again, without_function=True),
                },
            )
        elif isinstance(error, SessionDamaged) and not isinstance(error, PackageMissing):
            _ask_damaged(viewer, folder, error)
        else:
            tell_error(error)

    if is_busy(project):
        return None
    start = project.jobs.start
    return start_opening(viewer, start, f"Opening {folder.name}", work, failed=failed, fly=True)


def is_busy(project: Project) -> bool:
    """Return whether the open session has a running task; warn the user if so."""
    if project.worker.occupied:
        show_warning("A task of the open session is running; try again when it has finished.")
    return project.worker.occupied


def prepare(session: Session, progress: ProgressCallback) -> None:
    """Compute in advance the segments and errors of a session."""
    session.look(progress)
    # Overlaps of a volume on disk are counted when Evaluate asks for them, unless they are kept.
    if _gold_of(session) is not None and session.errors.are_counted:
        report(progress, "comparing with gold", 0, 1)
        session.errors.now()


def _gold_of(session: Session) -> Any:
    """Return the gold standard of a session; None if its file is not in its place."""
    try:
        return session.errors.gold
    except InvalidInput:  # which the user is told of, and asked for, with the other inputs
        return None


def start_opening(
    viewer: Any,
    start: Callable[..., Job | None],
    title: str,
    work: Callable[[ProgressCallback], Opened],
    *,
    failed: Callable[[Exception], object] | None = None,
    fly: bool = False,
) -> Job | None:
    """Start work that opens a session, and show it, or close it if the job was cancelled."""
    jobs = per_viewer(viewer, Project).jobs

    def work_unless_cancelled(progress: ProgressCallback) -> Opened:
        opened = work(progress)
        job = jobs[PROOFREAD]
        if jobs.closed or (job is not None and job.cancelled):
            opened[0].close()
            raise Cancelled("Cancelled.")
        return opened

    def show(opened: Opened) -> Generator[None] | None:
        session, built, state = opened
        if fly:
            return _show_with_inputs(viewer, session, built, state)
        _show(viewer, session, built)
        return None

    return start(PROOFREAD, title, work_unless_cancelled, show, failed)


def _show(viewer: Any, session: Session, built: Built) -> None:
    """Show an open session for edits."""
    per_viewer(viewer, Proofreader).save_view()
    _give(viewer, session, built)


def _show_with_inputs(viewer: Any, session: Session, built: Built, state: State) -> Generator[None]:
    """Show a session that was opened, with the layers of its inputs and its view, in parts."""
    proofreader = per_viewer(viewer, Proofreader)
    proofreader.save_view()
    inputs, given = proofreader.inputs, False
    try:
        inputs.set_sample_aside(session, state)
        missing = open_images(viewer, state)
        yield
        moved = yield from inputs.restore(session, state, built.regions.dataset.placement)
        given = True
        _give(viewer, session, built)
    finally:
        if not given:  # the window was closed in between
            session.close()
    inputs.adopt()
    apply_state(viewer, state)
    apply_layers(viewer, state, inputs.layers)
    apply_order(viewer, state, inputs.layers)
    if missing:
        show_info(f"Not found: {', '.join(missing)}. Open them with File > Open.")
    inputs.ask_moved(session, moved, state)


def _give(viewer: Any, session: Session, built: Built) -> None:
    """Give the project an open session, which it closes in the end."""
    project = per_viewer(viewer, Project)
    project.set_session(session, built)
    remember_session(sessions_folder(), session.path.absolute())
    start_warm_up(project)
    if session.history.report.sentences:
        show_warning(str(session.history.report))


class _FunctionNeeded(AggloError):
    """A session was opened without the function that it merges by, which the user may allow."""

    def __init__(self, function: str) -> None:
        super().__init__(f"The session merges by the Python function {function}.")
        self.function = function


def _needed_function(error: Exception) -> str:
    """Return the function that a session was opened without; empty if another error occurred.

    A session that was not closed after a cut cannot be read without its function.
    """
    if isinstance(error, _FunctionNeeded):
        return error.function
    remedy = error.remedy if isinstance(error, PackageMissing) else None
    return str(remedy.value) if isinstance(remedy, SetOption) else ""


def _refuse_without_function(session: Session) -> None:
    """Refuse a session that is read-only because its function was not passed."""
    function = session.history.needed_function
    if function is not None:
        raise _FunctionNeeded(function)


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
                show_warning(f"{folder.name} could not be repaired. {report}")
            else:
                show_info(f"{folder.name} was repaired. {report}")
                open_session(viewer, folder)

        per_viewer(viewer, Project).jobs.start(
            "recover", f"Repairing {folder.name}", lambda _: Session.recover(folder), recovered
        )

    ask(f"{folder.name} is damaged", str(error), {"Repair": recover})


_NOT_COPIED = ("lock", "lock.only", ".*.partial")  # files of the writing program


def sessions_folder() -> Path:
    """Return the folder of new sessions, a setting of the plugin."""
    return Path(str(setting("sessions", "folder"))).expanduser()


def free_path(name: str, home: Path | None = None) -> Path:
    """Return the path of a new session folder of a name, which does not exist yet.

    Examples
    --------
    >>> free_path("my cells (1).tif", Path("nowhere")).as_posix()
    'nowhere/my cells (1).agglo'
    """
    folder = sessions_folder() if home is None else home
    plain = re.sub(r'[<>:"/\\|?*\x00-\x1f]+', " ", Path(name).stem).strip(" .")[:80] or "session"
    target, k = folder / f"{plain}.agglo", 1
    while target.exists():
        k += 1
        target = folder / f"{plain}-{k}.agglo"
    return target


def create_session(viewer: Any, path: Path) -> Job | None:
    """Create a session of the project's hierarchy, in a worker, and show it for edits."""
    viewer = real_viewer(viewer)
    project = per_viewer(viewer, Project)
    built = project.built
    if built is None:
        raise InvalidInput(
            "There is no hierarchy", argument="tree", remedy="build one in step 3, Hierarchy"
        )
    target = checked_path(path)
    threshold = project.threshold
    inputs = per_viewer(viewer, Proofreader).inputs
    sources = inputs.describe(built.regions.dataset, built.gold)
    partition: NDArray[Any] | None = built.regions.dataset.partition
    tree: MergeTree | None = built.tree
    if built.method != "threshold":  # the tree is not that of the policy alone
        tree, partition = None, built.tree.lut(threshold)

    def work(progress: ProgressCallback) -> Opened:
        target.parent.mkdir(parents=True, exist_ok=True)
        session = Session.create(
            target, built.regions.graph, built.policy, tree=tree, gold=built.gold,
            sources=sources, progress=progress,
        )  # fmt: skip
        try:
            if partition is not None:
                session._start_from(partition, progress)
            else:
                session.threshold = threshold
            prepare(session, progress)
            return session, built, {}
        except BaseException:  # remove the unfinished session
            session.close()
            shutil.rmtree(target, ignore_errors=True)
            raise

    return start_opening(viewer, project.jobs.start, "Starting a session", work)


def save_as(viewer: Any, path: Path) -> Job | None:
    """Copy the folder of the session, in a worker, and continue in the copy."""
    viewer = real_viewer(viewer)
    project = per_viewer(viewer, Project)
    session, built = project.session, project.built
    if session is None or built is None or is_busy(project):
        return None
    target = checked_path(path)
    source, threshold = session.path, project.threshold

    def work(progress: ProgressCallback) -> Opened:
        target.parent.mkdir(parents=True, exist_ok=True)
        report(progress, "copying", 0, 2)
        copy_session(source, target)
        report(progress, "opening the copy", 1, 2)
        policy = session.history.policy_to_pass
        copy = Session.open(target, policy=policy, progress=progress)
        copy.threshold = threshold
        prepare(copy, progress)
        return copy, built, read_state(copy.path)

    return start_opening(viewer, project.worker.run, "Saving a copy", work)


def copy_session(source: Path, target: Path) -> None:
    """Copy the folder of a session, without the files of the writing program."""
    with replacing(target, may_replace=lambda _: False) as temporary:
        shutil.copytree(source, temporary, ignore=shutil.ignore_patterns(*_NOT_COPIED))


def checked_path(path: Path) -> Path:
    """Return the absolute path of a new session; refuse one that exists."""
    target = path.expanduser()
    if not target.name or target.name == ".agglo":
        raise InvalidInput(
            "A session needs a folder, NAME.agglo", argument="path", remedy="name one"
        )
    if target.suffix != ".agglo":
        target = target.with_name(f"{target.name}.agglo")
    if target.exists():
        raise InvalidInput(
            f"{target} exists already",
            argument="path",
            remedy="open it, or choose another name for the new session",
        )
    return target.absolute()
