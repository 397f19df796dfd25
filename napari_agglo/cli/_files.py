"""Files of a command: inputs on one grid, and outputs that are checked before the work."""

from __future__ import annotations

import argparse
import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_agglo._table_files import PARQUET, check_table_file
from napari_agglo.cli._terminal import Console
from napari_agglo.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from napari_agglo._progress import ProgressCallback
    from napari_agglo.volumes import Volume, VoxelSize

_LABEL_SUFFIXES = (
    ".tif", ".tiff", ".zarr", ".h5", ".hdf5", ".precomputed", ".npz", ".npy", ".png",
)  # fmt: skip
_PLOT_SUFFIXES = (".png", ".svg", ".pdf")
_ZARR_MARKS = ("zarr.json", ".zarray", ".zgroup")


@dataclass(frozen=True)
class Inputs:
    """Open files by their names in the library, the spacing that they share, and its unit."""

    volumes: Mapping[str, Volume]
    spacing: tuple[float, ...] | None
    unit: str | None = None


def open_inputs(
    console: Console,
    files: Mapping[str, str],
    spacing: tuple[float, ...] | None = None,
    unit: str | None = None,
) -> Inputs:
    """Open files that must agree on their spacing, unless one is given, which then holds for all.

    `files` maps a name in the library, such as ``cues['boundary']``, to a file; the console learns
    them for its messages. The spacing is in `unit`, if that is given: see `asked_voxel_size`.
    """
    from napari_agglo.volumes import (
        check_same_spacing,
        check_spacing,
        open_volume,
        warn_of_places,
    )

    console.files |= files
    volumes = {name: open_volume(file) for name, file in files.items()}
    if spacing is not None and unit is None:
        warn_of_unit(console, volumes, spacing)
    for name, volume in volumes.items():
        if spacing is not None:
            check_spacing(spacing, volume.ndim)
        voxel = asked_voxel_size(volume, spacing, unit)
        volumes[name] = replace(volume, spacing=voxel.spacing, unit=voxel.unit)
    if not volumes:
        return Inputs(volumes, *asked_voxel_size(None, spacing, unit))
    for name in warn_of_places(volumes):  # told here once, with the name of the file
        volumes[name] = replace(volumes[name], origin=None)
    return Inputs(volumes, *check_same_spacing(volumes))


def warn_of_unit(
    console: Console, volumes: Mapping[str, Volume], spacing: tuple[float, ...]
) -> None:
    """Warn of a spacing of the command that replaces one with a unit, and has none."""
    name = next((name for name, volume in volumes.items() if volume.unit), None)
    if name is not None:
        numbers = ",".join(f"{one:g}" for one in spacing)
        console.warn(
            f"`{name}` states its spacing in {volumes[name].unit}s, and --spacing {numbers} has no "
            "unit, so that none is kept; add --unit, such as --unit nm"
        )


def asked_voxel_size(source: Any, spacing: tuple[float, ...] | None, unit: str | None) -> VoxelSize:
    """Return the spacing of an input, or the given one, in the unit of the command, ``--unit``.

    Numbers of files that state a unit are converted to it; others are in it already.
    """
    from napari_agglo.volumes import VoxelSize, voxel_size_of

    return (voxel_size_of(source) if spacing is None else VoxelSize(spacing)).in_unit(unit)


def write_labels_output(
    arguments: argparse.Namespace,
    output: str,
    labels: NDArray[Any],
    spacing: tuple[float, ...] | None,
    unit: str | None,
    progress: ProgressCallback | None = None,
    origin: tuple[float, ...] | None = None,
) -> None:
    """Write a label image with the options of `add_labels_output`."""
    from napari_agglo.volumes import write_labels

    write_labels(
        output, labels, spacing=spacing, unit=unit, origin=origin, version=arguments.version,
        levels=arguments.levels, downsample=arguments.downsample, chunks=arguments.chunks,
        shards=arguments.shards, progress=progress,
    )  # fmt: skip


def load_golds(volumes: Mapping[str, Any], like: Any, like_name: str) -> list[NDArray[Any]]:
    """Return the gold standards among `volumes` as arrays, all of the shape of `like`."""
    from napari_agglo.volumes import check_labels, check_same_shape

    golds = []
    for name, volume in volumes.items():
        if name.partition("[")[0] == "gold":
            check_same_shape(volume, like, name, like_name)
            golds.append(check_labels(volume, name))
            if not golds[-1].any():
                raise InvalidInput(
                    f"`{name}` is 0 everywhere, so it has no annotated voxel to compare",
                    argument=name,
                    remedy="check that this is the right file",
                )
    return golds


def write_tiff(
    path: Path,
    image: NDArray[Any],
    spacing: Sequence[float] | None,
    unit: str | None = None,
    *,
    channels_first: bool = False,
) -> None:
    """Write a compressed OME-TIFF with its spacing; an axis more than `spacing` has is colours.

    Where the spacing is not known, write a plain TIFF, which states none. Channels that are first
    are named as such in either case.
    """
    import tifffile

    if spacing is None:
        axes = "ZYX"[1 - image.ndim :]
        tifffile.imwrite(
            path, image, ome=channels_first, photometric="minisblack", compression="zlib",
            metadata={"axes": f"C{axes}"} if channels_first else {},
        )  # fmt: skip
        return

    from napari_agglo.volumes import NO_UNIT, unit_symbol

    symbol = unit_symbol(unit) if unit else NO_UNIT
    axes = "ZYX"[-len(spacing) :]
    colours = image.ndim > len(spacing) and not channels_first
    first, last = "C" if channels_first else "", "S" if colours else ""
    metadata: dict[str, Any] = {"axes": f"{first}{axes}{last}"}
    for axis, distance in zip(axes, spacing, strict=True):
        metadata[f"PhysicalSize{axis}"] = float(distance)
        metadata[f"PhysicalSize{axis}Unit"] = symbol
    tifffile.imwrite(
        path,
        image,
        ome=True,
        photometric="rgb" if colours else "minisblack",
        compression="zlib",
        metadata=metadata,
    )


def open_image(console: Console, file: str, name: str = "image") -> tuple[Volume, bool]:
    """Return an image and whether it is in colours: red, green and blue along a last axis."""
    import numpy as np

    from napari_agglo.volumes import add_pick, open_volume

    console.files[name] = file
    try:
        return open_volume(file), False
    except InvalidInput:
        for axis in ("c", "s"):
            try:
                channels = [open_volume(add_pick(file, f"{axis}={k}")) for k in range(3)]
            except InvalidInput:
                continue
            stacked = np.stack([channel.load() for channel in channels], axis=-1)
            return replace(channels[0], data=stacked), True
        raise


def place(text: str) -> tuple[Path, str | None]:
    """Split PATH:KEY and follow links; the path need not exist.

    Examples
    --------
    >>> place("new.h5:seg")[1]
    'seg'
    """
    if not os.path.exists(text):
        for colon in re.finditer(":", text):
            if os.path.exists(text[: colon.start()]):
                return Path(text[: colon.start()]).resolve(), text[colon.end() :]
        keyed = re.fullmatch(r"(.+?\.(?:h5|hdf5|zarr)):(.*)", text, re.IGNORECASE | re.DOTALL)
        if keyed:
            return Path(keyed[1]).resolve(), keyed[2]
    return Path(text).resolve(), None


def check_label_output(text: str) -> None:
    """Refuse a name that labels cannot be written to, before the work and not after it."""
    path, key = place(text)
    keyed = path.suffix.lower() in (".h5", ".hdf5", ".zarr")
    if not path.name.lower().endswith(_LABEL_SUFFIXES) or (key is not None and not keyed):
        raise _wrong_suffix("-o", text, _LABEL_SUFFIXES)
    if key == "":
        raise refusal("-o", text, "there is no KEY after the colon", "give one or drop it")
    if key and path.suffix.lower() == ".zarr":
        _check_labels_key(text, path, key)
        return
    marks = {".zarr": _ZARR_MARKS, ".precomputed": ("info",)}.get(path.suffix.lower(), ())
    in_folder = any((path / mark).is_file() for mark in marks)
    if not in_folder:
        _refuse_folder("-o", text, path)
    if key and path.is_file():
        import h5py

        if not h5py.is_hdf5(path):
            problem = f"{path.name} exists and is not an HDF5 file"
            raise refusal("-o", text, problem, "choose another name")
    _check_parent("-o", text, path)
    if in_folder:
        from napari_agglo.volumes import check_target

        check_target(text)


def _check_labels_key(text: str, path: Path, key: str) -> None:
    """Refuse labels that no image could have; first where there is no image."""
    from napari_agglo.volumes import check_labels_place

    if not any((path / mark).is_file() for mark in _ZARR_MARKS):
        raise refusal("-o", text, f"there is no image {path}", "write NAME.ome.zarr without a KEY")
    try:
        check_labels_place(path)
    except InvalidInput as error:
        raise refusal("-o", text, error.problem, str(error.remedy)) from error
    if not re.fullmatch(r"/?labels/[^/.][^/]*/?", key):
        raise refusal("-o", text, "labels of an image are called labels/NAME", "name them so")
    if not os.access(path, os.W_OK | os.X_OK):
        raise refusal("-o", text, f"{path} may not be written to", "choose another folder")


def check_axes(text: str, ndim: int) -> None:
    """Refuse PNG for an image that is not 2-D."""
    if ndim != 2 and place(text)[0].suffix.lower() == ".png":
        raise refusal("-o", text, f"PNG holds a 2-D image, not one of {ndim} axes", "write .tif")


def check_table_output(option: str, text: str) -> None:
    """Refuse a place that a table cannot be written to, and parquet without pyarrow."""
    path = Path(text).resolve()
    check_table_file(Path(text), option)
    _refuse_folder(option, text, path)
    _check_parent(option, text, path)


def check_plot_output(option: str, text: str) -> None:
    """Refuse a place that a plot cannot be written to, and a format that there is none of."""
    if Path(text).suffix.lower() not in _PLOT_SUFFIXES:
        raise _wrong_suffix(option, text, _PLOT_SUFFIXES)
    check_table_output(option, text)


def check_folder_output(option: str, text: str) -> None:
    """Refuse a path that cannot be a folder to write to, or be made in a folder that exists."""
    path = Path(text).resolve()
    if path.suffix.lower() in (*_LABEL_SUFFIXES, ".csv", PARQUET):
        problem = "this names a folder, but looks like a file"
        raise refusal(option, text, problem, f"drop the {path.suffix}")
    _refuse_file(option, text, path)
    _check_parent(option, text, path / "any" if path.is_dir() else path)


def refuse_existing(session: str) -> None:
    """Refuse the folder of a new session that exists, before the work."""
    if os.path.lexists(session):
        raise InvalidInput(
            f"{session} exists already",
            argument="path",
            remedy="choose another name for the new session, or work on this one",
        )


def refusal(option: str, text: str, problem: str, remedy: str) -> InvalidInput:
    """Return the error that refuses what an option says."""
    return InvalidInput(f"{option} {text}: {problem}", argument=option, remedy=remedy)


def _wrong_suffix(option: str, text: str, suffixes: Sequence[str]) -> InvalidInput:
    problem = f"the name must end in one of {', '.join(suffixes)}, which says the format"
    return refusal(option, text, problem, f"add {suffixes[0]}")


def _refuse_folder(option: str, text: str, path: Path) -> None:
    if path.is_dir():
        raise refusal(option, text, "there is a folder of this name", "choose another")


def _refuse_file(option: str, text: str, path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise refusal(option, text, "this is a file", "name a folder")


def _check_parent(option: str, text: str, path: Path) -> None:
    if not path.parent.is_dir():
        raise refusal(option, text, f"there is no folder {path.parent}", "make it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        problem = f"{path.parent} may not be written to"
        raise refusal(option, text, problem, "choose another folder")


def refuse_clash(
    console: Console, outputs: Mapping[str, str | None], inputs: Mapping[str, str]
) -> None:
    """Refuse an output that would replace an input, or another output.

    `outputs` are texts by option, None for no output; `inputs` files by their names in the library.
    """
    taken: dict[Path, str] = {}
    for option, text in outputs.items():
        if text is None:
            continue
        path, key = place(text)
        if path in taken:
            problem = f"this is also {taken[path]}"
            raise refusal(option, text, problem, "give each a file of its own")
        taken[path] = option
        for name, file in inputs.items():
            if _would_replace(path, key, file):
                problem = f"this would replace {console.option(name)} {file}, which is read"
                raise refusal(option, text, problem, "choose another name")


def _would_replace(path: Path, key: str | None, file: str) -> bool:
    source, source_key = place(file)
    members = {Path(member).resolve() for member in glob.glob(file)}
    if path in members and (key is None or members != {source}):
        return True
    if source != path:  # a folder that is read, or one that holds what is read
        return source in path.parents or path in source.parents
    if key is None:
        return True
    if not source.is_file():  # labels are added to a Zarr image, beside the arrays that are read
        read = _without_picks(source_key or "")
        return f"{read}/".startswith(f"{key.strip('/')}/")
    # Another dataset of one HDF5 file may be written; without a KEY, ask which one is read.
    if source_key is None:
        from napari_agglo.volumes import open_volume

        source_key = open_volume(file).name.partition(":")[2]
    return key.strip("/") == _without_picks(source_key)


def _without_picks(key: str) -> str:
    return re.sub(r"(^|,)\w+=[-\d:*]+(,\w+=[-\d:*]+)*$", "", key).strip("/")


@contextmanager
def output_folder(path: str | Path) -> Iterator[Path]:
    """Give a temporary folder to fill; its files move to `path` when all went well.

    Files of the same name are replaced, others in `path` stay.
    """
    from napari_agglo.volumes._replace_file import filling

    final = Path(path)
    _refuse_file("-o", str(path), final)
    _check_parent("-o", str(path), final.resolve())
    with filling(final) as temporary:
        yield temporary
