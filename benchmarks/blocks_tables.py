"""Tables of docs/scale.md from the numbers that `bench_blocks` wrote; this file runs nothing.

Each table is between two marks of the page with its name. Those whose numbers are there are
replaced; the others stay as they were measured last.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
KINDS = ("run", "overhead", "bytes", "halo", "hierarchical", "learned", "peer", "client", "kill",
         "plan", "window")  # fmt: skip
PEERS = ("own-superpixels", "skimage", "own-merges", "waterz", "components")
BLOCKWISE_PEERS = ("own-blocks", "volara", "waterz-daisy")
LONG = ("run-large", "run-full", "run-four-full", "run-four")
GROUPS = {
    "plan": "plan, with its sample",
    "cut": "superpixels: flood with a halo",
    "join": "superpixels: join across faces",
    "number": "superpixels: number, in one task",
    "superpixels": "superpixels: write",
    "overview": "pyramid of the superpixels",
    "statistics": "statistics",
    "reduce": "reduction to the graph",
    "graph": "reduction to the graph",
    "tree": "agglomeration",
    "table": "labels",
    "labels": "labels",
    "pyramid": "pyramid of the labels",
}


def write_tables(folder: Path, page: Path | None = None) -> int:
    """Write the tables of all numbers in `folder` and its folders into a page."""
    numbers = {
        path.stem: json.loads(path.read_text())
        for path in sorted([*folder.glob("*.json"), *folder.glob("*/*.json")])
        if path.stem.partition("-")[0] in KINDS
    }
    parts = {
        **{name: stages_table(numbers[name]) for name in LONG if name in numbers},
        "plan-four-all": plan_table(numbers),
        "overhead": overhead(numbers),
        "threads": threads(numbers),
        "bytes": bytes_table(numbers),
        "rows": rows_table(numbers),
        "peers": peers_table(numbers, PEERS),
        "block-wise peers": blockwise_table(numbers),
        "client": client_table(numbers),
        "kill": kill_table(numbers),
        "halo": halo_table(numbers),
        "final": final_table(numbers),
        "learned": learned_table(numbers),
        "window": window_table(numbers),
        "estimates": estimates(numbers),
    }
    text = PAGE.read_text(encoding="utf-8")
    for name, body in parts.items():
        if body:
            text = _replaced(text, name, body)
    (page or PAGE).write_text(text, encoding="utf-8")
    return 0


def _replaced(text: str, name: str, body: str) -> str:
    begin, end = (f"<!-- bench-blocks {name}: {word} -->" for word in ("begin", "end"))
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{PAGE.name} has no place for the table {name!r}: {begin}")
    return f"{before}{begin}\n\n{body}\n\n{end}{after}"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _commands(runs: Sequence[dict[str, Any]]) -> str:
    """Return the commands that measured the figures of a table."""
    commands = dict.fromkeys(run["command"] for run in runs)
    return "\n\n```sh\n" + "\n".join(map(_folded, commands)) + "\n```"


def _folded(command: str) -> str:
    """Return a command on lines that fit the page."""
    lines = wrap(command, 96, subsequent_indent="    ", break_on_hyphens=False)
    return " \\\n".join(lines)


def _shape(run: dict[str, Any]) -> str:
    return " x ".join(map(str, run["shape"]))


def _voxels(run: dict[str, Any]) -> float:
    return math.prod(run["shape"]) / 1e6


def _runs(numbers: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(name, numbers[name]) for name in LONG if name in numbers]


def _grouped(run: dict[str, Any]) -> dict[str, dict[str, float]]:
    out: dict[str, dict[str, float]] = {}
    order = list(GROUPS)
    for stage, one in sorted(
        run["stages"].items(), key=lambda item: order.index(item[0].partition("-")[0])
    ):
        name = GROUPS[stage.partition("-")[0]]
        row = out.setdefault(name, {"cpu": 0.0, "seconds": 0.0, "peak_gb": 0.0})
        row["cpu"] += one["cpu"]
        row["seconds"] += one["seconds"]
        row["peak_gb"] = max(row["peak_gb"], one["peak_gb"])
    return out


def stages_table(run: dict[str, Any]) -> str:
    """Return a table of the stages of a long run."""
    cues = "one cue" if run["cues"] == 1 else f"{run['cues']} cues"
    if run["statistics"] == "all":
        cues += ", all statistics"
    given = run["superpixels_of"]
    if given.startswith("result-"):
        cues += ", superpixels of the run of one cue"
    elif given:
        cues += ", superpixels of the tile, mirrored"
    halo = "" if given else f" with a halo of {run['halo']}"
    text = (
        f"**{_shape(run)}** ({_voxels(run):,.0f} million voxels, {cues}; measured): "
        f"{run['superpixels']:,} superpixels, {_boundaries(run)}, "
        f"{run['blocks']} blocks of {' x '.join(map(str, run['block']))}{halo}, "
        f"{run['workers']} threads, mean policy. Peak of resident memory "
        f"**{run['peak_gb']:.2f} GB** in all processes, of a budget of {run['memory_gb']:g} GB; "
        f"{run['disk_gb']:.1f} GB of results and "
        f"tables on disk; {run['seconds'] / 60:.0f} minutes on the clock at a load of "
        f"{_load(run):.1f} on two cores.\n\n"
    )
    rows = [
        [stage, f"{one['cpu']:,.1f}", f"{one['seconds']:,.1f}",
         f"{_voxels(run) / one['cpu']:,.1f}" if one["cpu"] else "-", f"{one['peak_gb']:.2f}"]
        for stage, one in _grouped(run).items()
    ]  # fmt: skip
    rows.append(["all", f"{run['cpu']:,.1f}", f"{run['seconds']:,.1f}",
                 f"{_voxels(run) / run['cpu']:,.2f}", f"{run['peak_gb']:.2f}"])  # fmt: skip
    head = ["stage", "CPU seconds", "seconds", "million voxels a CPU second", "peak, GB"]
    return text + table(head, rows) + _numbering(run) + _commands([run])


def _numbering(run: dict[str, Any]) -> str:
    """Return the size of the one task that numbers the pieces of all blocks, if there was one."""
    number = run.get("number")
    if not number:
        return ""
    return (
        f"\n\nThe stage `number` joins and numbers {number['pieces']:,} pieces of superpixels in "
        f"one task, while nothing else runs: {number['needed_bytes'] / 1e6:,.1f} MB of memory in "
        f"the plan, {number['disk_bytes'] / 1e6:,.1f} MB on disk (measured)."
    )


def _boundaries(run: dict[str, Any]) -> str:
    if not run["hierarchical"]:
        return f"{run['boundaries']:,} boundaries"
    return (
        f"of which {run['left']:,} with {run['boundaries']:,} boundaries were left for the end by "
        "the final merges of groups (`--hierarchical`)"
    )


def overhead(numbers: dict[str, Any]) -> str:
    """Return the cost of blocks beside the same piece in memory."""
    found = numbers.get("overhead-run")
    if found is None:
        return ""
    runs = found["rows"]
    whole = runs["memory"]
    rows = [["in memory, one level of labels", "", f"{whole['cpu']:.1f}", f"{whole['seconds']:.1f}",
             f"{whole['peak_gb']:.2f}", "1", "1"]]  # fmt: skip
    for workers, count in ((1, "one thread"), (2, "two threads")):
        for block, words in (("planned", "as `plan` chooses them"), ("given", "given")):
            run = runs[f"cost-{block}-{workers}-pyramid"]
            flat = runs[f"cost-{block}-{workers}-flat"]
            sides = " x ".join(map(str, run["block"]))
            rows.append(
                [f"{count}, blocks {words}: {sides}", run["blocks"], f"{run['cpu']:.1f}",
                 f"{run['seconds']:.1f}", f"{run['peak_gb']:.2f}",
                 f"{run['cpu'] / whole['cpu']:.2f}", f"{flat['cpu'] / whole['cpu']:.2f}"]
            )  # fmt: skip
    spread = max(run["cpus"][-1] / run["cpus"][0] - 1 for run in runs.values())
    text = (
        f"**Cost of blocks** (measured), on a piece of {_shape(found)} with one cue and a budget "
        f"of {found['memory_gb']:g} GB, beside the same steps of the library on the whole piece. "
        f"Each row is the median of {found['repeats']} runs in turn, whose CPU seconds differ by "
        f"up to {100 * spread:.0f} %. The last column is that of runs with `--no-pyramid`:\n\n"
    )
    head = ["run", "blocks", "CPU seconds", "seconds", "peak, GB", "CPU, of memory",
            "without pyramids"]  # fmt: skip
    return text + table(head, rows) + _commands([found])


def threads(numbers: dict[str, Any]) -> str:
    """Return the gain of two workers over one."""
    found = numbers.get("overhead-run")
    if found is None:
        return ""
    runs, parts = found["rows"], []
    for block, words in (("given", "of the given size"), ("planned", "as `plan` chooses them")):
        for pyramid, more in (("pyramid", ""), ("flat", ", without pyramids")):
            one, two = (runs[f"cost-{block}-{n}-{pyramid}"] for n in (1, 2))
            gain = one["seconds"] / two["seconds"]
            parts.append(f"{gain:.2f} times with blocks {words}{more}")
    one, two = (runs[f"cost-given-{n}-pyramid"] for n in (1, 2))
    alone = one["alone"]
    ideal = one["cpu"] / two["cpu"] / (alone + (1 - alone) / 2)
    whole = ""
    if {"run-once-1", "run-once-2"} <= numbers.keys():
        long, short = numbers["run-once-1"], numbers["run-once-2"]
        whole = (
            f" On {' x '.join(map(str, long['shape']))}, with blocks of "
            f"{' x '.join(map(str, long['block']))}, it was "
            f"{long['seconds'] / short['seconds']:.2f} times: {long['seconds']:.0f} and "
            f"{short['seconds']:.0f} s (measured, at a load of {long['load']:.1f} and "
            f"{short['load']:.1f})." + _commands([long, short])
        )
    return (
        f"Two threads took less time on the clock than one: {'; '.join(parts)} (measured, in the "
        f"runs of the table above, at a load of {one['load']:.1f} and {two['load']:.1f} on two "
        f"cores). {100 * alone:.0f} % of the time of one thread is in tasks that are done once "
        f"for the volume, so that {ideal:.2f} times is the most (estimated).{whole}"
    )


def bytes_table(numbers: dict[str, Any]) -> str:
    """Return the memory that a plan reckons with, and what was measured."""
    found = numbers.get("bytes-run")
    if found is None:
        return ""
    rows = [
        [one["work"], one["unit"], f"{one['bytes']:,.{0 if one['bytes'] >= 1e4 else 1}f}",
         f"{one['planned']:,}"]
        for one in found["rows"]
    ]  # fmt: skip
    text = (
        "**Memory of the parts of a run** (measured: the rise of resident memory while they go "
        "on, beside the voxels that they read), and what plans reckon with:\n\n"
    )
    head = ["work", "bytes of a", "measured", "in plans"]
    return text + table(head, rows) + _commands([found])


def plan_table(numbers: dict[str, Any]) -> str:
    """Return what a plan says of a graph that does not fit."""
    found = numbers.get("plan-four-all")
    if found is None:
        return ""
    return (
        f"**{_shape(found)} with {found['cues']} cues and all statistics**, which learned policies "
        f"need: with a budget of {found['memory_gb']:g} GB, a plan has {found['blocks']} blocks of "
        f"{' x '.join(map(str, found['block']))}, {found['block_gb']:.2f} GB for each of "
        f"{found['workers']} at a time, and expects {found['minutes']:.0f} minutes and, by a "
        f"sample, {found['expected_regions']:,} superpixels, {found['expected_boundaries']:,} "
        f"boundaries and {found['graph_gb']:.1f} GB for the graph and its agglomeration "
        f"(estimated). With the {found['regions']:,} superpixels and {found['boundaries']:,} "
        f"boundaries of the run above it needs **{found['needed_gb']:.1f} GB** (estimated). `plan` "
        + (f"refuses it: *{found['refusal']}*" if found["refusal"] else "takes it.")
        + _commands([found])
    )


def kill_table(numbers: dict[str, Any]) -> str:
    """Return the runs of which a process was killed."""
    found = numbers.get("kill-run")
    if found is None:
        return ""
    names = {
        "": "undisturbed",
        "worker": "a worker is killed in the middle of the statistics",
        "client": "the client is killed there, with its workers, and started again",
    }
    rows = [
        [names[one["killed"]], one["tasks"], one["again"], f"{one['seconds']:.1f}",
         f"{one['cpu']:.1f}", "yes" if one["same"] else "no"]
        for one in found["rows"]
    ]  # fmt: skip
    text = (
        f"**Killed processes** (measured): {_shape(found)} in {found['rows'][0]['blocks']} blocks "
        "by two worker processes of dask.distributed, which start within the time:\n\n"
    )
    head = ["run", "tasks", "finished tasks done again", "seconds", "CPU seconds", "same bytes"]
    return text + table(head, rows) + _commands([found])


def _load(run: dict[str, Any]) -> float:
    loads = [one["load"] for one in run["stages"].values() if "load" in one]
    return float(sum(loads) / max(len(loads), 1))


def rows_table(numbers: dict[str, Any]) -> str:
    """Return the bytes of a row, on disk and in memory."""
    rows = [
        [_shape(run), run["cues"], run["statistics"], run["bytes"]["row_on_disk"],
         run["bytes"]["boundary_in_memory"],
         run["bytes"]["region_in_memory"], f"{_voxels(run) * 1e6 / run['superpixels']:.0f}",
         "-" if run["hierarchical"] else f"{run['boundaries'] / run['superpixels']:.1f}"]
        for _, run in _runs(numbers)
    ]  # fmt: skip
    if {run["cues"] for _, run in _runs(numbers)} != {1, 4}:
        return ""
    head = ["volume", "cues", "statistics", "bytes of a row of a partial table on disk",
            "of a boundary in memory", "of a region", "voxels a superpixel",
            "boundaries a superpixel"]  # fmt: skip
    text = "**Tables** (measured, in the runs of the same volumes):\n\n"
    return text + table(head, rows) + _commands([run for _, run in _runs(numbers)])


def peers_table(numbers: dict[str, Any], names: Sequence[str]) -> str:
    """Return the times and memory of other tools at the same step."""
    found = [numbers[f"peer-{name}"] for name in names if f"peer-{name}" in numbers]
    if not found:
        return ""
    there = [one for one in found if "missing" not in one]
    rows = [
        [one["step"], _shape(one), f"{one['package']} {one['version']}", f"{one['cpu']:.1f}",
         f"{one['seconds']:.1f}", f"{one['peak_gb']:.2f}", f"{one['count']:,}"]
        for one in sorted(there, key=lambda one: (one["step"], one["package"]))
    ]  # fmt: skip
    text = f"**Other tools** at the same step (measured){_left_out(found)}:\n\n"
    head = ["step", "voxels", "tool", "CPU seconds", "seconds", "peak, GB", "segments"]
    return text + table(head, rows) + _commands(there)


def _left_out(found: Sequence[dict[str, Any]]) -> str:
    absent = sorted({module for one in found for module in one.get("missing", ())})
    return f"; not installed, and left out: {', '.join(absent)}" if absent else ""


def blockwise_table(numbers: dict[str, Any]) -> str:
    """Return the times and memory of block-wise tools, if ours was run."""
    tried = [numbers[f"peer-{name}"] for name in BLOCKWISE_PEERS if f"peer-{name}" in numbers]
    found = [one for one in tried if "missing" not in one]
    if not {"peer-own-blocks", "peer-own-cold"} <= numbers.keys():
        return ""
    rows = [
        [f"{one['package']} {one['version']}", f"{one['cpu']:.1f}", f"{one['start']['cpu']:.1f}",
         f"{one['seconds']:.1f}", f"{one['start']['seconds']:.1f}", f"{one['peak_gb']:.2f}",
         f"{one['count']:,}"]
        for one in found
    ]  # fmt: skip
    cold = numbers["peer-own-cold"]
    text = (
        f"**Other tools block by block**: {found[0]['step']}, on {_shape(found[0])} "
        f"(measured){_left_out(tried)}. "
        "Ours are two commands, plan and run; the others a script each, whose clock starts when "
        "the affinities are made. The columns *at the start* are of the same on 32 x 32 x 32 "
        "voxels, which is nearly all imports, processes, and what is compiled in them. Our first "
        "run on a machine, which compiles, takes "
        f"{cold['cpu']:.1f} CPU seconds ({cold['seconds']:.1f} s) at the start.\n\n"
    )
    head = ["tool", "CPU seconds", "at the start", "seconds", "at the start", "peak, GB",
            "segments"]  # fmt: skip
    return text + table(head, rows) + _commands([*found, cold])


def client_table(numbers: dict[str, Any]) -> str:
    """Return the peak of worker processes on one machine beside their budget."""
    runs = [run for name, run in numbers.items() if name.startswith("client-")]
    if not runs:
        return ""
    rows = [
        [_shape(run), run["workers"], " x ".join(map(str, run["block"])),
         f"`local:{run['processes']}`", f"{run['budget_gb']:.1f}", f"{run['peak_gb']:.2f}"]
        for run in runs
    ]  # fmt: skip
    text = "**Worker processes** on one machine, from the command line (measured):\n\n"
    head = ["volume", "`--workers` of the plan", "block", "`--client`", "`--memory`, GB",
            "peak of all processes, GB"]  # fmt: skip
    return text + table(head, rows) + _commands(runs)


def window_table(numbers: dict[str, Any]) -> str:
    """Return the steps in a window on a large volume."""
    parts = []
    for name, run in numbers.items():
        if not name.startswith("window-"):
            continue
        rows = [
            [one["step"], f"{one['seconds']:.1f}", f"{one['cpu']:.1f}", f"{one['resident_gb']:.2f}"]
            for one in run["steps"]
        ]
        parts.append(
            f"**A window** on {_shape(run)} ({_voxels(run):,.0f} million voxels, "
            f"{run['superpixels']:,} superpixels, {run['boundaries']:,} boundaries; measured, "
            f"software GL, at a load of {run['load']} on two cores). Peak of resident memory "
            f"**{run['peak_gb']:.2f} GB**:\n\n"
            + table(["step", "seconds", "CPU seconds", "memory after it, GB"], rows)
            + _commands([run])
        )
    return "\n\n".join(parts)


def halo_table(numbers: dict[str, Any]) -> str:
    """Return the superpixels by halo."""
    found = next((some for name, some in numbers.items() if name.startswith("halo-")), None)
    if found is None:
        return ""
    text = (
        "**Superpixels by the halo** (measured), of the tile of 128 x 128 x 128 in blocks of 48, "
        "beside those of the whole:\n\n"
    )
    return text + table(
        ["sigma", "halo", "chosen by default", "superpixels", "of the whole", "false merge, bits",
         "false split, bits", "faces that differ, %"],
        [
            [one["sigma"], one["halo"], one["chosen"], f"{one['superpixels']:,}", f"{one['of']:,}",
             f"{one['false_merge']:.4f}", f"{one['false_split']:.4f}",
             f"{100 * one['disagreement']:.3f}"]
            for one in found["rows"]
        ],
    ) + _commands([found])  # fmt: skip


def final_table(numbers: dict[str, Any]) -> str:
    """Return what the final merges of the mean policy leave for the end."""
    final = next((some for n, some in numbers.items() if n.startswith("hierarchical-")), None)
    if final is None:
        return ""
    text = (
        "**Final merges of the mean policy** in groups of blocks, on the piece of the table of "
        "costs (measured):\n\n"
    )
    return text + table(
        ["block", "regions left", "of", "boundaries left", "of", "tree is the same"],
        [
            [one["block"], f"{one['regions']:,}", f"{one['of']:,}", f"{one['boundaries']:,}",
             f"{one['boundaries_of']:,}", "yes" if one["equal"] else "no"]
            for one in final["rows"]
        ],
    ) + _commands([final])  # fmt: skip


def learned_table(numbers: dict[str, Any]) -> str:
    """Return the departure of a learned policy in groups."""
    learned = next((some for name, some in numbers.items() if name.startswith("learned-")), None)
    if learned is None:
        return ""
    base = learned["rows"][0]["vi"]
    text = (
        "**A learned policy in groups** (measured), on the tile in blocks of 32, trained on "
        "another volume; VI against the gold standard, each at its best threshold:\n\n"
    )
    return text + table(
        ["`--approximate`", "regions left", "of", "best VI, bits", "difference",
         "VI to the exact labels at 0.5"],
        [
            [one["below"] or "not hierarchical: exact", f"{one['regions']:,}", f"{one['of']:,}",
             f"{one['vi']:.4f}", f"{one['vi'] - base:+.4f}", f"{one['difference_at_half']:.4f}"]
            for one in learned["rows"]
        ],
    ) + _commands([learned])  # fmt: skip


def estimates(numbers: dict[str, Any]) -> str:
    """Return the arithmetic for larger volumes, from the largest run."""
    run = next((run for _, run in _runs(numbers) if run["cues"] == 1), None)
    four = next((run for _, run in _runs(numbers) if run["cues"] == 4), None)
    left = _left(numbers)
    if run is None or left is None:
        return ""
    edge, region = _row_bytes(run)
    # rows with all statistics of one cue, as a learned policy needs them, are in memory twice
    full = 2 * 256 + 16, 2 * 384 + 24
    each = run["bytes"]["boundaries"] / run["bytes"]["regions"]  # of tables, cut at their faces
    own = math.prod(run["shape"]) / run["superpixels"], each
    columns = [("mean: as the sample / as FIB-SEM", edge, region, 1.0),
               ("mean, `--hierarchical`", edge, region, left)]  # fmt: skip
    if four is not None:
        columns.append(("mean, four cues", *_row_bytes(four), 1.0))
    columns.append(("learned, one cue", *full, 1.0))
    hours, disk = (run[name] / math.prod(run["shape"]) for name in ("cpu", "disk_gb"))
    rows = []
    for power in (9, 10, 11, 12):
        cells = [f"10^{power}"]
        for _, e, r, share in columns:
            sizes = [
                share * 10**power / voxels * (boundaries * (e + 130) + r + 60)
                for voxels, boundaries in (own, (3835, 4.3))
            ]
            cells.append(" / ".join(_bytes(size) for size in sizes))
        cells += [_bytes(1e9 * disk * 10**power), f"{hours / 3600 * 10**power:,.1f}"]
        rows.append(cells)
    wide = "" if four is None else "{} and {} with four cues, ".format(*_row_bytes(four))
    text = (
        "**Larger volumes** (all rows estimated; none of it was run). A machine must "
        f"hold, for the agglomeration, {edge} bytes of a boundary (exact, by the width of its "
        f"row) and 130 of its merge loop (measured), and {region} (exact) + 60 (estimated) of a "
        f"region, with the mean policy; {wide}and with a learned one of one cue the rows "
        f"of all statistics twice (exact). The sample has {own[0]:.0f} voxels a superpixel and "
        f"{own[1]:.1f} boundaries each (measured); FIB-SEM of fly brain had 3,835 and 4.3 "
        "(measured on half of FIB-25). "
        f"`--hierarchical` leaves {100 * left:.0f} % of the regions and boundaries for the end "
        "(measured on the sample). Disk and core-hours are those of the run above, measured, in "
        "proportion to the voxels; of superpixels as large as FIB-SEM's they would be less:\n\n"
    )
    head = ["voxels", *(name for name, *_ in columns), "disk", "core-hours"]
    return text + table(head, rows)


def _row_bytes(run: dict[str, Any]) -> tuple[int, int]:
    """Return the bytes of a boundary and of a region in memory."""
    return run["bytes"]["boundary_in_memory"], run["bytes"]["region_in_memory"]


def _left(numbers: dict[str, Any]) -> float | None:
    """Return the share of the boundaries that final merges leave, in the largest run of them."""
    large = numbers.get("run-large")
    if large is not None:
        whole = large["bytes"]["boundaries"] / large["bytes"]["regions"] * large["superpixels"]
        return max(large["left"] / large["superpixels"], large["boundaries"] / whole)
    final = next((some for n, some in numbers.items() if n.startswith("hierarchical-")), None)
    return (
        None
        if final is None
        else final["rows"][0]["boundaries"] / final["rows"][0]["boundaries_of"]
    )


def _bytes(size: float) -> str:
    return f"{size / 1e12:.1f} TB" if size >= 1e12 else f"{size / 1e9:.1f} GB"
