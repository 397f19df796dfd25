"""Oriented boundary map of a photograph: differences of brightness, colour and texture.

Strategy (after Martin et al. 2004 and Arbelaez et al. 2011): at each pixel a disc is divided by a
line in each of eight directions. Where the histograms of the two halves differ, in brightness, in
colour or in the words of a texture, there may be a boundary in that direction. A logistic
regression combines discs of three sizes, and a second one adds what the whole image says: the
gradients of its eigenvectors, and the strength of its strong boundaries. The weights were fitted to
annotated photographs (`scripts/fit_oriented_boundary.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, part_of, report
from napari_agglo.superpixels._boundary_cue import Picture, to_channels
from napari_agglo.superpixels._boundary_weights import (
    COLOUR,
    COLOUR_WHOLE,
    GREY,
    GREY_WHOLE,
    Weights,
    Whole,
)
from napari_agglo.superpixels._eigenvectors import spectral_gradients
from napari_agglo.superpixels._filter_bank import fit_words, mr8, nearest_words, normalised
from napari_agglo.superpixels._half_discs import disc_gradient, half_discs
from napari_agglo.volumes import OrientedMap, require_memory, unwrap, voxel_size_of

Floats = NDArray[np.float32]
DIRECTIONS = 8
_BINS = 25  # of brightness, and of each of the two colours
_REACH = 2  # bins on each side that a bin takes in
_TEXTURES = 32  # words
# Radii of the discs in pixels, of brightness, texture and each of the two colours.
RADII = ((3, 5, 10), (5, 10, 20), (5, 10, 20), (5, 10, 20))
_COLOURS = 0.5  # the end of a* and b*, in hundreds; more is rare
_ALONG, _ACROSS = 4.0, 1.5  # widths of the smoothing along a line and across it, in pixels
# Added to the logit of the probability, so that a boundary of 5 % has the value 0.5: boundaries are
# rare, and of 256 levels few would be left for the weak ones, whose means decide most merges.
_LIFT = 3.0
# Quantile of the strongest directions of an image, by which its boundaries are compared; the best
# covering of seven levels in held-out training images, if not the best VI (docs/photographs.md).
_STRONG = 0.9
_BYTES = 80  # for each pixel: two stacks of eight directions of float32, the result and the words
_THREADS = 2


def oriented_boundary(
    image: object, *, channel_axis: int | None = None, progress: ProgressCallback | None = None
) -> OrientedMap:
    """Make an oriented boundary map from a photograph, or another plane of textured regions.

    The map has a channel for each of eight directions of a boundary. Pass it to `oversegment`, and
    to `region_graph` as a cue, for the policy "oriented mean" and for features.

    Parameters
    ----------
    image : array or Volume, 2-D
        In grey or in colours, of any integer or float type and range. Colours need `channel_axis`,
        except for a uint8 array whose last axis has length 3 or 4, which is RGB(A).
    channel_axis : int, optional
        The axis of three colours, or of other channels, of which the mean is taken.
    progress : callable, optional
        Called several times a second with a `Progress`; cancels by raising `Cancelled`.

    Returns
    -------
    OrientedMap

    Raises
    ------
    InvalidInput
        If the image is not a plane, is constant, or has NaN.

    Notes
    -----
    The values rise with the probability of a boundary that a person would draw in a photograph of
    about 480 x 320 pixels, in which objects are tens to hundreds of pixels wide; 0.5 stands for
    5 %. For membranes and stains `boundary_cue` is better.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> image = np.zeros((40, 40), np.uint8)
    >>> image[:, 20:] = 200
    >>> found = agglo.oriented_boundary(image)
    >>> found.channels.shape
    (8, 40, 40)
    >>> int(found.channels[:, 20, 20].argmax())  # the fourth of eight directions is vertical
    4
    """
    picture = Picture.of(unwrap(image, "image"), channel_axis)
    shape = picture.shape
    picture.require_plane(
        "as directions of boundaries are those of lines", "use boundary_cue for a volume"
    )
    require_memory(picture.data, "image", _BYTES)
    limits = picture.limits(partial(report, progress))
    values = to_channels(picture.slab(0, shape[0]), limits, True)
    if len(values) not in (1, 3):  # channels that are no colours
        values = values.mean(axis=0, keepdims=True)
    colours = len(values) == 3
    weights = COLOUR if colours else GREY
    energy = np.full((DIRECTIONS, *shape), np.float32(weights.intercept))
    for k, planes in enumerate(gradients(values, part_of(progress, 0.0, 0.8))):
        add_gradient(energy, planes, weights, k)
    for k in range(DIRECTIONS):
        report(progress, "smoothing", 80 + k, 100)
        energy[k] = along_lines(energy[k], k / DIRECTIONS)
    report(progress, "eigenvectors", 88, 100)
    parts, level = of_the_whole(energy)
    whole = COLOUR_WHOLE if colours else GREY_WHOLE
    channels = np.empty(energy.shape, np.uint8)
    for k in range(DIRECTIONS):
        report(progress, "eigenvectors", 92 + k, 100)
        likely = _probability(_combined(energy[k], parts[k], level, whole))
        channels[k] = np.floor(255.0 * likely + 0.5)
    report(progress, "eigenvectors", 100, 100)
    spacing, unit = voxel_size_of(image, "image")
    if spacing is not None and len(spacing) == 3:
        spacing = tuple(d for a, d in enumerate(spacing) if a != picture.channel_axis)
    return OrientedMap(channels, spacing, unit=unit)


def gradients(values: Floats, progress: ProgressCallback | None = None) -> Iterator[Floats]:
    """Yield the gradient of each channel and radius, a plane for each direction, 0 to 1.

    `values` has the brightness from 0 to 1 and, of colours, a* and b* in hundreds.
    """
    grey = values[0]
    step = 1.0 / (1 + 3 * (len(values) + 1))
    vectors = normalised(mr8(grey, part_of(progress, 0.0, step))).reshape(8, -1).T
    textures = nearest_words(vectors, fit_words(vectors, _TEXTURES, 0)).reshape(grey.shape)
    parts = [(_binned(grey, 0.0, 1.0), _BINS, _REACH), (textures, _TEXTURES, 0)]
    parts += [(_binned(one, -_COLOURS, _COLOURS), _BINS, _REACH) for one in values[1:]]
    done = 1
    with ThreadPoolExecutor(_THREADS) as pool:
        for (words, n_words, reach), radii in zip(parts, RADII, strict=False):
            for radius in radii:
                out = np.empty((DIRECTIONS, *grey.shape), np.float32)
                padded = np.pad(words, radius, mode="symmetric")
                each = [
                    pool.submit(_gradient, padded, n_words, reach, radius, k, out[k])
                    for k in range(DIRECTIONS)
                ]
                for k, one in enumerate(each):
                    one.result()
                    at = round(1000 * step * (done + (k + 1) / DIRECTIONS))
                    report(progress, "differences of half discs", at, 1000)
                done += 1
                yield out


def add_gradient(energy: Floats, planes: Floats, weights: Weights, number: int) -> None:
    """Add a gradient, by its number, to the logits of the boundary of each direction."""
    own, mean, across = (np.float32(w) for w in weights.factors[number])
    roots = np.sqrt(planes)
    energy += own * roots
    energy += across * np.roll(roots, -DIRECTIONS // 2, axis=0)
    energy += mean * np.sqrt(planes.mean(axis=0))


def of_the_whole(energy: Floats) -> tuple[Floats, float]:
    """Return the gradients of eigenvectors, and the logit that a tenth of the pixels exceed."""
    strongest = energy.max(axis=0)
    parts = np.cbrt(spectral_gradients(_probability(strongest), DIRECTIONS))
    return parts, float(np.quantile(strongest, _STRONG))


def _probability(logit: Floats) -> Floats:
    likely: Floats = 1.0 / (1.0 + np.exp(-(logit + np.float32(_LIFT))))
    return likely


def _combined(local: Floats, parts: Floats, level: float, whole: Whole) -> Floats:
    """Return the logit of one direction, from that of the discs and what the whole image says."""
    common = whole.intercept + whole.level * min(max(level, whole.levels[0]), whole.levels[1])
    logit: Floats = np.float32(whole.local) * local
    logit += np.float32(whole.parts) * parts + np.float32(common)
    return logit


def _binned(values: Floats, low: float, high: float) -> NDArray[np.uint8]:
    bins = np.floor((values - np.float32(low)) * np.float32(_BINS / (high - low)))
    whole: NDArray[np.uint8] = np.clip(bins, 0, _BINS - 1).astype(np.uint8)
    return whole


def _gradient(
    padded: NDArray[np.uint8], n_words: int, reach: int, radius: int, direction: int, out: Any
) -> None:
    runs = half_discs(radius, direction / DIRECTIONS)
    size = int((runs[0, :, 2] - runs[0, :, 1]).sum())
    counts = np.zeros((2, n_words + reach), np.int32)
    wide, terms = np.zeros((2, n_words), np.float32), np.zeros(n_words, np.float32)
    scale = np.float32(0.5 / (size * (2 * reach + 1)))
    disc_gradient(padded, runs, n_words, reach, scale, counts, wide, terms, out)


def along_lines(plane: Floats, turn: float) -> Floats:
    """Smooth a plane along lines of one direction, and less across them."""
    from scipy import signal

    reach = math.ceil(3 * _ALONG)
    at = np.arange(-reach, reach + 1.0)
    rows, columns = np.meshgrid(at, at, indexing="ij")
    sine, cosine = math.sin(math.pi * turn), math.cos(math.pi * turn)
    along, across = columns * cosine - rows * sine, columns * sine + rows * cosine
    kernel = np.exp(-0.5 * (along / _ALONG) ** 2 - 0.5 * (across / _ACROSS) ** 2)
    padded = np.pad(plane, reach, mode="symmetric")
    smooth: Floats = signal.fftconvolve(padded, (kernel / kernel.sum()).astype(np.float32), "valid")
    return smooth
