"""Textons: words for the colour and texture around each pixel, as a cue."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, part_of, report
from napari_agglo.errors import InvalidInput, SetOption, check_whole
from napari_agglo.superpixels._boundary_cue import Picture, to_channels
from napari_agglo.superpixels._filter_bank import fit_words, mr8, nearest_words, normalised
from napari_agglo.volumes import VoxelSize, Words, require_memory, unwrap, voxel_size_of

_BYTES = 200  # for each pixel: a spectrum, eight responses and the vectors of eleven components


def textons(
    image: object,
    n_words: int = 100,
    *,
    channel_axis: int | None = None,
    dictionary: NDArray[np.float32] | None = None,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> Words:
    """Describe each pixel of a plane by a word for its colour and the texture around it.

    The vector of a pixel has L*a*b* (or the grey value) and the eight responses of the filter bank
    MR8; the vectors of the image are divided into words by k-means. As a cue, the histograms of
    words of two regions are compared.

    Parameters
    ----------
    image : array or Volume, 2-D
        In grey or in colours, of any integer or float type and range. Colours need `channel_axis`,
        except for a uint8 array whose last axis has length 3 or 4, which is RGB(A).
    n_words : int
        Number of words, 2 to 256; that of `dictionary` if there is one.
    channel_axis : int, optional
        The axis of three colours, or of other channels, of which the mean is taken.
    dictionary : ndarray of float32, shape (n_words, components), optional
        Centres of the words, from `texton_dictionary`, for words that mean the same in several
        images. By default the image has words of its own, which is enough to compare its regions.
    seed : int
        Seed of k-means: same image and seed, same words.
    progress : callable, optional
        Called several times a second with a `Progress`; cancels by raising `Cancelled`.

    Returns
    -------
    Words

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.superpixels import textons
    >>> image = np.zeros((40, 40), np.uint8)
    >>> image[:, 20:] = np.indices((40, 20)).sum(axis=0) % 4 * 50  # stripes
    >>> words = textons(image, 8)
    >>> len(set(words.words[:, :4].ravel()) & set(words.words[:, -4:].ravel()))
    0
    """
    vectors, shape, voxel = _vectors(image, channel_axis, part_of(progress, 0.0, 0.6))
    if dictionary is None:
        check_whole("n_words", n_words, 2, 256)
        _refuse_few(n_words, len(vectors))
        report(progress, "words", 6, 10)
        dictionary = fit_words(vectors, int(n_words), seed)
    centres = _checked(dictionary, vectors.shape[1])
    report(progress, "words", 8, 10)
    words = nearest_words(vectors, centres).reshape(shape)
    report(progress, "words", 10, 10)
    return Words(words, len(centres), *voxel)


def texton_dictionary(
    images: list[Any],
    n_words: int = 100,
    *,
    channel_axis: int | None = None,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> NDArray[np.float32]:
    """Return the centres of words of several images, for `textons`.

    Parameters
    ----------
    images : list of array
        As `textons` takes them, all in grey or all in colours.
    n_words, channel_axis, seed, progress
        As for `textons`.

    Returns
    -------
    ndarray of float32, shape (n_words, components)

    Examples
    --------
    >>> from napari_agglo.superpixels import texton_dictionary
    >>> images = [np.random.default_rng(k).random((32, 32)) for k in range(2)]
    >>> len(texton_dictionary(images, n_words=4))
    4
    """
    check_whole("n_words", n_words, 2, 256)
    each: list[NDArray[np.float32]] = []
    for k, image in enumerate(images):
        part = part_of(progress, 0.9 * k / len(images), 0.9 * (k + 1) / len(images))
        vectors, _, _ = _vectors(image, channel_axis, part)
        if each and vectors.shape[1] != each[0].shape[1]:
            raise InvalidInput(
                "`images` has grey and colour images, which cannot have the same words",
                argument="images",
                remedy="convert all to grey, or leave the grey ones out",
            )
        rows = np.random.default_rng(seed).permutation(len(vectors))[:_EACH]
        each.append(vectors[np.sort(rows)])
    if not each:
        raise InvalidInput("`images` is empty", argument="images", remedy="pass one image or more")
    whole = np.concatenate(each)
    _refuse_few(n_words, len(whole))
    words = fit_words(whole, int(n_words), seed)
    report(progress, "words", 1, 1)
    return words


_EACH = 5000  # vectors of an image in a dictionary of several


def _vectors(
    image: object, channel_axis: int | None, progress: ProgressCallback | None
) -> tuple[NDArray[np.float32], tuple[int, ...], VoxelSize]:
    """Return the vector of each pixel, the shape of the image, and its size of a voxel."""
    picture = Picture.of(unwrap(image, "image"), channel_axis)
    shape = picture.shape
    picture.require_plane("as the filters of textons are those of planes")
    require_memory(picture.data, "image", _BYTES)
    limits = picture.limits(partial(report, progress))
    values = to_channels(picture.slab(0, shape[0]), limits, True)
    if len(values) not in (1, 3):  # channels that are no colours
        values = values.mean(axis=0, keepdims=True)
    responses = normalised(mr8(values[0], progress))
    vectors = np.concatenate([values, responses]).reshape(len(values) + 8, -1).T
    spacing, unit = voxel_size_of(image, "image")
    if spacing is not None and len(spacing) == 3:
        spacing = tuple(d for a, d in enumerate(spacing) if a != picture.channel_axis)
    return np.ascontiguousarray(vectors, np.float32), shape, VoxelSize(spacing, unit)


def _refuse_few(n_words: int, n_vectors: int) -> None:
    if n_vectors < n_words:
        raise InvalidInput(
            f"`image` has {n_vectors} pixels, fewer than `n_words`={n_words}",
            argument="n_words",
            remedy=(SetOption("n_words", max(2, n_vectors // 10)), "use a larger image"),
        )


def _checked(dictionary: Any, components: int) -> NDArray[np.float32]:
    centres = np.asarray(dictionary, np.float32)
    if centres.ndim != 2 or not 2 <= len(centres) <= 256 or centres.shape[1] != components:
        kind = "colours" if components == 11 else "grey"
        raise InvalidInput(
            f"`dictionary` must have shape (words, {components}) for an image in {kind}, got "
            f"{centres.shape}",
            argument="dictionary",
            remedy="make it of images like this one, with texton_dictionary",
        )
    if not np.isfinite(centres).all():
        raise InvalidInput(
            "`dictionary` has values that are not finite",
            argument="dictionary",
            remedy="make it again with texton_dictionary",
        )
    return centres
