"""Make a plan of checked inputs: one grid, ranges, policy, classifier."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from napari_agglo._data_warnings import warn_caller
from napari_agglo.agglomeration import is_beyond
from napari_agglo.blocks._budget import budget, check_expected, sized
from napari_agglo.blocks._face_cues import AFFINITY, columns_of, offsets_as_text, offsets_of
from napari_agglo.blocks._plan import Plan, Source
from napari_agglo.blocks._remote_copy import check_place, keep_place
from napari_agglo.blocks._run_files import CLASSIFIER, POLICY
from napari_agglo.blocks._volume_sample import take_sample
from napari_agglo.errors import (
    DataWarning,
    InvalidInput,
    SetOption,
    check_choice,
    check_whole,
    is_number,
)
from napari_agglo.graph import DEFAULT_BINS
from napari_agglo.superpixels._oversegment import least_size, sigmas_in_voxels
from napari_agglo.volumes import (
    DEFAULT_VERSION,
    ValueGate,
    VoxelSize,
    add_pick,
    check_nan,
    check_range,
    check_same_shape,
    check_same_spacing,
    check_spacing,
    plan_image,
    replacing,
    warn_of_places,
)
from napari_agglo.volumes._oriented_cue import affinity_gate
from napari_agglo.volumes._store_location import is_url
from napari_agglo.volumes._url_objects import check_output_url

if TYPE_CHECKING:
    from napari_agglo.pixels import PixelClassifier

HALO = 16


def make_plan(
    folder: str | os.PathLike[str] | None,
    cues: Mapping[str, str] | str | None = None,
    *,
    affinities: str | None = None,
    offsets: Sequence[Sequence[int]] | None = None,
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
    bins: int = DEFAULT_BINS,
    statistics: Literal["all", "mean"] | None = None,
    boundary: str | None = None,
    sigma: float | None = None,
    min_size: int | None = None,
    per_plane: bool = False,
    halo: int | None = None,
    block: Sequence[int] | int | None = None,
    chunks: Sequence[int] | int | None = None,
    shards: bool = False,
    memory: int | str | None = None,
    workers: int | None = None,
    pyramid: bool = True,
    version: str = DEFAULT_VERSION,
    precomputed: bool = False,
    hierarchical: bool = False,
    approximate: float = 0.0,
    force: bool = False,
    copy_to: str | None = None,
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
    affinities, offsets : path, and sequence of sequence of int, optional
        Channels of affinities and their offsets, as for `affinities`; they are the cue "affinity"
        and its parts, before all other cues. Their range is ``ranges["affinity"]``.
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
        Unit of `spacing` and `sigma`, and of the spacing in the stores; files that state another
        are converted to it. By default the unit of the files, if they state one.
    boundary, sigma, min_size, per_plane
        The cue that superpixels are made of ("boundary", or else "affinity"), and settings as for
        `oversegment`.
    halo : int, optional
        Voxels around a block that are flooded with it; by default 16, or more where the
        superpixels of a sample of the volume are larger. Superpixels differ from those of the
        whole volume where it is too small.
    block : sequence of int, optional
        Voxels of a block along each axis; by default as large as `memory` allows.
    chunks, shards : optional
        Voxels of a chunk of the stores that are written, which must divide `block`; whether each
        block is one shard, that is one file.
    memory : int or str, optional
        Bytes, or a text such as "4GB", by default half of the free memory: what all processes of a
        run on one machine may take together. Workers of a client on other machines may take as
        much each.
    workers : int, optional
        Blocks at a time; by default one for each core, or as many as `memory` allows.
    pyramid : bool
        Write coarser levels too.
    version : {"0.5", "0.4"}
        Version of OME-Zarr of the superpixels and labels.
    precomputed : bool
        Write the labels as a segmentation for Neuroglancer too.
    hierarchical : bool
        Make merges that are final within groups of blocks while the tables are reduced, for graphs
        that do not fit in memory. The result is the same; only for the mean policy.
    approximate : float
        Let a hierarchical run take a learned policy, and make its merges of a lower priority than
        this within groups. They cannot be proven to be final: the result is near that of the whole
        graph, and depends on the blocks. docs/scale.md has the differences; they are small at 0.05.
    force : bool
        Plan also where the graph does not fit in `memory` by the superpixels of a sample of the
        volume. `run` refuses the graph if that is so, when all blocks have been counted.
    copy_to : str, optional
        URL of a folder, such as ``s3://bucket/cells``, that the labels are copied to when all else
        is done: as ``labels.ome.zarr``, and ``labels.precomputed`` where the plan has it. The
        plan writes a small object there, which keeps the place for this run.

    Returns
    -------
    Plan

    Raises
    ------
    InvalidInput
        If an input, a setting or the plan as a whole cannot be used: also if blocks, or the graph
        by a sample of the volume, do not fit in `memory`.

    Warns
    -----
    DataWarning
        If `halo` is smaller than the superpixels of a sample of the volume.

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
    if folder is not None and is_url(os.fspath(folder)):
        raise InvalidInput(
            f"{os.fspath(folder)} is a URL, and results are written to a folder on disk",
            argument="folder",
            remedy=(
                "choose a folder that all workers see",
                SetOption("copy_to", when="with the URL, to have the labels copied there"),
            ),
        )
    url = "" if copy_to is None else check_output_url(copy_to, "copy_to")
    allowed = budget(memory)  # first: it needs no file
    named = {} if cues is None else dict(cues) if isinstance(cues, Mapping) else {"boundary": cues}
    given = {name: Source.of(path, f"cues[{name!r}]") for name, path in named.items()}
    others = {
        name: None if path is None else Source.of(path, name)
        for name, path in (("superpixels", superpixels), ("gold", gold), ("mask", mask))
    }
    predicted, classifier_digest, picture, loaded = _classifier(image, classifier, named)
    faces = None if affinities is None else Source.of(add_pick(affinities, "c=*"), "affinities")
    if not given and not predicted and faces is None:
        raise InvalidInput(
            "`cues` is empty", argument="cues", remedy="pass at least one, e.g. {'boundary': path}"
        )
    present = {f"cues[{name!r}]": source for name, source in given.items()}
    present |= {name: source for name, source in others.items() if source is not None}
    if picture is not None:
        present["image"] = picture
    if faces is not None:
        present["affinities"] = faces
    shape, own = _one_grid(present, spacing)
    voxel = own.in_unit(unit)
    distances = check_spacing(voxel.spacing, len(shape))
    filters = 0, 0
    if picture is not None and loaded is not None:
        from napari_agglo.pixels._predict_classes import part_bytes

        pixels = loaded.check_image(picture.open(), distances)
        filters = part_bytes(pixels, loaded.bank, len(predicted)), len(loaded.forest.roots)
    check_nan(nan)
    check_whole("bins", bins, 1, 256)
    limits = _ranges(given, faces, ranges)
    known = () if faces is None else offsets_of(faces.open(), offsets)
    if not (is_number(threshold) and math.isfinite(threshold)) or is_beyond(threshold):
        raise InvalidInput(
            f"`threshold` must be a number from 0 to 1, got {threshold!r}",
            argument="threshold",
            remedy="choose one such as 0.5",
        )
    names = (*given, *predicted)
    if faces is not None:
        names = columns_of(shape, known, names)[0]
    if boundary is None:
        boundary = "boundary" if "boundary" in names or faces is None else AFFINITY
    if superpixels is None:
        whole = [*given, *predicted, *([AFFINITY] if faces else [])]
        if boundary not in whole:
            raise InvalidInput(
                f"`boundary` must be one of the cues {whole}, got {boundary!r}",
                argument="boundary",
                remedy=(SetOption("boundary", whole[0]), SetOption("superpixels")),
            )
        connected = [n > 1 and not (per_plane and axis == 0) for axis, n in enumerate(shape)]
        sigmas_in_voxels(sigma, distances, connected, shape)
        least_size(min_size, sum(connected), False)
    policy_digest, used_bins, needed = _policy(policy, names, bins, hierarchical, approximate)
    if statistics is not None:
        check_choice("statistics", statistics, ("all", "mean"))
        needed = "all" if needed == "all" and policy != "random" else statistics
    base = Plan(
        shape=shape, spacing=distances, unit=voxel.unit, block=shape, chunks=shape,
        shards=bool(shards), cues=given, affinities=faces,
        offsets=offsets_as_text(known) if faces else "", ranges=limits, nan=nan,
        superpixels=others["superpixels"], gold=others["gold"],
        mask=others["mask"], image=picture, predicted=predicted, boundary=boundary,
        sigma=None if sigma is None else float(sigma), min_size=min_size,
        per_plane=bool(per_plane), halo=HALO if halo is None else check_whole("halo", halo, 1),
        statistics=needed,
        bins=used_bins, dams=bool(dams), policy=policy if not policy_digest else "file",
        policy_digest=policy_digest, classifier_digest=classifier_digest,
        threshold=float(threshold),
        levels=len(plan_image("labels", shape, distances, version=version).levels)
        if pyramid else 1,
        ome_version=version, precomputed=bool(precomputed), hierarchical=bool(hierarchical),
        approximate=_share(approximate) if hierarchical and policy_digest else 0.0, workers=1,
        memory=allowed, predict_bytes=filters[0], trees=filters[1],
        copy_to=url,
    )  # fmt: skip
    _check_output(base)
    sample = take_sample(base)
    base = replace(
        base, halo=max(HALO, sample.halo) if halo is None else base.halo,
        superpixel_density=sample.superpixels, boundary_density=sample.boundaries,
    )  # fmt: skip
    plan = sized(base, block, chunks, workers)
    if not force:
        check_expected(plan)
    if plan.grid.n_blocks > 1 and plan.halo < sample.halo:
        _warn_of_halo(plan.halo, sample.halo)
    check_place(plan, None if folder is None else Path(folder))
    if folder is not None:
        _write(plan, Path(folder), policy, classifier)
    return plan


def _one_grid(
    present: Mapping[str, Source], spacing: Sequence[float] | None
) -> tuple[tuple[int, ...], VoxelSize]:
    grids = {
        name: source.shape[1:] if name == "affinities" else source.shape
        for name, source in present.items()
    }
    (name, shape), *rest = grids.items()
    for other, sides in rest:
        check_same_shape(shape, sides, name, other)
    if math.prod(shape) == 0 or not shape:
        raise InvalidInput(
            f"`{name}` has no voxels (shape {shape})",
            argument=name,
            remedy="check the file",
        )
    opened = {name: source.open() for name, source in present.items()}
    warn_of_places(opened)
    if spacing is None:
        if (faces := opened.get("affinities")) is not None and faces.spacing is not None:
            opened["affinities"] = replace(faces, spacing=faces.spacing[1:])
        return shape, check_same_spacing(opened)
    return shape, VoxelSize(check_spacing(spacing, len(shape)))


def _ranges(
    given: Mapping[str, Source], faces: Source | None, ranges: Any
) -> dict[str, tuple[float, float]]:
    pairs = ranges if isinstance(ranges, Mapping) else dict.fromkeys(given, ranges)
    names = [*given, *([AFFINITY] if faces else [])]
    unknown = [name for name in pairs if name not in names]
    if unknown:
        raise InvalidInput(
            f"`ranges` names {unknown}, but the cues are {names}",
            argument="ranges",
            remedy=f"remove {', '.join(map(str, unknown))}",
        )
    limits = {n: check_range(pair, "ranges") for n, pair in pairs.items() if pair is not None}
    for name, source in given.items():
        ValueGate.of(np.dtype(source.dtype), limits.get(name), f"cues[{name!r}]", "ranges")
    if faces is not None:
        limits[AFFINITY] = affinity_gate(np.dtype(faces.dtype), limits.get(AFFINITY)).limits
    return limits


def _share(approximate: float) -> float:
    if not (is_number(approximate) and 0 <= approximate < 1):
        raise InvalidInput(
            f"`approximate` must be a number from 0 to 1, got {approximate!r}",
            argument="approximate",
            remedy=SetOption("approximate", 0.05),
        )
    return float(approximate)


def _check_output(plan: Plan) -> None:
    """Refuse formats that the labels cannot be written in."""
    if plan.shards and plan.ome_version == "0.4":
        raise InvalidInput(
            "`shards` need OME-Zarr 0.5: Zarr 2, which 0.4 is stored in, has none",
            argument="shards",
            remedy=(SetOption("version", DEFAULT_VERSION), SetOption("shards", False)),
        )
    if plan.precomputed and plan.ndim > 3:
        raise InvalidInput(
            f"`precomputed` has up to 3 axes, and the volume has {plan.ndim}",
            argument="precomputed",
            remedy=SetOption("precomputed", False),
        )


def _warn_of_halo(halo: int, needed: int) -> None:
    warning = DataWarning(
        f"`halo`={halo} is less than the superpixels of a sample of the volume need, {needed} "
        "voxels: superpixels will differ at the faces of blocks",
        argument="halo",
        remedy=SetOption("halo", needed),
    )
    warn_caller(warning)


COMPILED = ("mean", "random")  # policies by name of block-wise runs


def _policy(
    policy: str, names: Sequence[str], bins: int, hierarchical: bool, approximate: float
) -> tuple[str, int, str]:
    """Return the checksum of a policy file, the bins that it needs, and the statistics."""
    from napari_agglo.policy import load_policy, policies

    if not isinstance(policy, str | os.PathLike):
        raise InvalidInput(
            f"`policy` must be 'mean', 'random' or the file of a policy, got {policy!r}",
            argument="policy",
            remedy="save a learned policy first: policy.save('policy.npz')",
        )
    if not os.fspath(policy).endswith(".npz"):
        if ":" in os.fspath(policy):
            raise InvalidInput(
                f"`policy` {policy!r} is a Python function, and block-wise runs merge by compiled "
                "policies alone",
                argument="policy",
                remedy=SetOption("policy", "mean"),
            )
        if policy in policies and policy not in COMPILED:
            raise InvalidInput(
                f"`policy` {policy!r} is of another package, and block-wise runs merge by compiled "
                "policies alone",
                argument="policy",
                remedy=SetOption("policy", "mean"),
            )
        check_choice("policy", policy, COMPILED)
        if policy == "mean" and not {"boundary", AFFINITY} & set(names):
            raise InvalidInput(
                f"the mean policy needs a cue called 'boundary' or affinities, and the cues are "
                f"{list(names)}",
                argument="cues",
                remedy=SetOption("cues", key="boundary"),
            )
        if hierarchical and policy != "mean":
            raise _not_hierarchical(policy)
        return "", bins, "mean" if policy == "mean" else "all"
    if hierarchical and not approximate:
        raise _not_hierarchical("a learned policy")
    learned = load_policy(policy)
    _refuse_features(learned)
    wanted = tuple(learned.features.cues)
    if tuple(names) != wanted:
        raise InvalidInput(
            f"`policy` was trained on the cues {list(wanted)}, in this order, and `cues` gives "
            f"{list(names)}",
            argument="policy",
            remedy="give the same cues in the same order",
        )
    if learned.features.options.hulls:
        raise InvalidInput(
            "`policy` was trained on the features 'natural', whose convex hulls are not kept block "
            "by block",
            argument="policy",
            remedy=(SetOption("preset", "angles"), "train with the same features without hulls"),
        )
    data = Path(policy).read_bytes()
    return hashlib.sha256(data).hexdigest()[:32], learned.features.bins, "all"


def _refuse_features(learned: Any) -> None:
    """Refuse a policy with features that are not computed from sums over blocks."""
    features = learned.features
    if features.words:
        raise InvalidInput(
            f"`policy` uses the words {list(features.words)}, which are computed from the whole "
            "image, not block by block",
            argument="policy",
            remedy="train one without words",
        )
    not_sums = [block.name for block in features.blocks if not block.adds]
    if not_sums:
        raise InvalidInput(
            f"`policy` has the features {not_sums}, which cannot be added up from the parts of a "
            "region in several blocks",
            argument="policy",
            remedy="train one without them, or use `agglomerate` on a volume that fits in memory",
        )


def _not_hierarchical(policy: str) -> InvalidInput:
    return InvalidInput(
        f"`hierarchical` makes only merges that are proven to be final, which needs the mean "
        f"policy, not {policy}: a learned priority may fall after a merge elsewhere",
        argument="hierarchical",
        remedy=(
            SetOption("hierarchical", False),
            SetOption("approximate", 0.05, when="for a learned policy, near the exact result"),
        ),
    )


def _classifier(
    image: str | None, classifier: str | None, named: Mapping[str, str]
) -> tuple[tuple[str, ...], str, Source | None, PixelClassifier | None]:
    if (image is None) != (classifier is None):
        raise InvalidInput(
            "`image` and `classifier` go together",
            argument="classifier" if classifier is None else "image",
            remedy="pass both, or none",
        )
    if image is None or classifier is None:
        return (), "", None, None
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
    return names, digest, Source.of(image, "image"), loaded


def _write(plan: Plan, folder: Path, policy: str, classifier: str | None) -> None:
    from napari_agglo.blocks._task_markers import locked, writing

    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder.resolve(), None), writing(folder):
        if plan.policy_digest:
            with replacing(folder / POLICY) as temporary:
                shutil.copyfile(policy, temporary)
        if plan.classifier_digest and classifier is not None:
            with replacing(folder / CLASSIFIER) as temporary:
                shutil.copyfile(classifier, temporary)
        keep_place(plan, folder)
        plan.write(folder)
