"""`napari-agglo train`: learn from a gold standard which regions to merge."""

from __future__ import annotations

import argparse
import time

from napari_agglo.errors import InvalidInput

NAME = "train"
SUMMARY = "learn a policy from a gold standard"
DESCRIPTION = (
    "Agglomerate superpixels while comparing with a gold standard, and learn which regions to\n"
    "merge. The policy that is written goes to `segment` and `curve` with --policy."
)
EXAMPLE = (
    "napari-agglo train --superpixels superpixels.tif --cues boundary=cue_boundary.tif "
    "--gold gold.tif -o policy.npz"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from napari_agglo.cli._arguments import add_graph

    add_graph(parser)
    parser.add_argument("--gold", required=True, metavar="FILE", help="0 is not annotated")
    parser.add_argument(
        "--strategy",
        choices=("agglo", "flat", "lash", "mixed"),
        default="agglo",
        help="which examples to learn from (default: agglo)",
    )
    parser.add_argument(
        "--epochs", type=int, default=5, metavar="N", help="epochs of agglomeration (default: 5)"
    )
    parser.add_argument(
        "--preset",
        default="em",
        metavar="em|minimal|natural[+BLOCK]",
        help="features to learn from, and feature blocks of other packages (default: em)",
    )
    parser.add_argument(
        "--classifier",
        choices=("forest", "logistic"),
        default="forest",
        help="what is fitted (default: forest)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="(default: 0)")
    parser.add_argument(
        "-o", "--output", required=True, metavar="POLICY.npz", help="policy to write"
    )


def run(arguments: argparse.Namespace) -> None:
    """Train and write the policy."""
    from napari_agglo.cli._arguments import cue_files, cue_ranges
    from napari_agglo.cli._files import check_table_output, open_inputs, refuse_clash
    from napari_agglo.cli._source import build_graph, library_names
    from napari_agglo.cli._terminal import count, progress_line
    from napari_agglo.cli._words import command_words

    cues = cue_files(arguments.cues)
    cue_ranges(arguments.range, cues)
    if not arguments.output.endswith(".npz"):
        raise InvalidInput(f"-o {arguments.output} must end in .npz")
    for name, most in (("seed", 2**32 - 1), ("epochs", 1000)):
        if not 0 <= getattr(arguments, name) <= most:
            raise InvalidInput(f"--{name} must be from 0 to {most}, not {getattr(arguments, name)}")
    check_table_output("-o", arguments.output)
    given = {"--superpixels": arguments.superpixels, "--gold": arguments.gold}
    refuse_clash({"-o": arguments.output}, given | {f"--cues {n}": f for n, f in cues.items()})

    from napari_agglo.learning import train

    files = library_names(arguments.superpixels, cues) | {"gold": arguments.gold}
    inputs = open_inputs(files, arguments.spacing)
    with progress_line() as progress, command_words(inputs.files):
        graph = build_graph(inputs, cues, arguments, progress, 25)
        began = time.perf_counter()
        policy = train(
            graph,
            inputs.volumes["gold"],
            strategy=arguments.strategy,
            epochs=arguments.epochs,
            preset=arguments.preset,
            classifier=arguments.classifier,
            seed=arguments.seed,
            progress=progress,
        )
        seconds = time.perf_counter() - began
        policy.save(arguments.output)
    record = policy.record
    whose = "held-out" if record["held_out"] else "training"
    print(
        f"{arguments.output}: {count(record['examples'], 'example')} "
        f"({record['to_merge']} to merge), {100 * record['accuracy']:.1f} % of {whose} ones right, "
        f"{seconds:.1f} s"
    )
    print("what counts most: " + ", ".join(list(record["importances"])[:5]))
