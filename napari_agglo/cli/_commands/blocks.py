"""`napari-agglo blocks`: plan, run and describe a block-wise segmentation of a large volume."""

from __future__ import annotations

import argparse
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_agglo.cli._arguments import (
    AFFINITY,
    add_affinities,
    add_json,
    add_nan,
    add_spacing,
    add_threshold,
    add_value,
    add_verbosity,
    cue_ranges,
    named_file,
    named_range,
    refuse_beyond,
)
from napari_agglo.cli._files import warn_of_unit
from napari_agglo.cli._messages import SomeFailed
from napari_agglo.cli._provenance import add_provenance
from napari_agglo.cli._terminal import Console, Stages, count, table
from napari_agglo.errors import InvalidInput

if TYPE_CHECKING:
    from napari_agglo.blocks import Status

NAME = "blocks"
SUMMARY = "segment a volume that does not fit in memory, block by block"
DESCRIPTION = (
    "plan chooses blocks and writes a plan to a folder, run does the remaining work, status\n"
    "prints the progress, session makes a session of the results for proofreading. Files in the\n"
    "folder record the finished work: a run that was killed continues where it stopped, and parts\n"
    "of a run can be jobs of a cluster."
)
# Share of faces between blocks above which the halo is called too small: docs/scale.md.
DISAGREEMENT = 0.001
# CPU seconds of a block of 192 x 192 x 192 voxels in the stages that take longest (docs/scale.md).
_SECONDS = {
    "predict": 20.0, "cut": 0.6, "superpixels": 0.08, "statistics": 0.2, "tree": 0.08,
    "labels": 0.05, "precomputed": 1.8, "overlap": 0.3,
}  # fmt: skip
_BUDGET = (
    "The budget is that of all processes on this machine together, and with --client of each\n"
    "worker process on another machine."
)
EXAMPLE = "napari-agglo blocks plan result --cues boundary=boundary.zarr --range 0:255 --memory 4GB"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their arguments."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, add, run_action, summary in (
        ("plan", _add_plan, run_plan, "choose blocks for a volume, and write the plan to a folder"),
        ("run", _add_run, run_run, "do the remaining work of a plan"),
        ("status", _add_status, run_status, "print the progress of a run"),
        ("session", _add_session, run_session, "start a proofreading session of the results"),
    ):
        action = actions.add_parser(name, help=summary, description=summary)
        action.add_argument("folder", metavar="FOLDER", help="folder of the results")
        add(action)
        add_json(action)
        add_verbosity(action)
        if name in ("run", "session"):
            add_provenance(action)
        if name == "session":
            action.set_defaults(records="")
        action.set_defaults(run=run_action, parser=action)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Run an action; its own parser has set another function in place of this one."""
    raise AssertionError("an action is required")


def _add_plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cues", nargs="+", action="extend", type=named_file, default=[], metavar="NAME=FILE",
        help="evidence; one without a name is the boundary",
    )  # fmt: skip
    add_affinities(parser)
    add_value(parser, "--superpixels", "FILE", "label image (default: made of the boundary)")
    add_value(parser, "--gold", "FILE", "gold standard, to evaluate against")
    add_value(parser, "--mask", "FILE", "make superpixels only where this is not 0")
    add_value(parser, "--image", "FILE", "image of a pixel classifier, whose classes become cues")
    add_value(parser, "--classifier", "FILE.npz", "as `napari-agglo pixels train` wrote it")
    text = "mean, random, or a policy that `napari-agglo train` wrote, such as one of a crop"
    add_value(parser, "--policy", "POLICY.npz|mean|random", text, default="mean")
    add_threshold(parser, "write the labels at this threshold")
    parser.add_argument(
        "--range", nargs="+", action="extend", type=named_range, default=[],
        metavar="NAME=LOW:HIGH",
        help="the values of a cue that mean 0 and 1; without NAME for all cues",
    )  # fmt: skip
    add_nan(parser)
    add_spacing(parser)
    parser.add_argument("--dams", action="store_true", help="regions across a line of 0 touch")
    text = "the cue that superpixels are made of (default: boundary, or else affinity)"
    add_value(parser, "--boundary", "NAME", text)
    add_value(parser, "--sigma", "S", "smoothing, as in oversegment", type=float)
    add_value(parser, "--min-size", "N", "smallest superpixel, as in oversegment", type=int)
    parser.add_argument("--per-plane", action="store_true", help="each plane by itself")
    text = "voxels around a block that are flooded with it (default: 16, or by a sample)"
    add_value(parser, "--halo", "N", text, type=int)
    text = (
        "memory of all processes on this machine, and of each worker on another, such as 4GB "
        "(default: half of the free memory)"
    )
    add_value(parser, "--memory", "SIZE", text, type=memory_size)
    add_value(parser, "--block", "Z,Y,X", "voxels of a block (default: by --memory)", type=sides)
    add_value(parser, "--chunks", "Z,Y,X", "chunks of the results; they divide a block", type=sides)
    parser.add_argument("--shards", action="store_true", help="a file for each block, not chunk")
    add_value(parser, "--workers", "N", "blocks at a time (default: by cores, memory)", type=int)
    parser.add_argument("--no-pyramid", action="store_true", help="write the finest level only")
    parser.add_argument(
        "--ome-version", choices=["0.5", "0.4"], default="0.5",
        help="version of OME-Zarr of the results (default: 0.5)",
    )  # fmt: skip
    text = "write the labels for Neuroglancer too, as labels.precomputed"
    parser.add_argument("--precomputed", action="store_true", help=text)
    text = "copy the labels there at the end, e.g. s3://BUCKET/NAME; the folder keeps them too"
    add_value(parser, "--copy-to", "URL", text)
    parser.add_argument(
        "--hierarchical", action="store_true",
        help="make final merges while tables are reduced, for graphs larger than memory",
    )  # fmt: skip
    text = (
        "with --hierarchical and a learned policy: make merges below this priority within groups "
        "of blocks, which is near the exact result but not equal to it"
    )
    add_value(parser, "--approximate", "P", text, type=float, default=0.0)
    text = "plan also where the graph does not fit by a sample; run refuses it if that is so"
    parser.add_argument("--force", action="store_true", help=text)
    parser.add_argument("--dry-run", action="store_true", help="print the plan, write nothing")


def _add_run(parser: argparse.ArgumentParser) -> None:
    add_value(parser, "--workers", "N", "blocks at a time (default: that of the plan)", type=int)
    text = "address of a dask.distributed scheduler, or `local:N` for N processes on this machine"
    add_value(parser, "--client", "ADDRESS", text)
    add_value(parser, "--part", "I/N", "only this part of a stage, for array jobs", type=part)
    add_value(parser, "--stage", "NAME", "only this stage")
    add_value(parser, "--block", "K", "only this task of --stage, again", type=int)
    text = "take inputs for unchanged whose files have other times, but the same names and sizes"
    parser.add_argument("--accept-inputs", action="store_true", help=text)


def _add_status(parser: argparse.ArgumentParser) -> None:
    text = (
        "look for every chunk of the results (default: if they have 100,000 or fewer), and decode "
        "those of the finest level, or some thousands of them"
    )
    parser.add_argument("--check", action="store_true", default=None, help=text)


def _add_session(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="NAME.agglo", help="session folder to make")
    add_value(parser, "--image", "FILE", "image to show (default: that of the pixel classifier)")


def memory_size(text: str) -> int:
    """Read ``4GB``, ``500 MB`` or a number of bytes.

    Examples
    --------
    >>> memory_size("1.5GB")
    1500000000
    """
    from napari_agglo.blocks._budget import memory_bytes

    number = memory_bytes(text)
    if number is not None and number < 10**6 and re.fullmatch(r"[\d.]+", text.strip()):
        raise argparse.ArgumentTypeError(f"{text!r} has no unit; give {text.strip()}GB")
    if number is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 4GB")
    return number


def sides(text: str) -> tuple[int, ...] | int:
    """Read ``64,256,256``, or one number for all axes.

    Examples
    --------
    >>> sides("64,256,256"), sides("128")
    ((64, 256, 256), 128)
    """
    try:
        values = tuple(int(one) for one in text.split(","))
    except ValueError:
        values = (0,)
    if min(values) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of voxels for each axis")
    return values[0] if len(values) == 1 else values


def part(text: str) -> tuple[int, int]:
    """Read ``3/40``: the third of forty parts.

    Examples
    --------
    >>> part("3/40")
    (3, 40)
    """
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a part such as 3/40")
    return int(match[1]), int(match[2])


def run_plan(arguments: argparse.Namespace, console: Console) -> None:
    """Make a plan, and print its size and cost."""
    from napari_agglo import blocks
    from napari_agglo.volumes import open_volume

    refuse_beyond(arguments.threshold, arguments.policy, bounded=True)  # as all policies of blocks
    cues = dict(arguments.cues)
    files = {f"cues[{name!r}]": path for name, path in cues.items()}
    named = ("affinities", "superpixels", "gold", "mask", "image", "classifier")
    console.files |= files | {n: p for n in named if (p := getattr(arguments, n))}
    if arguments.spacing is not None and arguments.unit is None:
        inputs = [n for n in (*files, *named[:-1]) if n in console.files]
        warn_of_unit(console, {n: open_volume(console.files[n]) for n in inputs}, arguments.spacing)
    settings = {
        name: getattr(arguments, name)
        for name in (
            *named, "offsets", "policy", "threshold", "spacing", "unit", "nan", "dams", "boundary",
            "sigma", "min_size", "per_plane", "halo", "block", "chunks", "shards", "memory",
            "workers", "precomputed", "hierarchical", "approximate", "force",
            "copy_to",
        )
    }  # fmt: skip
    plan = blocks.plan(
        None if arguments.dry_run else arguments.folder,
        cues or None,
        ranges=_ranges(arguments, list(cues)),
        pyramid=not arguments.no_pyramid,
        version=arguments.ome_version,
        **settings,
    )
    cost = blocks.estimate(plan)
    data: dict[str, Any] = {
        "folder": arguments.folder,
        "shape": list(plan.shape),
        "block": list(plan.block),
        "blocks": cost.blocks,
        "workers": cost.workers,
        "halo": plan.halo,
        "levels": plan.levels,
        "voxels": cost.voxels,
        "superpixels": cost.superpixels,
        "boundaries": cost.boundaries,
        "read": cost.read_bytes,
        "written": cost.written_bytes,
        "block memory": cost.block_bytes,
        "reduction memory": cost.reduction_bytes,
        "graph memory": cost.graph_bytes,
        "peak memory": cost.peak_bytes,
        "budget": plan.memory,
        "minutes": round(cost.minutes, 1),
        **({"copy to": plan.copy_to} if plan.copy_to else {}),
    }
    rows = [[name, _plain(name, value)] for name, value in data.items()]
    known = "a sample of the volume" if plan.superpixel_density else "an assumption"
    text = f"{table(['plan', ''], rows)}\nSuperpixels and boundaries are by {known}.\n{_BUDGET}"
    console.result(text, data, asked_for=arguments.dry_run)


def _ranges(arguments: argparse.Namespace, cues: list[str]) -> dict[str, Any] | None:
    """Return the declared ranges; that of affinities is only the one with their name."""
    faces = [one for one in arguments.range if one[0] == AFFINITY and arguments.affinities]
    others = [one for one in arguments.range if one not in faces]
    ranges = cue_ranges(others, cues) or {}
    if faces:
        ranges[AFFINITY] = faces[-1][1]
    return ranges or None


def _plain(name: str, value: Any) -> str:
    if isinstance(value, list):
        return " x ".join(map(str, value))
    if name == "minutes":
        return f"{value:.0f}" if value >= 1 else "less than 1"
    if name in ("read", "written", "budget") or name.endswith("memory"):
        return _size(value)
    return str(value)


def _size(number: int) -> str:
    return f"{number / 1e9:.2f} GB" if number >= 1e7 else f"{number / 1e6:.2f} MB"


def run_run(arguments: argparse.Namespace, console: Console) -> None:
    """Do the rest of a plan."""
    from napari_agglo import blocks

    before = blocks.status(arguments.folder)
    stages = _shares(before, arguments.stage)
    again = arguments.stage is not None or arguments.block is not None
    # no processes for nothing to do
    address = arguments.client if again or not before.is_complete else None
    with (
        _explained(arguments.folder),
        console.progress(stages) as progress,
        _client(address, arguments.folder, console) as client,
    ):
        done = blocks.run(
            arguments.folder,
            workers=arguments.workers,
            client=client,
            part=arguments.part,
            stage=arguments.stage,
            block=arguments.block,
            accept_inputs=arguments.accept_inputs,
            progress=progress,
        )
    state = blocks.status(arguments.folder)
    for name, number in state.absent.items():
        console.note(
            f"warning: {count(number, 'chunk')} of {name} not in the store, read as the fill value"
        )
    _note_disagreement(state.disagreement, console)
    text = ", ".join(f"{name} {n} in {done.seconds[name]:.1f} s" for name, n in done.done.items())
    left = "complete" if state.is_complete else f"next: {state.next_stage}"
    console.result(
        f"{arguments.folder}: {text or 'nothing was left to do'}; {left}",
        {
            "folder": arguments.folder,
            "done": done.done,
            "done_in_all": {one.name: one.done for one in state.stages},
            "seconds": done.seconds,
            "absent": state.absent,
            "disagreement": state.disagreement,
            "complete": state.is_complete,
            "next": state.next_stage,
        },
    )


@contextmanager
def _explained(folder: str) -> Iterator[None]:
    """Say after an interrupt what is kept, and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted; finished blocks are kept in {folder}: run the same command again to go "
            "on with the others"
        ) from None


def _note_disagreement(share: float, console: Console) -> None:
    if share > DISAGREEMENT:
        console.note(
            f"warning: neighbouring blocks disagree on superpixels at {100 * share:.2g} % of the "
            "faces between them: plan again with a larger --halo"
        )


def _shares(state: Status, only: str | None) -> Stages:
    """Return the share of each stage in the work of a run."""
    blocks = max((one.tasks for one in state.stages), default=1)
    shares = []
    for one in state.stages:
        each = _SECONDS.get(one.name.partition("-")[0], 0.02)
        shares.append((one.name, each * (one.tasks if one.tasks > 1 else blocks)))
    return [share for share in shares if only in (None, share[0])]


class _client:
    """A context with the client of an address, or None without one."""

    def __init__(self, address: str | None, folder: str, console: Console) -> None:
        self._address, self._folder, self._console = address, folder, console
        self._open: list[Any] = []

    def __enter__(self) -> Any:
        if self._address is None:
            return None
        try:
            import distributed
        except ImportError as error:
            from napari_agglo.errors import Install

            raise InvalidInput(
                "--client needs dask.distributed",
                argument="client",
                remedy=Install('"napari-agglo[cluster]"'),
            ) from error
        parts: Any = distributed
        match = re.fullmatch(r"local:(\d+)", self._address)
        if match:
            cluster = parts.LocalCluster(
                n_workers=self._fitting(int(match[1])), threads_per_worker=1,
                dashboard_address=None, silence_logs=logging.ERROR,
            )  # fmt: skip
            self._open.append(cluster)
            client = parts.Client(cluster)
        else:
            try:
                client = parts.Client(self._address, timeout="10s")
            except (OSError, ValueError) as error:
                raise InvalidInput(
                    f"there is no scheduler at {self._address} ({error})",
                    argument="client",
                    remedy="start one with `dask scheduler`, and give its address",
                ) from error
        self._open.append(client)
        if client.dashboard_link and not match:
            self._console.note(f"dashboard: {client.dashboard_link}")
        return client

    def _fitting(self, wanted: int) -> int:
        """Limit the requested number of processes to the budget of the plan."""
        from napari_agglo import blocks
        from napari_agglo.blocks._budget import memory_of_processes, processes_that_fit, size_text

        plan = blocks.open(self._folder).plan
        n = processes_that_fit(plan, wanted)
        if n < wanted:
            remedy = f"plan with --memory {size_text(memory_of_processes(plan, wanted))}"
            if memory_of_processes(plan, wanted, tasks=0) < plan.memory:
                remedy += ", or with more --workers, whose blocks are smaller"
            self._console.note(
                f"{n} of {wanted} processes are started: more blocks at a time do not fit in the "
                f"budget of the plan, {size_text(plan.memory)}; {remedy}"
            )
        return n

    def __exit__(self, *error: object) -> None:
        for one in reversed(self._open):
            one.close()


def run_session(arguments: argparse.Namespace, console: Console) -> None:
    """Make a session that refers to the volumes of a run, and print its segments."""
    from napari_agglo import blocks
    from napari_agglo.agglomeration import plain_threshold, threshold_phrase

    result = blocks.open(arguments.folder)
    with (
        console.progress() as progress,
        result.create_session(
            arguments.session, image=arguments.image, progress=progress
        ) as session,
    ):
        data: dict[str, Any] = {
            "session": str(session.path),
            "threshold": plain_threshold(session.threshold),
            "segments": len(session.segments),
            "superpixels": session.graph.n_regions,
        }
    console.result(
        f"{arguments.session}: {count(data['segments'], 'segment')} "
        f"{threshold_phrase(data['threshold'])}",
        data,
    )


def run_status(arguments: argparse.Namespace, console: Console) -> None:
    """Print the status of a run, from the files in its folder."""
    from napari_agglo import blocks

    state = blocks.status(Path(arguments.folder), check=arguments.check)
    names = state.absent_files()
    rows = [
        [one.name, f"{one.done}/{one.tasks}", one.failed or "", f"{one.seconds:.1f}"]
        for one in state.stages
    ]
    data = {
        "folder": arguments.folder,
        "complete": state.is_complete,
        "next": state.next_stage,
        "absent": state.absent,
        "absent_files": names,
        "lost": None if state.lost is None else {one.store: one.chunks for one in state.lost},
        "damaged": {one.store: one.chunks for one in state.damaged},
        "decoded": state.decoded,
        "disagreement": state.disagreement,
        "stages": [
            {"name": s.name, "done": s.done, "tasks": s.tasks, "failed": s.failed,
             "seconds": round(s.seconds, 1)}
            for s in state.stages
        ],
    }  # fmt: skip
    left = "complete" if state.is_complete else f"next: {state.next_stage}"
    text = f"{table(['stage', 'done', 'failed', 'seconds'], rows)}\n{left}"
    console.result(text, data, asked_for=True)
    for name, number in state.absent.items():
        which = f": {', '.join(names[name])}{', ...' * (number > len(names[name]))}"
        console.note(
            f"{count(number, 'chunk')} of {name} not in the store, read as the fill value"
            + (which if names[name] else "")
        )
    for one in state.lost or ():
        console.note(
            f"warning: {count(one.chunks, 'chunk')} of {one.store} lost, the first {one.first}: "
            f"napari-agglo blocks run {arguments.folder} writes them again"
        )
    for one in state.damaged:
        console.note(
            f"warning: {count(one.chunks, 'chunk')} of {one.store} damaged, the first {one.first}; "
            "these commands write them again:"
        )
        for stage, k in one.tasks:
            console.note(f"napari-agglo blocks run {arguments.folder} --stage {stage} --block {k}")
    if state.decoded is not None:
        console.note("{} of {} chunks of the finest levels were decoded".format(*state.decoded))
    if state.lost is None:
        console.note("chunks of the results were not looked for: add --check")
    _note_disagreement(state.disagreement, console)
    if any(one.failed for one in state.stages):
        logs = Path(arguments.folder) / "failures"
        raise SomeFailed(f"some tasks failed: see {logs}, and run again", 2)
