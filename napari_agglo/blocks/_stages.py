"""Stages of a block-wise run: the tasks of each, and the files that they read and write.

A task has a stage and a number. It opens the files that it needs, writes its result, and returns
notes for its marker. Tasks share nothing in memory, so that any process can do any of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from napari_agglo._data_warnings import keep_warnings
from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import agglomerate, merge_greedily
from napari_agglo.blocks._block_graph import TableSum, partial_graph, stream_graph, union_of
from napari_agglo.blocks._block_grid import Slices, lengths, reduced_tasks, reduction_grids
from napari_agglo.blocks._block_superpixels import (
    cut_block,
    dense_block,
    faces_that_differ,
    halo_sides,
    joined_pairs,
    neighbours,
    number_superpixels,
    relabelled,
)
from napari_agglo.blocks._budget import (
    CURVE_BYTES,
    NUMBER_BYTES,
    OVERLAP_BYTES,
    check_memory,
    check_room,
    largest_reduction,
)
from napari_agglo.blocks._face_cues import AFFINITY
from napari_agglo.blocks._final_merges import (
    FinalMerges,
    complete_regions,
    in_one_order,
    in_order_of_heights,
    merge_final,
    merge_likely,
)
from napari_agglo.blocks._plan import Plan
from napari_agglo.blocks._remote_copy import begin_copy, copy_part, copy_parts, publish
from napari_agglo.blocks._run_files import (
    CLASSIFIER,
    LABELS,
    POLICY,
    PRECOMPUTED,
    SUPERPIXELS,
    Absent,
    CountedImage,
    Job,
    Notes,
    Redo,
    is_joint,
    read_source,
)
from napari_agglo.blocks._stores import (
    coarsen_block,
    create_precomputed,
    create_store,
    level_grid,
    precomputed_grid,
    write_block,
    write_precomputed_block,
    write_two_levels,
)
from napari_agglo.blocks._tables import DamagedTable, Rows, Table
from napari_agglo.errors import InvalidInput
from napari_agglo.policy import load_policy
from napari_agglo.volumes import (
    DenseLabels,
    contingency,
    dense_labels,
    plan_image,
)
from napari_agglo.volumes import _replace_file as files
from napari_agglo.volumes._on_disk import OnDisk

if TYPE_CHECKING:
    from napari_agglo.pixels._pixel_image import PixelImage

Result = TypeVar("Result")

# The tasks, one function a stage.


def _predict(job: Job, index: int, progress: ProgressCallback | None) -> Notes:
    """Write the probabilities of all classes as 16 bits: the watershed needs more than 8."""
    from napari_agglo.pixels import load_pixel_classifier
    from napari_agglo.pixels._pixel_image import Box, PixelImage
    from napari_agglo.pixels._pixel_image import blocks as parts_of
    from napari_agglo.pixels._predict_classes import predict_box

    plan = job.plan
    assert plan.image is not None
    classifier = load_pixel_classifier(job.folder / CLASSIFIER)
    with keep_warnings():  # which the plan has told once, not each block
        image = PixelImage.of(plan.image.open(), plan.spacing)  # which the plan has checked
    slices = job.grid.slices(index)
    absent: dict[str, int] = {}
    extra = 3 - plan.ndim
    first = (0,) * extra + tuple(s.start for s in slices)
    sides = (1,) * extra + lengths(slices)
    out = np.empty((len(plan.predicted), *sides), np.uint16)
    with ThreadPoolExecutor(1) as pool:
        for part in parts_of(sides, classifier.bank.axes):
            start, stop = (
                tuple(a + f for a, f in zip(ends, first, strict=True))
                for ends in (part.start, part.stop)
            )
            box = Box(start, stop)
            counted = _counted(image, Absent(box.index[extra:], absent))
            values = predict_box(
                counted, box, classifier.bank, classifier.forest, len(plan.predicted), pool,
                progress,
            )  # fmt: skip
            out[(slice(None), *part.index)] = np.rint(values * np.float32(65535))
    for name, values in zip(plan.predicted, out, strict=True):
        write_block(job.store(f"cue_{name}.ome.zarr"), 0, slices, values.reshape(lengths(slices)))
    return {"absent": absent}


def _counted(image: PixelImage, absent: Absent) -> PixelImage:
    """Return an image whose absent chunks are counted as it is read."""
    picture = image.picture
    if not isinstance(picture.data, OnDisk):
        return image
    counted = CountedImage(picture.data, "image", absent)
    return replace(image, picture=replace(picture, data=counted))


def _cut(job: Job, index: int, progress: ProgressCallback | None) -> Notes:
    plan = job.plan
    core = job.grid.slices(index)
    absent = Absent(core)
    halo = halo_sides(plan.halo, plan.shape, plan.per_plane)
    outer = job.grid.padded(index, halo, halo)
    mask = None if plan.mask is None else read_source(plan.mask, outer, "mask", absent)
    arrays = cut_block(
        job.boundary(outer, absent), mask, core, outer, plan.shape,
        spacing=plan.spacing, sigma=plan.sigma, min_size=plan.min_size, per_plane=plan.per_plane,
        value_range=None if plan.boundary == AFFINITY else job.range(plan.boundary),
        nan=plan.nan, progress=progress,
    )  # fmt: skip
    size = job.write("cut", index, arrays)
    return {"bytes": size, "pieces": int(arrays["count"][0]), "absent": absent.counts}


def _join(job: Job, index: int, progress: ProgressCallback | None) -> Notes:
    def faces(block: int, axis: int, side: str) -> dict[str, NDArray[Any]]:
        names = (f"face_{side}_{axis}", f"same_{side}_{axis}")
        return dict(zip(names, job.values("cut", block, *names), strict=True))

    arrays, differ, total = {}, 0, 0
    for axis, other in neighbours(job.grid, index, job.plan.per_plane):
        lower, upper = faces(index, axis, "high"), faces(other, axis, "low")
        arrays[f"pairs_{other}"] = joined_pairs(lower, upper, axis)
        differ += faces_that_differ(lower, upper, axis)
        total += len(lower[f"face_high_{axis}"])
    (arrays["count"],) = job.values("cut", index, "count")
    return {"bytes": job.write("join", index, arrays), "faces": total, "differ": differ}


def _number(job: Job, index: int, progress: ProgressCallback | None) -> Notes:
    blocks = range(job.grid.n_blocks)
    counts = [int(job.values("join", block, "count")[0][0]) for block in blocks]
    total = sum(counts)
    work = f"the numbering of {total:,} pieces of superpixels"
    check_room(job.plan, NUMBER_BYTES * total, work, job.others)

    def pairs() -> Iterator[tuple[int, int, NDArray[np.int64]]]:
        for block in blocks:
            for _, other in neighbours(job.grid, block, job.plan.per_plane):
                (rows,) = job.values("join", block, f"pairs_{other}")
                yield block, other, rows

    first, superpixel = number_superpixels(counts, pairs())
    job.save("number/first", first)
    job.save("number/superpixel", superpixel)
    return {"pieces": int(first[-1]), "superpixels": int(superpixel.max(initial=0))}


def _numbers(job: Job, index: int) -> NDArray[np.uint32]:
    """Return the superpixel of each piece of a block, 0 first."""
    first, superpixel = job.arrays("number/first"), job.arrays("number/superpixel")
    lut = np.zeros(int(first[index + 1] - first[index]) + 1, np.uint32)
    lut[1:] = superpixel[first[index] : first[index + 1]]
    return lut


def _write_labels(job: Job, store: str, slices: Slices, image: NDArray[Any]) -> None:
    """Write a block of a store of labels, and of its next level where no other block has a part."""
    if is_joint(job.plan, store):
        write_two_levels(job.store(store), job.plan.pyramid(store), slices, image)
    else:
        write_block(job.store(store), 0, slices, image)


def _superpixels(job: Job, index: int, progress: ProgressCallback | None) -> Notes:
    slices = job.grid.slices(index)
    pieces = job.pieces(index)
    image = relabelled(pieces, _numbers(job, index), lengths(slices))
    _write_labels(job, SUPERPIXELS, slices, image)
    return {}


def _with_planes_above(job: Job, index: int) -> DenseLabels:
    """Return the superpixels of a block and of the voxels next above it, from tables.

    They are those of the store, whose chunks in the next blocks would be decoded for one plane.
    """
    pieces = job.pieces(index)
    above = {}
    for axis in range(job.plan.ndim):
        other = job.grid.neighbour(index, axis)
        if other is not None:
            (face,) = job.values("cut", other, f"face_low_{axis}")
            above[axis] = _numbers(job, other)[face]
    return dense_block(pieces, _numbers(job, index), lengths(job.grid.slices(index)), above)


def _statistics(job: Job, index: int, progress: ProgressCallback | None) -> Notes:
    plan = job.plan
    core = job.grid.slices(index)
    absent = Absent(core)
    above = (2 if plan.dams else 1,) * plan.ndim
    outer = job.grid.padded(index, (0,) * plan.ndim, above)
    own = plan.superpixels is None and not plan.dams
    plain = (*plan.cues, *plan.predicted)
    arrays = partial_graph(
        _with_planes_above(job, index) if own else job.labels(outer, absent),
        job.evidence(outer, absent),
        core,
        plan.shape,
        plan.layout,
        ranges={name: limits for name in plain if (limits := job.range(name))},
        nan=plan.nan,
        dams=plan.dams,
        progress=progress,
    )
    return {
        "bytes": job.write("statistics", index, arrays), "regions": len(arrays["ids"]),
        "boundaries": len(arrays["edges"]), "absent": absent.counts,
    }  # fmt: skip


def _of_tables(job: Job, tasks: list[tuple[str, int]], use: Callable[[TableSum], Result]) -> Result:
    """Use the sum of the tables of tasks; name all of them that are damaged."""
    try:
        return use(TableSum([job.table(*task) for task in tasks], job.plan.layout))
    except DamagedTable:
        bad = []
        for task in tasks:
            try:
                table = Table(job.table(*task))
                for name in ("ids", "low", "high", "edges", "regions", "boundaries"):
                    for _ in table.pieces(name):
                        pass
            except DamagedTable as error:
                bad.append((task, str(error)))
        raise Redo([task for task, _ in bad], bad[0][1] if bad else "") from None


def _reduce(level: int) -> Callable[[Job, int, ProgressCallback | None], Notes]:
    def reduce(job: Job, index: int, progress: ProgressCallback | None) -> Notes:
        def write(total: TableSum) -> Notes:
            arrays: Mapping[str, NDArray[Any] | Rows] = {}
            if job.plan.hierarchical:
                slices = reduction_grids(job.grid)[level].slices(index)
                arrays = _finally_merged(job, total.whole(), slices)
            else:
                arrays = total.arrays()
            notes = {"bytes": job.write(f"reduce-{level}", index, arrays)}
            sizes = arrays["ids"].shape[0], arrays["edges"].shape[0]
            return notes | dict(zip(("regions", "boundaries"), sizes, strict=True))

        return _of_tables(job, reduced_tasks(job.grid, level, index), write)

    return reduce


def _finally_merged(job: Job, arrays: dict[str, NDArray[Any]], group: Slices) -> Any:
    """Make the merges of a group that are final, and keep them beside its table."""
    plan = job.plan
    complete = complete_regions(arrays, group, plan.shape, plan.dams)
    if plan.approximate:
        left, merges = merge_likely(
            arrays, complete, plan.layout, partial(_merges_of, job), plan.approximate
        )
    else:
        left, merges = merge_final(arrays, complete, plan.layout, plan.mean_cue)
    left["winners"], left["losers"] = merges.winners, merges.losers
    left["bits"] = merges.priorities.view(np.uint64)  # of numbers of 0 or more
    return left


def _merges_of(job: Job, arrays: dict[str, NDArray[Any]]) -> FinalMerges:
    """Agglomerate a part of the graph by the policy of the plan."""
    ids = arrays["ids"]
    nowhere = np.zeros((1,) * job.plan.ndim, np.uint32)
    graph = job.graph_of(arrays, DenseLabels(nowhere, ids, job.plan.label_dtype))
    merges = merge_greedily(graph, load_policy(job.folder / POLICY))
    return FinalMerges(ids[merges.winners], ids[merges.losers], merges.priorities)


def _final_merges(job: Job) -> list[FinalMerges]:
    """Return the merges of all groups."""
    out = [FinalMerges(np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0))]
    for level, grid in enumerate(reduction_grids(job.grid)[1:], start=1):
        for index in range(grid.n_blocks):
            names = ("winners", "losers", "bits")
            winners, losers, bits = job.values(f"reduce-{level}", index, *names)
            out.append(FinalMerges(winners, losers, bits.view(np.float64)))
    return out


def _sizes(job: Job) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the ids of all superpixels, with 0 first, and their voxels, from the tables."""
    parts = []
    for block in range(job.grid.n_blocks):
        table = job.read("statistics", block)
        try:
            counts = [rows[:, 0] for _, rows in table.pieces("regions")]
            parts.append((table.read("ids"), np.concatenate([np.zeros(0, np.int64), *counts])))
        except DamagedTable as error:
            raise Redo([("statistics", block)], str(error)) from error
    zero = np.zeros(1, np.uint64)
    ids = union_of([zero, *(some for some, _ in parts)])
    sizes = np.zeros(len(ids), np.int64)
    for some, count in parts:
        sizes[np.searchsorted(ids, some)] += count
    return ids, sizes


def _graph(job: Job, index: int, progress: ProgressCallback | None) -> Notes:
    grids = reduction_grids(job.grid)
    last = "statistics" if len(grids) == 1 else f"reduce-{len(grids) - 1}"
    prefix = "rest_" if job.plan.hierarchical else ""

    def save(total: TableSum) -> Notes:
        check_memory(job.plan, len(total.ids), total.n_boundaries, job.others)
        return _saved(job, prefix, total)

    notes = _of_tables(job, [(last, block) for block in range(grids[-1].n_blocks)], save)
    if prefix:
        for name, array in zip(("ids", "sizes"), _sizes(job), strict=True):
            job.save(f"graph/{name}", array)
    return notes


def _saved(job: Job, prefix: str, total: TableSum) -> Notes:
    n = len(total.ids)
    if n >= 2**31:
        raise InvalidInput(
            f"there are {n} superpixels, and a graph has at most 2**31",
            argument="superpixels",
            remedy="use larger superpixels, or a crop",
        )
    sizes = stream_graph(
        total, job.plan.layout, lambda name, rows: job.save(f"graph/{prefix}{name}", rows)
    )
    if not prefix:
        job.save("graph/sizes", sizes)
    return {"regions": n, "boundaries": total.n_boundaries}


def save_whole_graph(job: Job) -> Notes:
    """Save the graph of all superpixels of a hierarchical run, which did without it.

    Ids and pairs of its boundaries are in memory, no more; what does not fit is refused.
    """
    tasks = [("statistics", block) for block in range(job.grid.n_blocks)]
    tables = [job.read(*task) for task in tasks]
    sizes = [(table.shape("ids")[0], table.shape("edges")[0]) for table in tables]
    largest_reduction(replace(job.plan, hierarchical=False), [sizes])
    return _of_tables(job, tasks, partial(_saved, job, ""))


def _tree(job: Job, index: int, progress: ProgressCallback | None) -> Notes:
    graph = job.graph("rest_" if job.plan.hierarchical else "")
    check_memory(job.plan, graph.n_regions, graph.n_boundaries, job.others)
    if job.plan.approximate:  # what is left is no graph of superpixels, as those of a training
        made = merge_greedily(graph, load_policy(job.folder / POLICY), progress=progress)
        merges: list[Any] = [made.winners, made.losers, made.priorities]
    else:
        tree = agglomerate(graph, job.policy(), progress=progress)
        merges = [tree.winners, tree.losers, tree.priorities]
    if job.plan.hierarchical:
        rest = FinalMerges(graph.ids[merges[0]], graph.ids[merges[1]], merges[2])
        combine = in_order_of_heights if job.plan.approximate else in_one_order
        merges = list(combine(job.arrays("graph/ids"), _final_merges(job), rest))
    for name, array in zip(("winners", "losers", "priorities"), merges, strict=True):
        job.save(f"tree/{name}", array)
    return {"merges": len(merges[0])}


def _table(job: Job, index: int, progress: ProgressCallback | None) -> Notes:
    tree = job.tree()
    lut = tree.lut(job.plan.threshold)
    ids = tree.superpixels.ids
    job.save("table/segments", ids[lut].astype(job.plan.label_dtype))
    return {"segments": tree.n_segments(job.plan.threshold)}


def _labels(job: Job, index: int, progress: ProgressCallback | None) -> Notes:
    slices = job.grid.slices(index)
    absent = Absent(slices)
    ids, segments = job.arrays("graph/ids"), job.arrays("table/segments")
    if job.plan.superpixels is None and job.table("cut", index).exists():
        job.level(SUPERPIXELS).check(slices)
        pieces = job.pieces(index)
        own = segments[np.searchsorted(ids, _numbers(job, index))]
        image = relabelled(pieces, own, lengths(slices))
    else:
        here = dense_labels(job.labels(slices, absent), "block")
        image = segments[np.searchsorted(ids, here.ids)][here.image]
    _write_labels(job, LABELS, slices, image)
    return {"absent": absent.counts}


def _coarsen(store: str, level: int) -> Callable[[Job, int, ProgressCallback | None], Notes]:
    def coarsen(job: Job, index: int, progress: ProgressCallback | None) -> Notes:
        image = job.plan.pyramid(store)
        slices = level_grid(image.shapes[level], job.plan.block).slices(index)
        coarsen_block(job.level(store, level - 1), job.store(store), level, image, slices)
        return {}

    return coarsen


def _precomputed(level: int) -> Callable[[Job, int, ProgressCallback | None], Notes]:
    def write(job: Job, index: int, progress: ProgressCallback | None) -> Notes:
        shape = job.plan.pyramid(LABELS).shapes[level]
        slices = precomputed_grid(shape, job.plan.block).slices(index)
        write_precomputed_block(job.store(PRECOMPUTED), job.level(LABELS, level), level, slices)
        return {}

    return write


def _overlap(job: Job, index: int, progress: ProgressCallback | None) -> Notes:
    slices = job.grid.slices(index)
    absent = Absent(slices)
    assert job.plan.gold is not None
    gold = read_source(job.plan.gold, slices, "gold", absent)
    table = contingency(job.labels(slices, absent), gold, progress=progress)
    arrays = {
        "rows": table.row_ids[table.rows],
        "columns": table.column_ids[table.columns],
        "counts": table.counts,
    }
    return {"bytes": job.write("overlap", index, arrays), "absent": absent.counts}


def _evaluate(job: Job, index: int, progress: ProgressCallback | None) -> Notes:
    from napari_agglo.evaluate import table_curve

    tree = job.tree()
    tables = [job.read("overlap", block) for block in range(job.grid.n_blocks)]
    overlaps = sum(table.shape("rows")[0] for table in tables)
    needed = OVERLAP_BYTES * overlaps + CURVE_BYTES * tree.n_superpixels
    check_room(job.plan, needed, f"the evaluation of {overlaps:,} overlaps", job.others)
    curve = table_curve(tree, job.overlaps(), progress=progress)
    temporary = job.folder / f".curve.{files.token()}.partial"
    curve.to_csv(temporary, index=False)
    os.replace(temporary, job.folder / "curve.csv")
    job.note_file("curve.csv")
    best = curve.iloc[int(curve["vi"].to_numpy().argmin())]
    return {"vi": float(best["vi"]), "threshold": float(best["threshold"])}


Work = Callable[[Job, int, ProgressCallback | None], Notes]


@dataclass(frozen=True)
class Stage:
    """A stage: its name, the number of its tasks, and the function that does one of them.

    `voxels` is whether the tasks are the blocks of the volume.
    """

    name: str
    tasks: int
    work: Work
    voxels: bool = False


def stages_of(plan: Plan) -> list[Stage]:
    """Return the stages of a plan, in their order."""
    n = plan.grid.n_blocks
    out = []
    if plan.predicted:
        out.append(Stage("predict", n, _predict, True))
    if plan.superpixels is None:
        out += [
            Stage("cut", n, _cut, True),
            Stage("join", n, _join),
            Stage("number", 1, _number),
            Stage("superpixels", n, _superpixels, True),
            *_levels(plan, "overview", SUPERPIXELS),
        ]
    out.append(Stage("statistics", n, _statistics, True))
    for level, grid in enumerate(reduction_grids(plan.grid)[1:], start=1):
        out.append(Stage(f"reduce-{level}", grid.n_blocks, _reduce(level)))
    out += [
        Stage("graph", 1, _graph),
        Stage("tree", 1, _tree),
        Stage("table", 1, _table),
        Stage("labels", n, _labels, True),
        *_levels(plan, "pyramid", LABELS),
    ]
    if plan.precomputed:
        for level, shape in enumerate(plan.pyramid(LABELS).shapes):
            tasks = precomputed_grid(shape, plan.block).n_blocks
            out.append(Stage(f"precomputed-{level}", tasks, _precomputed(level)))
    if plan.gold is not None:
        out += [Stage("overlap", n, _overlap, True), Stage("evaluate", 1, _evaluate)]
    if plan.copy_to:
        out += [Stage("copy", len(copy_parts(plan)), copy_part), Stage("publish", 1, publish)]
    return out


def _levels(plan: Plan, name: str, store: str) -> list[Stage]:
    out = []
    first = 2 if is_joint(plan, store) else 1
    for level, shape in list(enumerate(plan.pyramid(store).shapes))[first:]:
        tasks = level_grid(shape, plan.block).n_blocks
        out.append(Stage(f"{name}-{level}", tasks, _coarsen(store, level)))
    return out


def prepare(job: Job, stage: Stage) -> list[Stage]:
    """Make the stores that a stage writes to; return the stages that write to them, if one is new.

    Their tasks are then to be done, even if they are marked as done: the store was lost.
    """
    plan = job.plan
    stores: dict[str, Any] = {}
    made = False
    if stage.name == "predict":
        stores = {f"cue_{name}.ome.zarr": np.dtype("u2") for name in plan.predicted}
    elif stage.name == "superpixels":
        stores = {SUPERPIXELS: plan.label_dtype}
    elif stage.name == "labels":
        stores = {LABELS: plan.label_dtype}
    elif stage.name == "precomputed-0":
        made = create_precomputed(job.store(PRECOMPUTED), plan, plan.digest(stage.name))
    elif stage.name == "copy":
        made = begin_copy(job)
    for name, dtype in stores.items():
        image = plan.pyramid(name.split(".")[0])
        if stage.name == "predict":
            image = plan_image(name.split(".")[0], plan.shape, plan.spacing, unit=plan.unit,
                               version=plan.ome_version, levels=1)  # fmt: skip
        made |= create_store(
            job.store(name), image, dtype, plan.block, plan.chunks, shards=plan.shards,
            digest=json.dumps([plan.digest(stage.name), plan.levels]),
            is_labels=stage.name != "predict",
        )  # fmt: skip
    if not made:
        return []
    levels = _FURTHER.get(stage.name, stage.name)
    return [one for one in stages_of(plan) if one.name == stage.name or one.name.startswith(levels)]


# Stages that write further parts of the store of a stage.
_FURTHER = {
    "superpixels": "overview-", "labels": "pyramid-", "precomputed-0": "precomputed-",
    "copy": "publish",
}  # fmt: skip


def block_of(job: Job, stage: Stage, index: int) -> str:
    """Return a description of a task, for messages."""
    if not stage.voxels:
        return f"task {index}"
    slices = job.grid.slices(index)
    where = ", ".join(f"{s.start}:{s.stop}" for s in slices)
    return f"block {index} ([{where}], shape {lengths(slices)})"
