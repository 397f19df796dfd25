"""Take the pictures of the plugin in the docs: ``python scripts/screenshots.py [FOLDER]``.

Needs a display of 1280 x 800, such as ``xvfb-run -s "-screen 0 1280x800x24"`` gives. To look at a
small window, or at a screen at 200 %, with a display of that size times the scale:
``python scripts/screenshots.py FOLDER --size 1024x700 --scale 2``.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import napari
import numpy as np
from PIL import Image
from qtpy.QtWidgets import QApplication, QTabWidget

import napari_agglo as agglo
from napari_agglo.widgets._napari import camera, role_of
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import per_viewer
from napari_agglo.widgets._scene import Scene


def wait(project: Any, seconds: float = 0.4) -> None:
    """Process events for some seconds, and until nothing runs."""
    began, jobs, worker = time.monotonic(), project.jobs, project.worker
    while time.monotonic() - began < seconds or jobs.running() or worker.pending:
        QApplication.processEvents()
        time.sleep(0.005)


def paint(viewer: Any, project: Any, panel: Any) -> None:
    """Paint a few strokes of each class, where the cues of the sample are sure of it."""
    panel.begin.click()
    panel.add.click()
    strokes = panel.painter.strokes
    rng = np.random.default_rng(0)
    for number, name in enumerate(("boundary", "cytoplasm", "mitochondria"), start=1):
        cue = next(one.data for one in viewer.layers if role_of(one) == ("cue", name))
        sure = np.argwhere(cue > 0.95)
        for row, column in sure[rng.choice(len(sure), 12, replace=False)]:
            near = (slice(max(0, row - 2), row + 3), slice(max(0, column - 2), column + 3))
            patch = np.argwhere(cue[near] > 0.9) + np.array([near[0].start, near[1].start])
            strokes.data_setitem(tuple(patch.T), number)
    while panel.painter.is_pending:
        wait(project, 0.1)


def open_window(size: tuple[int, int]) -> Any:
    """Return a new viewer."""
    viewer = napari.Viewer(title="napari")
    viewer.window.resize(*size)
    return viewer


def open_dock(viewer: Any) -> Any:
    """Return the guided dock once all of its steps are there."""
    project = per_viewer(viewer, Project)
    dock = viewer.window.add_plugin_dock_widget("napari-agglo", "Agglo")[1]
    while len(dock.guide.steps) < len(dock.guide.headers):
        wait(project, 1)
    wait(project, 1)
    return dock


def take(viewer: Any, folder: Path, name: str) -> None:
    """Save a picture of the window in both themes."""
    for theme in ("dark", "light"):
        viewer.theme = theme
        wait(per_viewer(viewer, Project))
        shown = viewer.screenshot(canvas_only=False, flash=False)
        # By coverage: the median cut leaves rare colours out, such as those of a few strokes.
        few = {"method": Image.Quantize.MAXCOVERAGE, "kmeans": 1, "dither": Image.Dither.NONE}
        picture = Image.fromarray(shown).convert("RGB").quantize(192, **few)
        picture.save(folder / f"plugin_{name}_{theme}.png", optimize=True)


def affinities(folder: Path, size: tuple[int, int]) -> None:
    """Save a picture of the Data step with affinities of the nearest voxels."""
    viewer, sample = open_window(size), agglo.sample("neuropil3d")
    boundary = sample.cues["boundary"]
    pairs = [np.maximum(boundary, np.roll(boundary, 1, axis)) for axis in range(3)]
    array = np.round(255 * (1 - np.stack(pairs))).astype(np.uint8)
    viewer.add_image(sample.image, name="image", scale=sample.spacing)
    viewer.add_image(array, name="affinities", scale=(1, *sample.spacing), visible=False)
    viewer.layers.selection.active = viewer.layers["image"]
    open_dock(viewer)
    viewer.reset_view()
    take(viewer, folder, "affinities")
    viewer.close()


def session_on(viewer: Any, place: str, kind: str, *part: slice) -> tuple[Any, Any]:
    """Open a session on a part of a sample, with a learned policy; return project and step."""
    sample, project = agglo.sample(kind), per_viewer(viewer, Project)
    for name, data in (("image", sample.image), ("boundary", sample.cues["boundary"])):
        viewer.add_image(data[part], name=name, scale=sample.spacing, visible=name == "image")
    dock = open_dock(viewer)
    dock.guide.open("hierarchy")
    dock.guide.steps["hierarchy"].build()
    wait(project)
    gold = sample.gold[part]
    policy = agglo.train(project.graph, gold, strategy="flat")
    dock.guide.open("proofread")
    path = Path(place) / "neurons.agglo"
    session = agglo.Session.create(path, project.graph, policy, gold=gold)
    session.threshold = 0.5
    project.set_session(session, project.built)
    wait(project)
    return project, dock.guide.steps["proofread"]


def shapes(folder: Path, size: tuple[int, int]) -> None:
    """Save a picture of the surfaces of segments in 3-D."""
    viewer = open_window(size)
    with tempfile.TemporaryDirectory() as place:
        part = (slice(0, 64), slice(0, 112), slice(0, 112))
        project, step = session_on(viewer, place, "neuropil3d", *part)
        sizes = np.bincount(project.session.labels().ravel())
        project.select(*project.names_of([int(one) for one in np.argsort(-sizes)[2:9]]))
        step.shapes.box.click()
        wait(project, 1)
        viewer.reset_view()
        camera(viewer).angles = (10, 30, 140)
        camera(viewer).zoom *= 0.75
        wait(project, 3)  # the text on the canvas comes letter by letter
        take(viewer, folder, "shapes")
        project.close_session()
    viewer.close()


def suggestion(folder: Path, size: tuple[int, int]) -> None:
    """Save a picture of the first suggestion of a session."""
    viewer = open_window(size)
    with tempfile.TemporaryDirectory() as place:
        project, step = session_on(viewer, place, "neuropil2d")
        step.tabs.setCurrentIndex(1)
        step.queue.go.click()
        wait(project, 3)
        take(viewer, folder, "suggestion")
        project.close_session()
    viewer.close()


def main(folder: Path, size: tuple[int, int], sample: str) -> None:
    """Run all steps, and save a picture of each in both themes."""
    viewer = open_window(size)
    project, scene = per_viewer(viewer, Project), per_viewer(viewer, Scene)
    viewer.open_sample("napari-agglo", sample)
    dock = open_dock(viewer)

    def shoot(name: str) -> None:
        take(viewer, folder, name)

    shoot("data")
    panel = dock.guide.steps["data"].paint
    paint(viewer, project, panel)
    panel.features.more.expand(animate=False)
    shoot("paint")
    panel.features.more.collapse(animate=False)
    for layer in [one for one in viewer.layers if role_of(one)[0] in ("strokes", "probability")]:
        viewer.layers.remove(layer)
    wait(project)
    dock.guide.open("train")
    dock.guide.steps["train"].run.button.click()
    wait(project)
    shoot("train")
    teach = dock.guide.steps["train"].teach
    teach.run.button.click()
    wait(project)
    shoot("teach")
    teach.stop.click()
    viewer.reset_view()
    dock.guide.open("hierarchy")
    dock.guide.steps["hierarchy"].build()
    wait(project)
    shoot("hierarchy")
    dock.guide.open("evaluate")
    tabs = dock.guide.steps["evaluate"].findChild(QTabWidget, "evaluation")
    tabs.setCurrentIndex(2)
    wait(project)
    shoot("evaluate")
    dock.guide.open("proofread")
    with tempfile.TemporaryDirectory() as place:
        session = agglo.Session.create(Path(place) / "neurons.agglo", project.graph,
                                       project.policy, gold=project.gold)  # fmt: skip
        session.threshold = project.threshold
        project.set_session(session, project.built)
        wait(project)
        image = session.graph.superpixels.image
        first = int(project.table()[image[190, 190]])
        near = session.segments.neighbours(project.id_of(first))
        project.has_edited(session.merge(project.id_of(first), int(near[0])))
        project.select(int(project.table()[image[190, 190]]))
        places = np.argwhere(project.table()[image] == project.active)
        scene.fly_to(places.mean(axis=0), (places.min(axis=0), places.max(axis=0) + 1))
        wait(project, 3)  # the text on the canvas comes letter by letter
        shoot("proofread")
        project.close_session()
        compare = viewer.window.add_plugin_dock_widget("napari-agglo", "Compare")[1]
        wait(project)
        compare.compare()
        wait(project)
        compare.controller.set(position=0.5)
        shoot("compare")
        compare.controller.leave()
    viewer.close()


def size_of(text: str) -> tuple[int, int]:
    """Return width and height of a text such as 1280x800."""
    width, height = text.split("x")
    return int(width), int(height)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default="docs/images")
    parser.add_argument("--size", type=size_of, default="1280x800", help="of the window")
    parser.add_argument("--scale", default="1", help="of the screen: 2 is 200 %%")
    parser.add_argument("--sample", default="neuropil2d")
    parts = ("steps", "affinities", "shapes", "suggestion")
    parser.add_argument("--only", choices=parts, nargs="+", default=parts)
    given = parser.parse_args()
    os.environ["QT_SCALE_FACTOR"] = given.scale  # Qt reads it when the application is made
    given.folder.mkdir(parents=True, exist_ok=True)
    if "steps" in given.only:
        main(given.folder, given.size, given.sample)
    for draw in (affinities, shapes, suggestion):
        if draw.__name__ in given.only:
            draw(given.folder, given.size)
