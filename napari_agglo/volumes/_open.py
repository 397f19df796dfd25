"""Open image files of all supported formats as Volumes, lazily where the format allows."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._on_disk import crop, pick, put_first, reading
from napari_agglo.volumes._store_location import Place, fetch, is_url, split_url
from napari_agglo.volumes._volume import Volume

# suffixes of formats that are one file
_FILES = (
    ".tif", ".tiff", ".h5", ".hdf5", ".hdf", ".ilp", ".npy", ".npz", ".png", ".jpg", ".jpeg", ".bmp"
)  # fmt: skip
ALL = -1  # in place of an index: all channels
LEVEL_0 = " (level 0)"  # the end of the name of an image pyramid


def usable_spacing(spacing: Sequence[Any] | None, ndim: int) -> tuple[float, ...] | None:
    """Return the spacing that a file states if it is one positive number per axis, else None."""
    if spacing is None:
        return None
    try:
        values = tuple(float(value) for value in spacing)
    except (TypeError, ValueError):
        return None
    if len(values) != ndim or not all(math.isfinite(v) and v > 0 for v in values):
        return None
    return values


Picks = dict[str, int | slice]  # an index or a range along an axis, by its letter or number


def split_picks(key: str | None) -> tuple[str | None, Picks]:
    """Split ``"path/in/file,c=1,y=0:125"`` into the path, if any, and the picks along axes.

    >>> split_picks("exported_data,c=1")
    ('exported_data', {'c': 1})
    >>> split_picks("t=0,c=*,y=:-5")
    (None, {'t': 0, 'c': -1, 'y': slice(None, -5, None)})
    """
    picks: Picks = {}
    paths: list[str] = []
    for part in (key or "").split(","):
        match = re.fullmatch(r"([A-Za-z]|\d+)=(\d+|\*)", part.strip())
        span = re.fullmatch(r"([A-Za-z]+|\d+)=(-?\d+)?:(-?\d+)?", part.strip())
        if match:
            picks[match[1].lower()] = ALL if match[2] == "*" else int(match[2])
        elif span:
            ends = (int(end) if end else None for end in (span[2], span[3]))
            picks[span[1].lower()] = slice(*ends)
        elif part:
            paths.append(part)
    return ",".join(paths) or None, picks


def only_picks(path: Path, key: str | None, content: str) -> Picks:
    """Return the picks in the key of a file of a single array; refuse any other key."""
    inner, picks = split_picks(key)
    if inner is not None:
        raise InvalidInput(
            f"{path} {content}, so it has no key {inner!r}",
            argument="source",
            remedy=f"drop the :{inner}",
        )
    return picks


def choose_key(path: Path, keys: Sequence[str], key: str | None, noun: str, default: str) -> str:
    """Return `key` if the file has it; without one, the only key there is, or the default."""
    listed = ", ".join(keys) or "none"
    if key is not None:
        for name in (key, key.strip("/")):
            if name in keys:
                return name
        raise InvalidInput(
            f"{path} has no {noun} {key!r}", argument="source", remedy=f"it holds: {listed}"
        )
    if len(keys) == 1 or default in keys:
        return keys[0] if len(keys) == 1 else default
    raise InvalidInput(
        f"{path} holds {len(keys)} {noun}s",
        argument="source",
        remedy=f"name one: {path}:KEY, of {listed}",
    )


class Arranged(NamedTuple):
    """An image after `arrange`: its voxels, spacing, and first voxel along each axis.

    `start` is None if no range was picked.
    """

    data: Any
    spacing: tuple[float, ...] | None
    start: tuple[int, ...] | None

    def origin(self, stated: tuple[float, ...] | None = None) -> tuple[float, ...] | None:
        """Return the place of the first voxel; `stated` is that of the file, if it states one."""
        if self.start is None or stated is None:
            return stated if self.start is None else tuple(map(float, self.start))
        return tuple(a + b for a, b in zip(stated, self.start, strict=True))


def arrange(
    data: Any,
    axes: str,
    spacing: Sequence[Any] | None,
    picks: Picks,
    name: str,
    attributes: dict[str, Any] | None = None,
) -> Arranged:
    """Pick channels and ranges, drop time and channel axes of length 1, keep the spacing in step.

    `axes` has a letter for each axis, or is empty where the file does not name them. An image with
    several channels is refused unless one is picked: a cue is one channel. ``c=*`` puts the axis of
    channels first, if there is one, and notes its length in the attributes.
    """
    ndim = len(data.shape)
    letters = axes.lower() if len(axes) == ndim else "?" * ndim
    fixed: dict[int, int] = {}
    spans: dict[int, range] = {}
    first: int | None = None
    if picks.get("c") == ALL:
        picks = {n: index for n, index in picks.items() if n != "c"}
        several = (a for a, n in enumerate(data.shape) if letters[a] in "cs" and n > 1)
        first = next(several, None)
    for axis_name, index in picks.items():
        axis = _axis(axis_name, letters, picks)
        if not 0 <= axis < ndim:
            known = letters if "?" not in letters else f"0 to {ndim - 1}"
            if set(letters) == {"?"}:
                known += f", the last ones also {', '.join(_SPACE[-ndim:])}"
            raise InvalidInput(
                f"{name} has no axis {axis_name!r}",
                argument="source",
                remedy=f"its axes are {known}",
            )
        if isinstance(index, slice):
            spans[axis] = _span(index, data.shape[axis], axis_name, name)
            continue
        if not 0 <= index < data.shape[axis]:
            raise InvalidInput(
                f"{name} has no {axis_name}={'*' if index == ALL else index}",
                argument="source",
                remedy=f"that axis runs from 0 to {data.shape[axis] - 1}",
            )
        fixed[axis] = index
    for axis, letter in enumerate(letters):
        if axis in fixed or axis == first or letter not in "cst":
            continue
        if data.shape[axis] == 1:
            fixed[axis] = 0
        elif letter in "cs":
            grey = axis == ndim - 1 and data.shape[axis] <= 4
            pick_one = f"pick one, e.g. {name}{',' if ':' in name else ':'}{letter}=0"
            raise InvalidInput(
                f"{name} has {data.shape[axis]} channels (shape {tuple(data.shape)}, axes "
                f"{letters})",
                argument="source",
                remedy=(pick_one, "convert it to grey") if grey else pick_one,
            )
    kept = usable_spacing(spacing, ndim)
    if kept is not None:
        kept = tuple(value for axis, value in enumerate(kept) if axis not in fixed)
    picked = pick(crop(data, spans), fixed)
    start = None
    if spans:
        start = tuple(spans[a].start if a in spans else 0 for a in range(ndim) if a not in fixed)
    if first is None:
        return Arranged(picked, kept, start)
    if attributes is not None:
        attributes["channels"] = data.shape[first]
    at = first - sum(axis < first for axis in fixed)
    if kept is not None:
        kept = (kept[at], *kept[:at], *kept[at + 1 :])
    if start is not None:
        start = (start[at], *start[:at], *start[at + 1 :])
    return Arranged(put_first(picked, at), kept, start)


_SPACE = "zyx"


def _axis(name: str, letters: str, picks: Picks) -> int:
    """Return the axis of a name or number, or -1.

    Axes without one of these names are z, y, x, the last being x: those that are left after
    channels, and after the numbers of axes from which one index is picked.
    """
    if name.isdigit():
        return int(name)
    if len(name) != 1 or name in letters:
        return letters.find(name) if len(name) == 1 else -1
    gone = {int(n) for n, one in picks.items() if n.isdigit() and not isinstance(one, slice)}
    left = [a for a, letter in enumerate(letters) if a not in gone and letter not in "cst"]
    place = _SPACE[::-1].find(name)
    axis = left[-1 - place] if 0 <= place < len(left) else -1
    return axis if letters[axis] not in _SPACE else -1


def _span(requested: slice, length: int, axis: str, name: str) -> range:
    """Return the voxels of a range along an axis; refuse one that is empty or beyond the axis."""
    ends = (requested.start, requested.stop)
    text = ":".join("" if end is None else str(end) for end in ends)
    whole = f"that axis runs from 0 to {length}, the end left out, e.g. {axis}=0:{length}"
    if any(end is not None and not -length <= end <= length for end in ends):
        raise InvalidInput(
            f"{name} has no {axis}={text}: the axis has {length} voxels",
            argument="source",
            remedy=whole,
        )
    span = range(length)[requested]
    if not span:
        raise InvalidInput(
            f"{axis}={text} of {name} holds no voxel", argument="source", remedy=whole
        )
    return span


def origin_of(offset: Any, voxel: Any, axes: str, arranged: Any) -> tuple[float, ...] | None:
    """Return the place of the first voxel, in voxels, along the axes that `arrange` has kept.

    `offset` is in the unit of `voxel`, with a number for each axis of the file, or of its last
    axes. None if it is not stated, or if axes other than the first have been dropped.

    Examples
    --------
    >>> import numpy as np
    >>> origin_of([0, 80, 8], [1, 40, 4], "cyx", np.zeros((5, 5)))
    (2.0, 2.0)
    """
    ndim = len(arranged.shape)
    try:
        numbers = [float(a) / float(b) for a, b in zip(offset, voxel, strict=True)][-ndim:]
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    in_space = not set(axes.lower()[-ndim:]) & set("tcs")
    known = len(numbers) == ndim and in_space and all(map(math.isfinite, numbers))
    return tuple(numbers) if known else None


def origin_of_attributes(
    attributes: Mapping[str, Any], axes: str, arranged: Any
) -> tuple[float, ...] | None:
    """Return the place of the first voxel that the attributes `offset` and `resolution` state."""
    voxel = attributes.get("resolution", attributes.get("voxel_size"))
    return origin_of(attributes.get("offset"), voxel, axes, arranged)


_SUFFIXES = ".tif, .tiff, .h5, .hdf5, .zarr, .npy, .npz, .png, or a folder of images"


def open_volume(source: str | os.PathLike[str]) -> Volume:
    """Open an image file, lazily where its format allows.

    Parameters
    ----------
    source
        PATH or PATH:KEY. TIFF, HDF5 (KEY is the dataset), Zarr and OME-Zarr (KEY is the array), N5
        (KEY is the dataset), Neuroglancer's precomputed volumes (KEY is the scale), npy, npz (KEY
        is the member), PNG, a folder of PNG or TIFF planes, or a pattern such as
        ``"slices/*.png"``. PATH may be a URL, such as ``https://...`` or ``s3://...``. KEY may
        also pick an index along a named or numbered axis: ``:c=1``, or ``:exported_data,c=1``;
        ``:c=*`` keeps all channels, and puts them first. ``:y=0:125,x=-64:`` is a crop, whose
        `Volume.origin` is its place; where a file names no axes, the last are z, y, x.

    Returns
    -------
    Volume
        With the spacing that the file states, in µm if it states a unit.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> from napari_agglo.volumes import open_volume, write_labels
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_labels(Path(folder) / "cells.tif", np.eye(3, dtype=np.uint16))
    ...     open_volume(path).load()
    array([[1, 0, 0],
           [0, 1, 0],
           [0, 0, 1]], dtype=uint16)
    """
    path, key = split_source(source)
    if isinstance(path, Place) and path.name.lower().endswith(_FILES):
        path = fetch(str(path))
    with reading(path, "an image"):
        volume = _opener(path)(path, key)
    if volume.dtype.kind not in "biuf":
        raise InvalidInput(
            f"{source} holds {volume.dtype}, not real numbers",
            argument="source",
            remedy="save it as numbers",
        )
    return volume


def open_levels(source: str | os.PathLike[str]) -> list[Volume]:
    """Open all levels of an image pyramid, the finest first; other images have one level.

    Parameters
    ----------
    source
        As for `open_volume`. OME-Zarr and precomputed volumes have levels.

    Returns
    -------
    list of Volume
        The levels, which are read when they are used.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> from napari_agglo.volumes import open_levels, write_labels
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_labels(Path(folder) / "a.ome.zarr", np.eye(8, dtype=int), levels=3)
    ...     [level.shape for level in open_levels(path)]
    [(8, 8), (4, 4), (2, 2)]
    """
    first = open_volume(source)
    path, key = split_source(source)
    from napari_agglo.volumes import _precomputed, _zarr

    is_folder = isinstance(path, Place) or path.is_dir()  # those of a TIFF are not opened
    if not is_folder or not first.name.endswith(LEVEL_0):
        return [first]
    of = _zarr if _zarr.is_zarr(path) else _precomputed
    inner, chosen = split_picks(key)
    if any(isinstance(one, slice) for one in chosen.values()):
        return [first]  # a range is in voxels of one level
    picks = [part for part in (key or "").split(",") if part and part != inner]
    levels = [first]
    for one in of.level_keys(path, inner)[1:]:
        level = open_volume(f"{path}:{','.join([one, *picks])}")
        if level.ndim != first.ndim or math.prod(level.shape) >= math.prod(levels[-1].shape):
            break  # what follows is no pyramid
        levels.append(level)
    return levels


def open_channels(source: str | os.PathLike[str]) -> dict[str, Volume]:
    """Open each channel of a file, such as the predictions of ilastik, as a Volume by its name.

    Parameters
    ----------
    source : str or path
        ``PATH`` or ``PATH:KEY``, as of `open_volume`.

    Returns
    -------
    dict of str to Volume
        The names are those in the attribute ``channel_names``, or ``channel_0`` and so on. A file
        without several channels gives one Volume, of an empty name.

    Examples
    --------
    >>> import tempfile, numpy as np, tifffile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "p.tif"
    ...     tifffile.imwrite(path, np.zeros((2, 5, 6), np.float32), metadata={"axes": "CYX"})
    ...     list(open_channels(path))
    ['channel_0', 'channel_1']
    """
    volume = open_volume(add_pick(source, "c=*"))
    n_channels = volume.attributes.get("channels", 0)
    if not n_channels:
        return {"": open_volume(source)}
    given = [re.sub(r"\W+", "_", str(name)).strip("_") for name in _channel_names(volume)]
    numbered = [f"channel_{k}" for k in range(n_channels)]
    names = given if all(given) and len(set(given)) == n_channels else numbered
    spacing = None if volume.spacing is None else volume.spacing[1:]
    one = replace(
        volume, spacing=spacing, origin=None if volume.origin is None else volume.origin[1:]
    )
    return {
        name: replace(one, data=pick(volume.data, {0: k}), name=name)
        for k, name in enumerate(names)
    }


def _channel_names(volume: Volume) -> list[str]:
    names = volume.attributes.get("channel_names", ())
    if isinstance(names, str | bytes):  # a list as JSON, or names with commas between
        text = names.decode() if isinstance(names, bytes) else names
        names = text.strip("[] ").replace('"', "").split(",")
    return [name.decode() if isinstance(name, bytes) else str(name) for name in names]


def add_pick(source: str | os.PathLike[str], pick: str) -> str:
    """Return PATH:KEY with a further pick of an index, such as ``c=1``.

    Examples
    --------
    >>> add_pick("https://a.org/cells.zarr:raw", "c=1")
    'https://a.org/cells.zarr:raw,c=1'
    """
    return f"{os.fspath(source)}{',' if split_source(source)[1] is not None else ':'}{pick}"


def split_source(source: str | os.PathLike[str]) -> tuple[Path | Place, str | None]:
    """Split PATH:KEY at the first colon after an existing path, the colon of a drive excepted.

    A URL becomes a Place.
    """
    if not isinstance(source, str | os.PathLike):
        raise InvalidInput(
            f"`source` must be a path, not a {type(source).__name__}",
            argument="source",
            remedy="pass the path of a file; an array needs no opening",
        )
    text = os.fspath(source)
    if is_url(text):
        url, key = split_url(text)
        return Place(url), key
    if not text or "\0" in text:
        raise InvalidInput(
            f"`source` must be a path, not {text!r}", argument="source", remedy="name a file"
        )
    if os.path.exists(text):
        return Path(text), None
    drive = 2 if re.match(r"[A-Za-z]:[\\/]", text) else 0
    colons = [drive + match.start() for match in re.finditer(":", text[drive:])]
    for colon in colons:
        if os.path.exists(text[:colon]):
            return Path(text[:colon]), text[colon + 1 :] or None
    if colons and _is_pattern(text[: colons[0]]):
        return Path(text[: colons[0]]), text[colons[0] + 1 :] or None
    if _is_pattern(text):
        return Path(text), None
    missing = text[: colons[0]] if colons else text
    raise InvalidInput(
        f"{missing} does not exist",
        argument="source",
        remedy=f"check the path (the current folder is {os.getcwd()})",
    )


def _is_pattern(text: str) -> bool:
    return any(mark in text for mark in "*?[")


def _opener(path: Path | Place) -> Callable[[Any, str | None], Volume]:
    """Return the reader for a path; readers are imported late, for a quick start."""
    from napari_agglo.volumes import _image_files

    suffix = Path(path.name).suffix.lower()
    if isinstance(path, Place) or path.is_dir():
        from napari_agglo.volumes import _zarr

        if _zarr.is_zarr(path) or suffix == ".zarr":
            return _zarr.open_zarr
        from napari_agglo.volumes import _n5, _precomputed

        if _precomputed.is_precomputed(path) or suffix == _precomputed.SUFFIX:
            return _precomputed.open_precomputed
        if _n5.is_n5(path) or suffix == ".n5":
            return _n5.open_n5
    if isinstance(path, Place):
        raise InvalidInput(
            f"{path} is neither a Zarr, N5 or precomputed volume nor a file of a known format, or "
            "does not exist",
            argument="source",
            remedy=f"check the address, which ends in .zarr or one of {_SUFFIXES}",
        )
    if path.is_dir() or not path.exists():  # a folder of planes, or a pattern
        return _image_files.open_stack
    if suffix in (".tif", ".tiff"):
        from napari_agglo.volumes._tiff import open_tiff

        return open_tiff
    if suffix in (".h5", ".hdf5", ".hdf", ".ilp"):
        from napari_agglo.volumes._hdf5 import open_hdf5

        return open_hdf5
    if suffix in (".npy", ".npz"):
        return _image_files.open_npy if suffix == ".npy" else _image_files.open_npz
    if suffix in _image_files.PICTURES:
        return _image_files.open_picture
    raise InvalidInput(
        f"{path} has a format that is not supported",
        argument="source",
        remedy=f"convert it to {_SUFFIXES}",
    )
