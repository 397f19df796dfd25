"""A session that is opened again shows its image, cues and gold, and asks for what has moved."""

from __future__ import annotations

import json
import shutil
import time

import numpy as np
import tifffile
import zarr
from napari.layers import Labels
from qtpy.QtWidgets import QApplication, QFileDialog, QMessageBox
from windows import add_sample, draw, project_of, role_of, selection_of, show

from napari_agglo import blocks
from napari_agglo.widgets._dataset import Placement
from napari_agglo.widgets._napari import is_of_sample
from napari_agglo.widgets.proofread import open_session
from napari_agglo.widgets.proofread._input_layers import lazy_layer

NAME = "view.json"


def rest(project):
    """Wait until a session was opened or made; kernels may go on loading."""
    until = time.monotonic() + 900
    while set(project.jobs.running()) - {"warm"} or project.worker.pending:
        QApplication.processEvents()
        time.sleep(0.005)
        assert time.monotonic() < until
    draw()


def questions():
    return [one for one in QApplication.topLevelWidgets() if isinstance(one, QMessageBox)]


def opened_again(viewer, path):
    viewer.layers.clear()
    open_session(viewer, path)
    rest(project_of(viewer))
    draw()
    return {role_of(layer): layer for layer in viewer.layers}


def test_a_session_brings_its_layers_back(viewer, project, step, crop, tmp_path, monkeypatch):
    """Image and gold from files, a boundary cue that was only computed, and a file that moves."""
    data = tmp_path / "data"
    data.mkdir()
    tifffile.imwrite(data / "em.tif", crop.image)
    tifffile.imwrite(data / "people.tif", crop.gold.astype(np.uint16))
    (image,) = viewer.open(str(data / "em.tif"), plugin="napari")
    (gold,) = viewer.open(str(data / "people.tif"), plugin="napari", layer_type="labels")
    cue = viewer.add_image(crop.cues["boundary"], name="membrane map")
    chosen = selection_of(viewer)
    chosen.choose("gold", gold)
    assert project.dataset.image is image.data
    show(project, project.dataset.oversegmented())
    step.bar.run.button.click()
    rest(project)
    session = project.session
    assert set(session.sources) == {"image", "gold", "cue boundary"}
    assert session.sources["image"].path == str(data / "em.tif")
    assert session.sources["cue boundary"].path is None
    # As a person leaves them.
    image.contrast_limits, image.colormap = (30, 200), "green"
    gold.visible, gold.opacity = False, 0.3
    cue.visible, cue.blending = False, "additive"
    viewer.layers.move(viewer.layers.index(cue), 0)
    order = [layer.name for layer in viewer.layers if layer.name != "Selected"]
    tifffile.imwrite(tmp_path / "elsewhere.tif", crop.image[:20])
    viewer.open(str(tmp_path / "elsewhere.tif"), plugin="napari")  # other data, no part of it
    path, table = session.path, project.table().copy()
    step.bar.close_.click()
    draw()
    assert "elsewhere" not in (path / NAME).read_text()

    layers = opened_again(viewer, path)
    assert [layer.name for layer in viewer.layers if layer.name != "Selected"] == order
    back = layers["image", ""]
    np.testing.assert_array_equal(back.data, crop.image)
    assert back.contrast_limits == [30, 200]
    assert back.colormap.name == "green"
    assert isinstance(layers["gold", ""], Labels)
    assert layers["gold", ""].opacity == 0.3
    assert not layers["gold", ""].visible
    boundary = layers["cue", "boundary"]
    assert not boundary.visible
    assert np.abs(boundary.data - crop.cues["boundary"]).max() <= 0.5 / 255 + 1e-6
    assert not questions()
    np.testing.assert_array_equal(project.table(), table)
    assert project.dataset is not None, project.trouble
    assert project.dataset.image is back.data, "the Data step has the layers too"
    assert type(step).status(project).value == "open"
    assert project.regions.graph is project.session.graph

    # The folder of the data moves, and the session asks for the image; gold has a copy.
    step.bar.close_.click()
    draw()
    moved = tmp_path / "archive"
    shutil.move(data, moved)
    tifffile.imwrite(moved / "other.tif", crop.image[::-1])
    layers = opened_again(viewer, path)
    assert ("gold", "") in layers
    assert ("image", "") not in layers
    (box,) = questions()
    assert "em.tif" in box.text()
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(moved / "other.tif"), ""))
    next(one for one in box.buttons() if one.objectName().startswith("Find")).click()
    draw()
    assert not [one for one in viewer.layers if "other" in one.name], "other pixels are refused"
    (box,) = [one for one in questions() if one.isVisible()]
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(moved / "em.tif"), ""))
    next(one for one in box.buttons() if one.objectName().startswith("Find")).click()
    draw()
    assert viewer.layers["em"].contrast_limits == [30, 200]
    assert project.session.sources["image"].path == str(moved / "em.tif")
    assert project.regions.dataset.image is viewer.layers["em"].data
    step.bar.close_.click()
    draw()
    assert ("image", "") in opened_again(viewer, path), "and is found without asking next time"

    # A folder of before: no sources in its manifest, no looks in its view.
    step.bar.close_.click()
    draw()
    state = json.loads((path / NAME).read_text())
    del state["layers"]
    (path / NAME).write_text(json.dumps(state))
    assert ("image", "") in opened_again(viewer, path)


def test_affinities_on_disk_have_a_layer_of_their_first_channel(tmp_path):
    channels = np.random.default_rng(0).random((3, 4, 8, 6), np.float32) ** 0.1
    labels = (np.indices(channels.shape[1:])[1] // 4 + 1).astype(np.uint32)
    for name, array in (("a", channels), ("s", labels)):
        zarr.create_array(str(tmp_path / f"{name}.zarr"), data=array, chunks=array.shape)
    blocks.plan(
        tmp_path / "r", affinities=str(tmp_path / "a.zarr"), superpixels=str(tmp_path / "s.zarr"),
        block=(4, 4, 6),
    )  # fmt: skip
    blocks.run(tmp_path / "r")
    with blocks.open(tmp_path / "r").create_session(tmp_path / "s.agglo") as session:
        (key,) = session.sources
        placement = Placement.plain(3)
        layer = lazy_layer(session, key, session.sources.path(key), placement)
        assert layer.name == key == "affinities"
        np.testing.assert_array_equal(np.asarray(layer.data), channels[0])
        assert layer.visible, "there is no image to look at"
        zarr.open_array(str(tmp_path / "a.zarr"), mode="r+")[0] = 0
        assert lazy_layer(session, key, session.sources.path(key), placement) is None, "has moved"


def session_of(viewer, project, step, image, cue):
    """Start a session of an image and a cue, and close it; return its folder."""
    selection_of(viewer).choose_all(image, None, {"boundary": (cue, None)})
    show(project, project.dataset.oversegmented())
    step.bar.run.button.click()
    rest(project)
    path = project.session.path
    step.bar.close_.click()
    return path


def sample_layers(viewer):
    return [layer for layer in viewer.layers if is_of_sample(layer)]


def test_a_session_is_not_hidden_by_a_sample(viewer, project, step, crop, tmp_path):
    """A sample is removed before a session of another volume, or hidden if it was worked on."""
    image = viewer.add_image(crop.image[:60], name="mine")
    cue = viewer.add_image(crop.cues["boundary"][:60], name="my boundary")
    path = session_of(viewer, project, step, image, cue)
    viewer.layers.clear()
    add_sample(viewer, crop)
    open_session(viewer, path)
    rest(project)
    assert project.session is not None
    assert sample_layers(viewer) == []
    assert {"mine", "my boundary"} <= {layer.name for layer in viewer.layers}
    assert viewer.layers.extent.units is not None, "napari warns of other units"
    step.bar.close_.click()
    viewer.layers.clear()
    add_sample(viewer, crop)
    show(project, project.dataset.oversegmented())
    open_session(viewer, path)
    rest(project)
    assert len(sample_layers(viewer)) == 5
    assert not any(layer.visible for layer in sample_layers(viewer))


def test_the_session_of_a_sample_keeps_it(viewer, project, step, crop):
    add_sample(viewer, crop)
    image, cue = (viewer.layers[f"{crop.name} {name}"] for name in ("image", "boundary"))
    path = session_of(viewer, project, step, image, cue)
    project.drop_hierarchy()
    open_session(viewer, path)
    rest(project)
    assert project.session is not None
    assert len(sample_layers(viewer)) == 5
    assert image.visible
