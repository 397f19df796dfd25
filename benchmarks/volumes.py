"""Volumes and graphs of the benchmarks.

The anisotropic EM crop of the data folder (`AGGLO_DATA`, or ``../shared/data``), mirror-tiled with
a little noise; without that folder, the embedded sample in its place.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import napari_agglo as agglo
from napari_agglo.graph import Layout, RegionGraph
from napari_agglo.volumes import DenseLabels


def data_folder() -> Path | None:
    """Return the folder of real volumes, if there is one; say so once where there is none."""
    here = Path(__file__).resolve().parent.parent
    folder = Path(os.environ.get("AGGLO_DATA", here.parent / "shared" / "data"))
    if folder.is_dir():
        return folder
    _say_absent(folder)
    return None


@cache  # one line in a process
def _say_absent(folder: Path) -> None:
    print(
        f"No real volumes in {folder} (AGGLO_DATA names the folder): "
        "embedded samples take their place, or their rows are left out.",
        file=sys.stderr,
    )


def crop() -> tuple[NDArray[np.uint32], NDArray[np.float32], str]:
    """Return superpixels made plane by plane, their boundary map, and the name of the source."""
    folder = data_folder()
    if folder is not None:
        import tifffile

        data = folder / "gala_snemi_mini"
        superpixels = tifffile.imread(data / "superpixels.tif").astype(np.uint32)
        interior = tifffile.imread(data / "prob_interior.tif")
        return superpixels, (1 - interior / np.float32(255)).astype(np.float32), "SNEMI3D mini"
    sample = agglo.sample("neuropil3d")
    boundary = sample.cues["boundary"][:32]
    superpixels = agglo.oversegment(boundary, per_plane=True, sigma=2, min_size=100)
    return superpixels, boundary, "neuropil3d sample"


def tiled(shape: tuple[int, ...], seed: int = 0) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """Return the crop, mirror-tiled to `shape`, every tile with ids of its own, noise added."""
    superpixels, boundary, _ = crop()
    repeats = tuple(-(-want // have) for want, have in zip(shape, superpixels.shape, strict=True))
    pad = [(0, have * (n - 1)) for have, n in zip(superpixels.shape, repeats, strict=True)]
    window = tuple(slice(0, want) for want in shape)
    labels = np.pad(superpixels, pad, mode="symmetric")[window]
    for axis, have in enumerate(superpixels.shape):
        tile = (np.arange(shape[axis]) // have).astype(np.uint32)
        several = int(labels.max()) + 1
        labels = labels + (tile * several).reshape(
            [-1 if a == axis else 1 for a in range(len(shape))]
        )
    rng = np.random.default_rng(seed)
    noisy = np.pad(boundary, pad, mode="symmetric")[window]
    noisy = noisy + rng.normal(0, 0.01, shape).astype(np.float32)
    dense = agglo.region_graph(labels, np.zeros(shape, np.float32)).superpixels.image
    return dense, np.clip(noisy, 0, 1)


def bare_graph(
    edges: NDArray[np.int64], sums: NDArray[np.int64], faces: NDArray[np.int64]
) -> RegionGraph:
    """Return a graph with the mean of its boundaries and no image, for the merge loop alone."""
    n = int(edges.max())
    layout = Layout(ndim=1, n_cues=1, bins=1)
    boundaries = np.zeros((len(edges), layout.boundary_width), np.int64)
    boundaries[:, 0] = faces
    boundaries[:, layout.boundary_sums(0).start] = sums
    ids = np.arange(n + 1, dtype=np.uint64)
    return RegionGraph(
        superpixels=DenseLabels(ids[1:].astype(np.uint32), ids, np.dtype(np.uint32)),
        spacing=(1.0,),
        cue_names=("boundary",),
        cue_ranges=((0.0, 1.0),),
        layout=layout,
        edges=edges,
        regions=np.zeros((n + 1, layout.region_width), np.int64),
        boundaries=boundaries,
        boxes=np.zeros((n + 1, 2, 1), np.int32),
    )


def eight_times(graph: RegionGraph, seed: int = 0) -> RegionGraph:
    """Return eight copies of a 3-D graph in a 2 x 2 x 2 block, their sums jittered.

    Neighbouring copies mirror each other, so each superpixel on a face meets itself.
    """
    rng = np.random.default_rng(seed)
    n = graph.n_regions
    shape = graph.superpixels.image.shape
    column = graph.layout.boundary_sums(0).start
    faces = graph.boundaries[:, graph.layout.faces].sum(axis=1)
    edges, sums, counts = [], [], []
    for tile in range(8):
        means = graph.boundaries[:, column] / (510.0 * faces) + rng.normal(0, 0.01, len(faces))
        edges.append(graph.edges + tile * n)
        sums.append(np.round(510 * faces * np.clip(means, 0, 1)).astype(np.int64))
        counts.append(faces)
        for axis in range(3):
            if tile >> axis & 1:
                continue
            plane = np.unique(np.take(graph.superpixels.image, shape[axis] - 1, axis=axis))
            met = plane[plane > 0].astype(np.int64)
            edges.append(np.stack([met + tile * n, met + (tile | 1 << axis) * n], axis=1))
            sums.append(rng.integers(0, 510 * 100, len(met)))
            counts.append(np.full(len(met), 100))
    together = np.concatenate(edges)
    order = np.lexsort((together[:, 1], together[:, 0]))
    return bare_graph(together[order], np.concatenate(sums)[order], np.concatenate(counts)[order])


def star(leaves: int, seed: int = 0) -> RegionGraph:
    """Return a hub with so many leaves, in random order of merging."""
    rng = np.random.default_rng(seed)
    hub = leaves // 2 + 1
    others = np.setdiff1d(np.arange(1, leaves + 2), [hub])
    edges = np.sort(np.stack([others, np.full(leaves, hub)], axis=1), axis=1)
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    return bare_graph(edges, rng.integers(0, 51_000, leaves), np.full(leaves, 100))
