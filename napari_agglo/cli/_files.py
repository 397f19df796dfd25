"""Open the files of a command, on one grid."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from napari_agglo.cli._words import command_words
from napari_agglo.errors import InvalidInput

if TYPE_CHECKING:
    from napari_agglo.volumes import Volume


# Write an image or a cue as TIFF, with its spacing where other programs look for it.


def write_tiff(path: Path, image: NDArray[Any], spacing: Sequence[float] | None) -> None:
    """Write a compressed OME-TIFF; an axis beyond those of `spacing` is that of colours.

    Where the spacing is not known, a plain TIFF, which does not pretend to know.
    """
    import tifffile

    if spacing is None:
        tifffile.imwrite(path, image, photometric="minisblack", compression="zlib")
        return

    axes = "ZYX"[-len(spacing) :]
    metadata: dict[str, Any] = {"axes": axes + ("S" if image.ndim > len(spacing) else "")}
    for axis, distance in zip(axes, spacing, strict=True):
        metadata[f"PhysicalSize{axis}"] = float(distance)
        metadata[f"PhysicalSize{axis}Unit"] = "µm"
    tifffile.imwrite(
        path,
        image,
        ome=True,
        photometric="rgb" if image.ndim > len(spacing) else "minisblack",
        compression="zlib",
        metadata=metadata,
    )


# Open an image in grey or in colours: the one input of a command that may have channels.


def open_image(file: str) -> tuple[Volume, bool]:
    """Return an image and whether it is in colours: red, green and blue along a last axis."""
    from dataclasses import replace

    import numpy as np

    from napari_agglo.volumes import open_volume

    try:
        return open_volume(file), False
    except InvalidInput:
        keyed = ":" in file and not os.path.exists(file)
        for axis in ("c", "s"):
            try:
                channels = [
                    open_volume(f"{file}{',' if keyed else ':'}{axis}={k}") for k in range(3)
                ]
            except InvalidInput:
                continue
            stacked = np.stack([channel.load() for channel in channels], axis=-1)
            return replace(channels[0], data=stacked), True
        raise


# What is to be written: checked before the work, and never in place of an input.


_LABEL_SUFFIXES = (".tif", ".tiff", ".zarr", ".h5", ".hdf5", ".npz", ".npy", ".png")
_PLOT_SUFFIXES = (".png", ".svg", ".pdf")
_ZARR_MARKS = ("zarr.json", ".zarray", ".zgroup")


def place(text: str) -> tuple[Path, str | None]:
    """Split PATH:KEY and follow links: what is at the path need not exist.

    Examples
    --------
    >>> place("new.h5:seg")[1]
    'seg'
    """
    if not os.path.exists(text):
        for colon in re.finditer(":", text):
            if os.path.exists(text[: colon.start()]):
                return Path(text[: colon.start()]).resolve(), text[colon.end() :]
        keyed = re.fullmatch(r"(.+?\.(?:h5|hdf5)):(.*)", text, re.IGNORECASE | re.DOTALL)
        if keyed:
            return Path(keyed[1]).resolve(), keyed[2]
    return Path(text).resolve(), None


def check_label_output(text: str, *, ndim: int | None = None) -> None:
    """Refuse a name that labels cannot be written to, before the work and not after it."""
    path, key = place(text)
    hdf5 = path.suffix.lower() in (".h5", ".hdf5")
    if not path.name.lower().endswith(_LABEL_SUFFIXES) or (key is not None and not hdf5):
        raise InvalidInput(
            f"-o {text}: the name must end in one of {', '.join(_LABEL_SUFFIXES)}, "
            "which says the format"
        )
    if key == "":
        raise InvalidInput(f"-o {text}: there is no KEY after the colon; give one or drop it")
    if path.suffix.lower() == ".png" and ndim is not None and ndim != 2:
        raise InvalidInput(f"-o {text}: PNG holds a 2-D image, not one of {ndim} axes; write .tif")
    zarr = path.suffix.lower() == ".zarr" and any((path / mark).is_file() for mark in _ZARR_MARKS)
    if not zarr:
        _refuse_folder("-o", text, path)
    if key and path.is_file():
        import h5py

        if not h5py.is_hdf5(path):
            raise InvalidInput(f"-o {text}: {path.name} is there and is no HDF5 file")
    _check_parent("-o", text, path)


def check_table_output(option: str, text: str) -> None:
    """Refuse a place that a table cannot be written to."""
    path = Path(text).resolve()
    _refuse_folder(option, text, path)
    _check_parent(option, text, path)


def check_plot_output(option: str, text: str) -> None:
    """Refuse a place that a plot cannot be written to, and a format that there is none of."""
    if Path(text).suffix.lower() not in _PLOT_SUFFIXES:
        raise InvalidInput(
            f"{option} {text}: the name must end in one of {', '.join(_PLOT_SUFFIXES)}, which says "
            "the format"
        )
    check_table_output(option, text)


def check_folder_output(option: str, text: str) -> None:
    """Refuse what cannot be a folder to write to; it may exist, or be made in one that does."""
    path = Path(text).resolve()
    if path.suffix.lower() in (*_LABEL_SUFFIXES, ".csv"):
        raise InvalidInput(
            f"{option} {text}: this names a folder, but looks like a file; drop the {path.suffix}"
        )
    if path.exists() and not path.is_dir():
        raise InvalidInput(f"{option} {text}: this is a file; name a folder")
    _check_parent(option, text, path / "any" if path.is_dir() else path)


def _refuse_folder(option: str, text: str, path: Path) -> None:
    if path.is_dir():
        raise InvalidInput(f"{option} {text}: there is a folder of this name; choose another")


def _check_parent(option: str, text: str, path: Path) -> None:
    if not path.parent.is_dir():
        raise InvalidInput(f"{option} {text}: there is no folder {path.parent}; make it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InvalidInput(
            f"{option} {text}: {path.parent} may not be written to; choose another folder"
        )


def refuse_clash(outputs: Mapping[str, str], inputs: Mapping[str, str]) -> None:
    """Refuse an output that would replace an input, or another output.

    Parameters
    ----------
    outputs, inputs : mapping of str to str
        The option that names each, and its text.
    """
    seen: dict[Path, str] = {}
    for option, text in outputs.items():
        path, key = place(text)
        if path in seen:
            raise InvalidInput(f"{option} {text} is also {seen[path]}; give each a file of its own")
        seen[path] = option
        for what, given in inputs.items():
            if _would_replace(path, key, given):
                raise InvalidInput(
                    f"{option} {text} would replace {what} {given}, which is read; "
                    "choose another name"
                )


def _would_replace(path: Path, key: str | None, given: str) -> bool:
    source, source_key = place(given)
    if any(Path(member).resolve() == path for member in glob.glob(given)):
        return True
    if source != path:  # a folder that is read, or one that holds what is read
        return source in path.parents or path in source.parents
    if key is None or not source.is_file():
        return True
    # Another dataset of one HDF5 file may be written. Which one is read if no KEY says it?
    if source_key is None:
        from napari_agglo.volumes import open_volume

        source_key = open_volume(given).name.partition(":")[2]
    return key.strip("/") == re.sub(r"(,\w+=\d+)+$", "", source_key).strip("/")


@contextmanager
def output_folder(path: str | Path) -> Iterator[Path]:
    """Give a temporary folder to fill; its files move to `path` when all went well.

    Files of the same name are replaced, others in `path` stay.
    """
    from napari_agglo.volumes._atomic import filling

    final = Path(path)
    if final.exists() and not final.is_dir():
        raise InvalidInput(f"-o {final}: this is a file; name a folder")
    _check_parent("-o", str(path), final.resolve())
    with filling(final) as temporary:
        yield temporary


@dataclass(frozen=True)
class Inputs:
    """Open files, by what the library calls them, and the spacing that they share, if known."""

    files: Mapping[str, str]
    volumes: Mapping[str, Volume]
    spacing: tuple[float, ...] | None


def open_inputs(files: Mapping[str, str], spacing: tuple[float, ...] | None) -> Inputs:
    """Open files that must agree on their spacing, unless one is given, which then holds for all.

    Parameters
    ----------
    files : mapping of str to str
        What the library calls each input, and its file.
    spacing : tuple of float, optional
        As given on the command line.
    """
    from napari_agglo.volumes import check_same_spacing, check_spacing, open_volume

    with command_words(files):
        volumes = {name: open_volume(file) for name, file in files.items()}
        if spacing is not None:
            for name, volume in volumes.items():
                volumes[name] = replace(volume, spacing=check_spacing(spacing, volume.ndim))
        return Inputs(files, volumes, check_same_spacing(volumes))
