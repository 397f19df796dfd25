"""Cost of a feature block of another package: time to learn and to merge with it and without.

``python -m benchmarks.plugin_blocks`` prints CPU seconds and the calls of its function.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import napari_agglo as agglo
from napari_agglo.features import FeatureBlock, feature_blocks
from napari_agglo.graph import RegionGraph

_calls: list[int] = []


def contact(graph: RegionGraph) -> np.ndarray:
    """Return the share of the contact in the surface of the regions, and the distance of them."""
    _calls.append(graph.n_boundaries)
    layout = graph.layout
    faces = graph.regions[:, layout.border] + graph.regions[:, layout.contact]
    surface = faces @ graph.face_areas()
    u, v = graph.edges.T
    centres = graph.centroids() * np.asarray(graph.spacing)
    area = graph.contact_area()
    least = np.maximum(np.minimum(surface[u], surface[v]), 1e-12)
    return np.column_stack([area / least, np.linalg.norm(centres[u] - centres[v], axis=1)])


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=160, help="pixels of the crop along an axis")
    side = parser.parse_args().side
    feature_blocks.register("contact", FeatureBlock("contact", ("share", "distance"), contact))
    sample = agglo.sample("neuropil2d")
    boundary, gold = sample.cues["boundary"][:side, :side], sample.gold[:side, :side]
    graph = agglo.region_graph(agglo.oversegment(boundary), boundary)
    print(graph)
    agglo.agglomerate(graph, agglo.train(graph, gold, epochs=1, preset="minimal+contact"))  # warm
    print("| strategy | preset | train, CPU s | calls | merge, CPU s | calls |")
    for strategy in ("flat", "agglo"):
        for preset in ("minimal", "minimal+contact"):
            _calls.clear()
            begun = time.process_time()
            policy = agglo.train(graph, gold, strategy=strategy, epochs=2, preset=preset)
            trained, n_train = time.process_time(), len(_calls)
            _calls.clear()
            agglo.agglomerate(graph, policy)
            merged = time.process_time()
            print(
                f"| {strategy} | {preset} | {trained - begun:.2f} | {n_train} "
                f"| {merged - trained:.2f} | {len(_calls)} |"
            )


if __name__ == "__main__":
    main()
