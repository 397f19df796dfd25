"""Training of a pixel classifier on scribbles, or on the borders of a gold standard."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._data_warnings import warn_caller
from napari_agglo._progress import ProgressCallback, check_progress, part_of, report
from napari_agglo._version import __version__
from napari_agglo.errors import DataWarning, InvalidInput, SetOption, check_whole, is_number
from napari_agglo.learning._decision_tree import Binned, grow_tree, join_forests
from napari_agglo.pixels._filters import Array, FilterBank
from napari_agglo.pixels._pixel_classifier import PixelClass, PixelClassifier, check_classes
from napari_agglo.pixels._pixel_image import Box, PixelImage, blocks
from napari_agglo.pixels._predict_classes import threads
from napari_agglo.policy import Forest
from napari_agglo.volumes import check_labels, check_same_shape, dense_labels
from napari_agglo.volumes._volume import available_memory

Classes = Sequence[str | PixelClass] | Mapping[str, str]
# Examples in a leaf at the least: of 1, 2 and 5 the best from 600 pixels (average precision 0.910,
# 0.916, 0.920, mean of 3 seeds on FIBSEM data), and as good as any from 20,000.
TREES = 50  # of two classes; of more, twice as many in all
_LEAF = 5
GOLD_CLASSES = ("boundary", "interior")
_MOST = 100_000  # pixels of a class of strokes to learn from, unless the user says otherwise
_FILTERING = 0.5  # part of the progress bar that the filters take


def train_pixels(
    images: object,
    labels: object = None,
    *,
    gold: object = None,
    classes: Classes | None = None,
    scales: Sequence[float] = FilterBank.scales,
    per_plane: bool | None = None,
    structure: bool = False,
    spacing: Sequence[float] | None = None,
    channel_axis: int | None = None,
    trees: int = TREES,
    depth: int = 12,
    examples: int | None = None,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> PixelClassifier:
    """Train a classifier of pixels on a few strokes, or on a gold standard.

    Parameters
    ----------
    images : array or Volume, or list of these
        A picture or a volume, or several, with values of the same meaning. Arrays may be lazy: only
        blocks with labels are read. Colours need `channel_axis`, except for a uint8 image whose
        last axis has length 3 or 4, which is RGB(A).
    labels : integer array, or list of these
        0 where nothing is known, k at pixels of the k-th class.
    gold : integer array, or list of these
        In place of `labels`, label images of whole objects, 0 where nothing is known. The classes
        are "boundary", all pixels that touch another object, and "interior", as many of the others.
    classes : sequence of str or PixelClass, or dict of str to str, optional
        Names of the classes of the labels 1, 2, ..., perhaps with colours such as ``#e69f00``. By
        default "boundary", "cytoplasm", "mitochondria", "glia", "class_5", ...
    scales : sequence of float
        Standard deviations of the Gaussians, in voxels of the finest axis.
    per_plane : bool, optional
        Whether each plane is filtered by itself. By default that is so for pictures, and for
        volumes whose planes are more than 2.5 times as far apart as their pixels.
    structure : bool
        Whether to add the eigenvalues of the structure tensor, which takes several times as long.
    spacing : sequence of float, optional
        Distance between voxels along each axis but that of the channels; by default 1, or that of
        the Volume.
    channel_axis : int, optional
        The axis of colours or channels; -1 for the last.
    trees : int
        Trees of the forest if there are two classes. For more classes, each has trees of its own,
        twice this number together.
    depth : int
        Splits from root to leaf at the most.
    examples : int, optional
        Pixels of a class to learn from at the most, drawn at random. By default 100,000 of a class
        of `labels`; of `gold` all pixels of the boundary, and as many of the others.
    seed : int
        Seed of all that is random.
    progress : callable, optional
        Called several times a second with a `Progress`; cancels by raising `Cancelled`.

    Returns
    -------
    PixelClassifier

    Raises
    ------
    InvalidInput
        If fewer than two classes have labels, a class has none, a label has no class, an image has
        NaN or is constant at the labels, or the features of the examples do not fit in memory.

    Warns
    -----
    DataWarning
        If an axis of an image may be one of channels, or if all pixels of a class are in planes
        where the image is empty.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> image = agglo.sample("neuropil2d").image
    >>> scribbles = np.zeros(image.shape, np.uint8)
    >>> scribbles[10, 20:60] = 1
    >>> scribbles[40, 20:60] = 2
    >>> classifier = agglo.train_pixels(image, scribbles, classes=["membrane", "inside"])
    >>> classifier.names
    ('membrane', 'inside')
    """
    check_progress(progress)
    check_whole("trees", trees, 1, 10_000)
    check_whole("depth", depth, 1, 60)
    check_whole("seed", seed, 0, 2**32 - 1)
    if examples is not None:
        check_whole("examples", examples, 1)
    sources = _check_images(images, spacing, channel_axis)
    if per_plane is None:
        per_plane = any(source.is_thick for source in sources)
    elif not per_plane and any(source.grid[0] == 1 for source in sources):
        raise InvalidInput(
            "`per_plane` is False, but an image has only one plane",
            argument="per_plane",
            remedy=SetOption("per_plane", True),
        )
    bank = FilterBank(
        check_scales(scales), 2 if per_plane else 3, sources[0].channels, bool(structure)
    )
    marks = _check_marks(sources, labels, gold, per_plane)
    for k, source in enumerate(sources):
        source.warn_of_channels("images" if len(sources) == 1 else f"images[{k}]")
    if gold is not None:
        classes = GOLD_CLASSES if classes is None else classes
    highest = max(int(one.max(initial=0)) for one in marks)
    known = check_classes(classes, highest)
    check_counts(marks, known, "labels" if gold is None else "gold")
    rng = np.random.default_rng(seed)
    most = _MOST if examples is None and gold is None else examples
    chosen = _choose(marks, len(known), most, gold is not None, rng)
    _require_room(sum(len(flat) for flat, _ in chosen), bank)
    rows, learned = [], []
    filtering = part_of(progress, 0.0, _FILTERING)
    with threads() as pool:
        for k, (source, (flat, kind)) in enumerate(zip(sources, chosen, strict=True)):
            part = part_of(filtering, k / len(sources), (k + 1) / len(sources))
            features, values = features_at(source, bank, flat, pool, part)
            rows.append(features)
            learned.append(Examples(source, flat, kind, values))
    check_spread(learned, known)
    return fit_pixels(
        np.concatenate(rows), np.concatenate([one.kinds for one in learned]), known, bank,
        trees=trees, depth=depth, seed=seed, progress=part_of(progress, _FILTERING, 1.0),
        record={"source": "labels" if gold is None else "gold", "volumes": len(sources),
                "spacing": list(sources[0].spacing[3 - sources[0].ndim :])},
    )  # fmt: skip


def check_scales(scales: Sequence[float]) -> tuple[float, ...]:
    """Return the scales, smallest first; refuse any that is not a number of voxels."""
    try:
        values = sorted({float(one) for one in scales if is_number(one)})
    except TypeError:
        values = []
    if not 1 <= len(values) <= 16 or len(values) < len(list(scales)) or values[0] < 0.3 \
            or values[-1] > 64:  # fmt: skip
        raise InvalidInput(
            f"`scales` must be 1 to 16 different numbers of voxels from 0.3 to 64, not {scales!r}",
            argument="scales",
            remedy=SetOption("scales", FilterBank.scales),
        )
    return tuple(values)


def _check_images(
    images: object, spacing: Sequence[float] | None, channel_axis: int | None
) -> list[PixelImage]:
    listed = list(images) if isinstance(images, list | tuple) else [images]
    if not listed:
        raise InvalidInput("`images` is empty", argument="images", remedy="pass an image")
    names = ["images"] if len(listed) == 1 else [f"images[{k}]" for k in range(len(listed))]
    sources = [
        PixelImage.of(image, spacing, channel_axis, name)
        for image, name in zip(listed, names, strict=True)
    ]
    for source, name in zip(sources[1:], names[1:], strict=True):
        if source.channels != sources[0].channels:
            raise InvalidInput(
                f"`{name}` has {source.channels} channels and `{names[0]}` has "
                f"{sources[0].channels}",
                argument=name,
                remedy="convert both to grey, or pick one channel of each",
            )
    return sources


def _check_marks(
    sources: list[PixelImage], labels: object, gold: object, per_plane: bool
) -> list[NDArray[Any]]:
    """Return the class of each pixel of each image, (planes, rows, columns), 0 for none."""
    if (labels is None) == (gold is None):
        raise InvalidInput(
            "exactly one of `labels` and `gold` is needed",
            argument="labels",
            remedy=SetOption("labels", when="for strokes, `gold` for whole objects"),
        )
    name, given = ("labels", labels) if gold is None else ("gold", gold)
    listed = list(given) if isinstance(given, list | tuple) else [given]
    if len(listed) != len(sources):
        raise InvalidInput(
            f"`{name}` has {len(listed)} arrays and `images` {len(sources)}",
            argument=name,
            remedy="pass one for each image, in the same order",
        )
    marks = []
    for k, (one, source) in enumerate(zip(listed, sources, strict=True)):
        own = name if len(listed) == 1 else f"{name}[{k}]"
        array = check_labels(one, own, mask_ok=True)
        _check_shapes(array, source, own)
        grid = array.reshape(source.grid)
        marks.append(grid if gold is None else gold_classes(grid, per_plane, own))
    return marks


def _check_shapes(array: NDArray[Any], source: PixelImage, name: str) -> None:
    try:
        check_same_shape(source.shape, array, "images", name)
    except InvalidInput as error:
        shape = source.shape
        axes = [a for a in range(len(shape)) if shape[:a] + shape[a + 1 :] == array.shape]
        if not axes or source.picture.channel_axis is not None:
            raise
        raise InvalidInput(
            error.problem,
            argument="images",
            remedy=(SetOption("channel_axis", axes[-1], when="if these are channels"),
                    error.remedy or "use the same crop of both"),
        ) from error  # fmt: skip


def gold_classes(gold: NDArray[Any], per_plane: bool, name: str = "gold") -> NDArray[np.uint8]:
    """Return 1 at pixels of boundaries, 2 at others inside objects, and 0 at the rest.

    A boundary is a pixel that touches another object, or one of a line of 0 between two objects.
    Other pixels that touch a 0 are not used, since 0 is not annotated.

    Examples
    --------
    >>> gold_classes(np.array([[[5, 5, 5, 7, 7, 0, 0]]]), False).tolist()
    [[[2, 2, 1, 1, 0, 0, 0]]]
    >>> gold_classes(np.array([[[5, 5, 5, 0, 7, 7, 7]]]), False).tolist()
    [[[2, 2, 0, 1, 0, 2, 2]]]
    """
    from scipy import ndimage  # takes 0.1 s to import

    gold = dense_labels(gold, name).image  # scipy computes in floats, which huge ids do not fit
    unknown = gold == 0
    size = (1 if per_plane else 3, 3, 3)
    highest = ndimage.maximum_filter(gold, size)
    filled = np.where(unknown, np.iinfo(gold.dtype).max, gold)
    boundary = unknown & (highest > 0) & (ndimage.minimum_filter(filled, size) != highest)
    for axis in range(1 if per_plane else 0, 3):
        one = tuple(slice(None, -1) if a == axis else slice(None) for a in range(3))
        two = tuple(slice(1, None) if a == axis else slice(None) for a in range(3))
        either = (gold[one] == 0) | (gold[two] == 0)
        differ = (gold[one] != gold[two]) & ~either
        for side in (one, two):
            boundary[side] |= differ
            unknown[side] |= either
    if not boundary.any():
        raise InvalidInput(
            f"No two objects of `{name}` touch, so it shows no boundary",
            argument=name,
            remedy="if thick lines of 0 are the boundary, pass labels=np.where(gold == 0, 1, 2)",
        )
    return np.where(boundary, 1, np.where(unknown, 0, 2)).astype(np.uint8)


def check_counts(
    marks: Sequence[NDArray[Any]], classes: tuple[PixelClass, ...], name: str = "labels"
) -> NDArray[np.int64]:
    """Return the pixels of each class; refuse classes without any, and labels without class."""
    highest = max(int(one.max(initial=0)) for one in marks)
    names = [one.name for one in classes]
    if highest > len(classes):
        raise InvalidInput(
            f"`{name}` has the label {highest}, and there are {len(classes)} classes: "
            f"{', '.join(names)}",
            argument=name,
            remedy=("erase that label", SetOption("classes", when="with a name for each label")),
        )
    counts = np.zeros(len(classes) + 1, np.int64)
    for one in marks:
        counts += np.bincount(one.reshape(-1), minlength=len(counts))
    counts = counts[1:]
    if not counts.any():
        raise InvalidInput(
            f"`{name}` is 0 everywhere, so there is nothing to learn from",
            argument=name,
            remedy=f"paint a few strokes of each class: {', '.join(names)}",
        )
    missing = [label for label, n in zip(names, counts, strict=True) if n == 0]
    if missing:
        raise InvalidInput(
            f"`{name}` has no pixel of {' and of '.join(missing)}",
            argument=name,
            remedy=(f"paint a stroke of {missing[0]}", SetOption("classes", when="without it")),
        )
    return counts


def _require_room(n: int, bank: FilterBank) -> None:
    """Refuse more examples than there is memory for: their features, a copy, and their bins."""
    free, needed = available_memory(), n * bank.width * (4 + 4 + 1)
    if free is not None and needed > free:
        raise InvalidInput(
            f"The features of {n:,} pixels need about {needed / 1e9:.1f} GB of memory, and "
            f"{free / 1e9:.1f} GB are free",
            argument="examples",
            remedy=SetOption("examples", _MOST),
        )


class Examples(NamedTuple):
    """Pixels of one image to learn from: their flat indices, classes (from 0) and values."""

    source: PixelImage
    flat: NDArray[np.int64]
    kinds: NDArray[np.int64]
    values: Array

    def planes(self, kind: int) -> list[int]:
        """Return the planes with examples of a class."""
        size = math.prod(self.source.grid[1:])
        return [int(plane) for plane in np.unique(self.flat[self.kinds == kind] // size)]


def check_spread(examples: Sequence[Examples], classes: tuple[PixelClass, ...]) -> None:
    """Refuse labels where the image has one value; warn of a class that is in empty planes only.

    The features do not tell: in a volume those of an empty plane have traces of its neighbours.
    """
    values = np.concatenate([one.values for one in examples])
    if (values.min(axis=0) == values.max(axis=0)).all():
        raise InvalidInput(
            f"The image is {values[0, 0]:g} wherever there are labels, so the classes do not "
            "differ",
            argument="images",
            remedy="use the image that shows the objects, or paint where it does",
        )
    for kind, name in enumerate(one.name for one in classes):
        own = np.concatenate([one.values[one.kinds == kind] for one in examples])
        if (own != own[0]).any():
            continue
        if all(one.source.is_empty(plane) for one in examples for plane in one.planes(kind)):
            warn_caller(
                DataWarning(
                    f"All pixels of {name} are in planes where the image is {own[0, 0]:g} "
                    "everywhere",
                    argument="images",
                    remedy="paint where the image shows the objects",
                )
            )


def _choose(
    marks: list[NDArray[Any]], classes: int, most: int | None, balanced: bool,
    rng: np.random.Generator,
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:  # fmt: skip
    """Return flat indices and classes (from 0) of the examples of each volume.

    If `balanced`, the classes after the first have no more examples than the first.
    """
    chosen: list[list[NDArray[np.int64]]] = [[] for _ in marks]
    first = 0
    for kind in range(classes):
        places = [np.flatnonzero(one.reshape(-1) == kind + 1) for one in marks]
        sizes = [len(one) for one in places]
        total = sum(sizes)
        limit = total if most is None else min(total, most)
        if balanced and kind > 0:
            limit = min(limit, first)
        first = limit if kind == 0 else first
        drawn = np.arange(total)
        if limit < total:
            drawn = np.sort(rng.choice(total, limit, replace=False))
        ends = np.cumsum([0, *sizes])
        for k, place in enumerate(places):
            inside = drawn[(drawn >= ends[k]) & (drawn < ends[k + 1])] - ends[k]
            chosen[k].append(place[inside])
    return [
        (
            np.concatenate(parts),
            np.repeat(np.arange(classes), [len(part) for part in parts]),
        )
        for parts in chosen
    ]


def features_at(
    source: PixelImage,
    bank: FilterBank,
    flat: NDArray[np.int64],
    pool: Executor,
    progress: ProgressCallback | None = None,
) -> tuple[Array, Array]:
    """Return the features of some pixels, by their flat indices, and their values in the image.

    Only what they need is read.
    """
    out = np.empty((len(flat), bank.width), np.float32)
    values = np.empty((len(flat), source.channels), np.float32)
    places = np.stack(np.unravel_index(flat, source.grid), axis=1)
    boxes = blocks(source.grid, bank.axes)
    reach = bank.reach(source.spacing)
    done = 0
    for box in boxes:
        inside = np.flatnonzero(((places >= box.start) & (places < box.stop)).all(axis=1))
        if len(inside) == 0:
            continue
        report(progress, "filtering", done, len(flat))
        low, high = places[inside].min(axis=0), places[inside].max(axis=0) + 1
        part = Box(tuple(int(n) for n in low), tuple(int(n) for n in high))
        block = source.read(part, reach)
        filtered = bank.apply(block, source.spacing, pool)
        local = places[inside] - low
        values[inside] = block[(slice(None), *(local + np.array(reach)).T)].T
        lines = local[:, 0] * part.shape[1] + local[:, 1]
        order = np.argsort(lines, kind="stable")
        for first, stop, at, end in _runs(lines[order]):
            rows = filtered.features(first, stop)
            which = order[at:end]
            within = (lines[which] - first) * part.shape[2] + local[which, 2]
            out[inside[which]] = rows[within]
        done += len(inside)
    report(progress, "filtering", len(flat), len(flat))
    return out, values


def _runs(lines: NDArray[np.int64]) -> Iterator[tuple[int, int, int, int]]:
    """Yield ranges of adjacent lines, up to 64 at once, and the range of their places in order."""
    at = 0
    while at < len(lines):
        first = int(lines[at])
        end = at
        while end < len(lines) and lines[end] < first + 64:
            if lines[end] > lines[max(end - 1, at)] + 1:
                break
            end = int(np.searchsorted(lines, lines[end], "right"))
        yield first, int(lines[end - 1]) + 1, at, end
        at = end


def fit_pixels(
    rows: Array,
    kinds: NDArray[np.int64],
    classes: tuple[PixelClass, ...],
    bank: FilterBank,
    *,
    trees: int = TREES,
    depth: int = 12,
    seed: int = 0,
    progress: ProgressCallback | None = None,
    record: dict[str, Any] | None = None,
) -> PixelClassifier:
    """Fit the forest to features and classes (from 0) of pixels.

    A tree tells one class from all others. It learns from a random draw, with replacement, of
    equally many pixels of that class and of the others, so that a class with few strokes counts
    as much as one with many.
    """
    n = len(classes)
    forests = 1 if n == 2 else n
    each = trees if n == 2 else -(-2 * trees // n)
    leaf = max(1, min(_LEAF, int(np.bincount(kinds, minlength=n).min()) // 4))
    binned = Binned.of(rows)
    columns = max(1, int(bank.width**0.5))
    places = [np.flatnonzero(kinds == k) for k in range(n)]
    others = [np.flatnonzero(kinds != k) for k in range(n)]

    def grow(number: int) -> tuple[Forest, NDArray[np.float64]]:
        kind = number // each
        # a generator for each tree, so that the order of threads does not matter
        rng = np.random.default_rng([seed, number])
        half = max(1, len(kinds) // 2)
        drawn = [rng.choice(part, half) for part in (places[kind], others[kind])]
        weights = np.bincount(np.concatenate(drawn), minlength=len(kinds)).astype(np.int64)
        tree = grow_tree(
            binned, (kinds == kind).astype(np.int64), weights, columns=columns, leaf=leaf,
            depth=depth, seed=int(rng.integers(2**31)),
        )  # fmt: skip
        return tree.forest(), tree.gains

    grown = _in_threads(grow, forests * each, progress)
    gains = np.mean([gain for _, gain in grown], axis=0)
    order = np.argsort(-gains, kind="stable")[:20]
    value = bank.width_of_scale * np.arange(bank.channels * len(bank.scales))
    about = {
        **(record or {}),
        "version": __version__,
        "examples": {one.name: len(place) for one, place in zip(classes, places, strict=True)},
        "importances": {bank.names[k]: round(float(gains[k]), 5) for k in order},
        "range": [float(np.quantile(rows[:, value], q)) for q in (0.01, 0.99)],
        "trees": each,
        "depth": depth,
        "seed": seed,
    }
    return PixelClassifier(classes, bank, join_forests([tree for tree, _ in grown]), about)


def _in_threads(
    grow: Callable[[int], Any], trees: int, progress: ProgressCallback | None
) -> list[Any]:
    done = []
    with threads() as pool:
        for task in [pool.submit(grow, number) for number in range(trees)]:
            done.append(task.result())
            report(progress, "growing trees", len(done), trees)
    return done
