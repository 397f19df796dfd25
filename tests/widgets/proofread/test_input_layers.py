"""A session that is opened again shows its image, cues and gold, and asks for what has moved."""

from __future__ import annotations

import json
import shutil
import time

import h5py
import numpy as np
import pytest
import tifffile
import zarr
from napari.layers import Labels
from qtpy.QtWidgets import QApplication, QFileDialog, QMessageBox
from windows import add_sample, draw, project_of, role_of, selection_of, show

import napari_agglo as agglo
from napari_agglo import blocks
from napari_agglo.cli import main
from napari_agglo.widgets._dataset import Placement
from napari_agglo.widgets._napari import is_of_sample
from napari_agglo.widgets.proofread import open_session
from napari_agglo.widgets.proofread._input_layers import layer_of_file

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
        layer = layer_of_file(session, key, session.sources.path(key), placement)
        assert layer.name == key == "affinities"
        np.testing.assert_array_equal(np.asarray(layer.data), channels[0])
        assert layer.visible, "there is no image to look at"
        zarr.open_array(str(tmp_path / "a.zarr"), mode="r+")[0] = 0
        assert layer_of_file(session, key, session.sources.path(key), placement) is None, (
            "has moved"
        )


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


def two_squares():
    """Return an image, a boundary map between two squares, superpixels and gold."""
    gold = np.kron([[1, 2]], np.ones((20, 20), np.uint16))
    superpixels = np.kron([[1, 2, 3, 4]], np.ones((20, 10), np.uint32))
    cue = np.where(np.abs(np.arange(40) - 19.5) < 2, 0.9, 0.1) + np.zeros((20, 1))
    cue[:, 15:18] = 0.3
    image = np.random.default_rng(0).integers(0, 255, gold.shape, np.uint8)
    return image, cue.astype(np.float32), superpixels, gold


@pytest.mark.parametrize("kind", ["hdf5", "zarr"])
def test_a_session_of_the_command_line_shows_its_files(viewer, project, step, tmp_path, kind):
    """A key in an HDF5 file has no reader in napari, and Zarr has two."""
    image, cue, superpixels, gold = two_squares()
    if kind == "hdf5":
        with h5py.File(tmp_path / "em.h5", "w") as file:
            file["raw"], file["prob"] = image, cue
            file["superpixels"], file["gold"] = superpixels, gold
        names = {one: f"{tmp_path}/em.h5:{one}" for one in ("raw", "prob", "superpixels", "gold")}
    else:
        arrays = {"raw": image, "prob": cue, "superpixels": superpixels, "gold": gold}
        names = {one: f"{tmp_path}/{one}.zarr" for one in arrays}
        for one, array in arrays.items():
            zarr.create_array(names[one], data=array, chunks=(10, 10))
    folder = str(tmp_path / "s.agglo")
    words = ["--superpixels", names["superpixels"], "--cues", names["prob"]]
    words += ["--gold", names["gold"], "--image", names["raw"], "--spacing", "2,1"]
    assert main(["session", "create", folder, *words]) == 0
    layers = opened_again(viewer, folder)
    assert not questions()
    np.testing.assert_array_equal(layers["image", ""].data, image)
    np.testing.assert_array_equal(layers["gold", ""].data, gold)
    np.testing.assert_array_equal(layers["cue", "boundary"].data, cue)
    assert {tuple(layer.scale) for layer in layers.values()} == {(2, 1)}
    assert project.dataset.image is layers["image", ""].data, project.trouble
    step.bar.close_.click()
    if kind == "hdf5":
        with h5py.File(tmp_path / "em.h5", "r+") as file:
            file["raw"][0] = 0
    else:
        zarr.open_array(names["raw"], mode="r+")[0] = 0
    assert ("image", "") not in opened_again(viewer, folder)
    (box,) = questions()
    assert "differs" in box.text()
    box.close()


def test_affinities_of_the_command_line_are_shown(viewer, project, step, tmp_path):
    _, cue, superpixels, _ = two_squares()
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["affs"] = np.stack([1 - cue, 1 - cue])
        file["superpixels"] = superpixels
    folder = str(tmp_path / "s.agglo")
    words = ["--superpixels", f"{tmp_path}/a.h5:superpixels"]
    words += ["--affinities", f"{tmp_path}/a.h5:affs"]
    assert main(["session", "create", folder, *words]) == 0
    layers = opened_again(viewer, folder)
    np.testing.assert_array_equal(layers["affinities", ""].data, 1 - cue)
    assert layers["affinities", ""].visible, "there is no image to look at"
    assert not questions()


def test_an_oriented_map_of_the_command_line_is_shown(viewer, project, step, tmp_path):
    _, cue, superpixels, _ = two_squares()
    np.save(tmp_path / "o.npy", np.stack([cue / 2, cue]))
    np.save(tmp_path / "s.npy", superpixels)
    folder = str(tmp_path / "s.agglo")
    words = ["--superpixels", f"{tmp_path}/s.npy", "--oriented", f"{tmp_path}/o.npy"]
    assert main(["session", "create", folder, *words]) == 0
    boundary = opened_again(viewer, folder)["cue", "boundary"]
    np.testing.assert_allclose(boundary.data, cue, atol=0.5 / 255 + 1e-6)
    assert boundary.visible


def test_cues_and_gold_without_notes_are_in_the_folder(viewer, project, step, tmp_path):
    """A session of Python that got no `sources` shows what it has."""
    _, cue, superpixels, gold = two_squares()
    graph = agglo.region_graph(superpixels, cue)
    path = tmp_path / "s.agglo"
    agglo.Session.create(path, graph, gold=gold).close()
    layers = opened_again(viewer, path)
    assert set(layers) >= {("gold", ""), ("cue", "boundary")}
    np.testing.assert_array_equal(layers["gold", ""].data, gold)
    assert layers["cue", "boundary"].visible
    assert project.dataset.gold is layers["gold", ""].data, project.trouble
    layers["cue", "boundary"].colormap = "green"
    step.bar.close_.click()
    open_session(viewer, path)  # the layers are there still
    rest(project)
    assert [role_of(layer) for layer in viewer.layers].count(("cue", "boundary")) == 1
    step.bar.close_.click()
    layers = opened_again(viewer, path)
    assert layers["cue", "boundary"].colormap.name == "green"


def test_borders_of_corrected_labels_are_no_cue(viewer, project, step, tmp_path):
    *_, gold = two_squares()
    agglo.Session.create(tmp_path / "s.agglo", segmentation=gold).close()
    assert ("cue", "boundary") not in opened_again(viewer, tmp_path / "s.agglo")
    assert project.session is not None


def test_gold_of_several_people_comes_back(viewer, project, step, crop, tmp_path):
    people = np.stack([crop.gold, np.where(crop.gold % 2, crop.gold, 0)]).astype(np.uint16)
    tifffile.imwrite(tmp_path / "people.tif", people)
    viewer.add_image(crop.image, name="em")
    viewer.add_image(crop.cues["boundary"], name="membrane")
    (gold,) = viewer.open(str(tmp_path / "people.tif"), plugin="napari", layer_type="labels")
    chosen = selection_of(viewer)
    chosen.choose("gold", gold)
    chosen.use_several(0, 1)
    show(project, project.dataset.oversegmented())
    step.bar.run.button.click()
    rest(project)
    path, vi = project.session.path, project.session.errors.now().vi
    assert project.session.sources["gold"].channel == "0:1"
    step.bar.close_.click()
    layers = opened_again(viewer, path)
    assert not questions()
    assert layers["gold", ""].ndim == 3
    assert (chosen.gold, chosen.people, chosen.person) == (layers["gold", ""], 0, 1)
    np.testing.assert_array_equal(project.dataset.gold, people[1])
    assert len(project.dataset.golds) == 2
    assert project.session.errors.now().vi == vi
    # Without the file there is the gold that measures errors.
    step.bar.close_.click()
    (tmp_path / "people.tif").unlink()
    layers = opened_again(viewer, path)
    np.testing.assert_array_equal(layers["gold", ""].data, people[1])
    assert chosen.people is None
    np.testing.assert_array_equal(project.dataset.gold, people[1])
