"""`napari-agglo train`: a policy trained on gold standards."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from napari_agglo.cli._arguments import (
    add_choice,
    add_graph,
    add_json,
    add_output,
    add_value,
    cue_names,
    cue_ranges,
    gold_files,
    graph_files,
)
from napari_agglo.cli._command_source import FileSource
from napari_agglo.cli._files import check_table_output, refuse_clash
from napari_agglo.cli._image_folders import partners
from napari_agglo.cli._terminal import GRAPH, Console, count, one_work, table
from napari_agglo.errors import InvalidInput, SetOption, check_whole

NAME = "train"
SUMMARY = "train a policy on gold standards"
DESCRIPTION = (
    "Agglomerate superpixels while comparing with a gold standard, and learn which regions to\n"
    "merge. `segment` and `curve` take the policy with --policy. For several volumes give\n"
    "--superpixels, --cues and --gold again for each, or folders with --each."
)
EXAMPLE = (
    "napari-agglo train --superpixels superpixels.tif --cues boundary=cue_boundary.tif "
    "--gold gold.tif -o policy.npz"
)
_GRAPHS = 0.2  # part of the progress bar that the graphs take, the training having the rest


@dataclass
class Volume:
    """The files of one training volume."""

    superpixels: str | None = None
    cues: list[tuple[str, str]] = field(default_factory=list)
    affinities: str | None = None
    oriented: str | None = None
    words: list[tuple[str, str]] = field(default_factory=list)
    gold: list[str] = field(default_factory=list)


class _VolumeAction(argparse.Action):
    """Collect files by volume: ``--superpixels`` begins a new one, others belong to the last."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        volumes: list[Volume] = [*(getattr(namespace, "volumes", None) or [])]
        begins = self.dest == "superpixels" and volumes and volumes[-1].superpixels is not None
        if not volumes or begins:
            volumes.append(Volume())
        if self.dest in ("superpixels", "affinities", "oriented"):
            setattr(volumes[-1], self.dest, values)
        else:
            getattr(volumes[-1], self.dest).extend(values)
        namespace.volumes = volumes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_graph(parser, required=True, action=_VolumeAction)
    parser.add_argument(
        "--gold", required=True, nargs="+", action=_VolumeAction, metavar="FILE",
        help="0 is not annotated; of several of one image, the majority counts",
    )  # fmt: skip
    text = "examples to learn from"
    add_choice(parser, "--strategy", text, "agglo", "flat", "lash", "mixed")
    add_value(parser, "--epochs", "N", "epochs of agglomeration", type=int, default=5)
    text = "features to learn from, and feature blocks of other packages, which `napari-agglo "
    text += "plugins` lists"
    add_value(
        parser, "--preset", "shape|stack|em|minimal|natural|angles[+BLOCK]", text, default="shape"
    )
    add_choice(parser, "--classifier", "classifier to fit", "forest", "logistic")
    add_value(parser, "--seed", "N", "seed of the training", type=int, default=0)
    text = (
        "also learn from one half of the gold, and print the error on the other half beside those "
        "of flat learning and of the mean; the policy that is written learns from all of the gold"
    )
    held_out = parser.add_mutually_exclusive_group()
    held_out.add_argument(
        "--hold-out", dest="folds", action="store_const", const=1, default=0, help=text
    )
    text = "the same with each of K parts held out in turn"
    held_out.add_argument("--folds", dest="folds", metavar="K", type=int, help=text)
    add_output(parser, "POLICY.npz", "policy to write")
    add_json(parser)
    parser.add_argument(
        "--each",
        action="store_true",
        help="the inputs are folders of separate images of the same names, or patterns, which make "
        "one policy together",
    )


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Train and write the policy."""
    from napari_agglo._progress import part_of
    from napari_agglo.evaluate import train_and_hold_out
    from napari_agglo.graph import DEFAULT_BINS

    output = arguments.output
    volumes = _volume_files(arguments, console)
    cue_ranges(arguments.range, cue_names(volumes[0]))
    if not output.endswith(".npz"):
        raise InvalidInput(
            f"-o {output} must end in .npz",
            argument="path",
            remedy=SetOption("path", str(Path(output).with_suffix(".npz"))),
        )
    check_whole("seed", arguments.seed, 0, 2**32 - 1)
    check_whole("epochs", arguments.epochs, 0, 1000)
    check_whole("folds", arguments.folds, 0, 100)
    check_table_output("-o", output)
    for files in volumes:
        refuse_clash(console, {"-o": output}, files)

    began = time.perf_counter()
    with console.progress() as progress:
        pairs = []
        for k, files in enumerate(volumes):
            begin, end = (_GRAPHS * n / len(volumes) for n in (k, k + 1))
            part = one_work(part_of(progress, begin, end), GRAPH)
            source = FileSource(arguments, console, files, {})
            golds = source.golds()
            pairs.append((source.graph(part, cue_names(volumes[0]), DEFAULT_BINS), golds))
        policy = train_and_hold_out(
            pairs,
            folds=arguments.folds,
            compare=("flat", "mean"),
            strategy=arguments.strategy,
            epochs=arguments.epochs,
            preset=arguments.preset,
            classifier=arguments.classifier,
            seed=arguments.seed,
            progress=part_of(progress, _GRAPHS, 1.0),
        )
        policy.save(output)
    record, seconds = policy.record, time.perf_counter() - began
    whose = "held-out" if record["held_out"] else "training"
    first = list(record["importances"])[:5]
    estimate = record.get("estimate")
    console.result(
        f"{output}: {count(record['examples'], 'example')} ({record['to_merge']} to merge), "
        f"{100 * record['accuracy']:.1f} % of {whose} ones right, {seconds:.1f} s\n"
        f"most important features: {', '.join(first)}" + _estimate_text(estimate),
        {
            "output": output,
            "volumes": len(volumes),
            **{n: record[n] for n in ("examples", "to_merge", "accuracy", "held_out")},
            "importances": dict(record["importances"]),
            **({} if estimate is None else {"estimate": estimate}),
            "seconds": seconds,
        },
    )


def _estimate_text(estimate: dict[str, Any] | None) -> str:
    """Return the errors on held-out parts as a table, or the reason that there are none."""
    if estimate is None:
        return ""
    if "refusal" in estimate:
        return f"\n\nNo held-out error: {estimate['refusal']}"
    folds = estimate["folds"]
    where = "the half that was held out" if folds == 1 else f"the mean of {folds} parts held out"
    columns = ("vi_at_half", "vi_min")
    rows = [[name, *(row[c] for c in columns)] for name, row in estimate["policies"].items()]
    best = next(iter(estimate["policies"].values()))["vi_best"]
    return (
        f"\n\nVI in bits on {where}, learned from the rest\n\n"
        f"{table(['policy', 'at 0.5', 'at best'], [*rows, ['best possible', '', best]])}\n\n"
        "The policy in the file has learned from all of the gold; these errors are an estimate of "
        "its error on other data"
    )


def _volume_files(arguments: argparse.Namespace, console: Console) -> list[dict[str, str]]:
    """Return the files of each volume by their names in the library; all have the same cues."""
    volumes = [_check_volume(volume, k) for k, volume in enumerate(arguments.volumes, start=1)]
    if arguments.each:
        volumes = [files for one in volumes for files in partners(console, one).values()]
    first = cue_names(volumes[0])
    for files in volumes[1:]:
        if sorted(cue_names(files)) != sorted(first):
            raise InvalidInput(
                f"the volume of {files['superpixels']} has the cues "
                f"{', '.join(cue_names(files))}, and that of {volumes[0]['superpixels']} has "
                f"{', '.join(first)}",
                argument="cues",
                remedy="give all volumes the same cues",
            )
    return volumes


def _check_volume(volume: Volume, number: int) -> dict[str, str]:
    evidence = volume.cues or volume.affinities or volume.oriented
    parts = {"superpixels": volume.superpixels, "cues": evidence, "gold": volume.gold}
    missing = [f"--{name}" for name, part in parts.items() if not part]
    if missing or volume.superpixels is None:
        raise InvalidInput(
            f"volume {number} has no {' and no '.join(missing)}",
            argument="superpixels",
            remedy="give --superpixels, --cues and --gold for each volume",
        )
    files = graph_files(
        volume.superpixels, volume.cues, volume.affinities, volume.oriented, volume.words
    )
    return files | gold_files(volume.gold)
