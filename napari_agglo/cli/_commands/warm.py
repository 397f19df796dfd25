"""`napari-agglo warm`: compilation of the kernels beforehand."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from napari_agglo._progress import Progress, ProgressCallback
from napari_agglo.cli._arguments import add_json
from napari_agglo.cli._terminal import Console

NAME = "warm"
SUMMARY = "compile the kernels of all commands and of napari beforehand"
DESCRIPTION = (
    "Compile the kernels and keep them in a cache, which takes about a minute on a new machine or\n"
    "after an update. Otherwise commands, scripts and napari compile the kernels that they need.\n"
    "Run it once where the package is installed for others."
)
EXAMPLE = "napari-agglo warm -v"
_TICK = 1.0  # seconds between two reports while a group of kernels compiles


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_json(parser)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Compile, and print how long it took and where the kernels are."""
    from napari_agglo.session import NOT_KEPT, cache_folder, warm_up

    begun = time.perf_counter()
    with console.progress() as progress, _ticking(progress) as ticks:
        warm_up(progress=ticks)
    seconds = time.perf_counter() - begun
    folder = cache_folder()
    place = NOT_KEPT if folder is None else f"They are kept in {folder}."
    console.result(
        f"Kernels are ready after {seconds:.0f} s. {place}",
        {"seconds": seconds, "folder": None if folder is None else str(folder)},
    )


@contextmanager
def _ticking(progress: ProgressCallback | None) -> Iterator[ProgressCallback | None]:
    """Yield a callback whose last state goes on, by the clock, while a group of kernels compiles.

    The compiler reports nothing for up to half a minute. A thread reports instead how much of the
    seconds that the group usually takes has passed, up to nine tenths of them.
    """
    if progress is None:
        yield None
        return
    from napari_agglo.session import seconds_to_compile
    from napari_agglo.session._warm_up import STAGES

    last: tuple[Progress, float] | None = None
    stopped, one_at_a_time = threading.Event(), threading.Lock()

    def tell(state: Progress) -> None:
        nonlocal last
        with one_at_a_time:
            last = state, time.monotonic()
            progress(state)

    def tick() -> None:
        while not stopped.wait(_TICK):
            with one_at_a_time:
                if last is not None:
                    state, began = last
                    group = state.stage.rpartition(" ")[2]
                    usual = seconds_to_compile([group]) if group in STAGES else 0
                    passed = min(time.monotonic() - began, 0.9 * usual)
                    progress(Progress(state.stage, state.done + int(passed), state.total))

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield tell
    finally:
        stopped.set()
        thread.join()
