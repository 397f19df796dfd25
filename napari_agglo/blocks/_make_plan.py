"""Checks and choices of a plan: inputs on one grid, block sizes within a memory budget."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from napari_agglo.blocks._block_grid import check_sides, chunk_sides
from napari_agglo.blocks._plan import Plan, Source
from napari_agglo.blocks._run_files import CLASSIFIER, POLICY
from napari_agglo.blocks._stores import check_alignment
from napari_agglo.errors import InvalidInput, SetOption, check_choice, check_whole, is_number
from napari_agglo.superpixels._oversegment import least_size, sigmas_in_voxels
from napari_agglo.volumes import (
    ValueGate,
    check_nan,
    check_range,
    check_same_shape,
    check_same_spacing,
    check_spacing,
    check_unit,
    plan_image,
    replacing,
)
from napari_agglo.volumes._volume import available_memory

HALO = 16
# Bytes of the Python process with all libraries loaded: measured, docs/scale.md.
BASE = 350_000_000
# Peak bytes for a voxel of a block with its halo, beside the voxels that are read: measured there.
CUT_BYTES = 22
STATISTICS_BYTES = 10
# Superpixels assumed before there are any: neuropil has 3,800 voxels a superpixel and 4.3
# boundaries each; these are on the safe side.
VOXELS_A_SUPERPIXEL = 2000
BOUNDARIES_A_SUPERPIXEL = 7
# Voxels a second and thread, for the minutes of a dry run: measured there.
RATES = {"cut": 1.6e6, "statistics": 8e6, "labels": 20e6}


@dataclass(frozen=True)
class Estimate:
    """Size and cost of a plan before it runs.

    Attributes
    ----------
    voxels, blocks : int
        Of the volume.
    read_bytes, written_bytes : int
        Of the inputs, and of the label images, both without compression.
    block_bytes : int
        Memory of one task on a block; `workers` of them run at a time.
    graph_bytes : int
        Memory of the graph and its agglomeration, for superpixels of an assumed size.
    minutes : float
        On this machine, roughly.
    """

    voxels: int
    blocks: int
    workers: int
    read_bytes: int
    written_bytes: int
    block_bytes: int
    graph_bytes: int
    minutes: float

    @property
    def peak_bytes(self) -> int:
        """Memory of the whole process at its peak."""
        return BASE + max(self.workers * self.block_bytes, self.graph_bytes)


def graph_bytes(plan: Plan, regions: int, boundaries: int) -> int:
    """Return the memory that a graph and its agglomeration take."""
    layout = plan.layout
    rows = 8 * (regions * layout.region_width + boundaries * layout.boundary_width)
    needs_rows = plan.policy != "mean"  # which keep a copy of their own
    loop = boundaries * 130 + regions * 60
    return rows * (2 if needs_rows else 1) + boundaries * 48 + loop


def estimate(plan: Plan) -> Estimate:
    """Return the size and cost of a plan; the graph is that of assumed superpixels."""
    voxels = math.prod(plan.shape)
    labels = plan.label_dtype.itemsize
    regions = voxels // VOXELS_A_SUPERPIXEL + 1
    seconds = voxels / RATES["statistics"] + 2 * voxels / RATES["labels"]
    if plan.superpixels is None:
        seconds += voxels / RATES["cut"]
    return Estimate(
        voxels=voxels,
        blocks=plan.grid.n_blocks,
        workers=plan.workers,
        read_bytes=voxels * plan.bytes_per_voxel,
        written_bytes=voxels * labels * (2 if plan.superpixels is None else 1),
        block_bytes=_block_bytes(plan, plan.block),
        graph_bytes=graph_bytes(plan, regions, BOUNDARIES_A_SUPERPIXEL * regions),
        minutes=seconds / 60 / plan.workers,
    )


def _block_bytes(plan: Plan, block: Sequence[int]) -> int:
    core = math.prod(block)
    cues = sum(np.dtype(cue.dtype).itemsize for cue in plan.cues.values()) + 2 * len(plan.predicted)
    labels = plan.label_dtype.itemsize
    most = core * (STATISTICS_BYTES + cues + len(plan.cue_names) + labels)
    if plan.superpixels is None:
        outer = math.prod(min(b + 2 * plan.halo, n) for b, n in zip(block, plan.shape, strict=True))
        source = plan.cues.get(plan.boundary)
        value = np.dtype(source.dtype).itemsize if source else 2
        most = max(most, outer * (CUT_BYTES + value))
    return most


def make_plan(
    folder: str | os.PathLike[str] | None,
    cues: Mapping[str, str] | str | None = None,
    *,
    superpixels: str | None = None,
    gold: str | None = None,
    mask: str | None = None,
    image: str | None = None,
    classifier: str | None = None,
    policy: str = "mean",
    threshold: float = 0.5,
    spacing: Sequence[float] | None = None,
    unit: str | None = None,
    ranges: Mapping[str, tuple[float, float]] | tuple[float, float] | None = None,
    nan: Literal["refuse", "boundary"] = "refuse",
    dams: bool = False,
    bins: int = 25,
    statistics: Literal["all", "mean"] | None = None,
    boundary: str = "boundary",
    sigma: float | None = None,
    min_size: int | None = None,
    per_plane: bool = False,
    halo: int = HALO,
    block: Sequence[int] | int | None = None,
    chunks: Sequence[int] | int | None = None,
    shards: bool = False,
    memory: int | None = None,
    workers: int | None = None,
    pyramid: bool = True,
    hierarchical: bool = False,
) -> Plan:
    """Plan a block-wise segmentation of a volume that need not fit in memory.

    Inputs are files, which every block opens for itself. The results are written to `folder`; a
    plan in a folder that has one replaces it, and finished blocks that it does not concern stay.

    Parameters
    ----------
    folder : path or None
        The results folder; made if it is not there. None: only return the plan.
    cues : dict of str to path, or path
        Evidence by name, as for `region_graph`; a single path is the cue "boundary".
    superpixels : path, optional
        Label image; without it superpixels are made of the cue `boundary`, as by `oversegment`.
    gold, mask : path, optional
        Gold standard to evaluate against; voxels to segment.
    image, classifier : path, optional
        Image, and a pixel classifier whose classes are further cues.
    policy : str
        "mean", "random", or the file of a learned policy, such as one that was trained on a crop.
    threshold : float
        Threshold of the labels that are written.
    spacing, ranges, nan, dams, bins, statistics
        As for `region_graph`; by default the statistics that the policy needs.
    unit : str, optional
        Unit of `spacing`, written to the stores; by default that of the files, if they state one.
    boundary, sigma, min_size, per_plane
        The cue that superpixels are made of, and settings as for `oversegment`.
    halo : int
        Voxels around a block that are flooded with it.
    block : sequence of int, optional
        Voxels of a block along each axis; by default as large as `memory` allows.
    chunks, shards : optional
        Voxels of a chunk of the stores that are written, which must divide `block`; whether each
        block is one shard, that is one file.
    memory : int, optional
        Bytes that the process may take; by default half of those that are free.
    workers : int, optional
        Blocks at a time; by default one for each core, or as many as `memory` allows.
    pyramid : bool
        Write coarser levels too.
    hierarchical : bool
        Make merges that are final within groups of blocks while the tables are reduced, for graphs
        that do not fit in memory. The result is the same; only for the mean policy.

    Returns
    -------
    Plan

    Examples
    --------
    >>> import tempfile, numpy as np, zarr
    >>> from pathlib import Path
    >>> from napari_agglo import blocks
    >>> where = Path(tempfile.mkdtemp())
    >>> boundary = np.random.default_rng(0).random((40, 50)).astype(np.float32)
    >>> zarr.save_array(str(where / "boundary.zarr"), boundary)
    >>> plan = blocks.plan(where / "result", str(where / "boundary.zarr"), block=32)
    >>> plan.grid.counts
    (2, 2)
    >>> blocks.run(where / "result").is_complete
    True
    >>> blocks.open(where / "result").tree
    MergeTree(... superpixels, ... merges, priorities ... to ...)
    """
    named = {} if cues is None else dict(cues) if isinstance(cues, Mapping) else {"boundary": cues}
    given = {name: Source.of(path, f"cues[{name!r}]") for name, path in named.items()}
    others = {
        name: None if path is None else Source.of(path, name)
        for name, path in (("superpixels", superpixels), ("gold", gold), ("mask", mask))
    }
    predicted, classifier_digest, picture = _classifier(image, classifier, named)
    if not given and not predicted:
        raise InvalidInput(
            "`cues` is empty", argument="cues", remedy="pass at least one, e.g. {'boundary': path}"
        )
    present = {f"cues[{name!r}]": source for name, source in given.items()}
    present |= {name: source for name, source in others.items() if source is not None}
    if picture is not None:
        present["image"] = picture
    shape, distances = _one_grid(present, spacing)
    units = _unit(present, spacing, unit)
    check_nan(nan)
    check_whole("bins", bins, 1, 256)
    limits = _ranges(given, ranges)
    if not (is_number(threshold) and math.isfinite(threshold)):
        raise InvalidInput(
            f"`threshold` must be a number, got {threshold!r}",
            argument="threshold",
            remedy="choose one such as 0.5",
        )
    names = (*given, *predicted)
    if superpixels is None:
        if boundary not in names:
            raise InvalidInput(
                f"`boundary` must be one of the cues {list(names)}, got {boundary!r}",
                argument="boundary",
                remedy=(SetOption("boundary", names[0]), SetOption("superpixels")),
            )
        connected = [n > 1 and not (per_plane and axis == 0) for axis, n in enumerate(shape)]
        sigmas_in_voxels(sigma, distances, connected, shape)
        least_size(min_size, sum(connected), False)
    policy_digest, used_bins, needed = _policy(policy, names, bins, hierarchical)
    if statistics is not None:
        check_choice("statistics", statistics, ("all", "mean"))
        needed = "all" if needed == "all" and policy != "random" else statistics
    base = Plan(
        shape=shape, spacing=distances, unit=units, block=shape, chunks=shape,
        shards=bool(shards), cues=given, ranges=limits, nan=nan,
        superpixels=others["superpixels"], gold=others["gold"],
        mask=others["mask"], image=picture, predicted=predicted, boundary=boundary,
        sigma=None if sigma is None else float(sigma), min_size=min_size,
        per_plane=bool(per_plane), halo=check_whole("halo", halo, 1), statistics=needed,
        bins=used_bins, dams=bool(dams), policy=policy if not policy_digest else "file",
        policy_digest=policy_digest, classifier_digest=classifier_digest,
        threshold=float(threshold),
        levels=len(plan_image("labels", shape, distances).levels) if pyramid else 1,
        hierarchical=bool(hierarchical), workers=1, memory=_budget(memory),
    )  # fmt: skip
    plan = _sized(base, block, chunks, workers)
    if folder is not None:
        _write(plan, Path(folder), policy, classifier)
    return plan


def _one_grid(
    present: Mapping[str, Source], spacing: Sequence[float] | None
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    (name, first), *rest = present.items()
    shape = first.shape
    for other, source in rest:
        check_same_shape(shape, source.shape, name, other)
    if math.prod(shape) == 0 or not shape:
        raise InvalidInput(
            f"`{name}` has no voxels (shape {shape})",
            argument=name,
            remedy="check the file",
        )
    if spacing is None:
        spacing = check_same_spacing({name: source.open() for name, source in present.items()})
    return shape, check_spacing(spacing, len(shape))


def _unit(
    present: Mapping[str, Source], spacing: Sequence[float] | None, unit: str | None
) -> str | None:
    """Return the unit of the spacing: the one given, or that of the first file that states one."""
    if unit is not None:
        return check_unit(unit)
    if spacing is not None:
        return None
    return next((found for one in present.values() if (found := one.open().unit)), None)


def _ranges(given: Mapping[str, Source], ranges: Any) -> dict[str, tuple[float, float]]:
    pairs = ranges if isinstance(ranges, Mapping) else dict.fromkeys(given, ranges)
    unknown = [name for name in pairs if name not in given]
    if unknown:
        raise InvalidInput(
            f"`ranges` names {unknown}, but the cues are {list(given)}",
            argument="ranges",
            remedy=f"remove {', '.join(map(str, unknown))}",
        )
    limits = {n: check_range(pair, "ranges") for n, pair in pairs.items() if pair is not None}
    for name, source in given.items():
        ValueGate.of(np.dtype(source.dtype), limits.get(name), f"cues[{name!r}]", "ranges")
    return limits


def _policy(
    policy: str, names: Sequence[str], bins: int, hierarchical: bool
) -> tuple[str, int, str]:
    """Return the checksum of a policy file, the bins that it needs, and the statistics."""
    from napari_agglo.policy import load_policy

    if not isinstance(policy, str | os.PathLike):
        raise InvalidInput(
            f"`policy` must be 'mean', 'random' or the file of a policy, got {policy!r}",
            argument="policy",
            remedy="save it first: policy.save('policy.npz')",
        )
    if not os.fspath(policy).endswith(".npz"):
        check_choice("policy", policy, ("mean", "random"))
        if policy == "mean" and "boundary" not in names:
            raise InvalidInput(
                f"the mean policy needs a cue called 'boundary', and the cues are {list(names)}",
                argument="cues",
                remedy=SetOption("cues", key="boundary"),
            )
        if hierarchical and policy != "mean":
            raise _not_hierarchical(policy)
        return "", bins, "mean" if policy == "mean" else "all"
    if hierarchical:
        raise _not_hierarchical("a learned policy")
    learned = load_policy(policy)
    wanted = tuple(learned.features.cues)
    if tuple(names) != wanted:
        raise InvalidInput(
            f"`policy` was trained on the cues {list(wanted)}, in this order, and `cues` gives "
            f"{list(names)}",
            argument="policy",
            remedy="give the same cues in the same order",
        )
    data = Path(policy).read_bytes()
    return hashlib.sha256(data).hexdigest()[:32], learned.features.bins, "all"


def _not_hierarchical(policy: str) -> InvalidInput:
    return InvalidInput(
        f"`hierarchical` makes only merges that are proven to be final, which needs the mean "
        f"policy, not {policy}: a learned priority may fall after a merge elsewhere",
        argument="hierarchical",
        remedy=SetOption("hierarchical", False),
    )


def _classifier(
    image: str | None, classifier: str | None, named: Mapping[str, str]
) -> tuple[tuple[str, ...], str, Source | None]:
    if (image is None) != (classifier is None):
        raise InvalidInput(
            "`image` and `classifier` go together",
            argument="classifier" if classifier is None else "image",
            remedy="pass both, or none",
        )
    if image is None or classifier is None:
        return (), "", None
    from napari_agglo.pixels import load_pixel_classifier

    loaded = load_pixel_classifier(classifier)
    names = tuple(loaded.names)
    clash = [name for name in names if name in named]
    if clash:
        raise InvalidInput(
            f"`cues` and the classes of `classifier` both have {clash}",
            argument="cues",
            remedy="give the cues other names",
        )
    digest = hashlib.sha256(Path(classifier).read_bytes()).hexdigest()[:32]
    return names, digest, Source.of(image, "image")


def _budget(memory: int | None) -> int:
    if memory is None:
        return max(2 * BASE, (available_memory() or 4 * 10**9) // 2)
    return check_whole("memory", memory, 2 * BASE)


def _sized(
    plan: Plan,
    block: Sequence[int] | int | None,
    chunks: Sequence[int] | int | None,
    workers: int | None,
) -> Plan:
    """Choose blocks, chunks and workers within the budget; refuse what cannot fit."""
    from dataclasses import replace

    threads = check_whole("workers", workers, 1) if workers else os.cpu_count() or 1
    room = plan.memory - BASE
    if block is None:
        if workers is None:  # fewer blocks at a time rather than blocks that are mostly halo
            while threads > 1 and _side(plan, room // threads) < 96:
                threads -= 1
        side = _side(plan, room // threads)
        sides = tuple(min(side, n) for n in plan.shape)
    else:
        sides = check_sides("block", block, plan.shape)
        most = max(1, room // max(1, _block_bytes(plan, sides)))
        threads = min(threads, most) if workers is None else threads
    plan = replace(plan, block=sides, workers=threads)
    parts = chunk_sides(sides) if chunks is None else check_sides("chunks", chunks, plan.shape)
    check_alignment(sides, parts)
    plan = replace(plan, chunks=parts)
    needed = BASE + threads * _block_bytes(plan, sides)
    if needed > plan.memory:
        raise InvalidInput(
            f"{threads} blocks of {'x'.join(map(str, sides))} voxels at a time need about "
            f"{needed / 1e9:.1f} GB, and `memory` is {plan.memory / 1e9:.1f} GB",
            argument="memory",
            remedy=(SetOption("memory", needed), "leave `block` and `workers` out"),
        )
    return plan


def _side(plan: Plan, room: int) -> int:
    """Return the side of the largest block that fits in so many bytes, a multiple of 32."""
    side = 32
    while side < 1024 and side < max(plan.shape):
        larger = tuple(min(side + 32, n) for n in plan.shape)
        if _block_bytes(plan, larger) > room:
            break
        side += 32
    return side


def _write(plan: Plan, folder: Path, policy: str, classifier: str | None) -> None:
    from napari_agglo.blocks._markers import locked

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"{folder} cannot be made ({error.strerror})",
            argument="folder",
            remedy="check the permissions, or choose another folder",
        ) from error
    with locked(folder.resolve(), None):
        if plan.policy_digest:
            with replacing(folder / POLICY) as temporary:
                shutil.copyfile(policy, temporary)
        if plan.classifier_digest and classifier is not None:
            with replacing(folder / CLASSIFIER) as temporary:
                shutil.copyfile(classifier, temporary)
        plan.write(folder)
