"""From files to a merge tree, as `segment` and `curve` need it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from napari_agglo.cli._arguments import check_policy, cue_ranges
from napari_agglo.cli._words import command_words
from napari_agglo.errors import InvalidInput

if TYPE_CHECKING:
    from napari_agglo._progress import ProgressCallback
    from napari_agglo.cli._inputs import Inputs
    from napari_agglo.graph import RegionGraph
    from napari_agglo.policy import LearnedPolicy
    from napari_agglo.tree import MergeTree


def library_names(superpixels: str, cues: Mapping[str, str]) -> dict[str, str]:
    """Return what the library calls each input, and its file."""
    return {"superpixels": superpixels} | {f"cues[{name!r}]": file for name, file in cues.items()}


def check_pipeline(
    arguments: argparse.Namespace, cues: Mapping[str, str], policy: str | None = None
) -> None:
    """Refuse what the arguments alone show to be wrong, for the policy given or that of theirs."""
    policy = check_policy(arguments.policy if policy is None else policy)
    if policy == "mean" and "boundary" not in cues:
        raise InvalidInput(
            f"--policy mean needs a cue called boundary, not only {', '.join(cues)}; "
            "add --cues boundary=FILE"
        )
    cue_ranges(arguments.range, cues)
    if not 0 <= arguments.seed < 2**32:
        raise InvalidInput(f"--seed must be from 0 to {2**32 - 1}, not {arguments.seed}")


def build_tree(
    inputs: Inputs,
    cues: Mapping[str, str],
    arguments: argparse.Namespace,
    progress: ProgressCallback | None,
) -> MergeTree:
    """Agglomerate what has been opened."""
    from napari_agglo.tree import agglomerate

    policy, ordered, bins = plan(arguments.policy, cues)
    graph = build_graph(inputs, ordered, arguments, progress, bins)
    return agglomerate(graph, policy, seed=arguments.seed, progress=progress)


def plan(
    given: str, cues: Mapping[str, str]
) -> tuple[LearnedPolicy | str, dict[str, str], int | None]:
    """Return a policy, and the cues in its order and the bins that its graph must have.

    No bins: the mean of each boundary is enough.
    """
    from napari_agglo.policy import LearnedPolicy, load_policy

    policy = load_policy(given) if given.endswith(".npz") else given
    if isinstance(policy, LearnedPolicy):
        wanted = policy.features.cues
        if set(wanted) != set(cues):
            raise InvalidInput(
                f"--policy {given} was trained on the cues {', '.join(wanted)}, and --cues gives "
                f"{', '.join(cues)}; give the same, e.g. --cues {wanted[0]}=FILE"
            )
        return policy, {name: cues[name] for name in wanted}, policy.features.bins
    return given, dict(cues), None


def build_graph(
    inputs: Inputs,
    cues: Mapping[str, str],
    arguments: argparse.Namespace,
    progress: ProgressCallback | None,
    bins: int | None,
) -> RegionGraph:
    """Return the graph of what has been opened: with histograms of so many bins, or the means."""
    from napari_agglo.graph import region_graph

    labels = inputs.volumes["superpixels"]
    evidence = {name: inputs.volumes[f"cues[{name!r}]"] for name in cues}
    _refuse_swapped(inputs, cues)
    with command_words(inputs.files):
        graph = region_graph(
            labels,
            evidence,
            spacing=arguments.spacing,
            ranges=cue_ranges(arguments.range, cues),
            statistics="mean" if bins is None else "all",
            bins=bins or 25,
            dams=arguments.dams,
            nan=arguments.nan,
            progress=progress,
        )
        if graph.n_regions == 0:
            raise InvalidInput(
                "`superpixels` holds no region: all its voxels are 0; make superpixels with "
                "napari-agglo oversegment"
            )
        return graph


def _refuse_swapped(inputs: Inputs, cues: Mapping[str, str]) -> None:
    labels = inputs.volumes["superpixels"]
    for name, file in cues.items():
        cue = inputs.volumes[f"cues[{name!r}]"]
        if labels.dtype.kind == "f" and cue.dtype.kind in "iu":
            raise InvalidInput(
                f"{inputs.files['superpixels']} holds {labels.dtype} and {file} {cue.dtype}: "
                "--superpixels, which are integers, and --cues seem to be swapped"
            )
