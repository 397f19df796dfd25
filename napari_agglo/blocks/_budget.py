"""Memory budget of a plan: its estimate, and the blocks and workers that keep it."""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from napari_agglo._data_warnings import warn_caller
from napari_agglo.blocks._block_grid import check_sides, chunk_sides, reduction_grids
from napari_agglo.blocks._block_superpixels import halo_sides
from napari_agglo.blocks._face_cues import AFFINITY
from napari_agglo.blocks._plan import Plan
from napari_agglo.blocks._stores import check_alignment
from napari_agglo.blocks._tables import rows_of_a_piece
from napari_agglo.errors import (
    DataWarning,
    InvalidInput,
    Remedy,
    SetOption,
    check_whole,
    is_whole,
)
from napari_agglo.volumes._volume import available_memory

_LONGEST = 1024  # side of a block of a volume
_SMALL = 1 << 21  # voxels that are not divided only so that no thread is idle
_CHOICES = 20_000  # shapes of blocks that are compared
_SIZE = re.compile(r"(\d+\.?\d*|\.\d+)\s*([kmgt]?)(i?)b?")
# Bytes of the Python process with all libraries loaded: measured, docs/scale.md.
BASE = 350_000_000
# Peak bytes for a voxel of a block with its halo, beside the voxels that are read: measured there.
CUT_BYTES = 13
STATISTICS_BYTES = 10
MERGE_BYTES = 130  # of a boundary in the merge loop; measured there
# Bytes of tasks that are done once for the volume, measured with tracemalloc: of a piece of a
# superpixel when all are numbered; of an overlap with the gold standard, and of a superpixel, for
# the errors at every threshold. Their tables of labels take less than the agglomeration before.
NUMBER_BYTES = 12
OVERLAP_BYTES = 130
CURVE_BYTES = 150
# Bytes of a task beside its arrays: small ones, and those that were freed and are kept by the
# allocator, which gives only arrays of some 32 MB back at once. The memory of all stages but
# predictions is measured by `tests/blocks/test_budget_memory.py`.
TASK = 32_000_000
# Superpixels assumed where a plan has no sample of them, as of cues that are yet to be predicted:
# the tissue of the benchmark has 520 voxels a superpixel and 7.3 boundaries each, FIB-SEM of fly
# brain 3,800 and 4.3 (docs/scale.md). No graph is refused by them.
VOXELS_A_SUPERPIXEL = 500
BOUNDARIES_A_SUPERPIXEL = 8
# Error of a sample: the graph of a plan is refused where it does not fit with so much less.
SAMPLE_ERROR = 0.1
# Share of regions and boundaries that the final merges of groups leave: 0.35 of 57 million voxels
# and 0.09 of four billion, measured there; more where superpixels are large for their blocks.
LEFT = 0.4
# Voxels a CPU second, for the minutes of a dry run: those of the run of 1024 x 1024 x 1024 there,
# whose floods had 1.13 times its voxels with their halos. Those of precomputed and overlap are by
# `blocks status` of an earlier run of 256 x 256 x 256 voxels, and so are the seconds of a voxel
# that is predicted: those of the filters in 3-D, and of each tree.
RATES = {
    "cut": 16e6, "superpixels": 89e6, "overview": 1.2e9, "statistics": 36.8e6, "reduce": 335e6,
    "tree": 89e6, "labels": 149e6, "pyramid": 1.7e9, "precomputed": 3.9e6, "overlap": 23e6,
}  # fmt: skip
STATISTICS_COST = 0.7, 0.3  # share of one cue in the time above: of the voxels, and of each cue
PREDICT_SECONDS = 0.23e-6, 0.054e-6


@dataclass(frozen=True)
class Estimate:
    """Size and cost of a plan before it runs.

    Attributes
    ----------
    voxels, blocks : int
        Of the volume.
    workers : int
        Tasks that run at a time.
    read_bytes, written_bytes : int
        Of the inputs, each read once, and of the stores, both without compression.
    block_bytes : int
        Memory of one task on a block.
    superpixels, boundaries : int
        To expect by a sample of the volume, or where there is none, by an assumption.
    graph_bytes : int
        Memory of the graph of these and its agglomeration; in a hierarchical run, of those that
        the merges in groups of blocks leave.
    reduction_bytes : int
        Memory of the largest task that adds tables of blocks, for the same superpixels. As many run
        at a time as the budget allows, but at least one.
    minutes : float
        On this machine, roughly.
    """

    voxels: int
    blocks: int
    workers: int
    read_bytes: int
    written_bytes: int
    block_bytes: int
    superpixels: int
    boundaries: int
    graph_bytes: int
    reduction_bytes: int
    minutes: float

    @property
    def peak_bytes(self) -> int:
        """Memory of the whole process at its peak."""
        blocks = self.workers * self.block_bytes
        return BASE + max(blocks, self.graph_bytes, self.reduction_bytes)


def graph_bytes(plan: Plan, regions: int, boundaries: int) -> int:
    """Return the memory that a graph and its agglomeration take."""
    layout = plan.layout
    rows = 8 * (regions * layout.region_width + boundaries * layout.boundary_width)
    needs_rows = plan.policy != "mean"  # which keep a copy of their own
    loop = boundaries * MERGE_BYTES + regions * 60
    return rows * (2 if needs_rows else 1) + boundaries * 48 + loop


def check_memory(plan: Plan, regions: int, boundaries: int, others: int = 0) -> None:
    """Refuse a graph whose agglomeration does not fit in the budget, with figures.

    `others` is the number of worker processes of the run on this machine.
    """
    needed = (1 + others) * BASE + graph_bytes(plan, regions, boundaries)
    if needed > plan.memory:
        beside = f" with {others} worker processes" if others else ""
        raise InvalidInput(
            f"the agglomeration of {regions} superpixels with {boundaries} boundaries needs about "
            f"{_gb(needed)}{beside}, and `memory` is {_gb(plan.memory)}",
            argument="memory",
            remedy=(
                SetOption("memory", size_text(needed), when="and plan again"),
                SetOption("hierarchical", True, when="with the mean policy"),
            ),
        )


def check_room(plan: Plan, needed: int, work: str, others: int = 0) -> None:
    """Refuse work that is done for the whole volume at once and does not fit, with figures.

    `needed` are its bytes; `others` is as for `check_memory`.
    """
    total = (1 + others) * BASE + needed
    if total > plan.memory:
        raise InvalidInput(
            f"{work} needs about {_gb(total)}, and `memory` is {_gb(plan.memory)}",
            argument="memory",
            remedy=(
                SetOption("memory", size_text(total), when="and plan again"),
                "take larger superpixels",
            ),
        )


def tasks_that_fit(plan: Plan, task_bytes: int, processes: int = 1) -> int:
    """Return the number of tasks that fit in the budget at a time, in so many processes."""
    return max(0, plan.memory - processes * BASE) // max(task_bytes, 1)


def best_processes(
    plan: Plan, task_bytes: int, threads: Sequence[int], own: int = 0
) -> tuple[int, int]:
    """Return the number of worker processes to use on this machine, and of their tasks at a time.

    They are the fewest that do the most tasks within the budget, beside the process that schedules
    them, which may have `own` threads for tasks. `threads` are those of each worker process.
    """
    most = [own, *threads]
    choices = [
        (min(sum(most[: n + 1]), tasks_that_fit(plan, task_bytes, n + 1)), -n)
        for n in range(len(threads) + 1)
    ]
    tasks, n = max(choices)
    return -n, tasks


def processes_that_fit(plan: Plan, wanted: int) -> int:
    """Return the number of worker processes on this machine that fit, each with a block.

    Parameters
    ----------
    plan : Plan
        A plan.
    wanted : int
        The most to return.

    Returns
    -------
    int
        From 1 to `wanted`; a budget that is too small for one is refused.
    """
    check_whole("wanted", wanted, 1)
    each = block_bytes(plan, plan.block)
    n, tasks = best_processes(plan, each, [1] * wanted)
    if not tasks:
        raise no_room(plan, each)
    return n


def memory_of_processes(plan: Plan, processes: int, tasks: int | None = None) -> int:
    """Return the memory of worker processes here with a block each, and of the one that schedules.

    Parameters
    ----------
    plan : Plan
        A plan.
    processes : int
        The number of worker processes.
    tasks : int, optional
        Blocks at a time, by default one a process.

    Returns
    -------
    int
        Bytes.
    """
    blocks = processes if tasks is None else tasks
    return (1 + processes) * BASE + blocks * block_bytes(plan, plan.block)


def no_room(plan: Plan, task_bytes: int) -> InvalidInput:
    """Return the refusal of worker processes on this machine, with figures."""
    needed = 2 * BASE + task_bytes
    return InvalidInput(
        f"a worker process on this machine needs about {_gb(needed)} for a task, with the process "
        f"that schedules it, and `memory` is {_gb(plan.memory)}",
        argument="client",
        remedy=(
            "leave out `client`: threads of one process need less",
            SetOption("memory", size_text(needed), when="and plan again"),
        ),
    )


def check_workers(plan: Plan, workers: int) -> int:
    """Refuse more blocks at a time than fit in the budget, with figures."""
    check_whole("workers", workers, 1)
    each = block_bytes(plan, plan.block)
    fitting = max(1, tasks_that_fit(plan, each))
    if workers > fitting:
        needed = BASE + workers * each
        raise InvalidInput(
            f"{workers} blocks at a time need about {_gb(needed)}, and `memory` is "
            f"{_gb(plan.memory)}",
            argument="workers",
            remedy=(
                SetOption("workers", fitting),
                SetOption("memory", size_text(needed), when="and plan again"),
            ),
        )
    return workers


def reduction_bytes(plan: Plan, tables: Sequence[tuple[int, int]]) -> int:
    """Return the memory of a task that adds tables of so many regions and boundaries each.

    Rows of statistics are added piece by piece, but in a hierarchical run, whose merges need them.
    """
    regions, boundaries = (sum(table[k] for table in tables) for k in (0, 1))
    layout = plan.layout
    widths = layout.region_width, layout.boundary_width
    if plan.hierarchical:
        # the arrays of the sum, those of the merge loop, and of what is left
        rows = 8 * (regions * widths[0] + boundaries * widths[1])
        return 2 * rows + regions * 200 + boundaries * 200
    most = [max((table[k] for table in tables), default=0) for k in (0, 1)]
    piece = max(8 * min(n, rows_of_a_piece(w)) * w for n, w in zip(most, widths, strict=True))
    # ids and pairs of all tables, sorted, and where their rows are; one piece of each table, one
    # that is unpacked, and one of the sum
    return regions * (32 + 16 * layout.ndim) + boundaries * 48 + (len(tables) + 3) * piece


def largest_reduction(plan: Plan, tasks: Sequence[Sequence[tuple[int, int]]]) -> int:
    """Return the memory of the largest task of a reduction; refuse one that does not fit.

    Each task is given by the sizes of its tables; see `reduction_bytes`.
    """
    most = max((reduction_bytes(plan, tables) for tables in tasks), default=0)
    if BASE + most > plan.memory:
        raise InvalidInput(
            f"the tables of a group of blocks need about {_gb(BASE + most)} when they are added, "
            f"and `memory` is {_gb(plan.memory)}",
            argument="memory",
            remedy=(
                SetOption("memory", size_text(BASE + most), when="and plan again"),
                "take larger superpixels",
            ),
        )
    return most


def expected(plan: Plan, voxels: int) -> tuple[int, int]:
    """Return the superpixels and the boundaries to expect in so many voxels."""
    if not plan.superpixel_density:
        regions = voxels // VOXELS_A_SUPERPIXEL + 1
        return regions, BOUNDARIES_A_SUPERPIXEL * regions
    densities = plan.superpixel_density, plan.boundary_density
    regions, boundaries = (math.ceil(voxels * density) for density in densities)
    return regions, boundaries


def _expected_graph(plan: Plan) -> int:
    """Return the memory of the graph of the expected superpixels and its agglomeration."""
    regions, boundaries = expected(plan, math.prod(plan.shape))
    share = LEFT if plan.hierarchical else 1.0
    return graph_bytes(plan, math.ceil(share * regions), math.ceil(share * boundaries))


def _expected_reduction(plan: Plan) -> int:
    """Return the memory of the largest task of a reduction, for the expected superpixels."""
    grids = reduction_grids(plan.grid)
    largest = 0
    for level, finer in enumerate(grids):
        share = LEFT if plan.hierarchical and level else 1.0
        # the first group is as large as any; the tables of the last grid are added as they are read
        group = range(finer.n_blocks) if finer is grids[-1] else finer.group(0)
        streamed = replace(plan, hierarchical=False) if finer is grids[-1] else plan
        each = [expected(plan, math.ceil(share * finer.voxels(block))) for block in group]
        largest = max(largest, reduction_bytes(streamed, each))
    return largest


def check_expected(plan: Plan) -> None:
    """Refuse a plan whose graph does not fit in the budget by a sample of the volume.

    A graph that may fit, as a sample is not exact, gives a warning.
    """
    voxels = math.prod(plan.shape)
    needed = BASE + max(_expected_graph(plan), _expected_reduction(plan))
    if needed <= plan.memory or not plan.superpixel_density:
        return
    remedies: list[Remedy | str] = [SetOption("memory", size_text(needed))]
    route = replace(plan, hierarchical=True)
    least = BASE + max(_expected_graph(route), _expected_reduction(route))
    if not plan.hierarchical and plan.policy != "random" and least < needed:
        more = "" if least <= plan.memory else f"with {size_text(least)} of `memory`"
        if plan.policy == "mean":
            remedies.append(SetOption("hierarchical", True, when=more))
        else:
            text = f"and `hierarchical` {more}".rstrip() + ", near the exact result"
            remedies.append(SetOption("approximate", 0.05, when=text))
    larger = "" if plan.superpixels else ", by `min_size` or `sigma`"
    remedies.append(f"take larger superpixels{larger}")
    regions, boundaries = expected(plan, voxels)
    beside = ", of which merges in groups of blocks leave about half," if plan.hierarchical else ""
    problem = (
        f"by a sample, the volume has about {regions:,} superpixels ({voxels / regions:,.0f} "
        f"voxels each) and {boundaries:,} boundaries{beside} whose agglomeration needs about "
        f"{_gb(needed)}, and `memory` is {_gb(plan.memory)}"
    )
    if needed * (1 - SAMPLE_ERROR) > plan.memory:
        insist = SetOption("force", True, when="if they are larger in the rest of the volume")
        remedies.append(insist)
        raise InvalidInput(problem, argument="memory", remedy=tuple(remedies))
    text = f"{problem}: `run` may refuse the graph, after all blocks have been counted"
    warn_caller(DataWarning(text, argument="memory", remedy=tuple(remedies)))


def estimate(plan: Plan) -> Estimate:
    """Return the size and cost of a plan; the graph is that of superpixels as in a sample.

    Parameters
    ----------
    plan : Plan
        The result of `plan`.

    Returns
    -------
    Estimate
        Bytes of files and of memory, and minutes.
    """
    voxels = math.prod(plan.shape)
    regions, boundaries = expected(plan, voxels)
    return Estimate(
        voxels=voxels,
        blocks=plan.grid.n_blocks,
        workers=plan.workers,
        read_bytes=voxels * plan.bytes_per_voxel,
        written_bytes=written_bytes(plan),
        block_bytes=block_bytes(plan, plan.block),
        superpixels=regions,
        boundaries=boundaries,
        graph_bytes=_expected_graph(plan),
        reduction_bytes=_expected_reduction(plan),
        minutes=sum(stage_seconds(plan).values()) / 60,
    )


def written_bytes(plan: Plan) -> int:
    """Return the bytes of all stores of a plan without compression, coarser levels included."""
    every = sum(math.prod(shape) for shape in plan.pyramid("labels").shapes)
    stores = 2 if plan.superpixels is None else 1
    written = stores * every * plan.label_dtype.itemsize
    written += math.prod(plan.shape) * 2 * len(plan.predicted)
    return written + every * 8 * plan.precomputed


def stage_seconds(plan: Plan) -> dict[str, float]:
    """Return the seconds of the stages that take longest, with the workers of the plan."""
    voxels = math.prod(plan.shape)
    shapes = plan.pyramid("labels").shapes
    coarse = sum(math.prod(shape) for shape in shapes[:-1])  # which are read for the next
    rows = voxels * (STATISTICS_COST[0] + STATISTICS_COST[1] * len(plan.cue_names))
    work = {"statistics": rows, "reduce": voxels, "labels": voxels, "pyramid": coarse}
    if plan.superpixels is None:
        halo = halo_sides(plan.halo, plan.shape, plan.per_plane)
        flooded = _flooded(plan.shape, halo, plan.block)
        work |= {"cut": flooded, "superpixels": voxels, "overview": coarse}
    if plan.precomputed:
        work["precomputed"] = sum(math.prod(shape) for shape in shapes)
    if plan.gold is not None:
        work["overlap"] = voxels
    seconds = {name: amount / RATES[name] / plan.workers for name, amount in work.items()}
    if plan.predicted:
        each = PREDICT_SECONDS[0] + PREDICT_SECONDS[1] * plan.trees
        seconds["predict"] = voxels * each / plan.workers
    return seconds | {"tree": voxels / RATES["tree"]}  # in one thread


def _flooded(shape: Sequence[int], halo: Sequence[int], block: Sequence[int]) -> int:
    """Return the voxels of all blocks of these sides with their halos."""
    counts = [-(-n // side) for n, side in zip(shape, block, strict=True)]
    axes = zip(shape, halo, counts, strict=True)
    return math.prod(n + 2 * h * (count - 1) for n, h, count in axes)


def block_bytes(plan: Plan, block: Sequence[int]) -> int:
    """Return the memory of a task on a block of these sides, beside that of its process."""
    return TASK + max(stage_bytes(plan, block).values())


def stage_bytes(plan: Plan, block: Sequence[int]) -> dict[str, int]:
    """Return the arrays of a task on a block of these sides, by the stages that have most."""
    core = math.prod(block)
    cues = sum(np.dtype(cue.dtype).itemsize for cue in plan.cues.values()) + 2 * len(plan.predicted)
    if plan.affinities is not None:  # channels, bytes of them, and those at faces
        channels = plan.affinities.shape[0]
        cues += channels * (np.dtype(plan.affinities.dtype).itemsize + 2) + 4
    labels = plan.label_dtype.itemsize
    regions, boundaries = expected(plan, core)
    layout = plan.layout
    rows = 8 * (regions * layout.region_width + boundaries * layout.boundary_width)
    out = {
        # with the rows as they are computed, and as they are packed
        "statistics": core * (STATISTICS_BYTES + cues + len(plan.cue_names) + labels) + 2 * rows,
        # a block of a coarser level, and what is read for it
        "pyramid": 2 * core * labels,
    }
    if plan.predicted:
        out["predict"] = 2 * core * len(plan.predicted) + plan.predict_bytes
    if plan.gold is not None:  # both, and dense ids of both
        out["overlap"] = core * (labels + np.dtype(plan.gold.dtype).itemsize + 8)
    if plan.superpixels is None:
        halo = halo_sides(plan.halo, plan.shape, plan.per_plane)
        outer = math.prod(
            min(b + 2 * h, n) for b, h, n in zip(block, halo, plan.shape, strict=True)
        )
        source = plan.cues.get(plan.boundary)
        value = np.dtype(source.dtype).itemsize if source else 2
        if plan.boundary == AFFINITY and plan.affinities is not None:
            value = cues
        if plan.mask is not None:  # as it is read, and as bytes
            value += np.dtype(plan.mask.dtype).itemsize + 1
        out["cut"] = outer * (CUT_BYTES + value)
    return out


def budget(memory: int | str | None) -> int:
    """Return a budget in bytes; by default half of the free memory."""
    if memory is None:
        return max(2 * BASE, (available_memory() or 4 * 10**9) // 2)
    number = memory_bytes(memory)
    if number is None or number < 2 * BASE:
        raise InvalidInput(
            f"`memory` must be a size of {size_text(2 * BASE)} or more, as the programs alone need "
            f"that much, got {memory if number is None else f'{number:,} bytes'}",
            argument="memory",
            remedy="give more, such as 4GB, or leave out `memory` for half of what is free",
        )
    return number


def give_back_memory() -> None:
    """Give freed memory back to the system, which the allocator of Linux keeps for later."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def memory_bytes(memory: object) -> int | None:
    """Return the bytes of ``4GB``, ``500 MB``, ``2GiB`` or a whole number; None of anything else.

    Examples
    --------
    >>> memory_bytes("1.5GB"), memory_bytes(700), memory_bytes("much")
    (1500000000, 700, None)
    """
    match = _SIZE.fullmatch(str(memory).strip().lower())
    if match is None or not (isinstance(memory, str) or is_whole(memory)):
        return None
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** " kmgt".index(match[2] or " "))


def size_text(number: int) -> str:
    """Return a number of bytes as `memory` takes it, rounded up to a tenth of a GB.

    Examples
    --------
    >>> size_text(2_100_000_001), size_text(4 * 10**9)
    ('2.2GB', '4GB')
    """
    tenths = -(-number // 10**8)
    return f"{tenths / 10:g}GB"


def _gb(number: int) -> str:
    return f"{number / 1e9:.1f} GB"


def sized(
    plan: Plan,
    block: Sequence[int] | int | None,
    chunks: Sequence[int] | int | None,
    workers: int | None,
) -> Plan:
    """Choose blocks, chunks and workers within the budget; refuse what cannot fit."""
    threads = check_whole("workers", workers, 1) if workers else os.cpu_count() or 1
    room = plan.memory - BASE
    if block is None:
        most = (threads,) if workers else range(threads, 0, -1)
        _, sides, threads = min((*_best_block(plan, room // n, n), n) for n in most)
    else:
        sides = check_sides("block", block, plan.shape)
        fitting = max(1, room // max(1, block_bytes(plan, sides)))
        threads = min(threads, fitting) if workers is None else threads
    plan = replace(plan, block=sides, workers=threads)
    parts = chunk_sides(sides) if chunks is None else check_sides("chunks", chunks, plan.shape)
    check_alignment(sides, parts)
    plan = replace(plan, chunks=parts)
    needed = BASE + threads * block_bytes(plan, sides)
    if needed > plan.memory:
        raise InvalidInput(
            f"{threads} blocks of {'x'.join(map(str, sides))} voxels at a time need about "
            f"{_gb(needed)}, and `memory` is {_gb(plan.memory)}",
            argument="memory",
            remedy=(SetOption("memory", size_text(needed)), "leave `block` and `workers` out"),
        )
    return plan


def _best_block(plan: Plan, room: int, threads: int) -> tuple[float, tuple[int, ...]]:
    """Return the block that fits in so many bytes and takes the least time, and that time.

    The time is that of the voxels to flood, halos included, where the last blocks may leave threads
    idle. Blocks of an axis are nearly equal, and multiples of 32 or 128, which have good chunks.
    """
    halo = halo_sides(plan.halo if plan.superpixels is None else 1, plan.shape, plan.per_plane)
    threads = min(threads, max(1, math.prod(plan.shape) // _SMALL))
    longest = _LONGEST if plan.ndim > 2 else 8 * _LONGEST
    each = [_sides_of(n, longest) for n in plan.shape]
    most = max(2, int(_CHOICES ** (1 / len(each))))
    each = [sides[:: -(-len(sides) // most)] for sides in each]
    best: tuple[float, int, tuple[int, ...]] | None = None
    smallest = tuple(sides[-1] for sides in each)
    for sides in itertools.product(*each):
        fits = block_bytes(plan, sides) <= room
        if not fits and sides != smallest:
            continue
        n_blocks = math.prod(-(-n // side) for n, side in zip(plan.shape, sides, strict=True))
        busy = -(-n_blocks // threads) / n_blocks  # share of the blocks that one thread does
        cost = _flooded(plan.shape, halo, sides) * busy if fits else math.inf
        if best is None or (cost, n_blocks, sides) < best:
            best = (cost, n_blocks, sides)
    assert best is not None  # the smallest blocks are never passed over
    return best[0], best[2]


def _sides_of(n: int, longest: int) -> list[int]:
    """Return the sides of blocks that divide an axis nearly equally, the longest first.

    >>> _sides_of(300, 1024)
    [300, 160, 128, 96, 64, 32]
    """
    step = 32 if n <= 4096 else 128
    counts = range(-(-n // longest), max(1, -(-n // step)) + 1)
    return sorted({min(n, step * -(-n // (step * count))) for count in counts}, reverse=True)
