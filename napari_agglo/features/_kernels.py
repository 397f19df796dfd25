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

from napari_agglo._numba import inlined, kernel, subroutine
from napari_agglo._numba.calls_by_address import call_kernel, kernel_address
from napari_agglo.features._call_feature_blocks import ask_blocks, forget_columns
from napari_agglo.graph import HullLists, union_area

# Places in `FeatureState.layout`. The last three are the options of the preset.
NDIM, N_CUES, POWERS, BINS, HISTOGRAM, N_QUANTILES, COMPARISONS = range(7)
BLOCKS = 7  # address of the function that computes the columns of further blocks
ASSEMBLE, FILL = 8, 9  # addresses of the kernels that all merge loops share
AXES = 10  # from here on, for each cue, bits of the axes whose faces have a value of it; and then,
# for each cue of words, its first column in the row of a region, and the number of words
# Bits of the option COMPARISONS: features that compare the shapes of two regions.
ANGLES, SHAPES, LINKS, HULLS = 1, 2, 4, 8
N_ANGLES = 3
N_HULL_FEATURES = 6  # columns of `compare_hulls`
N_LINKS = 7  # columns of `compare_planes`
N_WORD_FEATURES = 4  # columns of `compare_words` for each cue of words
# Columns of `FeatureState.shapes`.
CUBE_FACE, ELLIPSOID_SHARE, BORDER_SHARE = range(3)


class FeatureState(NamedTuple):
    """Rows of statistics and the features computed from them.

    Invariant: between two merges, the blocks, entropies, axes and shapes of all regions and
    boundaries are those of their present rows. A function that changes a row calls `fill_node` or
    `fill_edge` for it. A policy that reads no features has empty blocks, and nothing is filled.
    """

    regions: NDArray[np.int64]  # (nodes, columns of the layout of the graph)
    boxes: NDArray[np.int32]  # (nodes, 2, ndim)
    boundaries: NDArray[np.int64]  # (edges, columns): faces by axis, then sums of the cues
    layout: NDArray[np.int64]  # (10 + cues + 2 cues of words,): see above
    quantiles: NDArray[np.float64]
    # Spacing, area of a face across each axis, two matrices as buffer; and the volume of the
    # ellipsoid of a matrix of second moments over the root of its determinant.
    scale: NDArray[np.float64]
    node_block: NDArray[np.float32]  # (nodes, block width)
    edge_block: NDArray[np.float32]  # (edges, block width)
    entropy: NDArray[np.float64]  # (nodes, cues and cues of words): of the histogram, in bits
    axis: NDArray[np.float64]  # (nodes, ndim): principal axis, a unit vector
    shapes: NDArray[np.float64]  # (nodes, 3): see above
    pairs: NDArray[np.int64]  # buffer: rows of pairs, for the functions of further blocks
    columns: NDArray[np.float32]  # buffer: the columns that these functions return
    more: NDArray[np.float32]  # (edges, columns) as last computed; no columns without such blocks
    # (edges, 4): nodes and versions of which `more` is; see `_call_feature_blocks`
    versions_read: NDArray[np.int64]
    versions: NDArray[np.int64]  # (nodes,): how often the row of a region was filled
    hulls: HullLists  # of regions of a plane; empty if the preset has no hulls


@subroutine
def _fill_block(
    rows: Any, row: Any, column: Any, size: Any, layout: Any, quantiles: Any, out: Any
) -> None:
    """Write moments, quantiles and histogram of each cue from ``rows[row]`` to ``out[row]``.

    `size` is the number of pixels of a region, and -1 for a boundary, whose samples are twice its
    faces across those axes for which the cue has values.
    """
    at = 0
    bins = layout[BINS]
    for cue in range(layout[N_CUES]):
        count = np.int64(size)
        if size < 0:
            count = np.int64(0)
            for a in range(layout[NDIM]):
                count += 2 * rows[row, a] * (layout[AXES + cue] >> a & 1)
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
def _fill_region(node: Any, features: FeatureState) -> None:
    """Compute the block and the entropies of a region, and its axis or shape if it is compared."""
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
    for cue in range(layout[N_CUES], entropy.shape[1]):
        at = AXES + layout[N_CUES] + 2 * (cue - layout[N_CUES])
        total = 0.0
        for k in range(layout[at], layout[at] + layout[at + 1]):
            h = regions[node, k]
            if h > 0:
                total += h * math.log2(h)
        entropy[node, cue] = math.log2(count) - total / count if count > 0 else 0.0
    if layout[COMPARISONS] & ANGLES > 0 and count > 0:
        _principal_axis(node, regions, ndim, features.scale, features.axis)
    if layout[COMPARISONS] & SHAPES > 0 and count > 0:
        _fill_shape(node, features)


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
def _ellipsoid_share(u: Any, v: Any, regions: Any, ndim: Any, scale: Any) -> Any:
    """Return the size of the union of two nodes over that of the ellipsoid of its second moments.

    1 for an ellipsoid, less for what is bent or branched; of one node where `u` is `v`. Spacing
    does not matter.
    """
    both = 0 if u == v else 1
    n = float(regions[u, 0] + both * regions[v, 0])
    matrix = scale[2 : 2 + ndim]
    means = scale[2 + ndim]
    for a in range(ndim):
        at = 1 + 3 * ndim + a
        means[a] = (regions[u, at] + both * regions[v, at]) / n
    column = 1 + 4 * ndim
    for a in range(ndim):
        for b in range(a, ndim):
            moment = (regions[u, column] + both * regions[v, column]) / n - means[a] * means[b]
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
    return n / (scale[2 + 2 * ndim, 0] * math.sqrt(determinant))


@inlined
def _surface(node: Any, features: FeatureState) -> Any:
    """Return the area of the surface of a region, without that on the border of the volume."""
    regions = features.regions
    ndim = features.layout[NDIM]
    surface = 0.0
    for a in range(ndim):
        faces = regions[node, 1 + ndim + a] + regions[node, 1 + 2 * ndim + a]
        surface += faces * features.scale[1, a]
    return surface


@subroutine
def _fill_shape(node: Any, features: FeatureState) -> None:
    """Compute the columns of `shapes` of a region: a cube of its size, ellipsoid, and border."""
    regions = features.regions
    scale = features.scale
    ndim = features.layout[NDIM]
    pixel = 1.0
    border = 0.0
    for a in range(ndim):
        pixel *= scale[0, a]
        border += regions[node, 1 + a] * scale[1, a]
    shapes = features.shapes
    shapes[node, CUBE_FACE] = (regions[node, 0] * pixel) ** ((ndim - 1.0) / ndim)
    shapes[node, ELLIPSOID_SHARE] = _ellipsoid_share(node, node, regions, ndim, scale)
    share = border / (border + _surface(node, features)) if border > 0 else 0.0
    shapes[node, BORDER_SHARE] = share


@inlined
def compare_moments(
    u: Any, v: Any, cue: Any, out: Any, at: Any, column: Any, features: FeatureState
) -> None:
    """Write the differences of the moments of a cue in two regions to ``out[at, column:]``."""
    node_block = features.node_block
    first = cue * (node_block.shape[1] // features.layout[N_CUES])
    for k in range(4):
        out[at, column + k] = abs(node_block[u, first + k] - node_block[v, first + k])


@subroutine
def compare_contact(
    edge: Any, u: Any, v: Any, out: Any, at: Any, column: Any, features: FeatureState
) -> Any:
    """Write the shares of the contact of two regions to ``out[at, column:]``; return its area.

    If the preset has shapes, these follow, with that of the union, and the contrast of the boundary
    of the two; then the links between planes, if it has these.
    """
    boundaries = features.boundaries
    layout = features.layout
    area = 0.0
    for a in range(layout[NDIM]):
        area += boundaries[edge, a] * features.scale[1, a]
    surface_u = _surface(u, features)
    surface_v = _surface(v, features)
    out[at, column] = area / surface_u if surface_u > 0 else 0.0
    out[at, column + 1] = area / surface_v if surface_v > 0 else 0.0
    column += 2
    if layout[COMPARISONS] & SHAPES > 0:
        column = _compare_shapes(edge, u, v, area, out, at, column, features)
    if layout[COMPARISONS] & LINKS > 0:
        compare_planes(edge, u, v, out, at, column, features)
    return area


@inlined
def _compare_shapes(
    edge: Any, u: Any, v: Any, area: Any, out: Any, at: Any, column: Any, features: FeatureState
) -> Any:
    """Write the shapes of two regions and their contrast; return the column after them."""
    layout = features.layout
    shapes = features.shapes
    out[at, column] = area / shapes[u, CUBE_FACE]
    out[at, column + 1] = area / shapes[v, CUBE_FACE]
    out[at, column + 2] = _ellipsoid_share(u, v, features.regions, layout[NDIM], features.scale)
    out[at, column + 3] = shapes[u, ELLIPSOID_SHARE]
    out[at, column + 4] = shapes[v, ELLIPSOID_SHARE]
    out[at, column + 5] = shapes[u, BORDER_SHARE]
    out[at, column + 6] = shapes[v, BORDER_SHARE]
    column += 7
    each = features.node_block.shape[1] // layout[N_CUES]
    for cue in range(layout[N_CUES]):
        mean = features.edge_block[edge, cue * each]
        out[at, column] = mean - features.node_block[u, cue * each]
        out[at, column + 1] = mean - features.node_block[v, cue * each]
        column += 2
    return column


@inlined
def _planes(node: Any, regions: Any, ndim: Any) -> Any:
    """Return the mean plane of a region, the variance, and the number of planes it extends over.

    n planes of equal size have a variance of (n**2 - 1) / 12.
    """
    n = float(regions[node, 0])
    mean = regions[node, 1 + 3 * ndim] / n
    variance = max(regions[node, 1 + 4 * ndim] / n - mean * mean, 0.0)
    return mean, variance, math.sqrt(12.0 * variance + 1.0)


@subroutine
def compare_planes(
    edge: Any, u: Any, v: Any, out: Any, at: Any, column: Any, features: FeatureState
) -> None:
    """Write the links of two regions across planes, axis 0, to ``out[at, column:]``.

    Strategy: a region is taken for a column of `extent` planes around its mean plane, each of its
    mean section, whose centre moves along a straight line from plane to plane. All follows from the
    count, the sums of coordinates and of their products, and the faces between planes.
    """
    regions = features.regions
    scale = features.scale
    ndim = features.layout[NDIM]
    plane_u, variance_u, extent_u = _planes(u, regions, ndim)
    plane_v, variance_v, extent_v = _planes(v, regions, ndim)
    size_u = float(regions[u, 0])
    size_v = float(regions[v, 0])
    pixel = 1.0
    total = 0.0
    for a in range(ndim):
        total += features.boundaries[edge, a] * scale[1, a]
        if a > 0:
            pixel *= scale[0, a]
    overlap = features.boundaries[edge, 0] * scale[1, 0]
    section_u = pixel * size_u / extent_u
    section_v = pixel * size_v / extent_v
    # The plane where the two meet: half-way between the end of the one and the start of the other.
    apart = plane_v - plane_u
    side = 0.0
    if apart != 0:
        side = 1.0 if apart > 0 else -1.0
    meet = 0.5 * (plane_u + plane_v + 0.5 * side * (extent_u - extent_v))
    straight = 0.0
    continued = 0.0
    for a in range(1, ndim):
        mean_u = regions[u, 1 + 3 * ndim + a] / size_u
        mean_v = regions[v, 1 + 3 * ndim + a] / size_v
        step = (mean_v - mean_u) * scale[0, a]
        straight += step * step
        if variance_u > 0:
            slope = (regions[u, 1 + 4 * ndim + a] / size_u - mean_u * plane_u) / variance_u
            mean_u += slope * (meet - plane_u)
        if variance_v > 0:
            slope = (regions[v, 1 + 4 * ndim + a] / size_v - mean_v * plane_v) / variance_v
            mean_v += slope * (meet - plane_v)
        step = (mean_v - mean_u) * scale[0, a]
        continued += step * step
    length = (0.5 * (section_u + section_v)) ** (1.0 / max(ndim - 1, 1))
    out[at, column] = overlap / total if total > 0 else 0.0
    out[at, column + 1] = overlap / section_u
    out[at, column + 2] = overlap / section_v
    union = section_u + section_v - overlap
    out[at, column + 3] = overlap / union if union > overlap else 1.0
    out[at, column + 4] = math.sqrt(straight) / length
    out[at, column + 5] = math.sqrt(continued) / length
    out[at, column + 6] = 2.0 * abs(apart) / (extent_u + extent_v)


@subroutine
def compare_words(u: Any, v: Any, out: Any, at: Any, column: Any, features: FeatureState) -> None:
    """Write the differences of the words of two regions to ``out[at, column:]``, and entropies.

    The chi-squared distance is 0 for equal shares of words and 1 if no word is in both.
    """
    regions = features.regions
    layout = features.layout
    entropy = features.entropy
    n_cues = layout[N_CUES]
    size_u = float(regions[u, 0])
    size_v = float(regions[v, 0])
    for cue in range(n_cues, entropy.shape[1]):
        place = AXES + n_cues + 2 * (cue - n_cues)
        mixed = 0.0
        distance = 0.0
        for k in range(layout[place], layout[place] + layout[place + 1]):
            p = regions[u, k] / size_u
            q = regions[v, k] / size_v
            if p + q > 0:
                mixed -= 0.5 * (p + q) * math.log2(0.5 * (p + q))
                distance += 0.5 * (p - q) ** 2 / (p + q)
        out[at, column] = max(mixed - 0.5 * (entropy[u, cue] + entropy[v, cue]), 0.0)
        out[at, column + 1] = distance
        out[at, column + 2] = entropy[u, cue]
        out[at, column + 3] = entropy[v, cue]
        column += N_WORD_FEATURES


@inlined
def compare_hulls(u: Any, v: Any, out: Any, at: Any, column: Any, features: FeatureState) -> None:
    """Write the shares of hulls that two regions and their union fill to ``out[at, column:]``.

    A share is 1 for a convex region. There follow the difference of those of the two regions, and
    what each of them is above that of the union.
    """
    hulls = features.hulls
    size_u = float(features.regions[u, 0])
    size_v = float(features.regions[v, 0])
    share_u = 2.0 * size_u / hulls.areas[u]
    share_v = 2.0 * size_v / hulls.areas[v]
    share = 2.0 * (size_u + size_v) / union_area(u, v, hulls)
    out[at, column] = share
    out[at, column + 1] = share_u
    out[at, column + 2] = share_v
    out[at, column + 3] = abs(share_u - share_v)
    out[at, column + 4] = share_u - share
    out[at, column + 5] = share_v - share


@inlined
def assemble(
    edges: Any, start: Any, n: Any, ends: Any, ids: Any, at: Any, out: Any, features: FeatureState
) -> None:
    """Write the features of ``edges[start : start + n]`` to ``out[at : at + n]``.

    `ends` has the nodes of each edge, `ids` the id of the region of each node.
    """
    numbers = np.int64(start), np.int64(n), np.int64(at)
    call_kernel(
        assemble_rows, features.layout[ASSEMBLE], (*numbers, edges, ends, ids, out, features)
    )


@inlined
def fill_node(node: Any, features: FeatureState) -> None:
    """Compute the block and the entropies of a region, and its axis or shape if it is compared."""
    call_kernel(fill_row, features.layout[FILL], (np.int64(node), np.int64(-1), features))


@inlined
def fill_edge(edge: Any, features: FeatureState) -> None:
    """Compute the block of a boundary from its row."""
    call_kernel(fill_row, features.layout[FILL], (np.int64(-1), np.int64(edge), features))


def shared_addresses(features: FeatureState) -> tuple[int, int]:
    """Return the addresses of the kernels that all merge loops share, for records of this type."""
    zero, edges, rows = np.int64(0), np.zeros(1, np.int64), np.zeros((1, 1), np.float32)
    ends, ids = np.zeros((1, 2), np.int32), np.zeros(1, np.int32)
    return (
        kernel_address(assemble_rows, zero, zero, zero, edges, ends, ids, rows, features),
        kernel_address(fill_row, zero, zero, features),
    )


@kernel
def fill_row(node: Any, edge: Any, features: FeatureState) -> None:
    """Do `fill_node` and `fill_edge` for numbers above -1. No bounds checking."""
    if edge >= 0:
        layout, quantiles = features.layout, features.quantiles
        blocks = features.edge_block
        _fill_block(features.boundaries, edge, layout[NDIM], -1, layout, quantiles, blocks)
    if node >= 0:
        _fill_region(node, features)
    forget_columns(node, edge, features.versions_read, features.versions)


@kernel
def assemble_rows(
    start: Any, n: Any, at: Any, edges: Any, ends: Any, ids: Any, out: Any, features: FeatureState
) -> None:
    """Assemble rows as `assemble` says. No bounds checking."""
    if features.more.shape[1] > 0:
        ask_blocks(start, n, edges, ends, ids, features.layout[BLOCKS], features)
    for k in range(n):
        edge = edges[start + k]
        u = np.int64(ends[edge, 0])
        v = np.int64(ends[edge, 1])
        _assemble_row(edge, u, v, np.int64(ids[u]), np.int64(ids[v]), at + k, out, features)


@inlined
def _assemble_row(
    edge: Any, u: Any, v: Any, id_u: Any, id_v: Any, at: Any, out: Any, features: FeatureState
) -> None:
    """Write the features of the boundary `edge` of nodes `u` and `v` to ``out[at]``.

    Strategy: the order of the columns is that of `FeatureMap.names`. Copy the blocks of the two
    regions and of the boundary; compare the moments and histograms of the regions, cue by cue; then
    write sizes and areas, and shapes, angles and hulls if the preset has them.
    """
    regions = features.regions
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
    for k in range(more.shape[1]):  # further blocks have the last columns
        out[at, out.shape[1] - more.shape[1] + k] = more[edge, k]
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
    histogram = _first_cue(ndim) + layout[POWERS]
    size_u = float(regions[u, 0])
    size_v = float(regions[v, 0])
    for cue in range(n_cues):
        compare_moments(u, v, cue, out, at, column, features)
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
    area = compare_contact(edge, u, v, out, at, column + 3, features)
    out[at, column] = math.log2(size_u)
    out[at, column + 1] = math.log2(size_v)
    out[at, column + 2] = math.log2(area) if area > 0 else 0.0
    column += 5 + (layout[COMPARISONS] & SHAPES > 0) * (7 + 2 * n_cues)
    column += (layout[COMPARISONS] & LINKS > 0) * N_LINKS
    behind = column + N_ANGLES * (layout[COMPARISONS] & ANGLES > 0)
    if layout[COMPARISONS] & HULLS > 0:
        compare_hulls(u, v, out, at, behind, features)
        behind += N_HULL_FEATURES
    if entropy.shape[1] > n_cues:
        compare_words(u, v, out, at, behind, features)
    if layout[COMPARISONS] & ANGLES == 0:
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
