"""Open windows and close each while its workers run: ``python late_workers.py ROUNDS SEED``.

The program ends while the workers of the last window run. Nothing may be written to stderr: neither
"Signal source has been deleted" nor any other trace of a worker that outlived its window.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from itertools import cycle
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests, for `windows`

import napari
from qtpy.QtCore import QThreadPool
from qtpy.QtWidgets import QApplication
from windows import add_sample, project_of

import napari_agglo as agglo
from napari_agglo.widgets import Dock


def spin(seconds: float) -> None:
    """Process events for some seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        QApplication.processEvents()
        time.sleep(0.002)


def main(rounds: int, seed: int) -> None:
    """Open and close so many windows, after waits by the seed."""
    drawn = agglo.sample("neuropil2d")
    part = (slice(0, 120), slice(0, 140))
    cues = {name: cue[part] for name, cue in drawn.cues.items()}
    sample = agglo.Sample(drawn.name, drawn.image[part], cues, drawn.gold[part], drawn.spacing)
    chance = random.Random(seed)
    pool = QThreadPool.globalInstance()
    late = 0
    for _, step in zip(range(rounds), cycle(("hierarchy", "train")), strict=False):
        viewer = napari.Viewer()
        add_sample(viewer, sample)
        dock = Dock(viewer)
        viewer.window.add_dock_widget(dock, name="Agglo", area="right")
        project = project_of(viewer)
        while len(dock.guide.steps) < len(dock.guide.headers):
            spin(0.02)  # steps are made in turns of the event loop
        dock.guide.open(step)
        dock.guide.steps[step].run.button.click()
        assert project.jobs.running(), "nothing runs"
        spin(chance.random() * 0.4)
        late += pool.activeThreadCount() > 0
        viewer.close()
        del viewer, dock, project
        gc.collect()
        spin(chance.random() * 0.2)
    print(late, "of", rounds, "windows were closed while a worker ran")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
