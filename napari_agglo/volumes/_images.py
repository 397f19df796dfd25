"""Read single pictures, and stacks of them: a folder, or a pattern such as ``slices/*.png``."""

from __future__ import annotations

import glob
import re
from pathlib import Path
from typing import Any

import numpy as np

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._axes import arrange, split_picks
from napari_agglo.volumes._lazy import Index, OnDisk, reading
from napari_agglo.volumes._volume import Volume

PICTURES = (".png", ".jpg", ".jpeg", ".bmp")
_PLANES = (*PICTURES, ".tif", ".tiff")


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Sort key in which "img2" comes before "img10".

    >>> sorted(["img10", "img2", "img1"], key=natural_key)
    ['img1', 'img2', 'img10']
    """
    parts = re.findall(r"\d+|\D+", name)
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part.lower()) for part in parts]


def open_picture(path: Path, key: str | None) -> Volume:
    """Read one picture."""
    inner, picks = split_picks(key)
    if inner is not None:
        raise InvalidInput(
            f"{path} holds one image, so it has no key {inner!r}; drop the :{inner}."
        )
    data, _ = arrange(*_read_plane(path), None, picks, str(path))
    return Volume(data, None, path.name)


def open_stack(source: Path, key: str | None) -> Volume:
    """Open a folder of pictures, or those that match a pattern, as planes along axis 0."""
    inner, picks = split_picks(key)
    if inner is not None:
        raise InvalidInput(f"{source} is a stack of images, so it has no key {inner!r}.")
    found = list(source.iterdir()) if source.is_dir() else [Path(p) for p in glob.glob(str(source))]
    files = [p for p in found if p.suffix.lower() in _PLANES and not p.name.startswith(".")]
    if not files:
        raise InvalidInput(
            f"{source} holds no images ({', '.join(_PLANES)}); name a file, or a folder of planes."
        )
    suffixes = {file.suffix.lower() for file in files}
    if len(suffixes) > 1:
        raise InvalidInput(
            f"{source} holds images of several kinds ({', '.join(sorted(suffixes))}); "
            f"name one kind by a pattern, e.g. {source / ('*' + min(suffixes))}."
        )
    files.sort(key=lambda file: natural_key(file.name))
    first, axes = _read_plane(files[0])

    def read(index: Index) -> Any:
        chosen = index[0]
        if isinstance(chosen, int):
            return _checked_plane(files[chosen], first)[index[1:]]
        planes = files[chosen]
        out = np.empty((len(planes), *first[index[1:]].shape), first.dtype)
        for number, file in enumerate(planes):
            out[number] = _checked_plane(file, first)[index[1:]]
        return out

    _checked_plane(files[-1], first)
    data = OnDisk((len(files), *first.shape), first.dtype, read, (1, *first.shape))
    # a plane whose own axes are not named leaves them all without names
    axes = ("z" if "z" not in axes.lower() else "n") + axes if len(axes) == first.ndim else ""
    picked, _ = arrange(data, axes, None, picks, str(source))
    return Volume(picked, None, source.name)


def _read_plane(file: Path) -> tuple[np.ndarray[Any, Any], str]:
    """Return a picture and the letters of its axes, "c" for its colours."""
    if file.suffix.lower() in PICTURES:
        import imageio.v3 as iio

        with reading(file, file.suffix[1:].upper()):
            picture = np.asarray(iio.imread(file, plugin="pillow"))
        return picture, {2: "yx", 3: "yxc"}.get(picture.ndim, "")
    from napari_agglo.volumes._tiff import open_series

    data, axes, _, _ = open_series(file)
    return np.asarray(data[...]), axes


def _checked_plane(file: Path, first: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    plane, _ = _read_plane(file)
    if plane.shape != first.shape or plane.dtype != first.dtype:
        raise InvalidInput(
            f"{file} (shape {plane.shape}, {plane.dtype}) differs from the first plane "
            f"of its stack (shape {first.shape}, {first.dtype}); take it out, or make them alike."
        )
    return plane
