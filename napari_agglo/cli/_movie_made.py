"""The movie of files, or of a session: its panels, and the writing."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from napari_agglo.errors import InvalidInput

if TYPE_CHECKING:
    from napari_agglo._progress import ProgressCallback
    from napari_agglo.cli._inputs import Inputs
    from napari_agglo.tree import MergeTree

_MOST = 4
OPTIONS = {
    "path": "-o", "plane": "--plane", "by": "--by", "frames": "--frames", "fps": "--fps",
    "start": "--from", "stop": "--to", "size": "--size",
}  # fmt: skip


def film_files(arguments: argparse.Namespace) -> dict[str, Any]:
    """Agglomerate by each policy, write the movie, and return its panels."""
    from napari_agglo.cli._arguments import cue_files
    from napari_agglo.cli._inputs import open_inputs
    from napari_agglo.cli._outputs import refuse_clash
    from napari_agglo.cli._pipeline import check_pipeline, library_names, plan
    from napari_agglo.cli._report import policy_names
    from napari_agglo.cli._terminal import progress_line
    from napari_agglo.cli._words import command_words

    cues = cue_files(arguments.cues)
    policies = policy_names(arguments.policy or ["mean"])
    if len(policies) > _MOST:
        raise InvalidInput(f"--policy is given {len(policies)} times; a movie has up to {_MOST}")
    for policy in policies.values():
        check_pipeline(arguments, cues, policy)
        plan(policy, cues)  # one that cannot be used is told now, not after the others have been
    files = library_names(arguments.superpixels, cues)
    if arguments.gold:
        files["gold"] = arguments.gold
    given = {"--superpixels": arguments.superpixels} | {f"--cues {n}": f for n, f in cues.items()}
    given |= {f"--{k}": v for k in ("image", "gold") if (v := getattr(arguments, k))}
    given |= {f"--policy {name}": one for name, one in policies.items() if one.endswith(".npz")}
    refuse_clash({"-o": arguments.output}, given)

    inputs = open_inputs(files, arguments.spacing)
    words = {**files, **OPTIONS, "image": arguments.image or "--image"}
    with command_words(words), progress_line() as progress:
        panels: dict[str, Any] = _trees(inputs, policies, cues, arguments, progress)
        gold = inputs.volumes["gold"].load() if arguments.gold else None
        return _write(panels, gold, inputs.spacing, arguments, progress)


def film_session(path: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the movie of a session, and return its panels."""
    from napari_agglo.cli._outputs import refuse_clash
    from napari_agglo.cli._sessions import open_session, session_golds, session_trees
    from napari_agglo.cli._terminal import progress_line
    from napari_agglo.cli._words import command_words

    given = {"SESSION": path}
    given |= {f"--{k}": v for k in ("image", "gold") if (v := getattr(arguments, k))}
    refuse_clash({"-o": arguments.output}, given)
    words = {**OPTIONS, "image": arguments.image or "--image", "superpixels": path}
    with (
        command_words(words),
        progress_line() as progress,
        open_session(path, arguments.superpixels, progress) as session,
    ):
        panels: dict[str, Any] = {**session_trees(session, progress, before=arguments.before)}
        gold = session.gold
        if arguments.gold:
            (gold,) = session_golds(session, [arguments.gold])
        return _write(panels, gold, session.graph.spacing, arguments, progress)


def _write(
    panels: dict[str, Any],
    gold: Any,
    spacing: tuple[float, ...] | None,
    arguments: argparse.Namespace,
    progress: ProgressCallback | None,
) -> dict[str, Any]:
    """Write the movie, with gold in it if there is some, and return its panels."""
    from napari_agglo.cli._image import open_image
    from napari_agglo.movie import write_movie

    options: dict[str, Any] = {
        name: getattr(arguments, name)
        for name in ("plane", "by", "start", "stop", "frames", "size", "fps")
    }
    if arguments.image:
        options["image"] = open_image(arguments.image)[0].load()
    if gold is not None and len(panels) < _MOST and "gold" not in panels:
        panels = {**panels, "gold": gold}
    write_movie(arguments.output, panels, gold=gold, spacing=spacing, progress=progress, **options)
    return panels


def _trees(
    inputs: Inputs,
    policies: Mapping[str, str],
    cues: Mapping[str, str],
    arguments: argparse.Namespace,
    progress: ProgressCallback | None,
) -> dict[str, MergeTree]:
    """Agglomerate by each policy, on as few graphs as they need."""
    from napari_agglo.cli._pipeline import build_graph, plan
    from napari_agglo.graph import RegionGraph
    from napari_agglo.tree import agglomerate

    graphs: dict[tuple[Any, ...], RegionGraph] = {}
    trees = {}
    for name, given in policies.items():
        policy, ordered, bins = plan(given, cues)
        key = (*ordered, bins)
        if key not in graphs:
            graphs[key] = build_graph(inputs, ordered, arguments, progress, bins)
        trees[name] = agglomerate(graphs[key], policy, seed=arguments.seed, progress=progress)
    return trees
