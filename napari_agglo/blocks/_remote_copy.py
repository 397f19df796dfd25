"""Copy of the labels of a run to a URL: the last stages, object by object.

The stage `copy` sends the chunks, and `publish` the metadata, so that no reader takes half of a
volume for a whole one. An object that is there already is not sent again: the server tells its
checksum, or it is as it was when this run wrote it, which a list beside the markers tells.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.blocks._plan import Plan
from napari_agglo.blocks._run_files import LABELS, PRECOMPUTED, Job, Notes, Redo
from napari_agglo.blocks._stores import (
    chunk_files,
    level_grid,
    open_level,
    precomputed_files,
    precomputed_grid,
)
from napari_agglo.errors import InvalidInput
from napari_agglo.volumes import _replace_file as files
from napari_agglo.volumes._precomputed import MARK
from napari_agglo.volumes._url_objects import (
    md5,
    read_object,
    remove_object,
    stored_object,
    write_object,
)

RESERVATION = "napari-agglo-copy.json"  # the object at the URL that says whose copy is there
_FORMAT = "napari-agglo copy 1"
_COPIED = "copied"  # folder of the lists of objects that were written
_AT_A_TIME = 8  # objects of a task: they wait for the network, not for a processor
_METADATA = (".zattrs", ".zarray", ".zgroup", "zarr.json", MARK)
_ARGUMENT = "copy_to"


def copy_parts(plan: Plan) -> list[tuple[str, int, int]]:
    """Return the tasks of the copy: a store, a level of it, and a block of that level."""
    shapes = plan.pyramid(LABELS).shapes
    parts = [
        (LABELS, level, block)
        for level, shape in enumerate(shapes)
        for block in range(level_grid(shape, plan.block).n_blocks)
    ]
    if plan.precomputed:
        parts += [
            (PRECOMPUTED, level, block)
            for level, shape in enumerate(shapes)
            for block in range(precomputed_grid(shape, plan.block).n_blocks)
        ]
    return parts


def copy_part(job: Job, index: int, progress: ProgressCallback | None) -> Notes:
    """Copy the chunks of a block of a level that are not at the URL yet."""
    paths = _chunks_of(job, *copy_parts(job.plan)[index])
    listed = _Listed(_list_of(job, index))
    sent = size = 0
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        work = [pool.submit(_copy, job, path, listed) for path in paths]
        try:
            for done, one in enumerate(as_completed(work)):
                report(progress, "copying", done, len(paths))
                was_sent, n = one.result()
                sent, size = sent + was_sent, size + n
        except BaseException:
            for one in work:
                one.cancel()
            raise
    report(progress, "copying", len(paths), len(paths))
    return {"objects": len(paths), "sent": sent, "size": size}


def _copy(job: Job, path: Path, listed: _Listed) -> tuple[bool, int]:
    """Write a file to its URL, unless it is there; return whether it was written, and its bytes."""
    name = _name(job, path)
    url = f"{job.plan.copy_to}/{name}"
    data = path.read_bytes()
    checksum = md5(data)
    there = stored_object(url, _ARGUMENT)
    if there is not None and there.size == len(data):
        known = listed.entries.get(name) == (checksum, there.stamp)
        if known or there.has(data):
            return False, len(data)
    listed.add(name, checksum, write_object(url, data, _ARGUMENT).stamp)
    return True, len(data)


def _chunks_of(job: Job, store: str, level: int, block: int) -> list[Path]:
    """Return the files of the chunks of a part; ask for those that are lost to be written again."""
    shape = job.plan.pyramid(LABELS).shapes[level]
    if store == LABELS:
        slices = level_grid(shape, job.plan.block).slices(block)
        job.level(store, level).check(slices)
        return list(chunk_files(open_level(job.store(store), level), slices))
    slices = precomputed_grid(shape, job.plan.block).slices(block)
    task = (f"precomputed-{level}", block)
    try:
        paths = list(precomputed_files(job.store(store), level, slices))
        if all(path.stat().st_size for path in paths):
            return paths
        reason = "it has an empty chunk"
    except (FileNotFoundError, NotADirectoryError) as error:
        reason = str(error)
    raise Redo([task], f"{store}, level {level}, lacks chunks of task {block} ({reason})")


def publish(job: Job, index: int, progress: ProgressCallback | None) -> Notes:
    """Write the metadata of the stores, the groups last: then the copy can be opened."""
    paths = [path for store in _stores(job.plan) for path in _metadata_of(job, store)]
    for done, path in enumerate(paths):
        report(progress, "publishing", done, len(paths))
        write_object(f"{job.plan.copy_to}/{_name(job, path)}", path.read_bytes(), _ARGUMENT)
    report(progress, "publishing", len(paths), len(paths))
    return {"urls": [f"{job.plan.copy_to}/{store}" for store in _stores(job.plan)]}


def _stores(plan: Plan) -> list[str]:
    return [LABELS, PRECOMPUTED] if plan.precomputed else [LABELS]


def _metadata_of(job: Job, store: str) -> Iterator[Path]:
    """Yield the files of metadata of a store, those of its group last."""
    root = job.store(store)
    levels = range(job.plan.levels) if store == LABELS else range(0)
    for folder in (*(root / str(level) for level in levels), root):
        yield from (folder / name for name in _METADATA if (folder / name).is_file())


def _name(job: Job, path: Path) -> str:
    return path.relative_to(job.folder).as_posix()


# The list of objects that a task wrote, so that a run that was killed knows them.


def _list_of(job: Job, index: int) -> Path:
    return job.folder / _COPIED / job.plan.digest("copy") / f"{index:06d}.jsonl"


class _Listed:
    """List of the objects that a task wrote: the checksum of each, and what the server told."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._lock = path, threading.Lock()
        self.entries: dict[str, tuple[str, str]] = {}
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        for line in text.splitlines():
            try:
                name, checksum, stamp = json.loads(line)
            except (ValueError, TypeError):  # half a line, of a process that was killed
                continue
            self.entries[name] = checksum, stamp

    def add(self, name: str, checksum: str, stamp: str) -> None:
        """Append an object; many threads do so."""
        with self._lock, self._path.open("a", encoding="utf-8") as lines:
            lines.write("\n" + json.dumps([name, checksum, stamp]))


# The place at the URL, which is of one results folder.


def check_place(plan: Plan, folder: Path | None) -> None:
    """Refuse a URL at which there are labels that the run in `folder` has not written."""
    if not plan.copy_to:
        return
    there = _reservation(plan)
    own = None if folder is None else _read_id(folder)
    if there is not None and own is not None and there["run"] == own:
        return
    taken = [
        f"{plan.copy_to}/{name}"
        for name in (RESERVATION, *(f"{s}/{m}" for s in (LABELS, PRECOMPUTED) for m in _METADATA))
        if stored_object(f"{plan.copy_to}/{name}", _ARGUMENT) is not None
    ]
    if taken:
        whose = "another results folder" if there is not None else "something else"
        raise InvalidInput(
            f"{plan.copy_to} has labels of {whose} ({taken[0]})",
            argument=_ARGUMENT,
            remedy="name another URL, or remove what is there",
        )


def keep_place(plan: Plan, folder: Path) -> None:
    """Write the object that keeps the URL for the run in `folder`, if it is not there yet."""
    if plan.copy_to and _reservation(plan) is None:
        own = _read_id(folder)
        if own is None:
            own = secrets.token_hex(16)
            (folder / _COPIED).mkdir(exist_ok=True)
            files.write_whole(folder / _COPIED / "id", own.encode())
        _reserve(plan, own, None)


def begin_copy(job: Job) -> bool:
    """Prepare the URL for a copy of this plan; return whether all of it is to be copied.

    The metadata of an earlier copy are removed first, so that nobody reads a mixture of both.
    """
    plan = job.plan
    there = _reservation(plan)
    check_place(plan, job.folder)
    keep_place(plan, job.folder)
    if there is not None and there["digest"] == plan.digest("copy"):
        return False
    own = _read_id(job.folder)
    assert own is not None  # check_place has compared it
    for store in (LABELS, PRECOMPUTED):
        for name in reversed(_METADATA):
            remove_object(f"{plan.copy_to}/{store}/{name}", _ARGUMENT)
    _reserve(plan, own, plan.digest("copy"))
    return True


def _reserve(plan: Plan, run: str, digest: str | None) -> None:
    content = {"format": _FORMAT, "run": run, "digest": digest}
    write_object(f"{plan.copy_to}/{RESERVATION}", json.dumps(content).encode(), _ARGUMENT)


def _reservation(plan: Plan) -> dict[str, Any] | None:
    """Return the content of the object at the URL; None without a readable one."""
    data = read_object(f"{plan.copy_to}/{RESERVATION}", _ARGUMENT)
    try:
        content = json.loads(data or b"")
    except ValueError:
        return None
    is_ours = isinstance(content, dict) and content.get("format") == _FORMAT
    return content if is_ours and {"run", "digest"} <= content.keys() else None


def _read_id(folder: Path) -> str | None:
    try:
        return (folder / _COPIED / "id").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
