"""Compile or load the kernels in the background, before a click needs them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from napari.utils.notifications import show_warning

from napari_agglo._numba import temporary_cache
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.session import (
    NOT_KEPT,
    cache_folder,
    is_warm,
    seconds_to_compile,
    stages_to_compile,
    warm_up,
)
from napari_agglo.widgets._colours import MARKS, direct_colours, segment_colours
from napari_agglo.widgets._project import Project

WARM = "warm"  # the name of the job
_COMMAND = [sys.executable, "-m", "napari_agglo", "warm", "-q"]
_POLL = 0.1  # seconds between two looks at a process that compiles


def start_warm_up(project: Project) -> None:
    """Start a job that compiles or loads all kernels, in the order of their use."""
    if not is_warm():
        project.jobs.start(WARM, "Loading kernels", load_kernels, _on_ready)


def load_kernels(progress: ProgressCallback) -> bool:
    """Compile the kernels missing from the cache, load all; return whether there is a cache.

    Numba holds a lock while it compiles, and in this process even the colours of a layer would wait
    for it. So a second process of low priority compiles, and this one loads from the cache. If no
    cache can be written, a temporary folder of this process takes its place. Without a temporary
    folder nothing is compiled here before a click needs it.
    """
    report(progress, "loading colours", 0, 1)
    # napari does not cache its kernels for colours of labels: seconds at the first selection.
    direct_colours(MARKS).map(np.zeros((2, 2), np.uint8))
    segment_colours().map(np.zeros((2, 2), np.uint32))
    is_kept, temporary = cache_folder() is not None, temporary_cache()
    can_share = is_kept or temporary is not None
    if can_share and stages_to_compile() and not getattr(sys, "frozen", False):
        with suppress(OSError):  # then `warm_up` compiles them, or clicks do
            _compile_in_process(progress, None if is_kept else temporary)
    if is_kept or not stages_to_compile():
        warm_up(progress=progress)
    return is_kept


def _compile_in_process(progress: ProgressCallback, folder: Path | None) -> None:
    """Run ``napari-agglo warm`` until it ends, or until `progress` cancels.

    The process keeps its kernels in `folder`, or in the usual one.
    """
    quiet = subprocess.DEVNULL
    total = seconds_to_compile(stages_to_compile())
    environment = dict(os.environ)
    if folder is not None:
        environment["NUMBA_CACHE_DIR"] = str(folder)
    child = subprocess.Popen(_COMMAND, stdin=quiet, stdout=quiet, stderr=quiet, env=environment)
    try:
        if hasattr(os, "setpriority"):
            os.setpriority(os.PRIO_PROCESS, child.pid, 10)
        while child.poll() is None:
            left = stages_to_compile()
            stage = f"compiling for the first use: {left[0] if left else 'last kernels'}"
            report(progress, stage, total - seconds_to_compile(left), total)
            time.sleep(_POLL)
    finally:
        child.kill()
        child.wait()


def _on_ready(is_kept: bool) -> None:
    if not is_kept:
        show_warning(NOT_KEPT)
