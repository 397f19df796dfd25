"""A session beside itself: before its edits, and with them."""

from __future__ import annotations

import imageio.v3 as iio
import numpy as np
import pytest
from qtpy.QtCore import QTimer
from windows import draw, settle, text_overlay

import napari_agglo as agglo
from napari_agglo.widgets.proofread import open_session


def same_partition(a, b):
    pairs = np.unique(np.stack([np.ravel(a), np.ravel(b)]), axis=1)
    return pairs.shape[1] == len(np.unique(a)) == len(np.unique(b))


@pytest.fixture
def session(viewer, project, dock, dataset, tmp_path):
    """Return a session on the screen: two segments merged, and a superpixel cut in two."""
    path = tmp_path / "a.agglo"
    agglo.Session.create(path, project.graph, gold=dataset.gold).close()
    open_session(viewer, path)
    settle(project)
    made = project.session
    project.threshold = 0.3
    settle(project)
    labels = made.labels()
    ids, sizes = np.unique(labels[labels > 0], return_counts=True)
    largest = int(ids[np.argmax(sizes)])
    made.merge(largest, int(made.segments.neighbours(largest)[0]))
    superpixel = int(np.argmax(made.graph.sizes))
    inside = np.argwhere(made.graph.superpixels.image == superpixel)
    whole = int(made.labels()[tuple(inside[0])])
    made.cut(whole, points=[[tuple(inside[0])], [tuple(inside[-1])]])
    project.has_edited()
    draw()
    return made


@pytest.mark.slow
def test_before_and_with_edits(viewer, project, dock, choose, session, dataset, look, qtbot):
    assert session.graph.n_regions > session.history.unedited_tree.n_superpixels, (
        "test invalid: nothing divided"
    )
    before = look(viewer)
    proposed = [one.name for one in dock.choices.chosen()]
    assert proposed == ["before edits", "with edits"]
    overlay, banner = text_overlay(viewer), []

    def is_proofreading():
        return overlay.visible and overlay.text.startswith("PROOFREADING")

    qtbot.waitUntil(is_proofreading, timeout=10_000)
    look_at_it = lambda: banner.append(overlay.visible)  # noqa: E731 - in the turn after a click
    project.jobs.changed.connect(lambda _: QTimer.singleShot(0, look_at_it))
    choose(dock, "before edits", "with edits", "gold")
    settle(project)
    assert banner, "test invalid"
    assert not any(banner), "the canvas does not say so while the comparison is prepared"
    assert not overlay.visible
    controller = dock.controller
    controller.set(position=0.3)
    first, second, _ = (np.asarray(cell.segments.data) for cell in controller.grid.cells)
    assert same_partition(first, session.history.unedited_tree.segment(0.3))
    assert same_partition(second, session.labels())
    assert not same_partition(first, second)
    numbers = [dock.numbers.item(row, 3).text() for row in (0, 1)]
    expected = [sum(agglo.split_vi(labels, dataset.gold)) for labels in (first, session.labels())]
    assert numbers == [f"{vi:.3f}" for vi in expected]
    assert [dock.numbers.item(row, 4).text() for row in (0, 1)] == ["", ""], "not merged anew"
    dock.slider.slider.setValue(controller.ticks.place(controller.ticks.last // 2))
    position = controller.comparison.position
    session.threshold = position
    session.look()
    second = np.asarray(controller.grid.cells[1].segments.data)
    assert same_partition(second, session.labels())
    dock.leave.click()
    draw()
    assert look(viewer) == before
    qtbot.waitUntil(is_proofreading, timeout=10_000)


@pytest.mark.slow
def test_a_movie_of_both(viewer, project, dock, choose, session, tmp_path):
    choose(dock, "before edits", "with edits")
    settle(project)
    dock.movie.save(tmp_path / "movie.gif", frames=4)
    settle(project)
    frames = iio.imread(tmp_path / "movie.gif", index=None)
    assert len(frames) == 4
    middle = frames.shape[2] // 2
    assert (frames[2][:, :middle] != frames[2][:, -middle:]).any()


@pytest.mark.slow
def test_the_session_is_free_again_afterwards(project, dock, choose, session):
    choose(dock, "before edits", "with edits")
    settle(project)
    assert not project.worker.busy
    message = session.undo()
    assert "undone" in str(message)
