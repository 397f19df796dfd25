"""A cut whose place the program chooses: the user is told and shown where it went."""

from __future__ import annotations

import numpy as np
from windows import camera


def test_cut_in_two_names_the_sizes_and_shows_the_smaller_part(deep):
    project, viewer = deep.project, deep.viewer
    viewer.dims.ndisplay = 2
    graph = project.graph
    placement, planes = project.placement, graph.superpixels.image.shape[0]
    table = project.table()
    whole = int(np.argmax(np.bincount(table[1:], graph.sizes[1:])))
    project.select(whole)
    size = int(graph.sizes[table == whole].sum())
    viewer.dims.set_point(0, placement.to_world((10 * planes, 0, 0))[0])
    deep.proofreader.commands.cut_children()
    deep.settle()

    table = project.table()
    parts = (project.active, *project.selected)
    assert len(parts) > 1, "all parts are outlined"
    sizes = [int(graph.sizes[table == part].sum()) for part in parts]
    assert sum(sizes) == size
    assert all(f"{one:,}" in deep.step.message.text() for one in sizes)

    smallest = parts[sizes.index(min(sizes))]
    inside = table[np.asarray(graph.superpixels.image)] == smallest
    first, last = np.flatnonzero(inside.any(axis=(1, 2)))[[0, -1]]

    def shown_plane():
        return (viewer.dims.point[0] - placement.translate[0]) / placement.scale[0]

    assert first - 0.5 <= shown_plane() <= last + 0.5

    # A part that is in view already leaves the view where it is.
    before = viewer.dims.point, tuple(camera(viewer).center)
    deep.proofreader.commands.parted.emit(smallest)
    assert (viewer.dims.point, tuple(camera(viewer).center)) == before
