"""Measure the first clicks of ``make demo``: ``python scripts/first_click.py [SAMPLE]``.

Opens napari with the sample and the dock, clicks *Train* and then *Apply it* as a person would, and
prints the seconds to the first learned segmentation on the canvas: by the clock, and of the
processor, which do not depend on other programs. Needs a display, such as ``xvfb-run`` gives.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import napari
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QPushButton

from napari_agglo.cli._commands.demo import WINDOW_SAMPLE
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import per_viewer


def wait(until: Callable[[], bool]) -> None:
    """Process events until something is true."""
    while not until():
        QApplication.processEvents()
        time.sleep(0.005)


def main(sample: str = WINDOW_SAMPLE) -> None:
    """Click, wait and print."""
    viewer = napari.Viewer(title="Agglo")
    viewer.window.resize(1280, 800)
    viewer.open_sample("napari-agglo", sample)
    dock = viewer.window.add_plugin_dock_widget("napari-agglo", "Agglo")[1]
    project = per_viewer(viewer, Project)
    wait(lambda: dock.complete)
    clock, processor = time.perf_counter(), time.process_time()

    def click(button: QPushButton, done: Callable[[], bool], what: str) -> None:
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)
        wait(done)
        QApplication.processEvents()
        print(
            f"{what}: {time.perf_counter() - clock:.1f} s, "
            f"{time.process_time() - processor:.1f} s of the processor",
            flush=True,
        )

    dock.guide.open("train")
    step = dock.guide.steps["train"]
    wait(step.run.button.isVisible)
    click(step.run.button, lambda: project.policy.name == "learned", f"{sample}, trained")
    click(step.apply, lambda: project.has_hierarchy, "and applied")
    viewer.close()


if __name__ == "__main__":
    main(*sys.argv[1:2])
