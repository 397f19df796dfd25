"""Four panels, in an image and in a volume: everything in sight, flown to, and left."""

from __future__ import annotations

import numpy as np
import pytest
from qtpy.QtWidgets import QComboBox
from windows import camera, cell_of, draw, grid, view_size

FOUR = ("mean", "flat", "agglo", "gold")
QUICK = ("mean", "flat", "layer other", "gold")  # less to train


def set_mode(dock, mode):
    dock.mode["mode"].value = mode
    draw()


def pictures(viewer):
    """Return what is drawn in each of the four cells, by row and column."""
    canvas = viewer.screenshot(canvas_only=True, flash=False)[..., :3].astype(int)
    rows, columns = (n // 2 for n in canvas.shape[:2])
    return (
        canvas[:rows, :columns],
        canvas[:rows, -columns:],
        canvas[-rows:, :columns],
        canvas[-rows:, -columns:],
    )


@pytest.mark.slow
def test_four_in_two_rows_with_all_in_sight(painted, viewer, project, dock, compare, look, dataset):
    viewer.reset_view()
    before = look(viewer)
    compare(*FOUR)
    panels = dock.controller.grid
    assert grid(viewer).shape == (2, 2)
    for k, cell in enumerate(panels.cells):
        for layer in cell.layers:
            assert cell_of(viewer, layer) == divmod(k, 2)
    # What filled the canvas fills each cell: none of it has gone out of sight.
    height, width = view_size(viewer)
    extent = np.multiply(dataset.image.shape, dataset.placement.scale)
    assert (extent * camera(viewer).zoom <= (height, width)).all()
    assert (extent * camera(viewer).zoom > 0.6 * np.array([height, width])).any()
    for mode in dock.mode["mode"].choices:
        set_mode(dock, mode)
        shown = [np.asarray(cell.segments.data) for cell in panels.cells]
        for cell, labels in zip(panels.cells[:3], shown[:3], strict=True):
            assert len(np.unique(labels)) == cell.panel.n_segments
        assert dock.numbers.rowCount() == 4
        drawn = pictures(viewer)
        assert all(one.std() > 5 for one in drawn), "an empty panel"
    camera(viewer).zoom *= 3
    dock.leave.click()
    draw()
    assert look(viewer) == before


@pytest.mark.slow
def test_again_with_fewer_panels_is_not_smaller_still(viewer, dock, compare, look):
    before = look(viewer)
    compare("mean", "mean", "mean", "gold")
    compare("mean", "gold")
    assert grid(viewer).shape == (1, 2)
    lost = before["camera"][1] / camera(viewer).zoom
    assert lost < 2.5  # a half of the width, whatever was shown in between
    dock.leave.click()
    draw()
    assert look(viewer) == before


@pytest.mark.slow
def test_a_difference_is_large_in_its_cell(viewer, dock, compare, differ, project):
    compare("mean", "mean", "mean", "gold")
    found = differ(dock, 3)
    dock.differences.list.setCurrentCell(0, 0)
    one = found.iloc[0]
    box = [one[f"box_stop_{axis}"] - one[f"box_start_{axis}"] for axis in (0, 1)]
    seen = np.array(box) * project.placement.scale * camera(viewer).zoom
    assert (seen < view_size(viewer)).all()
    assert (seen > 0.15 * np.array(view_size(viewer))).any()


@pytest.mark.slow
def test_long_names_fit(viewer, dock, choose, dataset):
    name = "membranes of May, the second try, which the others did not see"
    viewer.add_labels(dataset.gold, name=name, scale=dataset.placement.scale)
    choose(dock, "mean", f"layer {name}", "gold")
    drawn = dock.controller.grid.cells[1].segments.name
    assert len(drawn) < len(name)
    assert drawn.startswith("layer me")
    assert drawn.endswith(name[-3:])
    assert dock.findChildren(QComboBox)[0].width() < dock.width()
    assert dock.numbers.item(1, 0).text() == f"layer {name}"


@pytest.fixture
def volume(viewer, project, dataset3d, opened):
    other, scale = dataset3d.gold[::-1], dataset3d.placement.scale
    viewer.add_labels(other, name="other", scale=scale, visible=False)
    return opened(viewer, project, dataset3d)


@pytest.mark.slow
def test_a_volume_plane_by_plane(painted, viewer, project, volume, choose, differ, look):
    viewer.dims.set_current_step(0, 12)
    before = look(viewer)
    choose(volume, *QUICK)
    assert viewer.dims.current_step[0] == 12
    first = pictures(viewer)
    viewer.dims.set_current_step(0, 3)
    draw()
    assert all((a != b).any() for a, b in zip(first, pictures(viewer), strict=True))
    found = differ(volume, 3)
    volume.differences.list.setCurrentCell(1, 0)
    at = [found.iloc[1][f"voxel_{axis}"] for axis in range(3)]
    assert viewer.dims.current_step[0] == at[0]
    world = project.placement.to_world(at)
    assert camera(viewer).center[-2:] == pytest.approx(world[-2:])
    volume.leave.click()
    draw()
    assert look(viewer) == before


@pytest.mark.slow
def test_a_volume_from_outside(viewer, project, volume, choose, differ, look):
    choose(volume, *QUICK)
    found = differ(volume, 3)
    controller = volume.controller
    volume.differences.list.setCurrentCell(0, 0)
    cells = controller.grid.cells
    whole = [np.asarray(cell.segments.data) for cell in cells]
    viewer.dims.ndisplay = 3
    draw()
    for row in (0, 1):
        volume.differences.list.setCurrentCell(row, 0)
        draw()
        one = found.iloc[row]
        at = tuple(int(one[f"voxel_{axis}"]) for axis in range(3))
        assert tuple(camera(viewer).center) == pytest.approx(project.placement.to_world(at))
        for cell, labels in zip(cells, whole, strict=True):
            alone = np.asarray(cell.segments.data)
            assert alone[at] == labels[at]
            assert 0 < (alone > 0).mean() < (labels > 0).mean()
            assert (alone[alone > 0] == labels[alone > 0]).all()
            assert not cell.image.visible
    volume.differences.only.click()
    draw()
    for cell, labels in zip(cells, whole, strict=True):
        np.testing.assert_array_equal(np.asarray(cell.segments.data), labels)
        assert cell.image.visible
    volume.differences.only.click()
    assert not cells[0].image.visible
    ticks = volume.controller.ticks
    volume.slider.slider.setValue(ticks.place(ticks.last // 3))  # it stays alone
    assert (np.asarray(cells[3].segments.data) > 0).mean() < (whole[3] > 0).mean()
    viewer.dims.ndisplay = 2
    draw()
    np.testing.assert_array_equal(np.asarray(cells[3].segments.data) > 0, whole[3] > 0)


@pytest.mark.slow
def test_left_as_it_was_in_3d(painted, viewer, volume, choose, look):
    viewer.dims.ndisplay = 3
    draw()
    camera(viewer).angles = (10, -25, 30)
    camera(viewer).zoom *= 0.7
    draw()
    before = look(viewer)
    choose(volume, *QUICK)
    assert all(one.std() > 5 for one in pictures(viewer)), "an empty panel"
    camera(viewer).angles = (0, 0, 0)
    viewer.dims.ndisplay = 2
    viewer.dims.order = (1, 0, 2)
    draw()
    volume.leave.click()
    draw()
    assert look(viewer) == before
