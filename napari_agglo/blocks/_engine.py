"""Run of a plan: tasks in the threads of dask, by a dask.distributed client, or by array jobs.

dask only schedules. A task is a stage and a number; it opens the folder, does nothing if its marker
is there, and returns a few numbers. Futures of a client are released as they complete: those that
are kept make dask run finished tasks again when a worker dies.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from napari_agglo._progress import ProgressCallback, check_progress
from napari_agglo.blocks._block_grid import reduced_tasks
from napari_agglo.blocks._budget import (
    block_bytes,
    check_workers,
    give_back_memory,
    graph_bytes,
    largest_reduction,
    tasks_that_fit,
)
from napari_agglo.blocks._chunk_census import lost_chunks
from napari_agglo.blocks._dask_client import Workers
from napari_agglo.blocks._plan import read_plan
from napari_agglo.blocks._run_files import Job, Redo
from napari_agglo.blocks._stage_progress import BesideProgress, StageProgress
from napari_agglo.blocks._stages import Stage, block_of, prepare, stages_of
from napari_agglo.blocks._task_markers import (
    DISK_FULL,
    FULL,
    cause_of_system,
    failure_log,
    forget_stage,
    locked,
    read_marker,
    remove_marker,
    write_complete,
    write_failure,
    write_log,
    write_marker,
    writing,
)
from napari_agglo.errors import Cancelled, Install, InvalidInput, check_choice, check_whole

_MOST_FAILURES = 10  # of one stage, before the rest is not begun
_MOST_REPEATS = 3  # of a task whose result is found damaged

Result = dict[str, Any]


def run_task(
    folder: str, stage: str, index: int, progress: ProgressCallback | None = None, others: int = 0
) -> Result:
    """Do one task, unless its marker is there; never raise but for a cancel.

    `others` is the number of worker processes on this machine that share the budget.

    Returns
    -------
    dict
        ``{"failed": message}``, ``{"redo": tasks}``, or the notes of the marker.
    """
    job = Job(Path(folder), read_plan(Path(folder)), others, is_task=True)
    task = next(one for one in stages_of(job.plan) if one.name == stage)
    done = read_marker(job, stage, index)
    if done is not None:
        return done
    began = time.monotonic()
    try:
        notes = task.work(job, index, progress)
        if job.written:
            notes["files"] = job.written
        notes["seconds"] = round(time.monotonic() - began, 3)
        write_marker(job, stage, index, notes)
    except Cancelled:
        raise
    except Redo as error:
        return {"redo": error.tasks, "reason": str(error)}
    except Exception as error:
        write_failure(job, task, index, error)
        return {"failed": _message(error), "fatal": _is_fatal(error)}
    write_log(job, stage, index, notes["seconds"])
    return notes


_FATAL = (*FULL, errno.EACCES, errno.EPERM, errno.EROFS)


def _message(error: Exception) -> str:
    cause = cause_of_system(error)
    if cause is not None and cause.errno in FULL:
        return DISK_FULL
    return str(error) or type(error).__name__


def _is_fatal(error: Exception) -> bool:
    """Return whether other blocks would fail in the same way: a full disk, no permission."""
    cause = cause_of_system(error)
    return isinstance(error, MemoryError) or (cause is not None and cause.errno in _FATAL)


# Stages whose stores no other stage reads before the labels, and those of one task meanwhile.
_BESIDE, _ALONE = ("superpixels", "overview"), ("graph", "tree", "table")


class _Turn(NamedTuple):
    """Stages that are done one after another, and others at the same time, in threads left over."""

    stages: list[Stage]
    beside: list[Stage]

    def names(self) -> list[str]:
        return [stage.name for stage in (*self.stages, *self.beside)]


def _turns(stages: list[Stage], overlap: bool) -> list[_Turn]:
    """Return the stages in turns, one in each unless some may overlap."""
    beside = [one for one in stages if overlap and one.name.partition("-")[0] in _BESIDE]
    alone = [one for one in stages if beside and one.name in _ALONE]
    turns = [_Turn([one], []) for one in stages if one not in beside and one not in alone]
    if beside:
        at = next(k for k, turn in enumerate(turns) if turn.stages[0].name == "labels")
        turns.insert(at, _Turn(alone, beside))
    return turns


@dataclass
class Run:
    """Result of `run`: tasks that were done now, and chunks of inputs that were not there.

    Attributes
    ----------
    folder : Path
        The results folder.
    done : dict of str to int
        Tasks done in this run, by stage.
    seconds : dict of str to float
        Time of each stage in this run.
    absent : dict of str to int
        Chunks of each input that are not in its store and were read as its fill value.
    is_complete : bool
        Whether all tasks of all stages are done.
    """

    folder: Path
    done: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    absent: dict[str, int] = field(default_factory=dict)
    is_complete: bool = False


def run(
    folder: str | os.PathLike[str],
    *,
    workers: int | None = None,
    client: Any = None,
    part: tuple[int, int] | None = None,
    stage: str | None = None,
    block: int | None = None,
    accept_inputs: bool = False,
    progress: ProgressCallback | None = None,
) -> Run:
    """Do the rest of a plan, in any number of threads or processes; the result is the same.

    Parameters
    ----------
    folder : path
        A results folder that `plan` made.
    workers : int, optional
        Threads, by default those of the plan; more than its memory budget allows are refused. With
        a client, the most tasks at a time.
    client : dask.distributed.Client, optional
        Its workers do the tasks instead of threads here; they must see the folder and the inputs.
        The budget is that of all processes on this machine together, and of each worker process on
        others: workers that it does not allow are not used.
    part : (int, int), optional
        ``(i, n)``, i from 1 to n: do only every n-th task of one stage, for array jobs. Tasks that
        are done once for the whole volume belong to the first part.
    stage : str, optional
        Do only this stage; by default all, or with `part` the first that is not finished.
    block : int, optional
        Do only this task of `stage`, even if it is done.
    accept_inputs : bool
        Take inputs whose files have other times, but the names and sizes of when the plan was made,
        for the same ones, as after a damaged file was restored. The plan remembers it.
    progress : callable, optional
        Called with a `Progress`; raise `Cancelled` in it to stop. What is done stays done.

    Returns
    -------
    Run

    Raises
    ------
    InvalidInput
        If tasks fail: the message names the first one, and ``failures/`` has a log for each.
    """
    check_progress(progress)
    place = Path(folder)
    plan = read_plan(place)
    job = Job(place.resolve(), plan)
    stages = stages_of(plan)
    if stage is not None:
        check_choice("stage", stage, [one.name for one in stages])
    if part is not None:
        check_whole("part", part[1], 1)
        check_whole("part", part[0], 1, part[1])
    if block is not None:
        only = next((one for one in stages if one.name == stage), None)
        if only is None:
            raise InvalidInput(
                "`block` is a task of one stage", argument="stage", remedy="name the stage too"
            )
        check_whole("block", block, 0, only.tasks - 1)
    if workers is not None:
        workers = check_workers(plan, workers) if client is None else check_whole(
            "workers", workers, 1
        )  # fmt: skip
    accepted = plan.check_inputs(accept=accept_inputs)
    result = Run(place)
    with locked(job.folder, part):
        if accepted != plan:
            with writing(job.folder):
                accepted.write(job.folder)
        _Runner(job, stages, result, progress, workers, client, part).go(stage, block)
    return result


class _Runner:
    """One call of `run`."""

    def __init__(
        self,
        job: Job,
        stages: list[Stage],
        result: Run,
        progress: ProgressCallback | None,
        workers: int | None,
        client: Any,
        part: tuple[int, int] | None,
    ) -> None:
        self._job = job
        self._stages = stages
        self._result = result
        self._progress = progress
        self._client = None if client is None else Workers(client, job.plan, workers)
        self._part = part
        self._workers = workers or job.plan.workers
        self._repeats: dict[tuple[str, int], int] = {}

    def go(self, only: str | None, block: int | None) -> None:
        """Do the stages, and those again whose results turn out to be damaged."""
        at = 0
        if only is None and self._part is None and not any(map(self._left, self._stages)):
            self._find_lost_chunks()
        turns = _turns(self._stages, only is None and self._may_overlap())
        while at < len(turns):
            turn = turns[at]
            if only is not None and turn.stages[0].name != only:
                at += 1
                continue
            if block is not None:
                remove_marker(self._job, turn.stages[0].name, block)
            redo = self._do_turn(turn, block)
            if redo:
                first = self._forget(redo)
                at = next(k for k, one in enumerate(turns) if first in one.names())
                only = None  # an earlier stage has to be done first
                continue
            if self._part is not None and self._touched(turn.stages[0]):
                break
            at += 1
        self._result.is_complete = only is None and self._part is None
        if self._part is not None:
            self._result.is_complete = not any(self._left(one) for one in self._stages)
        if self._result.is_complete:
            with writing(self._job.folder):
                write_complete(self._job, self._stages)

    def _find_lost_chunks(self) -> None:
        """Forget finished tasks whose chunks are no longer on the disk: no stage would read them.

        A store that is lost as a whole is made again before its stage.
        """
        for lost in lost_chunks(self._job, lambda task: True):
            for stage, index in lost.tasks:
                remove_marker(self._job, stage, index)

    def _touched(self, stage: Stage) -> bool:
        """Return whether an array job ends after a stage: the next may need all parts of it."""
        return bool(self._result.done.get(stage.name)) or bool(self._left(stage))

    def _left(self, stage: Stage) -> list[int]:
        return [k for k in range(stage.tasks) if read_marker(self._job, stage.name, k) is None]

    def _may_overlap(self) -> bool:
        """Return whether superpixels may be written while the graph is agglomerated."""
        plan = self._job.plan
        threads = self._client is None and self._part is None and self._workers > 1
        return threads and plan.superpixels is None and not plan.dams

    def _do_turn(self, turn: _Turn, block: int | None) -> list[tuple[str, int]]:
        """Do the stages of a turn; return tasks whose results are damaged."""
        if not turn.beside:
            return self._do(turn.stages[0], block, self._progress)
        if not self._fits_beside():
            return self._do_all([*turn.beside, *turn.stages], self._progress)
        for stage in turn.beside:  # the tree refers to the superpixels of the volume
            self._prepare(stage)
        # One of the threads agglomerates; it joins the others when it has ended.
        places = threading.Semaphore(self._workers)
        beside = BesideProgress(self._progress)
        with ThreadPoolExecutor(1) as pool:
            with places:
                stages = pool.submit(self._do_all, turn.beside, beside.tell, places)
                try:
                    redo = self._do_all(turn.stages, self._progress)
                    beside.show()
                except BaseException:
                    beside.has_failed = True
                    raise
            return redo + stages.result()

    def _prepare(self, stage: Stage) -> None:
        """Make the stores that a stage writes to; forget what was done in those that were lost."""
        with writing(self._job.folder):
            lost = prepare(self._job, stage)
        for one in lost:
            forget_stage(self._job, one.name)

    def _do_all(
        self,
        stages: list[Stage],
        progress: ProgressCallback | None,
        places: threading.Semaphore | None = None,
    ) -> list[tuple[str, int]]:
        """Do stages one after another; end after one that finds damaged results, and return these.

        With `places`, each task takes one of them.
        """
        for stage in stages:
            redo = self._do(stage, None, progress, places)
            if redo:
                return redo
        return []

    def _fits_beside(self) -> bool:
        """Return whether the graph and blocks in the other threads fit in the budget."""
        plan = self._job.plan
        notes = [
            read_marker(self._job, "statistics", block) or {}
            for block in range(self._job.grid.n_blocks)
        ]
        sizes = [sum(one.get(name, 0) for one in notes) for name in ("regions", "boundaries")]
        blocks = (self._workers - 1) * block_bytes(plan, plan.block)
        return tasks_that_fit(plan, graph_bytes(plan, *sizes) + blocks) > 0

    def _do(
        self,
        stage: Stage,
        block: int | None,
        progress: ProgressCallback | None,
        places: threading.Semaphore | None = None,
    ) -> list[tuple[str, int]]:
        self._prepare(stage)
        left = self._left(stage) if block is None else [block]
        if self._part is not None:
            i, n = self._part
            left = [k for k in left if (k if stage.tasks > 1 else 0) % n == i - 1]
        if not left:
            return []
        began = time.monotonic()
        count = StageProgress(self._job, stage, left, progress)
        count.tell()  # workers of a client report nothing before their first task is done
        redo: list[tuple[str, int]] = []
        failures: list[tuple[int, str]] = []
        n_left = len(left)
        absent: dict[str, int] = {}
        for index, notes in self._results(stage, left, count, places):
            if "redo" in notes:
                redo += [(name, number) for name, number in notes["redo"]]
            elif "failed" in notes:
                failures.append((index, notes["failed"]))
                if notes["fatal"] or len(failures) >= _MOST_FAILURES:
                    count.stop.set()
            else:
                self._result.done[stage.name] = self._result.done.get(stage.name, 0) + 1
                for name, number in notes.get("absent", {}).items():
                    absent[name] = absent.get(name, 0) + number
        give_back_memory()
        for name, number in absent.items():  # several stages may read one input
            self._result.absent[name] = max(self._result.absent.get(name, 0), number)
        spent = self._result.seconds.get(stage.name, 0.0) + time.monotonic() - began
        self._result.seconds[stage.name] = round(spent, 3)
        if failures:
            index, message = min(failures)
            log = failure_log(self._job, stage.name, index)
            cause = "free some space" if message == DISK_FULL else f"see {log}, mend the cause"
            raise InvalidInput(
                f"{len(failures)} of {n_left} tasks of stage {stage.name} failed; the first is "
                f"{block_of(self._job, stage, index)}: {message.rstrip('.')}",
                argument="folder",
                remedy=f"{cause}, and run again: finished blocks are kept",
            )
        return redo

    def _results(
        self,
        stage: Stage,
        left: list[int],
        count: StageProgress,
        places: threading.Semaphore | None,
    ) -> Iterator[tuple[int, Result]]:
        """Do tasks here, in threads or by a client, and give their results."""
        folder = str(self._job.folder)
        is_one = stage.tasks == 1 or (self._client is None and len(left) == 1)
        if is_one:
            others = 0 if self._client is None else self._client.others
            for index in left:
                with nullcontext() if places is None else places:
                    notes = run_task(folder, stage.name, index, count.inner, others)
                count.add(index)
                yield index, notes
        elif self._client is not None:
            yield from self._by_client(self._client, stage, left, count)
        else:
            fitting = tasks_that_fit(self._job.plan, self._task_bytes(stage, left))
            workers = min(self._workers, max(1, fitting))
            yield from _by_threads(workers, folder, stage.name, left, count, places)

    def _by_client(
        self, workers: Workers, stage: Stage, left: list[int], count: StageProgress
    ) -> Iterator[tuple[int, Result]]:
        folder = str(self._job.folder)
        try:
            results = workers.results(
                run_task, left, lambda index: (folder, stage.name, index), stage.name,
                self._task_bytes(stage, left), count.stop.is_set, count.wait,
            )  # fmt: skip
            with closing(results):  # which waits for tasks that run, before the lock is released
                for index, result in results:
                    if isinstance(result, Exception):
                        yield index, self._died(stage, index, result)
                    else:
                        yield index, result
                    count.add(index)
        finally:
            count.stop.set()

    def _died(self, stage: Stage, index: int, error: Exception) -> Result:
        """Return the result of a task whose worker died too often, and which wrote no log."""
        done = read_marker(self._job, stage.name, index)
        if done is not None:  # it died after it had done the task
            return done
        write_failure(self._job, stage, index, error)
        return {"failed": f"{type(error).__name__}: {error}", "fatal": False}

    def _task_bytes(self, stage: Stage, left: list[int]) -> int:
        """Return the memory of the largest task of a stage.

        Tables that are added have rows that no plan knows.
        """
        name, _, level = stage.name.partition("-")
        job = self._job
        if name != "reduce":
            return block_bytes(job.plan, job.plan.block)
        tasks = []
        for index in left:
            markers = [read_marker(job, *one) for one in reduced_tasks(job.grid, int(level), index)]
            sizes = [(one["regions"], one["boundaries"]) for one in markers if one is not None]
            tasks.append(sizes)
        return largest_reduction(job.plan, tasks)

    def _forget(self, tasks: Iterable[tuple[str, int]]) -> str:
        """Remove the markers of damaged results; return the first stage to do again."""
        names = [stage.name for stage in self._stages]
        first = len(names)
        for task in set(tasks):
            self._repeats[task] = self._repeats.get(task, 0) + 1
            if self._repeats[task] > _MOST_REPEATS:
                raise InvalidInput(
                    f"the result of task {task[1]} of stage {task[0]} is damaged each time that "
                    "it is written",
                    argument="folder",
                    remedy="check the disk, or choose another folder",
                )
            remove_marker(self._job, *task)
            first = min(first, names.index(task[0]))
        return names[first]


def _by_threads(
    workers: int,
    folder: str,
    stage: str,
    left: list[int],
    count: StageProgress,
    places: threading.Semaphore | None,
) -> Iterator[tuple[int, Result]]:
    """Do tasks in the threads of dask, and give their results."""
    try:
        from dask.threaded import get
    except ImportError as error:
        raise InvalidInput(
            "the block-wise engine needs dask",
            argument="folder",
            remedy=Install('"napari-agglo[blocks]"'),
        ) from error
    results: list[tuple[int, Result]] = []

    def work(index: int) -> None:
        if count.stop.is_set():
            return
        try:
            with nullcontext() if places is None else places:
                notes = run_task(folder, stage, index, count.inner)
            results.append((index, notes))
            if notes.get("fatal"):
                count.stop.set()
            count.add(index)
        except BaseException as error:
            if count.error is None and not isinstance(error, Cancelled):
                count.error = error
            count.stop.set()

    with ThreadPoolExecutor(max(1, workers)) as pool:
        try:
            graph = {(stage, index): (work, index) for index in left}
            get(graph, list(graph), pool=pool)
        except BaseException:
            count.stop.set()
            raise
    if count.error is not None:
        raise count.error
    yield from results
