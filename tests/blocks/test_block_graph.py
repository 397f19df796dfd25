"""Block-wise graphs beside those of bioimage-cpp, which counts them block by block too."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import zarr

from napari_agglo import blocks

REASON = "bioimage-cpp, the other implementation of a block-wise graph, is not installed"


def boundaries_of_blocks(labels, values, block):
    """Return the faces and the mean of each pair of labels, by bioimage-cpp, from its blocks."""
    distributed = pytest.importorskip("bioimage_cpp.graph.distributed", reason=REASON)
    graph = pytest.importorskip("bioimage_cpp.graph", reason=REASON)
    starts = (range(0, n, side) for n, side in zip(labels.shape, block, strict=True))
    parts = []
    for corner in itertools.product(*starts):
        ends = [min(a + b, n) for a, b, n in zip(corner, block, labels.shape, strict=True)]
        own = [b - a for a, b in zip(corner, ends, strict=True)]
        box = tuple(
            slice(a, min(b + 1, n)) for a, b, n in zip(corner, ends, labels.shape, strict=True)
        )
        parts.append(
            distributed.block_edge_map_stats(
                labels[box], values[box].astype(np.float64), [0] * labels.ndim, own
            )
        )
    edges = distributed.merge_edges([edges for edges, _ in parts])
    whole = graph.UndirectedGraph.from_unique_edges(int(labels.max()) + 1, edges)
    stats = distributed.empty_edge_stats(len(edges))
    for own_edges, own_stats in parts:
        stats = distributed.merge_block_edge_stats(whole, stats, own_edges, own_stats)
    kept = edges[:, 0] > 0  # 0 is no region
    return edges[kept], stats[kept, 0], stats[kept, 1]


@pytest.mark.parametrize(
    ("shape", "block"),
    [((40, 50), (13, 50)), ((21, 18, 25), (8, 9, 10)), ((12, 9, 11), (1, 9, 4))],
)
def test_sizes_and_means_of_boundaries_are_those_of_another_implementation(tmp_path, shape, block):
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 90, [-(-n // 3) for n in shape]).astype(np.uint32)
    labels = coarse
    for axis in range(len(shape)):
        labels = labels.repeat(3, axis)
    labels = np.ascontiguousarray(labels[tuple(slice(n) for n in shape)])
    values = rng.integers(0, 256, shape).astype(np.uint8)
    edges, counts, means = boundaries_of_blocks(labels, values, block)
    zarr.save_array(str(tmp_path / "labels.zarr"), labels)
    zarr.save_array(str(tmp_path / "boundary.zarr"), values)
    blocks.plan(tmp_path / "r", str(tmp_path / "boundary.zarr"), block=block, ranges=(0, 255),
                superpixels=str(tmp_path / "labels.zarr"))  # fmt: skip
    blocks.run(tmp_path / "r")
    result = blocks.open(tmp_path / "r")
    graph, layout = result.graph, result.plan.layout
    assert (labels == 0).any(), "test invalid"
    assert len(edges) > 50, "test invalid"
    assert np.array_equal(graph.ids[graph.edges], edges)
    faces = graph.boundaries[:, layout.faces].sum(axis=1)
    assert np.array_equal(faces, counts)
    sums = graph.boundaries[:, layout.boundary_cues]
    assert np.allclose(sums / (2 * faces), means, rtol=1e-12, atol=0)
