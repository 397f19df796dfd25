"""Panels in a real window: linked, moved together, and gone without a trace."""

from __future__ import annotations

import numpy as np
import pytest
from qtpy.QtCore import QEvent
from qtpy.QtWidgets import QApplication, QPushButton
from windows import camera, cell_of, draw, grid, project_of, settle


def test_side_by_side_and_back(viewer, dock, compare, look):
    before = look(viewer)
    compare("mean", "gold")
    draw()
    panels = dock.controller.grid
    assert grid(viewer).enabled
    assert [cell.panel.name for cell in panels.cells] == ["mean", "gold"]
    for k, cell in enumerate(panels.cells):
        for layer in cell.layers:
            assert cell_of(viewer, layer) == (0, k)
        assert cell.image.data is not None
    camera(viewer).zoom *= 2
    viewer.dims.set_point(0, 0)
    dock.leave.click()
    draw()
    assert look(viewer) == before
    assert dock.controller.comparison is None


def test_the_slider_the_player_and_the_modes(viewer, project, dock, compare, dataset):
    """Two panels that are scrubbed, played and cut in other ways, in one window."""
    # The slider moves all panels.
    compare("mean", "gold")
    ticks = dock.controller.ticks
    dock.slider.slider.setValue(ticks.place(ticks.last // 2))
    expected = ticks.threshold(ticks.last // 2)
    first = dock.controller.grid.cells[0]
    assert dock.controller.comparison.panels[0].threshold == expected
    labels = np.asarray(first.segments.data)
    np.testing.assert_array_equal(
        labels, project.tree.lut(expected)[project.graph.superpixels.image]
    )
    assert dock.numbers.item(0, 2).text() == f"{project.tree.n_segments(expected):,}"
    assert dock.numbers.horizontalHeaderItem(4).text() == "CPU s"
    assert float(dock.numbers.item(0, 4).text()) >= 0
    assert dock.numbers.item(1, 4).text() == "", "gold is not computed"

    # Errors on training data are called so.
    assert not dock.own.isVisibleTo(dock)
    curve = dock.controller.comparison.panels[0].cut.curve
    curve.attrs["training"] = True  # as of a policy that was trained here
    dock.follow()
    assert dock.own.isVisibleTo(dock)
    assert "training data" in dock.own.text()
    assert [dock.numbers.item(k, 3).text().endswith("*") for k in range(2)] == [True, False]

    # It fits a dock beside the canvas of a window of 1024 pixels.
    assert max(one.minimumSizeHint().width() for one in (dock.choices, dock.shown)) <= 250

    # Play and scrub at once.
    controller = dock.controller
    controller.restart()
    dock.playback.options["speed"].value = "fast"
    dock.playback.play.click()
    start = controller.comparison.position
    for _ in range(40):
        draw()
        if controller.comparison.position > start:
            break
    assert controller.comparison.position > start
    dock.slider.slider.setValue(controller.ticks.end)
    for _ in range(40):
        draw()
        if not dock.playback.play.isChecked():
            break
    assert not dock.playback.play.isChecked()  # there is no further step
    dock.playback.loop["loop"].value = True
    dock.playback.play.click()
    for _ in range(40):
        draw()
        if controller.comparison.position < controller.ticks.threshold(controller.ticks.last):
            break
    assert controller.comparison.position < controller.ticks.threshold(controller.ticks.last)
    dock.playback.play.click()

    # Modes fix the thresholds.
    dock.playback.loop["loop"].value = False
    for mode, free in [
        ("each at 0.5", False),
        ("each at its least VI", False),
        ("same number of segments", True),
    ]:
        dock.mode["mode"].native.setCurrentText(mode)
        assert dock.controller.comparison.mode.value == mode
        assert dock.slider.isEnabled() == free
    dock.mode["mode"].native.setCurrentText("each at 0.5")
    assert dock.controller.comparison.panels[0].threshold == 0.5


@pytest.mark.slow
def test_a_panel_deleted_while_comparing_ends_it_cleanly(viewer, dock, compare, look):
    before = look(viewer)
    compare("mean", "gold")
    draw()
    viewer.layers.remove(dock.controller.grid.cells[1].segments)
    draw()
    assert dock.controller.comparison is None
    assert look(viewer) == before


@pytest.mark.slow
def test_a_layer_added_meanwhile_does_not_shift_the_panels(viewer, dock, compare):
    compare("mean", "gold")
    viewer.add_points(np.zeros((1, 2)))
    draw()
    for k, cell in enumerate(dock.controller.grid.cells):
        assert cell_of(viewer, cell.segments)[1] % 2 == k % 2


@pytest.mark.slow
def test_merged_segments_flash_in_their_panel(viewer, project, dock, compare):
    compare("mean", "gold")
    controller = dock.controller
    controller.set(position=0.2)
    old = controller.comparison.panels[0].names.copy()
    assert controller.step(1)
    changed = old != controller.comparison.panels[0].names
    above = np.asarray(controller.grid.cells[0].above.data)
    np.testing.assert_array_equal(above > 0, changed[project.graph.superpixels.image])
    controller._unflash()
    assert not np.asarray(controller.grid.cells[0].above.data).any()


def test_differences_are_coloured_and_listed_and_flown_to(viewer, project, dock, compare, differ):
    compare("mean", "gold")
    found = differ(dock, 1)
    controller = dock.controller
    codes = controller.comparison.codes(1)
    pieces = controller.comparison.pieces
    for cell in controller.grid.cells:
        np.testing.assert_array_equal(np.asarray(cell.above.data), codes[pieces.image])
    dock.differences.list.setCurrentCell(1, 0)
    at = [found.iloc[1][f"voxel_{axis}"] for axis in range(2)]
    world = project.placement.to_world(at)
    assert camera(viewer).center[-2:] == pytest.approx(world)


@pytest.mark.slow
def test_a_movie_of_twenty_frames_can_be_read(viewer, project, dock, compare, tmp_path):
    import imageio.v3 as iio

    compare("mean", "gold")
    dock.movie.save(tmp_path / "movie.gif", frames=20)
    settle(project)
    frames = iio.imread(tmp_path / "movie.gif", index=None)
    assert len(frames) == 20
    assert (frames[0] != frames[-1]).any()


@pytest.mark.slow
def test_closing_the_dock_restores_the_viewer(viewer, dock, compare, look):
    before = look(viewer)
    compare("mean", "gold")
    draw()
    viewer.window.remove_dock_widget(dock)
    dock.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    draw()
    after = look(viewer)
    assert after["grid"] == before["grid"]
    assert after["layers"] == before["layers"]


def test_buttons_and_a_refusal(dock, viewer, compare, notices):
    """The dock before anything is compared."""
    # All buttons say what they do.
    for button in dock.findChildren(QPushButton):
        assert button.toolTip(), button.text()

    # Fewer than two are refused in words.
    compare("mean")
    assert dock.controller.comparison is None
    assert any("two" in str(message) for message in notices)


@pytest.mark.slow
def test_the_viewer_may_close_meanwhile(make_napari_viewer, dataset, opened, choose):

    viewer = make_napari_viewer(show=True)
    made = opened(viewer, project_of(viewer), dataset)
    choose(made, "mean", "gold")
    assert made.controller.comparison is not None
    made.playback.play.click()
    draw()
    viewer.close()
    draw()
