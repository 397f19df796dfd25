"""Block-wise results beside those of the whole: halo, final merges, learned merges in groups.

The parts `halo`, `hierarchical` and `learned` of `bench_blocks`; see docs/scale.md.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from benchmarks.bench_blocks import marker_of, tile_path


def by_halo(folder: Path) -> list[dict[str, Any]]:
    """Compare superpixels of blocks with those of the whole tile, for several halos."""
    import warnings

    import napari_agglo as agglo
    from napari_agglo import blocks

    boundary = np.load(tile_path(folder))["boundary"]
    path = folder / "tile.zarr"
    zarr.create_array(str(path), data=boundary, chunks=(64,) * 3, overwrite=True)
    rows = []
    for sigma, halos in ((0.5, (2, 4, 8, 12, 16)), (2.0, (8, 16, 24, 32))):
        whole = agglo.oversegment(boundary, value_range=(0, 255), sigma=sigma)
        chosen = blocks.plan(None, str(path), ranges=(0, 255), sigma=sigma).halo
        for halo in halos:
            output = folder / f"result-halo-{halo}"
            shutil.rmtree(output, ignore_errors=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                blocks.plan(
                    output, str(path), ranges=(0, 255), block=(48,) * 3, halo=halo, sigma=sigma
                )
            for stage in ("cut", "join", "number", "superpixels"):
                blocks.run(output, stage=stage)
            made = zarr.open_array(str(output / "superpixels.ome.zarr" / "0"), mode="r")[...]
            merge, split = agglo.split_vi(made, whole)
            rows.append({"sigma": sigma, "halo": halo, "superpixels": int(made.max()),
                         "of": int(whole.max()), "false_merge": merge, "false_split": split,
                         "disagreement": blocks.status(output).disagreement,
                         "chosen": chosen})  # fmt: skip
            print(rows[-1], flush=True)
            shutil.rmtree(output)
    return rows


def final_merges(folder: Path, name: str) -> list[dict[str, Any]]:
    """Count the superpixels and boundaries that are left by final merges in groups of blocks."""
    from napari_agglo import blocks

    source = folder / f"result-{name}"
    whole = blocks.open(source)
    superpixels = whole.superpixels_path
    rows = []
    for side in (min(whole.plan.shape) // 8, min(whole.plan.shape) // 4):
        output = folder / f"result-hierarchical-{side}"
        shutil.rmtree(output, ignore_errors=True)
        blocks.plan(
            output, str(folder / "boundary.zarr"), superpixels=str(superpixels), ranges=(0, 255),
            block=(side,) * 3, hierarchical=True,
        )  # fmt: skip
        for stage in [s.name for s in blocks.status(output).stages]:
            blocks.run(output, stage=stage)
            if stage == "tree":
                break
        result = blocks.open(output)
        marker = marker_of(output, "graph")
        equal = all(
            np.array_equal(getattr(result.tree, part), getattr(whole.tree, part))
            for part in ("winners", "losers", "priorities")
        )
        rows.append({"block": side, "regions": marker["regions"],
                     "boundaries": marker["boundaries"], "of": whole.graph.n_regions,
                     "boundaries_of": whole.graph.n_boundaries, "equal": equal})  # fmt: skip
        print(rows[-1], flush=True)
    return rows


def learned_merges(folder: Path) -> list[dict[str, Any]]:
    """Compare a learned policy in groups of blocks with the same policy on the whole graph.

    The policy is trained on another volume of the sample; the errors are against the gold standard
    of the tile, each at its own best threshold.
    """
    import napari_agglo as agglo
    from napari_agglo import blocks
    from napari_agglo.samples._sample import neuropil_sample

    kept = folder / "policy.npz"
    if not kept.exists():
        sample = neuropil_sample("train", (64, 128, 128), 1)
        cue = np.rint(255 * sample.cues["boundary"]).astype(np.uint8)
        superpixels = agglo.oversegment(cue, value_range=(0, 255))
        graph = agglo.region_graph(superpixels, cue, ranges=(0, 255))
        agglo.train(graph, sample.gold, epochs=2).save(kept)
    arrays = np.load(tile_path(folder))
    superpixels = agglo.oversegment(arrays["boundary"], value_range=(0, 255))
    sources = {"boundary": arrays["boundary"], "superpixels": superpixels, "gold": arrays["gold"]}
    for name, array in sources.items():
        path = folder / f"tile-{name}.zarr"
        zarr.create_array(str(path), data=array, chunks=(64,) * 3, overwrite=True)
    rows: list[dict[str, Any]] = []
    whole: Any = None
    for below in (0.0, 0.02, 0.05, 0.1, 0.2, 0.3):
        output = folder / "result-learned"
        shutil.rmtree(output, ignore_errors=True)
        blocks.plan(
            output, str(folder / "tile-boundary.zarr"), ranges=(0, 255),
            superpixels=str(folder / "tile-superpixels.zarr"), gold=str(folder / "tile-gold.zarr"),
            policy=str(kept), block=(32,) * 3, hierarchical=below > 0, approximate=below,
        )  # fmt: skip
        blocks.run(output)
        result = blocks.open(output)
        best = result.curve.iloc[int(result.curve["vi"].to_numpy().argmin())]
        marker = marker_of(output, "graph")
        labels = result.tree.segment(0.5)
        whole = labels if whole is None else whole
        rows.append({"below": below, "regions": marker["regions"], "of": int(superpixels.max()),
                     "boundaries": marker["boundaries"], "vi": float(best["vi"]),
                     "threshold": float(best["threshold"]),
                     "difference_at_half": float(sum(agglo.split_vi(labels, whole)))})  # fmt: skip
        print(rows[-1], flush=True)
    return rows
