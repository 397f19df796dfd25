"""Properties of layers as data, without reading pixels, and layers made from others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from napari.layers import Image, Labels
from scipy import ndimage

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.volumes import OrientedMap, Words, in_memory
from napari_agglo.widgets._dataset import AffinityArray, Dataset, Placement
from napari_agglo.widgets._layer_levels import LazyArray
from napari_agglo.widgets._napari import add_inactive, role, role_of
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._scene import Scene

PREVIEW = "preview"  # the name of the job, and of the role of its layer
ALL = -1  # in place of the index of a channel: all of them, as affinities
_OFFSETS = ("neighborhood", "offsets")  # in the metadata of a layer
DIRECTIONS = "directions"  # in the metadata of a boundary map: a plane for each direction
TEXTONS = "textons"  # in the metadata of a boundary map too, and the name of this cue of words
STROKES, PROBABILITY = "strokes", "probability"  # roles of layers of the pixel classifier
_MOST_CHANNELS = 32  # a longer axis is space or time


def is_rgb(layer: Any) -> bool:
    """Return whether a layer is an RGB image."""
    return isinstance(layer, Image) and bool(layer.rgb)


def is_ours(layer: Any, scene: Scene) -> bool:
    """Return whether a layer shows results of the plugin, and so is no input."""
    return scene.owns(layer) or role_of(layer)[0] in (PREVIEW, STROKES, PROBABILITY)


def data_of(layer: Any) -> Any:
    """Return the pixels of a layer, not read yet; of a pyramid, the full resolution."""
    data = layer.data[0] if layer.multiscale else layer.data
    return data.source if isinstance(data, LazyArray) else data


def dtype_of(layer: Any) -> np.dtype[Any]:
    """Return the type of a pixel."""
    dtype: np.dtype[Any] = np.dtype(data_of(layer).dtype)
    return dtype


def shape_of(layer: Any) -> tuple[int, ...]:
    """Return the shape of a layer, without the axis of RGB."""
    shape = tuple(int(n) for n in data_of(layer).shape)
    return shape[:-1] if is_rgb(layer) else shape


def channel_axis(layer: Any, shape: tuple[int, ...]) -> int | None:
    """Return the axis of channels, without which a layer has this shape; None if there is none."""
    own = shape_of(layer)
    if is_rgb(layer) or len(own) != len(shape) + 1:
        return None
    for axis, length in enumerate(own):
        if length <= _MOST_CHANNELS and own[:axis] + own[axis + 1 :] == shape:
            return axis
    return None


def may_have_offsets(layer: Any, shape: tuple[int, ...] | None) -> bool:
    """Return whether a layer has the shape of affinities of an image of some shape, or of any."""
    own = shape_of(layer)
    space = len(own) - 1
    if space < 2 or not space <= own[0] <= _MOST_CHANNELS:
        return False
    # Without an image, three axes may be those of a volume.
    return own[1:] == shape if shape is not None else own[0] == space or space > 2


def offsets_of(layer: Any) -> tuple[tuple[int, ...], ...]:
    """Return the offsets in the metadata of a layer; otherwise the nearest voxels.

    By convention, the channels of the nearest voxels come first.
    """
    ndim = len(shape_of(layer)) - 1
    known = next((layer.metadata[n] for n in _OFFSETS if n in layer.metadata), None)
    if known is None:
        return tuple(tuple(-int(a == k) for a in range(ndim)) for k in range(ndim))
    return tuple(tuple(int(n) for n in offset) for offset in known)


def directions_of(layer: Any) -> OrientedMap | None:
    """Return the oriented map of a layer that shows its strongest direction; None if it has none.

    A layer whose pixels are of another shape by now, such as a crop, has none.
    """
    channels = layer.metadata.get(DIRECTIONS)
    whole = isinstance(channels, np.ndarray) and channels.dtype == np.uint8 and channels.ndim == 3
    if not whole or channels.shape[1:] != shape_of(layer):
        return None
    return OrientedMap(channels)


def textons_of(layer: Any) -> Words | None:
    """Return the word cue that belongs to the boundary map of a layer; None if there is none."""
    words = layer.metadata.get(TEXTONS)
    return words if isinstance(words, Words) and words.shape == shape_of(layer) else None


def channel_of(layer: Any, axis: int, index: int) -> Any:
    """Return one channel of a layer, not read yet."""
    data = data_of(layer)
    if not isinstance(data, np.ndarray) and not hasattr(data, "dask"):
        import dask.array as da  # a dependency of napari

        lazy: Any = da.from_array
        data = lazy(data, chunks=getattr(data, "chunks", None) or "auto")
    return data[(slice(None),) * axis + (index,)]


def placement_of(layer: Any, axis: int | None = None) -> Placement:
    """Return the placement of a layer, without the axis of its channels."""
    whole = Placement.of(layer)
    if axis is None:
        return whole

    def rest(values: tuple[Any, ...] | None) -> Any:
        return None if values is None else values[:axis] + values[axis + 1 :]

    return Placement(
        rest(whole.scale), rest(whole.translate), rest(whole.units), rest(whole.axis_labels)
    )


def is_turned(layer: Any) -> bool:
    """Return whether a layer is rotated, sheared or has an affine transform."""
    ndim = layer.ndim
    matrix = np.asarray(layer.affine.affine_matrix)
    return not (
        np.allclose(layer.rotate, np.eye(ndim))
        and np.allclose(layer.shear, 0)
        and np.allclose(matrix, np.eye(ndim + 1))
    )


CONVERT = "convert"  # the name of the job


def convert_to_labels(
    viewer: Any,
    project: Project,
    layer: Any,
    done: Callable[[Labels], object],
    components: bool = False,
) -> None:
    """Make a Labels layer of the pixels or the components of a layer, in the background.

    Of the same pixels it takes the place of the image, which would lie on top of it otherwise.
    """
    data, name, placement = data_of(layer), str(layer.name), placement_of(layer)

    def add(labels: Any) -> None:
        title = f"{name} labels" if components else name
        made = Labels(labels, name=title, opacity=0.5, **placement.keywords())
        layer.visible = False
        at = next((k for k, one in enumerate(viewer.layers) if one is layer), None)
        if at is not None:
            viewer.layers.insert(at + 1, made)
        else:
            viewer.add_layer(made)
        done(made)
        if at is not None and not components:
            viewer.layers.remove(layer)
            made.name = name

    def work(progress: ProgressCallback) -> Any:
        labels = as_labels(data, name, progress)
        return ndimage.label(labels)[0] if components else labels

    project.jobs.start(CONVERT, "Converting to labels", work, add)


def add_plane(viewer: Any, layer: Any, axes: Sequence[int]) -> Labels:
    """Add a Labels layer with the visible plane of a layer; `axes` are dropped."""
    data, name, whole = data_of(layer), str(layer.name), Placement.of(layer)
    rest = [axis for axis in range(data.ndim) if axis not in axes]
    steps = viewer.dims.current_step[-data.ndim :]
    index = tuple(
        slice(None) if axis in rest else min(int(steps[axis]), data.shape[axis] - 1)
        for axis in range(data.ndim)
    )
    placed = {key: tuple(of[axis] for axis in rest) for key, of in whole.keywords().items()}
    return viewer.add_labels(np.asarray(data[index]), name=f"{name} plane", **placed)


def as_labels(data: Any, name: str, progress: ProgressCallback | None = None) -> Any:
    """Return labels as unsigned integers; raise `InvalidInput` for other values.

    Examples
    --------
    >>> as_labels(np.array([0.0, 2.0, 300.0]), "gold").tolist()
    [0, 2, 300]
    """
    values = in_memory(data, name, progress)
    if values.dtype.kind not in "biuf":
        raise InvalidInput(
            f"“{name}” has the type {values.dtype}, but labels are whole numbers",
            argument=name,
            remedy="choose another layer",
        )
    if values.size == 0:
        return values.astype(np.uint32)
    low, high = values.min(), values.max()
    whole = np.isfinite(low) and np.isfinite(high)
    if values.dtype.kind == "f":
        whole = bool(whole and (values == np.rint(values)).all())
    if not whole:
        raise InvalidInput(
            f"“{name}” has fractions or NaN, so it is not a label image",
            argument=name,
            remedy="choose a layer with an id for each object",
        )
    if low < 0 or high >= 2**53:
        raise InvalidInput(
            f"“{name}” has values from {low:g} to {high:g}; labels are 0 or more, and below 2**53",
            argument=name,
            remedy="choose a layer with an id for each object",
        )
    return values.astype(np.uint32 if high < 2**32 else np.uint64)


def preview_plane(viewer: Any, project: Project) -> None:
    """Compute the superpixels of the visible plane in the background; show their outlines."""
    dataset = project.dataset
    if dataset is None:
        return
    plane, placement = _plane_of(viewer, dataset)
    # A dataset may have superpixels already; the preview computes them anew.
    bare = replace(dataset, superpixels=None, partition=None, start=None, gold=None)
    flat = replace(
        bare,
        options={**bare.options, "per_plane": False},
        placement=Placement(placement.scale[-2:], (0.0, 0.0)),
    )

    def work(progress: Any) -> Any:
        name, cue = next(iter(flat.cues.items()))
        cut = cue
        if isinstance(cue, AffinityArray):
            cut = cue.plane(plane[:-1])
        elif not isinstance(cue, OrientedMap):  # which is a plane already
            cut = np.asarray(cue[plane])
        one_plane = replace(flat, cues={name: cut})
        labels = one_plane.oversegmented(progress).superpixels
        return labels.reshape((1,) * (len(placement.scale) - 2) + labels.shape)

    def done(labels: Any) -> None:
        remove_preview(viewer)
        name = f"{int(labels.max(initial=0)):,} superpixels (preview)"
        layer = Labels(labels, name=name, metadata=role(PREVIEW), **placement.keywords())
        layer.contour = 1
        add_inactive(viewer, layer)

    project.jobs.start(PREVIEW, "Superpixels of this plane", work, done)


def remove_preview(viewer: Any) -> None:
    """Remove the layer of the preview."""
    for layer in [one for one in viewer.layers if role_of(one)[0] == PREVIEW]:
        viewer.layers.remove(layer)


def _plane_of(viewer: Any, dataset: Dataset) -> tuple[tuple[Any, ...], Placement]:
    """Return the index of the visible plane, and its placement in the world."""
    place, shape = dataset.placement, dataset.shape
    extra = viewer.dims.ndim - len(shape)
    index: list[Any] = []
    translate = list(place.translate)
    for axis in range(len(shape) - 2):
        at = (viewer.dims.point[axis + extra] - place.translate[axis]) / place.scale[axis]
        number = int(np.clip(round(at), 0, shape[axis] - 1))
        index.append(number)
        translate[axis] += number * place.scale[axis]
    return (*index, ...), replace(place, translate=tuple(translate))
