"""What `report` finds: every policy examined on one image after another."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from napari_agglo.cli._image import open_image

if TYPE_CHECKING:
    import pandas as pd

    from napari_agglo.report import Finding


@dataclass
class Found:
    """What has been found so far."""

    findings: list[Finding] = field(default_factory=list)
    best: dict[str, dict[str, float]] = field(default_factory=dict)
    human: list[pd.DataFrame] = field(default_factory=list)
    records: dict[str, dict[str, Any]] = field(default_factory=dict)


def examine_image(
    name: str,
    files: Mapping[str, str],
    cues: Mapping[str, str],
    policies: Mapping[str, str],
    arguments: argparse.Namespace,
    found: Found,
) -> None:
    """Examine every policy on one image."""
    from napari_agglo.cli._golds import gold_names, load_golds
    from napari_agglo.cli._inputs import open_inputs
    from napari_agglo.cli._pipeline import build_graph, library_names, plan
    from napari_agglo.cli._terminal import progress_line
    from napari_agglo.cli._words import command_words
    from napari_agglo.evaluate import best_point, human_agreement
    from napari_agglo.policy import LearnedPolicy
    from napari_agglo.report import examine
    from napari_agglo.tree import agglomerate

    evidence = {cue: files[f"--cues {cue}"] for cue in cues}
    truth = gold_names(files)
    inputs = open_inputs(library_names(files["--superpixels"], evidence) | truth, arguments.spacing)
    image = files.get("--image") or evidence.get("boundary") or next(iter(evidence.values()))
    words = {**inputs.files, "backdrop": image}
    with command_words(words):
        golds = load_golds(inputs.volumes, truth, "superpixels")
        backdrop = open_image(image)[0].load()
    made: tuple[Any, ...] = ()
    findings: list[Finding] = []
    records: dict[str, dict[str, Any]] = {}
    plane: tuple[int, ...] | None = None
    with progress_line() as progress:
        for policy_name, given in policies.items():
            policy, ordered, bins = plan(given, evidence)
            if made != (tuple(ordered), bins):
                graph = build_graph(inputs, ordered, arguments, progress, bins)
                made = (tuple(ordered), bins)
            tree = agglomerate(graph, policy, seed=arguments.seed, progress=progress)
            if isinstance(policy, LearnedPolicy):
                records[policy_name] = policy.record
            with command_words(words):
                findings.append(
                    examine(
                        tree,
                        golds,
                        policy=policy_name,
                        image=name,
                        backdrop=backdrop,
                        threshold=arguments.threshold,
                        spacing=inputs.spacing,
                        plane=plane,
                        boundaries=not arguments.no_boundaries,
                        progress=progress,
                    )
                )
            plane = findings[-1].plane  # all policies show the same one
        best = best_point(graph, golds, progress=progress)
        people = human_agreement(golds, progress=progress) if len(golds) > 1 else None
    if people is not None:
        found.human.append(people.assign(image=name))
    found.best[name] = best
    found.records |= records
    found.findings += findings  # only now: an image is told of wholly or not at all


def examine_session(name: str, path: str, arguments: argparse.Namespace, found: Found) -> None:
    """Examine a session before all edits and with them."""
    from napari_agglo.cli._sessions import open_session, session_golds, session_trees
    from napari_agglo.cli._terminal import progress_line
    from napari_agglo.cli._words import command_words
    from napari_agglo.evaluate import best_point, human_agreement
    from napari_agglo.policy import LearnedPolicy
    from napari_agglo.report import examine

    backdrop = open_image(arguments.image)[0].load() if arguments.image else None
    plane: tuple[int, ...] | None = None
    words = {"backdrop": arguments.image or "--image", "superpixels": path}
    with (
        command_words(words),
        progress_line() as progress,
        open_session(path, arguments.superpixels, progress) as session,
    ):
        golds = session_golds(session, arguments.gold)
        if arguments.threshold is None:
            arguments.threshold = session.threshold
        for when, tree in session_trees(session, progress).items():
            found.findings.append(
                examine(
                    tree,
                    golds,
                    policy=when,
                    image=name,
                    backdrop=backdrop,
                    threshold=arguments.threshold,
                    spacing=session.graph.spacing,
                    plane=plane,
                    boundaries=not arguments.no_boundaries,
                    progress=progress,
                )
            )
            plane = found.findings[-1].plane
        if isinstance(session.policy, LearnedPolicy):
            found.records[name] = session.policy.record
        if len(golds) > 1:
            found.human.append(human_agreement(golds, progress=progress).assign(image=name))
        found.best[name] = best_point(session.graph, golds, progress=progress)
