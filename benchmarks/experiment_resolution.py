"""Errors of policies on data of another resolution, as they are and resampled: docs/learning.md.

    python -m benchmarks.experiment_resolution [--seeds 3] [--only fib25,...]

A policy learns from one side of a source of the judge. The other side is taken at every second
pixel (cues are means of blocks), and merged as it is and after its superpixels and cues were
enlarged to the pixels of the training. Then the other way round: the policy learns from coarse
data, and fine ones are merged. Cues that differ are adapted (`adapt_cues`) in all of them.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd
from scipy.ndimage import zoom

import napari_agglo as agglo
from benchmarks.judge import sides
from napari_agglo.evaluate import state_at, vi_curve

FACTOR = 2


def coarse(image: Any, cue: Any, gold: Any) -> tuple[Any, Any, Any]:
    """Return superpixels, cue and gold at every second pixel of every axis."""
    shape = [n // FACTOR * FACTOR for n in image.shape]
    window = tuple(slice(n) for n in shape)
    blocks = cue[window].reshape([k for n in shape for k in (n // FACTOR, FACTOR)])
    every = tuple(slice(0, n, FACTOR) for n in shape)
    return image[every], blocks.mean(axis=tuple(range(1, 2 * cue.ndim, 2))), gold[every]


def resampled(image: Any, cue: Any, factor: float) -> tuple[Any, Any]:
    """Return superpixels and cue at `factor` times as many pixels along each axis."""
    return zoom(image, factor, order=0), np.clip(zoom(cue, factor, order=1), 0, 1)


def errors(policy: Any, image: Any, cue: Any, gold: Any, spacing: Any) -> tuple[float, float]:
    """Return VI at 0.5 and at the best threshold, with cues adapted to those of the training."""
    graph = agglo.region_graph(image, cue, spacing=spacing)
    graph = agglo.region_graph(image, agglo.adapt_cues(policy, graph), spacing=spacing)
    curve = vi_curve(agglo.agglomeration.merge_tree(graph, policy), gold)
    return float(state_at(curve, 0.5)["vi"]), float(curve["vi"].min())


def experiment(source: str, side: int, seed: int) -> list[dict[str, Any]]:
    """Return a row for each way to apply a policy, of one direction."""
    both = sides(source, "boundary")
    fine = []
    for graph, gold in (both[side][0], both[1 - side][0]):
        image = graph.superpixels.image
        fine.append((image, graph.cues[0].reshape(image.shape) / 255, gold, graph.spacing))
    small = [(*coarse(*one[:3]), tuple(FACTOR * s for s in one[3])) for one in fine]
    rows = []
    for name, (image, cue, gold, spacing), (other, values, truth, size) in (
        ("fine to coarse", fine[0], small[1]),
        ("coarse to fine", small[0], fine[1]),
    ):
        policy = agglo.train(agglo.region_graph(image, cue, spacing=spacing), gold, seed=seed)
        factor = size[0] / spacing[0]
        larger, finer = resampled(other, values, factor)
        lost = len(np.unique(other)) - len(np.unique(larger))
        as_it_is = errors(policy, other, values, truth, size)
        gold_there = zoom(truth, factor, order=0)
        mended = errors(policy, larger, finer, gold_there, spacing)
        row = {"source": source, "side": side, "seed": seed, "way": name, "lost": lost}
        rows.append({**row, "at 0.5": as_it_is[0], "best": as_it_is[1],
                     "resampled at 0.5": mended[0], "resampled best": mended[1]})  # fmt: skip
    return rows


def main() -> None:
    """Print means over seeds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="fib25,neuropil3d,fibsem")
    given = parser.parse_args()
    rows = [
        row
        for source in given.only.split(",")
        for side in (0, 1)
        for seed in range(given.seeds)
        for row in experiment(source, side, seed)
    ]
    runs = pd.DataFrame(rows)
    table = runs.groupby(["source", "side", "way"], sort=False).mean().drop(columns="seed")
    print(table.to_string(float_format="%.3f"))


if __name__ == "__main__":
    main()
