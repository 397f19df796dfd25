"""A session that starts from the segments of another tool.

The superpixels of each segment are merged by one edit below all merges of the policy. So the lowest
threshold has these segments, and higher ones add merges of the policy.

In its own file: the start of a session from label images, apart from edits of segments by id.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, part_of
from napari_agglo.agglomeration import below_first
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph, region_graph
from napari_agglo.session._actions import Action, Merge, Plan, Step
from napari_agglo.session._threshold_view import View
from napari_agglo.superpixels import boundary_from_labels
from napari_agglo.volumes import (
    check_same_shape,
    check_spacing,
    contingency,
    dense_labels,
    is_on_disk,
    split_components,
    unwrap,
    voxel_size_of,
)


def segment_graph_of(segmentation: Any, progress: ProgressCallback | None = None) -> RegionGraph:
    """Return a graph whose superpixels are the connected pieces of segments, with their borders.

    The largest piece of a segment keeps its id. The cue "boundary" falls off from the borders of
    the segments; a cut by points floods it.
    """
    pieces = split_components(segmentation, "segmentation")
    own = voxel_size_of(segmentation, "segmentation")
    spacing = check_spacing(own.spacing, pieces.ndim)
    cue = boundary_from_labels(pieces, spacing=spacing, progress=part_of(progress, 0.0, 0.5))
    return region_graph(
        pieces, cue, spacing=spacing, unit=own.unit, progress=part_of(progress, 0.5, 1.0)
    )


def partition_of(graph: RegionGraph, segmentation: Any) -> NDArray[np.int64]:
    """Return the segment of each superpixel by dense ids; refuse superpixels in two segments."""
    image = graph.superpixels.image
    check_same_shape(segmentation, image, "segmentation", "superpixels")
    if is_on_disk(image):
        return _partition_on_disk(graph, segmentation)
    theirs = dense_labels(segmentation, "segmentation")
    segments = np.zeros(graph.n_regions + 1, np.int64)
    segments[image.reshape(-1)] = theirs.image.reshape(-1)
    across = (segments[image] != theirs.image) & (image > 0)
    if across.any():
        raise _crossed(len(np.unique(image[across])), graph)
    segments[0] = 0
    return segments


def _partition_on_disk(graph: RegionGraph, segmentation: Any) -> NDArray[np.int64]:
    """Return the segment of each superpixel from overlaps, which are counted slab by slab."""
    theirs = unwrap(segmentation, "segmentation")
    table = contingency(graph.superpixels, theirs, ignore_labels=True)
    counts = np.bincount(table.rows, minlength=graph.n_regions + 1)
    annotated = np.zeros(graph.n_regions + 1, np.int64)
    np.add.at(annotated, table.rows, table.counts)
    across = (counts > 1) | ((counts == 1) & (annotated != graph.sizes))
    if across[1:].any():
        raise _crossed(int(across[1:].sum()), graph)
    segments = np.zeros(graph.n_regions + 1, np.int64)
    segments[table.rows] = table.columns
    segments[0] = 0
    return segments


def _crossed(n: int, graph: RegionGraph) -> InvalidInput:
    return InvalidInput(
        f"No superpixel may cross a border of `segmentation`, and {n} of {graph.n_regions} do",
        argument="segmentation",
        remedy="build the graph from superpixels.divide_superpixels(superpixels, segmentation)",
    )


def plan_start(view: View, partition: NDArray[Any]) -> Plan:
    """Plan to merge the superpixels of each segment of a partition; 0 is no segment."""
    order = np.argsort(partition[1:], kind="stable") + 1
    ordered = partition[order]
    is_first = np.r_[True, ordered[1:] != ordered[:-1]]
    firsts = order[is_first][np.cumsum(is_first) - 1]
    joined = ~is_first & (ordered != 0)
    pairs = zip(firsts[joined].tolist(), order[joined].tolist(), strict=True)
    steps = (Step(Merge(view.threshold, tuple(pairs))),) if joined.any() else ()
    return Plan(Action("start", (), view.threshold, steps))


def lowest_threshold(heights: NDArray[np.float64]) -> float:
    """Return a threshold below all merges of a policy."""
    return below_first(float(heights[0]) if len(heights) else 0.0)
