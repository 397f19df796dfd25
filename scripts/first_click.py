"""Measure the first clicks of ``make demo``: ``python scripts/first_click.py [SAMPLE] [--warm]``.

Opens napari with the sample and the dock, clicks *Train* and then *Apply it* as a person would, and
prints the seconds to the first learned segmentation on the canvas: by the clock, and of the
processor, with that of a process that compiles kernels in the background. Does so twice, each time
in a new process: with an empty cache of kernels, as on a new machine, and with all kernels
compiled. With ``--warm`` only the second, with the kernels that are on this machine already. Needs
a display, such as ``xvfb-run`` gives.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from napari_agglo.cli._commands.demo import WINDOW_SAMPLE


def processor_seconds() -> float:
    """Return the seconds of the processor of this process, and of those that it has started."""
    import psutil

    ended = os.times()
    total = time.process_time() + ended.children_user + ended.children_system
    for child in psutil.Process().children(recursive=True):
        try:
            spent = child.cpu_times()
        except psutil.Error:  # it has just ended
            continue
        total += spent.user + spent.system
    return total


def measure(sample: str) -> None:
    """Click, wait and print."""
    import napari
    from qtpy.QtCore import Qt
    from qtpy.QtTest import QTest
    from qtpy.QtWidgets import QApplication, QPushButton

    from napari_agglo.widgets._project import Project
    from napari_agglo.widgets._qt import per_viewer

    def wait(until: Callable[[], bool]) -> None:
        while not until():
            QApplication.processEvents()
            time.sleep(0.005)

    viewer = napari.Viewer(title="Agglo")
    viewer.window.resize(1280, 800)
    viewer.open_sample("napari-agglo", sample)
    dock = viewer.window.add_plugin_dock_widget("napari-agglo", "Agglo")[1]
    project = per_viewer(viewer, Project)
    wait(lambda: dock.complete)
    clock, processor = time.perf_counter(), processor_seconds()

    def click(button: QPushButton, done: Callable[[], bool], what: str) -> None:
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)
        wait(done)
        QApplication.processEvents()
        print(
            f"  {what}: {time.perf_counter() - clock:.1f} s, "
            f"{processor_seconds() - processor:.1f} s of the processor",
            flush=True,
        )

    dock.guide.open("train")
    step = dock.guide.steps["train"]
    wait(step.run.button.isVisible)
    click(step.run.button, lambda: project.policy.name == "learned", f"{sample}, trained")
    click(step.apply, lambda: project.has_hierarchy, "and applied")
    viewer.close()


def main(sample: str) -> None:
    """Measure with an empty cache of kernels, then with all of them compiled."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}

        def run(*command: str) -> None:
            subprocess.run([sys.executable, *command], env=environment, check=True)

        print("with an empty cache of kernels", flush=True)
        run(__file__, sample, "--warm")
        run("-m", "napari_agglo", "warm", "-q")
        print("with compiled kernels", flush=True)
        run(__file__, sample, "--warm")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sample", nargs="?", default=WINDOW_SAMPLE)
    parser.add_argument("--warm", action="store_true", help="with the kernels of this machine")
    given = parser.parse_args()
    (measure if given.warm else main)(given.sample)
