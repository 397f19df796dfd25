"""A window, for tests: what belongs to it, and what a person does there; show, wait.

This is the one place that knows where the dock keeps its state and where napari keeps its camera.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from napari.layers import Layer

import napari_agglo as agglo
from napari_agglo.widgets import _layer_levels, _samples, _scene
from napari_agglo.widgets._dataset import Dataset, Placement
from napari_agglo.widgets._forms import Form
from napari_agglo.widgets._guide import STEPS
from napari_agglo.widgets._napari import camera, grid, role_of, text_overlay, view_size
from napari_agglo.widgets._project import Built, Project, Regions, Trained
from napari_agglo.widgets._qt import per_viewer
from napari_agglo.widgets.data._selection import Selection
from napari_agglo.widgets.proofread._proofreader import Proofreader

__all__ = ["STEPS", "camera", "grid", "role_of", "text_overlay", "view_size"]


def project_of(viewer: Any) -> Project:
    """Return the project of a window."""
    return per_viewer(viewer, Project)


def cell_of(viewer: Any, layer: Any) -> tuple[int, int]:
    """Return the row and the column of a layer in the grid of a window."""
    layers = viewer.layers
    of = layers if hasattr(viewer, "canvas") else len(layers)  # napari 0.9, and before
    row, column = grid(viewer).position(layers.index(layer), of)
    return row, column


def scene_of(viewer: Any) -> _scene.Scene:
    """Return the layers that the steps show in a window."""
    return per_viewer(viewer, _scene.Scene)


def proofreader_of(viewer: Any) -> Proofreader:
    """Return the parts of proofreading in a window."""
    return per_viewer(viewer, Proofreader)


def selection_of(viewer: Any) -> Selection:
    """Return the layers that are chosen in the Data step."""
    return per_viewer(viewer, Selection)


def status(step: Any, project: Any) -> str:
    """Return the progress of a step: empty, ready, running, done or stale."""
    return str(step.status(project).value)


def add_sample(viewer: Any, sample: agglo.Sample) -> None:
    """Add the layers of a sample."""
    for one in _samples.layers_of(sample):
        viewer.add_layer(Layer.create(*one))
    draw()


def replace_samples(monkeypatch: Any, compute: Any) -> None:
    """Let the samples of napari's menu be the results of a function of their kind."""
    monkeypatch.setattr(_samples, "sample", compute)


def dataset_of(superpixels: Any, boundary: Any = None, scale: Any = None) -> Dataset:
    """Return a dataset of given superpixels; its cue is empty by default."""
    cue = np.zeros(superpixels.shape, np.float32) if boundary is None else boundary
    place = Placement.plain(superpixels.ndim)
    place = place if scale is None else replace(place, scale=scale)
    return Dataset("given", place, cues={"boundary": cue}, superpixels=superpixels)


def limit_voxels(monkeypatch: Any, most: int, coarse: int) -> None:
    """Let a volume of more than `most` voxels have a coarse level, of `coarse` voxels or fewer."""
    monkeypatch.setattr(_layer_levels, "_SMALL", most)
    monkeypatch.setattr(_layer_levels, "COARSE_VOXELS", coarse)


def form_in(dialog: Any) -> Form:
    """Return the form of a dialog."""
    form = dialog.findChild(Form)
    assert form is not None
    return form


def give_regions(project: Any, dataset: Any, graph: Any = None) -> None:
    """Give a project superpixels and their graph."""
    project.regions = Regions(dataset, dataset.graph() if graph is None else graph)


def give_policy(project: Any, policy: Any) -> None:
    """Give a project a policy, as if it had been trained there."""
    project.trained = Trained(policy, project.regions)


def build(project: Any, tree: Any = None) -> Built:
    """Return the hierarchy of a project's regions by its policy, with its gold."""
    regions, policy = project.regions, project.policy
    tree = agglo.agglomerate(regions.graph, policy) if tree is None else tree
    return Built(tree, regions, policy, regions.dataset.gold)


def show(project: Any, dataset: Any, threshold: float = 0.3) -> None:
    """Bring a project to a mean hierarchy of `dataset`."""
    project.set_dataset(dataset)
    give_regions(project, dataset)
    project.threshold = threshold
    project.built = build(project)


def settle(project: Any, seconds: float = 600) -> None:
    """Process events until no job runs, and nothing is asked of the session.

    The limit is for work that never ends: kernels may take minutes to compile on a busy machine.
    """
    from qtpy.QtWidgets import QApplication

    until = time.monotonic() + seconds
    while True:
        QApplication.processEvents()
        if not project.jobs.running() and not project.worker.pending:
            break
        if time.monotonic() > until:
            raise TimeoutError(f"still running: {project.jobs.running()}")
        time.sleep(0.005)
    QApplication.processEvents()


def settle_strokes(painter: Any, seconds: float = 300) -> None:
    """Process events until the plane in view follows the last stroke, and no job runs.

    Not the job that compiles kernels in the background, which may take minutes on a busy machine.
    """
    until = time.monotonic() + seconds
    draw()
    while painter.is_pending or set(painter.project.jobs.running()) - {"warm"}:
        if time.monotonic() > until:
            raise TimeoutError(f"still running: {painter.project.jobs.running()}")
        draw()
    draw()


def draw() -> None:
    """Let the window draw all that is due."""
    from qtpy.QtWidgets import QApplication

    for _ in range(6):
        QApplication.processEvents()
        time.sleep(0.005)


def make_current(viewer: Any) -> None:
    """Let OpenGL draw into a window from now on, as after its last paint."""
    viewer.window._qt_viewer.canvas._scene_canvas.set_current()


class Watch:
    """Notes for how long the event loop stood still, the longest times first, in milliseconds."""

    def __init__(self) -> None:
        from qtpy.QtCore import QTimer

        self.gaps: list[float] = []
        self._last: float | None = None
        self._timer = QTimer()
        self._timer.setInterval(2)
        self._timer.timeout.connect(self._tick)

    def __enter__(self) -> Watch:
        self._last = time.perf_counter()
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._tick()
        self._timer.stop()

    def _tick(self) -> None:
        now = time.perf_counter()
        if self._last is not None:
            self.gaps.append(1000 * (now - self._last))
        self._last = now

    def worst(self, n: int = 3) -> list[int]:
        """Return the longest times and forget them."""
        found = sorted(self.gaps, reverse=True)[:n]
        self.gaps = []
        return [round(one) for one in found]
