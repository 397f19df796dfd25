"""Pixel classifier: classes with names and colours, the filters, and a forest; and its file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from napari_agglo._data_warnings import warn_caller
from napari_agglo._progress import ProgressCallback, check_progress, report
from napari_agglo.errors import DataWarning, InvalidInput, SetOption, is_number
from napari_agglo.pixels._filters import Array, FilterBank
from napari_agglo.pixels._pixel_image import PixelImage, blocks
from napari_agglo.pixels._predict_classes import predict_box, threads
from napari_agglo.policy import Forest
from napari_agglo.policy._file import (
    check_forest,
    encode_model,
    model_file,
    read_arrays,
    read_header,
    require,
)
from napari_agglo.volumes import refuse_colours, replacing, require_memory

SCHEMA = 1
_FORMAT = "napari-agglo pixel classifier"
# Colours that people with any kind of colour vision tell apart (Okabe and Ito, 2008).
COLOURS = ("#e69f00", "#56b4e9", "#cc79a7", "#009e73", "#f0e442", "#d55e00", "#0072b2", "#999999")
NAMES = ("boundary", "cytoplasm", "mitochondria", "glia")
_ENOUGH = 64  # pixels of a plane: fewer may have nearly the same value
MOST = 250  # classes, one number less than a byte has
_NAME = re.compile(r"[\w.-]+")
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
# For probabilities that do not fit in memory.
_OTHER_WAYS = (
    "save the classifier, and write the probabilities to a file block by block: napari-agglo "
    "pixels predict IMAGE --classifier CLASSIFIER.npz -o NAME.zarr",
    "segment it block by block: napari-agglo blocks plan FOLDER --image IMAGE --classifier "
    "CLASSIFIER.npz",
    "use a crop",
)


@dataclass(frozen=True)
class PixelClass:
    """A class of pixels: its name, which is that of its cue, and its colour, such as #e69f00.

    Parameters
    ----------
    name : str
        Name of the class and of its cue.
    colour : str
        Colour on the screen, ``#rrggbb``.
    """

    name: str
    colour: str


def check_classes(
    classes: Sequence[str | PixelClass] | Mapping[str, str] | None, highest: int = 2
) -> tuple[PixelClass, ...]:
    """Return the classes of the labels 1, 2, ...; by default as many as the highest label.

    Parameters
    ----------
    classes : sequence of str or PixelClass, mapping of str to str, or None
        Names, or names with their colours.
    highest : int
        The highest label.

    Returns
    -------
    tuple of PixelClass
        A class for each label from 1 on.

    Examples
    --------
    >>> [one.name for one in check_classes(None, 5)]
    ['boundary', 'cytoplasm', 'mitochondria', 'glia', 'class_5']
    """
    if classes is None:
        names = [*NAMES, *(f"class_{k}" for k in range(len(NAMES) + 1, highest + 1))]
        classes = names[: max(highest, 2)]
    if isinstance(classes, str):
        classes = classes.split(",")
    pairs: list[tuple[Any, Any]] = (
        list(classes.items())
        if isinstance(classes, Mapping)
        else [(c.name, c.colour) if isinstance(c, PixelClass) else (c, None) for c in classes]
    )
    for name, colour in pairs:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidInput(
                f"`classes` has the name {name!r}, which is not one word of letters, digits, "
                "points, dashes and underscores",
                argument="classes",
                remedy="name it for example red_cells",
            )
        if colour is not None and not (isinstance(colour, str) and _COLOUR.fullmatch(colour)):
            raise InvalidInput(
                f"`classes` gives {name} the colour {colour!r}",
                argument="classes",
                remedy="write it as in web pages, for example #e69f00",
            )
    names = [name for name, _ in pairs]
    if len(names) < 2 or len(set(names)) < len(names) or len(names) > MOST:
        problem = "needs at least two classes" if len(names) < 2 else "names a class twice"
        if len(names) > MOST:
            problem = f"has {len(names)} classes, and {MOST} are the most"
        raise InvalidInput(
            f"`classes` {problem}: {', '.join(names[:8])}",
            argument="classes",
            remedy="name two or more, each once, for example boundary and cytoplasm",
        )
    return tuple(
        PixelClass(name, colour or COLOURS[k % len(COLOURS)])
        for k, (name, colour) in enumerate(pairs)
    )


def check_bank(bank: FilterBank, source: PixelImage) -> None:
    """Refuse an image with other channels or axes than the features of a classifier have."""
    if source.channels != bank.channels:
        grey = bank.channels == 1
        raise InvalidInput(
            f"`image` (shape {tuple(source.picture.data.shape)}) has {source.channels} "
            f"channel{'s' * (source.channels > 1)}, and the classifier was trained on "
            f"{bank.channels}",
            argument="image",
            remedy=("convert it to grey", "pick one channel")
            if grey
            else (SetOption("channel_axis"), "use an image in colours"),
        )
    if source.grid[0] == 1 and bank.axes == 3:
        raise InvalidInput(
            f"`image` (shape {source.shape}) is one plane, and the classifier was trained on "
            "volumes, with filters across planes",
            argument="image",
            remedy="train one with per_plane=True",
        )


@dataclass(frozen=True, eq=False)
class PixelClassifier:
    """A classifier of pixels, made by `train_pixels`.

    Attributes
    ----------
    classes : tuple of PixelClass
        The classes of the labels 1, 2, ... of the training.
    bank : FilterBank
        The features.
    forest : Forest
        Equally many trees for each class; two classes share theirs.
    record : dict
        Numbers about the training: examples of each class, importances of the features, range of
        the image, spacing.
    """

    classes: tuple[PixelClass, ...]
    bank: FilterBank
    forest: Forest
    record: dict[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the classes."""
        return tuple(one.name for one in self.classes)

    def predict(
        self,
        image: object,
        *,
        spacing: Sequence[float] | None = None,
        channel_axis: int | None = None,
        progress: ProgressCallback | None = None,
    ) -> dict[str, Array]:
        """Return the probability of each class at each pixel: cues of `region_graph`.

        Parameters
        ----------
        image : array or Volume
            A picture or a volume as in the training, also lazy: it is read block by block.
        spacing : sequence of float, optional
            Distance between voxels along each axis but that of the channels.
        channel_axis : int, optional
            The axis of colours or channels; found by itself where a uint8 image ends in RGB(A).
        progress : callable, optional
            Called several times a second with a `Progress`; cancels by raising `Cancelled`.

        Returns
        -------
        dict of str to ndarray of float32
            By the names of the classes; at each pixel their sum is 1.

        Raises
        ------
        InvalidInput
            If the image has NaN, or other axes or channels than those of the training, or if the
            result does not fit in memory: the remedy names ways to write it to a file.

        Warns
        -----
        DataWarning
            If the image has other values than those of the training, or an axis that may be one of
            channels.

        Examples
        --------
        >>> import napari_agglo as agglo
        >>> sample = agglo.sample("neuropil2d")
        >>> classifier = agglo.train_pixels(sample.image, gold=sample.gold, examples=500)
        >>> cues = classifier.predict(sample.image)
        >>> list(cues), cues["boundary"].shape == sample.image.shape
        (['boundary', 'interior'], True)
        """
        source = self.check_image(image, spacing, channel_axis)
        require_memory(source.picture.data, "image", 4 * len(self.classes), _OTHER_WAYS)
        out = np.empty((len(self.classes), *source.grid), np.float32)
        for index, probabilities in self.blocks(source, progress=progress):
            out[(slice(None), *index)] = probabilities
        return {name: out[k].reshape(source.shape) for k, name in enumerate(self.names)}

    def blocks(
        self,
        image: object,
        *,
        spacing: Sequence[float] | None = None,
        channel_axis: int | None = None,
        progress: ProgressCallback | None = None,
    ) -> Iterator[tuple[tuple[slice, ...], Array]]:
        """Yield the same block by block, for a volume whose result is larger than memory.

        Each item is an index of planes, rows and columns, and the probabilities there, (class,
        planes, rows, columns); a picture has one plane. The blocks have the values of the whole.

        Parameters
        ----------
        image : array, Volume or path-like
            As for `predict`.
        spacing : sequence of float, optional
            As for `predict`.
        channel_axis : int, optional
            As for `predict`.
        progress : callable, optional
            Called after each block; raise `Cancelled` in it to stop.

        Yields
        ------
        tuple of slice, ndarray of float32
            The place of a block, and the probabilities there.
        """
        check_progress(progress)
        source = (
            image
            if isinstance(image, PixelImage)
            else self.check_image(image, spacing, channel_axis)
        )
        boxes = blocks(source.grid, self.bank.axes)
        lines = [box.shape[0] * box.shape[1] for box in boxes]
        done = 0
        with threads() as pool:
            for box, n in zip(boxes, lines, strict=True):
                yield box.index, predict_box(
                    source, box, self.bank, self.forest, len(self.classes), pool, progress, done,
                    sum(lines),
                )  # fmt: skip
                done += n
        report(progress, "classifying pixels", done, done)

    def check_image(
        self,
        image: object,
        spacing: Sequence[float] | None = None,
        channel_axis: int | None = None,
    ) -> PixelImage:
        """Return an image that this classifier can be used on; refuse any other.

        Parameters
        ----------
        image : array, Volume or path-like
            As for `predict`.
        spacing : sequence of float, optional
            As for `predict`.
        channel_axis : int, optional
            As for `predict`.

        Returns
        -------
        PixelImage
            The image with its spacing and its axis of channels.

        Raises
        ------
        InvalidInput
            If the image has other axes or channels than those of the training.
        """
        source = PixelImage.of(image, spacing, channel_axis)
        if channel_axis is None:
            refuse_colours(source.picture.data, "image")
        check_bank(self.bank, source)
        source.warn_of_channels()
        self._compare_values(source)
        return source

    def _compare_values(self, source: PixelImage) -> None:
        """Warn if the values of the image are of another range than those of the training."""
        known = self.record.get("range")
        if not known:
            return
        middle = tuple(slice(n // 2, n // 2 + 1) for n in source.grid[:1])
        steps = tuple(slice(None, None, max(1, n // 64)) for n in source.grid[1:])
        values = source._values((*middle, *steps))
        low, high = (float(value) for value in known)
        span = max(high - low, 1e-30)
        here = float(np.median(values)), float(np.ptp(values))
        if not all(map(math.isfinite, here)):
            return  # refused when that block is read
        flat = here[1] < 0.05 * span and values[0].size >= _ENOUGH
        if not low - span <= here[0] <= high + span or flat:
            warn_caller(
                DataWarning(
                    f"The values of the image, {values.min():g} to {values.max():g} in its middle, "
                    f"differ much from those of the training, {low:g} to {high:g}",
                    argument="image",
                    remedy="scale the image as the training images were",
                )
            )

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the classifier to a ``.npz`` file, whole or not at all; nothing in it runs code.

        Parameters
        ----------
        path : path-like
            The file to write, ``NAME.npz``.

        Returns
        -------
        Path
            The file that was written.
        """
        target = Path(path)
        header = {
            "format": _FORMAT,
            "schema": SCHEMA,
            "classes": [[one.name, one.colour] for one in self.classes],
            "scales": list(self.bank.scales),
            "axes": self.bank.axes,
            "channels": self.bank.channels,
            "structure": self.bank.structure,
            "record": self.record,
        }
        with replacing(target) as temporary:
            temporary.write_bytes(encode_model(header, self.forest))
        return target


def load_pixel_classifier(path: str | PathLike[str]) -> PixelClassifier:
    """Read a classifier that `PixelClassifier.save` wrote.

    Parameters
    ----------
    path : path-like
        The ``.npz`` file.

    Returns
    -------
    PixelClassifier
        One whose probabilities are, bit for bit, those of the classifier that was saved.

    Examples
    --------
    >>> import tempfile
    >>> image = np.zeros((16, 16))
    >>> image[:, 8] = 1
    >>> strokes = np.where(image > 0, 1, 2)
    >>> from napari_agglo.pixels import load_pixel_classifier, train_pixels
    >>> classifier = train_pixels(image, strokes, scales=(1.0,))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     read = load_pixel_classifier(classifier.save(f"{folder}/pixels.npz"))
    >>> read.classes == classifier.classes
    True
    """
    with model_file(path, "pixel classifier") as archive:
        header = read_header(archive, _FORMAT, SCHEMA)
        scales, channels = header["scales"], header["channels"]
        usable = isinstance(scales, list) and 0 < len(scales) <= 16
        require(
            usable and all(is_number(one) and 0.3 <= one <= 64 for one in scales),
            "its scales are not numbers of voxels",
        )
        require(header["axes"] in (2, 3), f"it has {header['axes']!r} axes")
        require(
            isinstance(channels, int) and 1 <= channels <= 1000, f"it has {channels!r} channels"
        )
        bank = FilterBank(
            tuple(float(one) for one in scales), header["axes"], channels,
            header["structure"] is True,
        )  # fmt: skip
        classes = check_classes([PixelClass(*one) for one in header["classes"]])
        forest = check_forest(read_arrays(archive, "forest"), bank.width)
        require(
            len(forest.roots) % (1 if len(classes) == 2 else len(classes)) == 0,
            "its classes have different numbers of trees",
        )
    return PixelClassifier(classes, bank, forest, header["record"])
