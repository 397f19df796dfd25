"""The layers of a project follow it, whatever a user does to them."""

from __future__ import annotations

import numpy as np
import pytest
from napari.components import ViewerModel
from napari.layers._source import layer_source
from windows import (
    add_sample,
    build,
    camera,
    dataset_of,
    draw,
    limit_voxels,
    project_of,
    proofreader_of,
    scene_of,
    selection_of,
    settle,
    show,
)

import napari_agglo as agglo

# The names of the layers.
SEGMENTATION, OUTLINE = "Segmentation", "Selected"
PREVIEW, SUPERPIXELS = "Cut preview", "Superpixel outlines"


def on_screen(layer):
    """Return the segments that a layer shows at each pixel, as napari picks them."""
    return np.asarray(layer.data)


def test_cues_and_gold_are_hidden_under_the_first_segmentation(layers_only, crop, tmp_path):
    project, scene = project_of(layers_only), scene_of(layers_only)
    selection = selection_of(layers_only)
    with layer_source(path=str(tmp_path / "a.tif")):
        add_sample(layers_only, crop)
    assert scene.input_folder() is None
    layers = list(layers_only.layers)
    for layer in layers:
        layer.visible = True
    show(project, project.dataset.oversegmented())
    shown = [layer for layer in layers if layer.visible]
    assert shown == [selection.image]
    assert scene.segmentation.visible
    assert scene.input_folder() == tmp_path
    selection.gold.visible = True  # by the user, who keeps it
    project.built = build(project)
    assert selection.gold.visible


def test_all_layers_have_the_units_of_the_image(layers_only, crop, tmp_path):
    """With others napari warns, and renders without units."""
    project, scene = project_of(layers_only), scene_of(layers_only)
    selection_of(layers_only)
    add_sample(layers_only, crop)
    for layer in layers_only.layers:
        layer.units = ("nm", "nm")
    show(project, project.dataset.oversegmented())
    session = agglo.Session.create(tmp_path / "a.agglo", project.graph)
    session.threshold = project.threshold
    project.set_session(session, project.built)
    proofreader = proofreader_of(layers_only)
    first = int(project.table()[1])
    project.select(first)
    scene.outline_superpixels(True)
    proofreader.seeds.place((1, 1), 1)
    settle(project)
    names = {layer.name for layer in layers_only.layers}
    assert {SEGMENTATION, OUTLINE, SUPERPIXELS, "Seeds"} <= names
    units = {layer.name: {str(one) for one in layer.units} for layer in layers_only.layers}
    assert set(map(frozenset, units.values())) == {frozenset({"nanometer"})}, units
    session.close()


def test_the_segmentation_follows_thresholds_and_selections(viewer, shown):
    """The layer of segments in one window."""
    # The segmentation is the table over the superpixels.
    layer = scene_of(viewer).segmentation
    expected = shown.tree.segment(0.3)
    np.testing.assert_array_equal(shown.graph.ids[on_screen(layer)], expected)
    np.testing.assert_allclose(layer.scale, shown.placement.scale)
    assert not layer.editable

    # A tick shows the segments of that threshold.
    layer = scene_of(viewer).segmentation
    index = (40, 50)
    world = shown.placement.to_world(index)
    for threshold in (0.0, 0.2, 0.45, 0.9):
        shown.threshold = threshold
        name = shown.id_of(layer.get_value(world, world=True))
        assert name == shown.tree.segment(threshold)[index]

    # A segment keeps its colour as it grows.
    layer = scene_of(viewer).segmentation
    kept = total = 0
    for before, after in [(0.2, 0.25), (0.25, 0.3), (0.3, 0.4)]:
        shown.threshold = before
        old = on_screen(layer)
        shown.threshold = after
        new = on_screen(layer)
        kept += int((layer.colormap.map(old) == layer.colormap.map(new)).all(axis=-1).sum())
        total += old.size
    assert kept / total > 0.6  # the smaller of two takes the colour of the larger

    # The active segment is outlined and the user layer stays active.
    scene = scene_of(viewer)
    image = viewer.add_image(np.zeros((120, 140)))
    name = int(shown.table()[shown.graph.superpixels.image[60, 60]])
    shown.select(name)
    outline = scene.layer(OUTLINE)
    drawn = np.asarray(outline.data)
    inside = shown.table()[shown.graph.superpixels.image] == name
    assert (drawn[inside] == 1).any()
    assert not drawn[~inside].any()
    assert viewer.layers.selection.active is image
    shown.select(0)
    assert not outline.visible

    # Only the selected segments.
    scene = scene_of(viewer)
    labels = shown.table()[shown.graph.superpixels.image]
    names = np.unique(labels)[:2].tolist()
    shown.select(*names)
    scene.isolate(True)
    np.testing.assert_array_equal(
        on_screen(scene.segmentation), np.where(np.isin(labels, names), labels, 0)
    )
    scene.isolate(False)
    np.testing.assert_array_equal(on_screen(scene.segmentation), labels)


def test_tables_and_view_fit_another_hierarchy(qapp):
    """Kernels look labels up without a check of bounds, so no table may be too short."""
    viewer = ViewerModel()
    scene, project = scene_of(viewer), project_of(viewer)
    whole = np.ones((96, 96), np.uint32)
    whole[:, 48:] = 2
    show(project, dataset_of(whole))
    scene.outline_superpixels(True)
    project.select(1, 2)
    scene.preview([np.array([1]), np.array([2])])
    scene.isolate(True)
    finest = np.arange(1, whole.size + 1, dtype=np.uint32).reshape(whole.shape)
    show(project, dataset_of(finest))
    assert {scene.layer(role) is None for role in (OUTLINE, PREVIEW, SUPERPIXELS)} == {False}
    for role in (SEGMENTATION, OUTLINE, PREVIEW, SUPERPIXELS):
        array = scene.layer(role).data
        assert array.superpixels.max() < len(array.table.values), role
    assert np.asarray(scene.layer(SUPERPIXELS).data)[0, 0] == finest[0, 0]

    # All segments are shown: the selected ones are gone.
    assert not scene.isolated
    project.select(5)
    scene.isolate(True)
    show(project, dataset_of(whole[:40]))
    assert scene.segmentation.data.shape == (40, 96)
    np.testing.assert_array_equal(on_screen(scene.segmentation) > 0, True)


@pytest.mark.slow
def test_deleted_layers_are_made_again_when_needed(viewer, shown):
    scene = scene_of(viewer)
    shown.select(int(shown.table()[1]))
    scene.preview([np.array([1]), np.array([2])])
    scene.outline_superpixels(True)
    draw()
    for role in (OUTLINE, PREVIEW, SUPERPIXELS):
        viewer.layers.remove(scene.layer(role))
        shown.threshold += 0.01
        draw()
    assert list(viewer.layers) == [scene.segmentation]
    viewer.layers.remove(scene.segmentation)
    assert scene.segmentation is None
    shown.threshold += 0.01  # whatever changes the segments shows them
    draw()
    shown.select(int(shown.table()[2]))
    scene.preview([np.array([1])])
    scene.outline_superpixels(True)
    for role in (SEGMENTATION, OUTLINE, PREVIEW, SUPERPIXELS):
        assert scene.layer(role) in viewer.layers


@pytest.mark.slow
def test_renamed_hidden_and_reordered_layers_stay_the_users(viewer, shown):
    scene = scene_of(viewer)
    layer = scene.segmentation
    layer.name, layer.opacity = "mine", 0.2
    viewer.add_image(np.zeros((4, 4)))
    viewer.layers.move(0, 2)
    layer.visible = False
    shown.threshold = 0.5
    assert scene.segmentation is layer
    assert (layer.name, layer.opacity, layer.visible) == ("mine", 0.2, False)


@pytest.mark.slow
def test_another_hierarchy_takes_the_place_of_the_first(viewer, project, dataset, dataset3d):
    show(project, dataset)
    draw()
    show(project, dataset3d)
    scene = scene_of(viewer)
    assert [layer.name for layer in viewer.layers] == [SEGMENTATION]
    assert scene.segmentation.data.shape == dataset3d.shape
    viewer.dims.ndisplay = 3
    draw()
    project.threshold = 0.35
    settle(project)
    np.testing.assert_array_equal(on_screen(scene.segmentation), project.tree.segment(0.35))


@pytest.mark.slow
def test_outlines_are_not_drawn_in_3d_and_come_back(viewer, project, dataset3d):
    show(project, dataset3d)
    scene = scene_of(viewer)
    project.select(int(project.table()[1]))
    scene.outline_superpixels(True)
    viewer.dims.ndisplay = 3
    draw()
    assert not scene.layer(OUTLINE).visible
    assert not scene.layer(SUPERPIXELS).visible
    viewer.dims.ndisplay = 2
    assert scene.layer(OUTLINE).visible
    assert scene.layer(SUPERPIXELS).visible


def test_a_large_volume_has_a_coarse_level(viewer, project, monkeypatch, dataset3d):
    limit_voxels(monkeypatch, 20_000, coarse=20_000)
    show(project, dataset3d)
    layer = scene_of(viewer).segmentation
    assert layer.multiscale
    assert len(layer.data) == 2
    assert np.prod(layer.data[1].shape) <= 20_000
    project.threshold = 0.4
    expected = project.tree.segment(0.4)
    np.testing.assert_array_equal(np.asarray(layer.data[0]), expected)
    step = -(-expected.shape[0] // layer.data[1].shape[0])
    np.testing.assert_array_equal(np.asarray(layer.data[1]), expected[::step, ::step, ::step])


def test_flying_there_shows_the_plane_and_centres_it(viewer, project, dataset3d):
    show(project, dataset3d)
    scene_of(viewer).fly_to((7, 30, 40), ((5, 20, 30), (9, 40, 50)))
    scale = dataset3d.placement.scale
    assert viewer.dims.point[0] == pytest.approx(7 * scale[0])
    assert camera(viewer).center[-2:] == pytest.approx((30 * scale[1], 40 * scale[2]))


def test_a_divided_superpixel_is_shown_and_made_whole_again(viewer, shown, dataset, tmp_path):
    session = agglo.Session.create(tmp_path / "a.agglo", shown.graph)
    session.threshold = 0.3
    shown.set_session(session, shown.built)
    layer = scene_of(viewer).segmentation
    before = on_screen(layer).copy()
    graph = session.graph
    big = int(np.argmax(np.bincount(graph.superpixels.image.ravel())[1:])) + 1
    inside = np.argwhere(graph.superpixels.image == big)
    segment = session.segments.at(inside[0])
    points = [[tuple(inside[0].tolist())], [tuple(inside[-1].tolist())]]
    shown.has_edited(session.cut(segment, points=points, method="seeded"))
    np.testing.assert_array_equal(session.graph.ids[on_screen(layer)], session.labels())
    assert (on_screen(layer) != before).any()
    shown.has_edited(session.undo())
    np.testing.assert_array_equal(on_screen(layer), before)


def test_closing_the_session_leaves_the_tree(viewer, shown, dataset, tmp_path):
    session = agglo.Session.create(tmp_path / "a.agglo", shown.graph)
    shown.set_session(session, shown.built)
    first = int(session.segments.ids()[0])
    session.merge(first, int(session.segments.neighbours(first)[0]))
    shown.has_edited()
    shown.close_session()
    layer = scene_of(viewer).segmentation
    np.testing.assert_array_equal(
        on_screen(layer), shown.tree.lut(shown.threshold)[dataset.graph().superpixels.image]
    )


def test_messages_of_edits_are_in_the_status_bar(layers_only):
    project, scene = project_of(layers_only), scene_of(layers_only)
    project.worker.message.emit("Merged 2 into 1.")
    assert scene.viewer.status == "Merged 2 into 1."
