"""Readers of sessions, block-wise runs, gala stacks, predictions of ilastik, and affinities.

All other paths are left to other readers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_agglo.widgets._napari import role

if TYPE_CHECKING:
    from napari.types import LayerData

    from napari_agglo.blocks import Plan
    from napari_agglo.graph import RegionGraph
    from napari_agglo.volumes import Volume

Reader = Callable[[Any], "list[LayerData]"]
_STACK = "stack"  # the dataset of gala, and of labels that the plugin writes
_IN_MEMORY = 1 << 30  # bytes: a larger stack is read lazily
_LABELLED = 0.7  # share of pixels whose neighbour is equal, from which on integers are labels


def session_reader(path: str | list[str]) -> Reader | None:
    """Return the reader of a session folder; None for any other path."""
    if not isinstance(path, str):
        return None
    folder = Path(path)
    ours = folder.suffix.lower() == ".agglo" and (folder / "manifest.json").is_file()
    return read_session if ours else None


def read_session(path: str) -> list[LayerData]:
    """Open a session in the current viewer for proofreading; without one, return its labels."""
    import napari

    viewer = napari.current_viewer()
    if viewer is None or getattr(viewer, "window", None) is None:
        from napari_agglo.session import Session
        from napari_agglo.volumes import is_on_disk, mapped_labels

        with Session.open(path, read_only=True) as session:
            place = {"name": Path(path).stem, **_placed(session.graph)}
            image: Any = session.graph.superpixels.image
            if not is_on_disk(image):
                return [(session.labels(), place, "labels")]
            # larger than memory: levels that are looked up where they are sliced
            from napari_agglo.widgets._layer_levels import lazy_data

            data = lazy_data([mapped_labels(level, session.lut()) for level in image.levels])
            return [(data.pop("data"), {**place, **data}, "labels")]
    from napari_agglo.widgets._jobs import when_imported

    def open_in_window() -> None:
        from napari_agglo.widgets.proofread._open_session import open_session

        open_session(viewer, Path(path))

    viewer.window.add_plugin_dock_widget("napari-agglo", "Agglo")
    when_imported(f"{__package__}._guide", open_in_window)
    return [(None,)]  # napari's sign that there are no layers to add


def run_reader(path: str | list[str]) -> Reader | None:
    """Return the reader of the results folder of a block-wise run; None for any other path.

    The path is that of the folder, or of its ``plan.json``.
    """
    return read_run if isinstance(path, str) and run_folder(path) is not None else None


def run_folder(path: str | Path) -> Path | None:
    """Return the results folder that a path is, or whose plan it is; None if it is none."""
    place = Path(path)
    folder = place.parent if place.name == "plan.json" else place
    try:
        with (folder / "plan.json").open("rb") as file:
            ours = b"napari-agglo blocks" in file.read(1000)
    except OSError:
        return None
    return folder if ours else None


def read_run(path: str) -> list[LayerData]:
    """Open a block-wise run in the current viewer for proofreading; without one, its labels."""
    import napari

    viewer, folder = napari.current_viewer(), run_folder(path)
    if viewer is None or getattr(viewer, "window", None) is None:
        from napari_agglo import blocks
        from napari_agglo.widgets._layer_levels import lazy_data

        result = blocks.open(folder or path)
        data = lazy_data(result.labels)
        place = {"name": result.folder.name, **_placed(result.plan)}
        return [(data.pop("data"), {**place, **data}, "labels")]
    from napari_agglo.widgets._jobs import when_imported

    def open_in_window() -> None:
        from napari_agglo.widgets.proofread._open_run import open_run

        open_run(viewer, folder or Path(path))

    viewer.window.add_plugin_dock_widget("napari-agglo", "Agglo")
    when_imported(f"{__package__}._guide", open_in_window)
    return [(None,)]


def stack_reader(path: str | list[str]) -> Reader | None:
    """Return the reader of an HDF5 file with a dataset "stack", predictions of ilastik, affinities.

    Affinities are told by the offsets in their attributes. None for any other path.
    """
    import h5py

    if not isinstance(path, str) or not Path(path).is_file() or not h5py.is_hdf5(path):
        return None
    try:
        with h5py.File(path, "r") as file:
            ours = isinstance(file.get(_STACK, getlink=True), h5py.HardLink)
            dataset = file.get(_STACK) if ours else None
            numbers = isinstance(dataset, h5py.Dataset) and dataset.dtype.kind in "biuf"
            members = [file[key] for key in file if isinstance(file[key], h5py.Dataset)]
            tagged = len(file) == len(members) == 1 and "axistags" in members[0].attrs
    except (OSError, KeyError):
        return None
    if numbers:
        return read_stack
    if tagged:
        return read_predictions
    return read_affinities if _with_offsets(path) else None


def affinities_reader(path: str | list[str]) -> Reader | None:
    """Return the reader of a Zarr folder in which an array has the offsets of affinities.

    None for any other path.
    """
    if not isinstance(path, str) or not Path(path).is_dir():
        return None
    return read_affinities if _with_offsets(path) else None


def read_affinities(path: str) -> list[LayerData]:
    """Return the affinities of a file as images with all channels and their offsets."""
    from napari_agglo.volumes import add_pick, open_volume

    layers: list[LayerData] = []
    for key, offsets in _with_offsets(path).items():
        volume = open_volume(add_pick(f"{path}:{key}" if key else path, "c=*"))
        name = f"{Path(path).stem} {key}".rstrip()
        named = name if "affinit" in name.lower() else f"{name} affinities"
        options: dict[str, Any] = {"name": named, "metadata": {"neighborhood": offsets}}
        if volume.spacing is not None:
            options |= {"scale": (1.0, *volume.spacing[1 - volume.ndim :])}
        layers.append((_data_of(volume), options, "image"))
    return layers


def _with_offsets(path: str) -> dict[str, Any]:
    """Return the offsets in the attributes of the arrays of a Zarr folder or HDF5 file, by key."""
    try:
        arrays = _hdf5_arrays(path) if Path(path).is_file() else _zarr_arrays(path)
    except (OSError, KeyError, ValueError, TypeError):
        return {}  # damaged, or not what it seems: another reader says so
    offsets_of = {}
    for key, (shape, known) in arrays.items():
        offsets: Any = known.get("neighborhood", known.get("offsets"))
        offsets = offsets.tolist() if isinstance(offsets, np.ndarray) else offsets
        # an offset for each channel, with a number for each axis but that of the channels
        per_channel = isinstance(offsets, list) and len(shape) > 2 and len(offsets) == shape[0]
        if per_channel and all(
            isinstance(one, list) and len(one) == len(shape) - 1 for one in offsets
        ):
            offsets_of[key] = offsets
    return offsets_of


Arrays = dict[str, tuple[tuple[int, ...], dict[str, Any]]]  # shape and attributes by key


def _zarr_arrays(path: str) -> Arrays:
    import zarr

    if not any((Path(path) / name).is_file() for name in ("zarr.json", ".zarray", ".zgroup")):
        return {}
    node: Any = zarr.open(path, mode="r")
    if not isinstance(node, zarr.Group):
        return {"": (node.shape, node.attrs.asdict())}
    inside = ((key, one) for key, one in node.members(None) if isinstance(one, zarr.Array))
    return {key: (one.shape, one.attrs.asdict()) for key, one in inside}


def _hdf5_arrays(path: str) -> Arrays:
    import h5py

    arrays: Arrays = {}

    def collect(key: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset) and node.shape is not None:
            arrays[key] = node.shape, dict(node.attrs)

    with h5py.File(path, "r") as file:
        file.visititems(collect)  # which follows no link
    return arrays


def read_predictions(path: str) -> list[LayerData]:
    """Return the channels of a file of ilastik as images with the role of cues."""
    from napari_agglo.volumes import open_channels

    layers: list[LayerData] = []
    for name, volume in open_channels(path).items():
        options: dict[str, Any] = {"name": f"{Path(path).stem} {name}".rstrip()}
        if name:
            options |= {"metadata": role("cue", name), "visible": not layers}
        layers.append((_data_of(volume), options | _placed(volume), "image"))
    return layers


def read_stack(path: str) -> list[LayerData]:
    """Return the stack as a Labels layer if it holds labels, else as an image."""
    from napari_agglo.volumes import open_volume
    from napari_agglo.volumes._on_disk import as_type

    volume = open_volume(f"{path}:{_STACK}")
    middle = (*[n // 2 for n in volume.shape[:-2]], ...)
    labelled = looks_labelled(np.asarray(volume.data[middle]))
    options: dict[str, Any] = {"name": Path(path).stem} | _placed(volume)
    if labelled and volume.dtype == bool:  # which no layer of labels takes
        volume = replace(volume, data=as_type(volume.data, np.uint8))
    return [(_data_of(volume), options, "labels" if labelled else "image")]


def _data_of(volume: Volume) -> Any:
    """Return the pixels, read if they are few."""
    size = int(np.prod(volume.shape, dtype=np.int64)) * volume.dtype.itemsize
    if size <= _IN_MEMORY:
        return volume.load()
    from napari_agglo.widgets._layer_levels import LazyArray

    return LazyArray(volume.data)


def _placed(source: Volume | RegionGraph | Plan) -> dict[str, Any]:
    """Return the scale of a layer, and its units where they are known."""
    if source.spacing is None:
        return {}
    scale: dict[str, Any] = {"scale": source.spacing}
    return {**scale, "units": (source.unit,) * len(source.spacing)} if source.unit else scale


def looks_labelled(plane: np.ndarray[Any, Any]) -> bool:
    """Return whether whole numbers are labels, mostly equal side by side, or grey values.

    Background, which is flat in both, is not counted.

    Examples
    --------
    >>> looks_labelled(np.repeat([[1, 2, 3]], 9, axis=1))
    True
    >>> looks_labelled(np.arange(9)[None])
    False
    """
    if plane.dtype.kind == "f" or plane.ndim == 0:
        return False
    if plane.dtype.kind == "b":
        return True
    left, right = plane[..., :-1], plane[..., 1:]
    inside = (left != 0) | (right != 0)
    return bool(inside.any() and (left == right)[inside].mean() >= _LABELLED)
