"""From files to a merge tree, as `segment` and `curve` need it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from napari_agglo.cli._arguments import check_policy, cue_ranges, pick_spacing, require_range
from napari_agglo.errors import InvalidInput

if TYPE_CHECKING:
    from napari_agglo._progress import ProgressCallback
    from napari_agglo.tree import MergeTree


def build_tree(
    superpixels: str,
    cues: Mapping[str, str],
    arguments: argparse.Namespace,
    progress: ProgressCallback | None,
) -> tuple[MergeTree, tuple[float, ...] | None]:
    """Read the files and agglomerate; return the tree and the spacing, if it is known."""
    policy = check_policy(arguments.policy)
    if policy == "mean" and "boundary" not in cues:
        raise InvalidInput(
            f"--policy mean needs a cue called boundary, not only {', '.join(cues)}; "
            "add --cues boundary=FILE"
        )
    ranges = cue_ranges(arguments.range, cues)

    from napari_agglo.graph import region_graph
    from napari_agglo.tree import agglomerate
    from napari_agglo.volumes import open_volume

    labels = open_volume(superpixels)
    volumes = {name: open_volume(path) for name, path in cues.items()}
    for name, volume in volumes.items():
        require_range(cues[name], volume, (ranges or {}).get(name), f"--range {name}=")
    spacing = pick_spacing(arguments.spacing, labels, *volumes.values())
    graph = region_graph(
        labels,
        volumes,
        spacing=spacing,
        ranges=ranges,
        statistics="mean",
        dams=arguments.dams,
        progress=progress,
    )
    return agglomerate(graph, policy, seed=arguments.seed, progress=progress), spacing
