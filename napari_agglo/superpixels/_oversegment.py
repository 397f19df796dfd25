"""Superpixels: a seeded watershed of a boundary map, in any number of dimensions."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np

from napari_agglo._data_warnings import warn_caller
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import (
    Cancelled,
    DataWarning,
    InvalidInput,
    ReadAffinities,
    SetOption,
    is_whole,
)
from napari_agglo.superpixels._dissolve_small import dissolve_small
from napari_agglo.superpixels._flood_minima import (
    WALL,
    flood_minima,
    is_drained,
    lowest_neighbours,
)
from napari_agglo.superpixels._flood_queue import (
    Array,
    Grid,
    Tick,
    flood,
    label_minima,
    label_pieces,
    make_grid,
    number,
)
from napari_agglo.superpixels._gaussian import smooth_axis
from napari_agglo.volumes import (
    Affinities,
    OrientedMap,
    ValueFaults,
    ValueGate,
    check_labels,
    check_mask,
    check_nan,
    check_same_shape,
    check_same_spacing,
    check_spacing,
    in_memory,
    is_lazy,
    refuse_colours,
    require_memory,
    unwrap,
    warn_of_places,
)

# Levels are 16 bits of the smoothed map, not the 8 bits of quantised cues: on a large stack 8 bits
# changed the regions by 1.9 bits of variation of information, 16 bits by 0.05.
TOP_LEVEL = 65535
_SLAB = 1 << 21  # voxels converted and smoothed at a time: some 0.1 s
_SAMPLE = 1 << 18  # voxels that tell whether a map is upside down
_LEAST = 1 << 12  # voxels below which nothing is said of it
_WIDE = 16  # voxels across a plane from which channels are told from a fourth axis
_MOSTLY = 0.8  # share of voxels above the middle of the range from which it is called so
_TRUNCATE = 4.0  # sigmas at which the Gaussian ends, as in scipy


def check_values(
    boundary: Array, gate: ValueGate, nan: str, mask: Array | None, tick: Tick
) -> bool:
    """Refuse invalid values of a map; return whether any value is not finite.

    Values that are not finite are allowed outside the mask, and everywhere if `nan` is "boundary".
    """
    shape = boundary.shape
    plane = math.prod(shape[1:])
    total, everywhere = ValueFaults(), 0
    for start, stop in slabs(shape):
        slab = boundary[start:stop]
        faults = gate.find_faults(slab)
        everywhere += faults.not_finite
        if faults.not_finite and mask is not None:
            inside = ~np.isfinite(slab) & mask[start:stop]
            faults.not_finite = int(inside.sum())
            faults.first_not_finite = int(inside.argmax()) if faults.not_finite else -1
        total.add(faults, start * plane)
        tick("checking", stop, shape[0])
    gate.refuse(total, shape, nan)
    return everywhere > 0


def write_levels(
    boundary: Array,
    limits: tuple[float, float],
    finite: bool,
    sigmas: Sequence[float],
    out: Array,
    tick: Tick,
) -> None:
    """Write the smoothed map to `out` as 0..65535, the whole of `limits`.

    Parameters
    ----------
    boundary : ndarray
        Any real type, values checked, at least one axis.
    finite
        True if all values are finite; values that are not count as boundary.
    sigmas
        Standard deviation of the Gaussian in voxels along each axis; 0 for no smoothing. The edge
        voxel is repeated beyond the border.
    out : ndarray of uint16, same shape
        Slabs overlap as far as the Gaussian reaches, so that the result does not depend on them.
    """
    reach = int(_TRUNCATE * sigmas[0] + 0.5)
    length = boundary.shape[0]
    for start, stop in slabs(boundary.shape):
        above, below = max(0, start - reach), min(length, stop + reach)
        slab = _unit(boundary[above:below], limits, finite)
        for axis, sigma in enumerate(sigmas):
            if sigma > 0:
                slab = smooth_axis(slab, sigma, axis, _TRUNCATE)
        core = slab[start - above : stop - above] * np.float32(TOP_LEVEL)
        out[start:stop] = np.clip(np.rint(core, out=core), 0, TOP_LEVEL, out=core)
        tick("smoothing", stop, length)


def slabs(shape: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield ranges of planes of about 2 million voxels each, at least one plane."""
    step = max(1, _SLAB // max(1, math.prod(shape[1:])))
    for start in range(0, shape[0], step):
        yield start, min(start + step, shape[0])


def _unit(values: Array, limits: tuple[float, float], finite: bool) -> Array:
    """Return `values` as float32 in [0, 1], a new array."""
    low, high = limits
    if not finite:
        values = np.where(np.isfinite(values), values, values.dtype.type(high))
    if values.dtype == np.float32 and limits == (0.0, 1.0):
        return np.clip(values, 0, 1)
    # in float64, so that integers of 32 bits and a small range far from 0 keep their differences
    wide = (values.astype(np.float64) - low) / (high - low)
    return np.clip(wide, 0, 1).astype(np.float32)


@dataclass(frozen=True)
class Recipe:
    """Parameters of a block; sequences have one number per axis."""

    limits: tuple[float, float]
    finite: bool
    sigmas: Sequence[float]
    connected: Sequence[bool]
    min_size: int

    def without(self, axes: tuple[int, ...]) -> Recipe:
        """Return the parameters of arrays that lack some axes."""
        kept = [axis for axis in range(len(self.sigmas)) if axis not in axes]
        sigmas, connected = [self.sigmas[k] for k in kept], [self.connected[k] for k in kept]
        return replace(self, sigmas=sigmas, connected=connected)


def flat_axes(shape: tuple[int, ...], per_plane: bool) -> tuple[int, ...]:
    """Return the axes of length 1 to drop: slabs and walls along them would cost memory.

    One stays if there is no other, and the planes of `per_plane` stay.

    Examples
    --------
    >>> flat_axes((1, 5, 1), False), flat_axes((1, 5, 1), True), flat_axes((1, 1), False)
    ((0, 2), (2,), (1,))
    """
    flat = tuple(axis for axis in range(1 if per_plane else 0, len(shape)) if shape[axis] == 1)
    return flat[1:] if len(flat) == len(shape) else flat


def segment_block(
    values: Array,
    mask: Array | None,
    seeds: Array | None,
    recipe: Recipe,
    first: int,
    out: Array,
    tick: Tick,
) -> int:
    """Segment one block: write labels `first`, `first` + 1, ... to `out`, return their number.

    The steps are smooth, seed, flood, dissolve, number. All arrays have the same shape; `out` is
    uint32 and all zeros.
    """
    grid, state, count = flood_block(values, mask, seeds, recipe, tick)
    n_labels = number(state, count, first, grid, tick)
    inner = grid.view(state)
    for start, stop in slabs(values.shape):
        out[start:stop] = inner[start:stop]
        tick("numbering", stop, values.shape[0])
    return n_labels


def flood_block(
    values: Array, mask: Array | None, seeds: Array | None, recipe: Recipe, tick: Tick
) -> tuple[Grid, Array, int]:
    """Return the superpixels of one block, before they are numbered, and a bound of their labels.

    They are the first steps of `segment_block`. Labels are those of seeds, some of which are gone:
    at least 1, in the flat array of the grid.
    """
    grid = make_grid(values.shape, recipe.connected)
    levels = np.full(grid.size, WALL, np.uint16)
    write_levels(values, recipe.limits, recipe.finite, recipe.sigmas, grid.view(levels), tick)
    state = np.zeros(grid.size, grid.index_dtype)
    heights, inner = grid.view(levels), grid.view(state)
    for start, stop in slabs(values.shape):
        np.subtract(-1, heights[start:stop], out=inner[start:stop], dtype=state.dtype)
        if mask is not None:
            inner[start:stop][~mask[start:stop]] = 0
            heights[start:stop][~mask[start:stop]] = WALL
        tick("finding seeds", 0, grid.size)
    if seeds is None:
        codes = lowest_neighbours(levels, grid, tick)
        count = label_minima(state, grid, tick, is_drained(codes))
        flood_minima(state, levels, codes, grid, tick)
        del codes
    else:
        source = np.zeros(grid.size, np.uint64)
        grid.view(source)[...] = seeds
        count = label_pieces(source, state, 0, grid, tick)
        flood(state, levels, grid, tick)
    if seeds is not None and state.min() < 0:  # islands without a seed
        count = label_pieces((state < 0).astype(np.uint64), state, count, grid, tick)
    if recipe.min_size > 1:
        dissolve_small(state, levels, count, recipe.min_size, grid, tick)
    return grid, state, count


DEFAULT_SIGMA = 0.5  # of the smallest spacing; docs/superpixels.md has the measurements
DEFAULT_SIDE = 5  # a superpixel of fewer than 5**axes voxels is dissolved; measured there too
MOST_SIGMA = 0.25  # of the longest axis: more takes minutes and removes all detail
MOST_SIGMA_AT_LEAST = 4  # in voxels, for small images
LEAST_SIGMA = 0.3  # in voxels: below this a Gaussian is a single voxel to within 1 %


def sigmas_in_voxels(
    sigma: float | None,
    spacings: tuple[float, ...],
    connected: list[bool],
    shape: tuple[int, ...],
) -> tuple[float, ...]:
    """Return the width of the Gaussian along each axis in voxels, 0 for no smoothing."""
    if sigma is None:
        sigma = DEFAULT_SIGMA * min(spacings)
    try:
        width = float(sigma)
    except (TypeError, ValueError, OverflowError):
        width = math.nan
    if not (math.isfinite(width) and width >= 0):
        raise InvalidInput(
            f"`sigma` must be a number of 0 or more, in the unit of `spacing`, not {sigma!r}",
            argument="sigma",
            remedy=SetOption("sigma", 0, when="for no smoothing"),
        )
    voxels = [width / spacing for spacing in spacings]
    smoothed = [axis for axis, touches in enumerate(connected) if touches]
    widest = max((voxels[axis] for axis in smoothed), default=0.0)
    longest = max((shape[axis] for axis in smoothed), default=0)
    if widest > max(MOST_SIGMA_AT_LEAST, MOST_SIGMA * longest):
        axis = voxels.index(widest)
        raise InvalidInput(
            f"`sigma`={width:g} is {widest:.3g} voxels along axis {axis}, whose spacing is "
            f"{spacings[axis]:g}, and would smooth away an image of shape {shape}; "
            "`sigma` is in the unit of `spacing`",
            argument="sigma",
            remedy=SetOption("sigma", float(f"{spacings[axis]:g}"), when="for 1 voxel"),
        )
    return tuple(
        one if touches and one >= LEAST_SIGMA else 0.0
        for one, touches in zip(voxels, connected, strict=True)
    )


def least_size(min_size: int | None, axes: int, seeded: bool) -> int:
    """Return the least number of voxels of a superpixel, by the number of connected axes."""
    if min_size is None:
        return 1 if seeded else int(DEFAULT_SIDE**axes)
    if not is_whole(min_size) or not 0 <= min_size < 2**63:
        raise InvalidInput(
            "`min_size` must be a whole number of voxels, 0 or more and below 2**63, not "
            f"{min_size!r}",
            argument="min_size",
            remedy=SetOption("min_size", 1, when="to keep every superpixel"),
        )
    return int(min_size)


def check_seeds(seeds: object, shape: tuple[int, ...], mask: Array | None) -> Array:
    """Return the user's seeds as an array; refuse seeds that are 0 everywhere."""
    array = check_labels(seeds, "seeds")
    check_same_shape(array, shape, "seeds", "boundary")
    if array.size and not (array.any() if mask is None else (array != 0)[mask].any()):
        place = "" if mask is None else " inside the mask"
        raise InvalidInput(
            f"`seeds` must have at least one label above 0{place}, but all are 0",
            argument="seeds",
            remedy="leave it out to flood from the minima of the map",
        )
    return array


# With the values that a control offers.
Sigma = Annotated[float | None, {"max": 1000.0}]
LeastSize = Annotated[int | None, {"min": 1, "max": 10**7}]
_BYTES_PER_VOXEL = 14  # levels 2, state 4, queue 4, result 4; measured 12, as not all at once
_THREADS = 2  # more than these wait for memory
_POLL = 0.2  # seconds between two reports while a block is segmented
_BLOCK = 1 << 19  # voxels of the planes in one block: they should stay in the cache


def oversegment(
    boundary: object,
    *,
    spacing: Sequence[float] | None = None,
    per_plane: bool = False,
    sigma: Sigma = None,
    min_size: LeastSize = None,
    mask: object | None = None,
    seeds: object | None = None,
    value_range: Sequence[float] | None = None,
    nan: Literal["refuse", "boundary"] = "refuse",
    progress: ProgressCallback | None = None,
) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Divide an image into superpixels: the watershed basins of its boundary map.

    The map is smoothed a little, each regional minimum is a seed, and the map is flooded from the
    seeds, lowest level first, until the whole image (or mask) is covered. Superpixels that are too
    small are dissolved. The same input gives the same labels, bit for bit.

    Parameters
    ----------
    boundary : array or Volume, 1-D or more, or Affinities, or OrientedMap
        High on boundaries. Floats in [0, 1], or any real type with `value_range`. The map of
        affinities is 1 minus the mean of those of the faces of each voxel; that of an oriented map
        is the strongest direction of each pixel.
    spacing : sequence of float, optional
        Distance between voxels along each axis (plane, row, column); 1 by default, or that of the
        Volume.
    per_plane : bool
        Segment each plane along axis 0 separately, with its own ids: for stacks whose planes are
        far apart, where a process may not overlap itself from one plane to the next. Needs three
        axes or more.
    sigma : float, optional
        Standard deviation of the Gaussian, in the unit of `spacing`; half the smallest spacing by
        default. Along an axis where that is less than 0.3 voxels, and across planes with
        `per_plane`, nothing is smoothed. 0 turns it off. More than a quarter of the longest axis
        is refused.
    min_size : int, optional
        Superpixels of fewer voxels are dissolved, small ones first, and their voxels flooded from
        the neighbours; one that touches no other stays. By default 5 to the power of the number
        of connected axes (125 in a volume, 25 in a plane), or 1 if there are `seeds`.
    mask : array of bool, optional
        Pixels to segment. The values outside still take part in the smoothing.
    seeds : array of int, optional
        Seeds instead of the minima: 0 is no seed; each connected piece of one label is a seed. A
        part of the mask that no seed can reach becomes one superpixel.
    value_range : (float, float), optional
        The values that mean "no boundary" and "boundary", e.g. ``(0, 255)``; descending if dark is
        boundary. Values outside are refused.
    nan : {"refuse", "boundary"}
        Treatment of values that are not finite: refuse them, or count them as boundary. Outside
        the mask they always count as boundary.
    progress : callable, optional
        Called several times a second with a `Progress`; cancels by raising `Cancelled`.

    Returns
    -------
    ndarray of uint32
        Labels 1 to n in raster order of their first voxel, each face-connected; 0 only outside the
        mask.

    Warns
    -----
    DataWarning
        If the map is high nearly everywhere, as one of the inside of objects is, or constant; if
        its values fill a few percent of `value_range`; if its four axes may be those of affinities;
        or if Volumes are crops from different places.

    Notes
    -----
    Levels are 16 bits of the declared range, neighbours are those that share a face, and of equal
    levels the first to be reached is flooded first.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.superpixels import oversegment
    >>> oversegment(np.array([0.1, 0.0, 0.2, 0.9, 0.3, 0.1]), sigma=0, min_size=1)
    array([1, 1, 1, 1, 2, 2], dtype=uint32)
    >>> stack = np.array([[[9, 0, 9]], [[0, 9, 9]]])
    >>> oversegment(stack, value_range=(9, 0), sigma=0, per_plane=True, min_size=1).tolist()
    [[[1, 1, 2]], [[3, 3, 3]]]
    """
    mapped = (
        boundary.boundary_map() if isinstance(boundary, (Affinities, OrientedMap)) else boundary
    )
    data = unwrap(mapped, "boundary")
    shape = tuple(int(length) for length in data.shape)
    if not shape:
        raise InvalidInput(
            "`boundary` must have at least one axis, not be a single number",
            argument="boundary",
            remedy="pass the whole map",
        )
    check_nan(nan)
    refuse_colours(data, "boundary")
    if not per_plane:
        _refuse_channels(shape)
    gate = ValueGate.of(data.dtype, value_range, "boundary", "value_range")
    if per_plane and len(shape) < 3:
        raise InvalidInput(
            f"`boundary` (shape {shape}) has only one plane",
            argument="boundary",
            remedy="leave `per_plane` out",
        )
    inputs = {"boundary": boundary, "mask": mask, "seeds": seeds}
    warn_of_places(inputs)
    if spacing is None:
        spacing = check_same_spacing(inputs).spacing
    spacings = check_spacing(spacing, len(shape))
    connected = [length > 1 for length in shape]
    if per_plane:
        connected[0] = False
    sigmas = sigmas_in_voxels(sigma, spacings, connected, shape)
    least = least_size(min_size, sum(connected), seeds is not None)
    inside = None if mask is None else check_mask(mask, shape)
    start = None if seeds is None else check_seeds(seeds, shape, inside)
    labels = np.zeros(shape, np.uint32)
    if labels.size == 0:
        return labels
    extra = labels.itemsize if per_plane else _BYTES_PER_VOXEL
    present = 0 if is_lazy(data) else np.dtype(data.dtype).itemsize
    require_memory(data, "boundary", extra - present)
    values = in_memory(data, "boundary", progress)
    not_finite = check_values(values, gate, nan, inside, partial(report, progress))
    if boundary is mapped:
        gate.warn_if_narrow([values])
    # A part within a mask, or a few pixels, tell nothing of a map; seeds need none.
    if inside is None and values.size >= _LEAST:
        if start is None and _is_constant(values):
            warn_caller(_constant(values, per_plane))
        elif boundary is mapped:  # affinities were looked at; oriented maps may be mostly high
            warn_if_inverted([values], gate)

    drop = flat_axes(shape, per_plane)
    recipe = Recipe(gate.limits, not not_finite, sigmas, connected, least).without(drop)
    task = _Task(
        values.squeeze(drop),
        None if inside is None else inside.squeeze(drop),
        None if start is None else start.squeeze(drop),
        labels.squeeze(drop),
        recipe,
    )
    if per_plane:
        _segment_planes(task, progress)
    else:
        task.run(slice(None), 1, partial(report, progress))
    return labels


def _refuse_channels(shape: tuple[int, ...]) -> None:
    """Refuse affinities, a volume for each offset; warn of an array of four axes that may be such.

    It may not where the first axis is as long as those of a plane.
    """
    if len(shape) != 4 or not 2 <= shape[0] <= 32 or min(shape[2:]) <= shape[0]:
        return
    ways = (
        ReadAffinities(),
        SetOption("per_plane", True, when=f"if these are {shape[0]} separate volumes"),
    )
    if shape[0] > 2 and min(shape[2:]) > _WIDE:
        raise InvalidInput(
            f"`boundary` (shape {shape}) looks like affinities, a volume for each offset, not like "
            "one boundary map",
            argument="boundary",
            remedy=ways,
        )
    if math.prod(shape) < _LEAST:  # a few voxels tell nothing
        return
    warning = DataWarning(
        f"`boundary` (shape {shape}) may be affinities, a volume for each offset, and is taken for "
        "one boundary map with four axes",
        argument="boundary",
        remedy=ways,
    )
    warn_caller(warning)


def _is_constant(values: Array) -> bool:
    first = values.flat[0]
    return all((values[start:stop] == first).all() for start, stop in slabs(values.shape))


def _constant(values: Array, per_plane: bool) -> DataWarning:
    """Return the warning of a map that has one value."""
    what = "each plane" if per_plane else "it"
    return DataWarning(
        f"`boundary` is {values.flat[0]:g} everywhere, so that {what} is one superpixel",
        argument="boundary",
        remedy="choose the map that is high on boundaries",
    )


def warn_if_inverted(parts: Sequence[Array], gate: ValueGate) -> None:
    """Warn of a map that is high nearly everywhere, as one of the inside of objects is.

    The parts of a map count alike. A few voxels tell nothing of a map.
    """
    if sum(part.size for part in parts) < _LEAST:
        return
    limits = gate.limits
    middle, rising = sum(limits) / 2, limits[1] > limits[0]
    samples = []
    for part in parts:
        step = max(1, math.ceil((part.size / _SAMPLE) ** (1 / part.ndim)))
        samples.append(part[(slice(None, None, step),) * part.ndim])
    shares = [((one > middle) if rising else (one < middle)).mean() for one in samples]
    share = float(np.mean(shares))
    lowest, highest = min(one.min() for one in samples), max(one.max() for one in samples)
    if share > _MOSTLY and lowest < highest:
        warning = DataWarning(
            f"`{gate.name}` is high in {share:.0%} of its pixels, as if it were high inside "
            "objects",
            argument=gate.name,
            remedy=gate.declare((limits[1], limits[0]), when="if it is"),
        )
        warn_caller(warning)


@dataclass(frozen=True)
class _Task:
    """Images of one call, all of one shape, with their parameters; `run` fills `out`."""

    values: Array
    mask: Array | None
    seeds: Array | None
    out: Array
    recipe: Recipe

    def run(self, where: slice, first: int, tick: Tick) -> int:
        """Segment the planes `where` with labels from `first` on; return their number."""
        mask = None if self.mask is None else self.mask[where]
        seeds = None if self.seeds is None else self.seeds[where]
        return segment_block(
            self.values[where], mask, seeds, self.recipe, first, self.out[where], tick
        )


def _segment_planes(task: _Task, progress: ProgressCallback | None) -> None:
    """Segment as many planes at once as fit in the cache; planes are independent.

    Two threads take the blocks in turn, each with labels from 1 on; these are shifted in order.
    """
    planes = task.values.shape[0]
    step = max(1, _BLOCK // math.prod(task.values.shape[1:]))
    blocks = [slice(start, min(start + step, planes)) for start in range(0, planes, step)]
    done = threading.Event()  # because of an error, or since it was cancelled

    def run(block: slice) -> int:
        def tick(stage: str, at: int, total: int) -> None:
            if done.is_set():
                raise Cancelled("Cancelled.")

        return task.run(block, 1, tick)

    with ThreadPoolExecutor(_THREADS) as pool:
        counts = [pool.submit(run, block) for block in blocks]
        try:
            first = 0
            for block, count in zip(blocks, counts, strict=True):
                report(progress, "segmenting planes", block.start, planes)
                while wait([count], _POLL).not_done:
                    report(progress, "segmenting planes", block.start, planes)
                labels = task.out[block]
                np.add(labels, np.uint32(first), out=labels, where=labels > 0)
                first += count.result()
        finally:
            done.set()
            pool.shutdown(cancel_futures=True)
    report(progress, "segmenting planes", planes, planes)
