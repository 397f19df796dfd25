"""Markers of finished tasks, logs of failed ones, and the lock of a results folder.

The files are the truth: a task is done if its marker is there and names the digest of the plan. So
any process, on any machine that sees the folder, knows what is left to do. The module is in its
own file because tasks, runs and the status of a run share it.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from napari_agglo.blocks._run_files import Job
from napari_agglo.blocks._stages import Stage, block_of
from napari_agglo.errors import InvalidInput
from napari_agglo.session._store.lock import Lock
from napari_agglo.session._store.store_errors import NotSaved, SessionLocked
from napari_agglo.volumes import _replace_file as files

_COMPLETE = "complete.json"
FULL = (errno.ENOSPC, errno.EDQUOT)  # errors of a disk without space
DISK_FULL = "the disk is full"


def _marker(job: Job, stage: str, index: int) -> Path:
    return job.folder / "done" / stage / f"{index:06d}.json"


def read_marker(job: Job, stage: str, index: int) -> dict[str, Any] | None:
    """Return the notes of a finished task; None if it is not done, or was done by another plan."""
    try:
        notes = json.loads(_marker(job, stage, index).read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(notes, dict) or notes.get("digest") != job.plan.digest(stage):
        return None
    for name, size in notes.get("files", {}).items():
        try:
            if os.stat(job.folder / name).st_size != size:
                return None
        except OSError:
            return None
    size = notes.get("bytes")
    if size is not None:  # a table that is gone or cut short is found here, others when read
        try:
            if os.stat(job.table(stage, index)).st_size != size:
                return None
        except FileNotFoundError:
            return notes if _is_used(job, stage) else None
        except OSError:
            return None
    return notes


# The stages that read the tables of a stage. Labels read those of `cut` too, if they are there.
_READERS = {
    "cut": ("superpixels", "statistics"), "join": ("number",), "statistics": ("graph", "tree"),
    "reduce": ("graph", "tree"), "overlap": ("evaluate",),
}  # fmt: skip


def _is_used(job: Job, stage: str) -> bool:
    """Return whether a complete run has used the tables of a stage, so that they may be removed."""
    try:
        complete = json.loads((job.folder / "done" / _COMPLETE).read_bytes())
        readers = _READERS[stage.partition("-")[0]]
        return all(complete[name] == job.plan.digest(name) for name in readers)
    except (OSError, ValueError, LookupError, TypeError):
        return False


def write_complete(job: Job, stages: Iterable[Stage]) -> None:
    """Write down that all stages of a plan are done: their tables are not needed any more."""
    digests = {stage.name: job.plan.digest(stage.name) for stage in stages}
    content = json.dumps(digests).encode()
    path = job.folder / "done" / _COMPLETE
    if not path.is_file() or path.read_bytes() != content:
        files.write_whole(path, content, durable=False)


def write_marker(job: Job, stage: str, index: int, notes: dict[str, Any]) -> None:
    """Write down that a task is done; remove the log of an earlier failure."""
    path = _marker(job, stage, index)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"digest": job.plan.digest(stage), **notes}
    files.write_whole(path, json.dumps(content).encode(), durable=False)
    with suppress(OSError):
        failure_log(job, stage, index).unlink(missing_ok=True)


def remove_marker(job: Job, stage: str, index: int) -> None:
    """Forget that a task was done."""
    _marker(job, stage, index).unlink(missing_ok=True)


def forget_stage(job: Job, stage: str) -> None:
    """Forget that the tasks of a stage were done."""
    shutil.rmtree(job.folder / "done" / stage, ignore_errors=True)


def failure_log(job: Job, stage: str, index: int) -> Path:
    """Return the file that says why a task failed."""
    return job.folder / "failures" / f"{stage}-{index:06d}.log"


def write_failure(job: Job, stage: Stage, index: int, error: BaseException) -> None:
    """Write down why a task failed, what it reads, and how to do only this task again."""
    path = failure_log(job, stage.name, index)
    lines = [
        f"{time.strftime('%Y-%m-%d %H:%M:%S')}, process {os.getpid()} on {socket.gethostname()}",
        f"stage {stage.name}, {block_of(job, stage, index)}",
        *(f"{name}: {source.path}" for name, source in job.plan.sources().items()),
        f"only this: napari-agglo blocks run {job.folder} --stage {stage.name} --block {index}",
        "",
        *traceback.format_exception(error),
    ]
    with suppress(OSError):  # a full disk is told by the error itself
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines), encoding="utf-8")


def write_log(job: Job, stage: str, index: int, seconds: float) -> None:
    """Append a line on a finished task to the log of this process."""
    line = {"stage": stage, "task": index, "seconds": round(seconds, 3), "at": time.time()}
    folder = job.folder / "logs"
    with suppress(OSError):
        folder.mkdir(exist_ok=True)
        with (folder / f"{socket.gethostname()}-{os.getpid()}.jsonl").open("a") as handle:
            handle.write(json.dumps(line) + "\n")


@contextmanager
def locked(folder: Path, part: tuple[int, int] | None) -> Iterator[None]:
    """Hold the lock of a results folder, or of one part of a run, while a run writes to it.

    A whole run excludes every other. Parts of one division exclude only themselves, whole runs, and
    the parts of other divisions, which would do the same blocks.
    """
    own = folder / "locks" / ("whole" if part is None else f"part-{part[0]}-of-{part[1]}")
    division = "" if part is None else f"-of-{part[1]}"
    try:
        own.mkdir(parents=True, exist_ok=True)
        lock = Lock(own)
    except SessionLocked as error:
        raise _in_use(folder, own) from error
    except NotSaved as error:
        raise unwritable(folder, cause_of_system(error) or OSError(str(error))) from error
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        for other in sorted(own.parent.iterdir()):
            clashes = part is None or not other.name.endswith(division)
            if other == own or not clashes or not other.is_dir():
                continue
            try:
                Lock(other).release()
            except SessionLocked as error:
                raise _in_use(folder, other) from error
        yield
    finally:
        lock.release()


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Refuse a folder that cannot be written to, if an error of the system tells so."""
    try:
        yield
    except OSError as error:
        raise unwritable(folder, error) from error


def cause_of_system(error: BaseException) -> OSError | None:
    """Return the error of the system that an error came of, if there is one."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    return cause


def unwritable(folder: Path, error: OSError) -> InvalidInput:
    """Return the refusal of a folder that cannot be written to."""
    full = error.errno in FULL
    reason = DISK_FULL if full else error.strerror or str(error)
    return InvalidInput(
        f"{folder} cannot be written to ({reason})",
        argument="folder",
        remedy=(
            "free some space, and do it again: finished blocks are kept"
            if full
            else "check its permissions, or choose another folder"
        ),
    )


def _in_use(folder: Path, own: Path) -> InvalidInput:
    try:
        owner = json.loads((own / "lock").read_bytes())
        who = f"process {owner['pid']} on {owner['host']}, since {owner['since']}"
    except (OSError, ValueError, LookupError):
        who = "another process"
    return InvalidInput(
        f"another run ({own.name}) writes to {folder}: {who}",
        argument="folder",
        remedy=f"wait for it or stop it; if it is surely gone, remove {own}",
    )
