"""Compute features from rows of statistics, inside the merge loop.

The features of one region, or of one boundary, are kept as a block until its row changes. The
features of a pair are then copies of the blocks of both regions and of the boundary, and a
comparison of the two regions. Features are 32-bit floats, as the classifiers read them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, subroutine
from napari_agglo._numba.callbacks import call_python
from napari_agglo.graph import copy_pair

# Places in `FeatureState.layout`. The last three are the options of the preset.
NDIM, N_CUES, POWERS, BINS, HISTOGRAM, N_QUANTILES, ORIENTATION = range(7)
BLOCKS = 7  # address of the function that computes the columns of further blocks
# Bits of the option ORIENTATION: features that compare the shapes of two regions.
ANGLES, SHAPES = 1, 2


class FeatureState(NamedTuple):
    """Rows of statistics and the features computed from them.

    Invariant: between two merges, the blocks, entropies and axes of all regions and boundaries are
    those of their present rows. A function that changes a row calls `fill_node` or `fill_edge` for
    it. A policy that reads no features has empty blocks, and nothing is filled.
    """

    regions: NDArray[np.int64]  # (nodes, columns of the layout of the graph)
    boxes: NDArray[np.int32]  # (nodes, 2, ndim)
    boundaries: NDArray[np.int64]  # (edges, columns): faces by axis, then sums of the cues
    layout: NDArray[np.int64]  # (8,): see above
    quantiles: NDArray[np.float64]
    scale: NDArray[np.float64]  # spacing, area of a face across each axis, two matrices as buffer
    node_block: NDArray[np.float32]  # (nodes, block width)
    edge_block: NDArray[np.float32]  # (edges, block width)
    entropy: NDArray[np.float64]  # (nodes, cues): of the histogram, in bits
    axis: NDArray[np.float64]  # (nodes, ndim): principal axis, a unit vector
    pair: NDArray[np.int64]  # buffer (1, ...): the row of a pair, for further blocks
    more: NDArray[np.float32]  # buffer: their columns; empty if there are no further blocks


@subroutine
def _fill_block(
    rows: Any, row: Any, column: Any, count: Any, layout: Any, quantiles: Any, out: Any
) -> None:
    """Write moments, quantiles and histogram of each cue from ``rows[row]`` to ``out[row]``."""
    at = 0
    bins = layout[BINS]
    for _ in range(layout[N_CUES]):
        n = float(count)
        mean = square = cube = fourth = 0.0
        if count > 0:
            mean = rows[row, column] / n
            square = rows[row, column + 1] / n
            cube = rows[row, column + 2] / n
            fourth = rows[row, column + 3] / n
        # Central moments of whole numbers 0..255, then to the scale 0..1.
        variance = max(square - mean * mean, 0.0)
        third = cube - 3 * mean * square + 2 * mean * mean * mean
        quartic = fourth - 4 * mean * cube + 6 * mean * mean * square - 3 * mean**4
        out[row, at] = mean / 255.0
        out[row, at + 1] = variance / 65025.0
        out[row, at + 2] = third / 16581375.0
        out[row, at + 3] = max(quartic, 0.0) / 4228250625.0
        at += 4
        first = column + layout[POWERS]
        # Quantiles ascend, so that bin `k` and the number of pixels `below` it never decrease.
        below = np.int64(0)
        k = 0
        for q in range(quantiles.size):
            wanted = quantiles[q] * n
            while k < bins - 1 and below + rows[row, first + k] < wanted:
                below += rows[row, first + k]
                k += 1
            here = rows[row, first + k]
            part = (wanted - below) / here if here > 0 else 0.0
            out[row, at] = (k + min(max(part, 0.0), 1.0)) / bins
            at += 1
        if layout[HISTOGRAM] > 0:
            for k in range(bins):
                out[row, at] = rows[row, first + k] / n if count > 0 else 0.0
                at += 1
        column += layout[POWERS] + bins


@inlined
def _first_cue(ndim: Any) -> Any:
    """Return the column of the first cue in the row of a region; see `napari_agglo.graph.Layout`.

    Before it are the count, four numbers for each axis and the products of each pair of axes.
    """
    return 1 + 4 * ndim + ndim * (ndim + 1) // 2


@inlined
def fill_edge(edge: Any, features: FeatureState) -> None:
    """Compute the block of a boundary from its row."""
    boundaries = features.boundaries
    layout = features.layout
    ndim = layout[NDIM]
    faces = np.int64(0)
    for a in range(ndim):
        faces += boundaries[edge, a]
    # A face adds the pixels on both of its sides to the sums.
    _fill_block(boundaries, edge, ndim, 2 * faces, layout, features.quantiles, features.edge_block)


@subroutine
def fill_node(node: Any, features: FeatureState) -> None:
    """Compute the block, the entropies and, if the preset has angles, the axis of a region."""
    regions = features.regions
    layout = features.layout
    entropy = features.entropy
    ndim = layout[NDIM]
    column = _first_cue(ndim)
    count = regions[node, 0]
    _fill_block(regions, node, column, count, layout, features.quantiles, features.node_block)
    bins = layout[BINS]
    for cue in range(layout[N_CUES]):
        total = 0.0
        for k in range(bins):
            h = regions[node, column + layout[POWERS] + k]
            if h > 0:
                total += h * math.log2(h)
        entropy[node, cue] = math.log2(count) - total / count if count > 0 else 0.0
        column += layout[POWERS] + bins
    if layout[ORIENTATION] & ANGLES > 0 and count > 0:
        _principal_axis(node, regions, ndim, features.scale, features.axis)


@subroutine
def _principal_axis(node: Any, regions: Any, ndim: Any, scale: Any, axis: Any) -> None:
    """Find the direction of the largest second moment by squaring the matrix (power iteration)."""
    n = float(regions[node, 0])
    matrix = scale[2 : 2 + ndim]
    squared = scale[2 + ndim :]
    column = 1 + 4 * ndim
    trace = 0.0
    for a in range(ndim):
        mean_a = regions[node, 1 + 3 * ndim + a] / n
        for b in range(a, ndim):
            mean_b = regions[node, 1 + 3 * ndim + b] / n
            moment = (regions[node, column] / n - mean_a * mean_b) * scale[0, a] * scale[0, b]
            matrix[a, b] = moment
            matrix[b, a] = moment
            column += 1
        trace += matrix[a, a]
    for a in range(ndim):
        axis[node, a] = 0.0
    if trace <= 0.0:
        return
    # Ten squarings raise the ratio of eigenvalues to the power 1024.
    for _ in range(10):
        size = 0.0
        for a in range(ndim):
            for b in range(ndim):
                squared[a, b] = 0.0
                for c in range(ndim):
                    squared[a, b] += matrix[a, c] * matrix[c, b]
            size += squared[a, a]
        for a in range(ndim):
            for b in range(ndim):
                matrix[a, b] = squared[a, b] / size
    best = 0
    for a in range(1, ndim):
        if matrix[a, a] > matrix[best, best]:
            best = a
    length = 0.0
    for a in range(ndim):
        length += matrix[a, best] ** 2
    for a in range(ndim):
        axis[node, a] = matrix[a, best] / math.sqrt(length)


@inlined
def _angle(cosine: Any, known: Any) -> Any:
    """Return the angle between two lines, 0 to 1 for 0 to 90 degrees; 1 if it is not known."""
    return math.acos(min(abs(cosine), 1.0)) / (0.5 * math.pi) if known else 1.0


@subroutine
def _ellipsoid_share(u: Any, v: Any, features: FeatureState) -> Any:
    """Return the size of the union of two nodes over that of the ellipsoid of its second moments.

    1 for an ellipsoid, less for what is bent or branched; of one node where `u` is `v`. Spacing
    does not matter.
    """
    regions = features.regions
    ndim = features.layout[NDIM]
    both = 0 if u == v else 1
    n = float(regions[u, 0] + both * regions[v, 0])
    matrix = features.scale[2 : 2 + ndim]
    column = 1 + 4 * ndim
    for a in range(ndim):
        at = 1 + 3 * ndim + a
        mean_a = (regions[u, at] + both * regions[v, at]) / n
        for b in range(a, ndim):
            at = 1 + 3 * ndim + b
            mean_b = (regions[u, at] + both * regions[v, at]) / n
            moment = (regions[u, column] + both * regions[v, column]) / n - mean_a * mean_b
            # A pixel is a cube, not a point: so a line or a plane of pixels has a volume too.
            matrix[a, b] = moment + (1.0 / 12.0 if a == b else 0.0)
            matrix[b, a] = matrix[a, b]
            column += 1
    # Determinant by elimination. The matrix is positive definite: no pivot is below 1/12.
    determinant = 1.0
    for a in range(ndim):
        determinant *= matrix[a, a]
        for b in range(a + 1, ndim):
            factor = matrix[b, a] / matrix[a, a]
            for c in range(a, ndim):
                matrix[b, c] -= factor * matrix[a, c]
    half = 0.5 * ndim
    ball = math.pi**half / math.gamma(half + 1.0)
    return n / (ball * (ndim + 2.0) ** half * math.sqrt(determinant))


@subroutine
def _compare_shapes(
    edge: Any,
    u: Any,
    v: Any,
    area: Any,
    surface_u: Any,
    surface_v: Any,
    out: Any,
    at: Any,
    column: Any,
    features: FeatureState,
) -> None:
    """Write contact, shape of the union, and contrast of the boundary to ``out[at, column:]``."""
    regions = features.regions
    scale = features.scale
    layout = features.layout
    ndim = layout[NDIM]
    pixel = 1.0
    border_u = 0.0
    border_v = 0.0
    for a in range(ndim):
        pixel *= scale[0, a]
        border_u += regions[u, 1 + a] * scale[1, a]
        border_v += regions[v, 1 + a] * scale[1, a]
    power = (ndim - 1.0) / ndim
    out[at, column] = area / (regions[u, 0] * pixel) ** power
    out[at, column + 1] = area / (regions[v, 0] * pixel) ** power
    out[at, column + 2] = _ellipsoid_share(u, v, features)
    out[at, column + 3] = _ellipsoid_share(u, u, features)
    out[at, column + 4] = _ellipsoid_share(v, v, features)
    out[at, column + 5] = border_u / (border_u + surface_u) if border_u > 0 else 0.0
    out[at, column + 6] = border_v / (border_v + surface_v) if border_v > 0 else 0.0
    column += 7
    each = features.node_block.shape[1] // layout[N_CUES]
    for cue in range(layout[N_CUES]):
        mean = features.edge_block[edge, cue * each]
        out[at, column] = mean - features.node_block[u, cue * each]
        out[at, column + 1] = mean - features.node_block[v, cue * each]
        column += 2


@inlined
def assemble(
    edge: Any, u: Any, v: Any, id_u: Any, id_v: Any, out: Any, at: Any, features: FeatureState
) -> None:
    """Write the features of the boundary `edge` of nodes `u` and `v` to ``out[at]``.

    Strategy: the order of the columns is that of `FeatureMap.names`. Copy the blocks of the two
    regions and of the boundary; compare the moments and histograms of the regions, cue by cue; then
    write sizes and areas, and shapes and angles if the preset has them.
    """
    regions = features.regions
    boundaries = features.boundaries
    layout = features.layout
    scale = features.scale
    node_block = features.node_block
    edge_block = features.edge_block
    entropy = features.entropy
    axis = features.axis
    ndim = layout[NDIM]
    n_cues = layout[N_CUES]
    bins = layout[BINS]
    more = features.more
    if more.size > 0:  # further blocks, the last columns, are computed in Python
        copy_pair(edge, u, v, id_u, id_v, regions, boundaries, features.pair, np.int64(0))
        call_python(layout[BLOCKS], 1)
        for k in range(more.size):
            out[at, out.shape[1] - more.size + k] = more[k]
    # The smaller region comes first, of equal ones that of the smaller id: the features do not
    # depend on which node is called u.
    if (regions[v, 0], id_v) < (regions[u, 0], id_u):
        u, v = v, u
    width = node_block.shape[1]
    for k in range(width):
        out[at, k] = node_block[u, k]
        out[at, width + k] = node_block[v, k]
        out[at, 2 * width + k] = edge_block[edge, k]
    column = 3 * width
    each = width // n_cues
    histogram = _first_cue(ndim) + layout[POWERS]
    size_u = float(regions[u, 0])
    size_v = float(regions[v, 0])
    for cue in range(n_cues):
        for k in range(4):
            difference = node_block[u, cue * each + k] - node_block[v, cue * each + k]
            out[at, column + k] = abs(difference)
        mixed = 0.0
        for k in range(bins):
            share = regions[u, histogram + k] / size_u + regions[v, histogram + k] / size_v
            if share > 0:
                mixed -= 0.5 * share * math.log2(0.5 * share)
        # The Jensen-Shannon divergence is negative only by rounding.
        divergence = mixed - 0.5 * (entropy[u, cue] + entropy[v, cue])
        out[at, column + 4] = max(divergence, 0.0)
        column += 5
        histogram += layout[POWERS] + bins
    area = 0.0
    surface_u = 0.0
    surface_v = 0.0
    for a in range(ndim):
        area += boundaries[edge, a] * scale[1, a]
        surface_u += (regions[u, 1 + ndim + a] + regions[u, 1 + 2 * ndim + a]) * scale[1, a]
        surface_v += (regions[v, 1 + ndim + a] + regions[v, 1 + 2 * ndim + a]) * scale[1, a]
    out[at, column] = math.log2(size_u)
    out[at, column + 1] = math.log2(size_v)
    out[at, column + 2] = math.log2(area) if area > 0 else 0.0
    out[at, column + 3] = area / surface_u if surface_u > 0 else 0.0
    out[at, column + 4] = area / surface_v if surface_v > 0 else 0.0
    column += 5
    if layout[ORIENTATION] & SHAPES > 0:
        _compare_shapes(edge, u, v, area, surface_u, surface_v, out, at, column, features)
        column += 7 + 2 * n_cues
    if layout[ORIENTATION] & ANGLES == 0:
        return
    dot = 0.0
    to_u = 0.0
    to_v = 0.0
    distance = 0.0
    length_u = 0.0
    length_v = 0.0
    for a in range(ndim):
        step = regions[v, 1 + 3 * ndim + a] / size_v - regions[u, 1 + 3 * ndim + a] / size_u
        step *= scale[0, a]
        distance += step * step
        to_u += step * axis[u, a]
        to_v += step * axis[v, a]
        dot += axis[u, a] * axis[v, a]
        length_u += axis[u, a] ** 2
        length_v += axis[v, a] ** 2
    distance = math.sqrt(distance)
    apart = distance > 0
    out[at, column] = _angle(dot, length_u > 0 and length_v > 0)
    out[at, column + 1] = _angle(to_u / distance if apart else 0.0, apart and length_u > 0)
    out[at, column + 2] = _angle(to_v / distance if apart else 0.0, apart and length_v > 0)
