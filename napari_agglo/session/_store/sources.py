"""Inputs of a session: image, cues and gold, each as a file with its fingerprint, or as a copy.

A session needs none of them for its edits; a person who proofreads wants to see them again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.session._store.arrays import ARRAYS, read_array
from napari_agglo.session._store.manifest import (
    SourceNote,
    digest_all,
    digest_array,
    digest_sample,
    is_large,
    is_sample,
)
from napari_agglo.session._store.store_errors import RECOVER, SessionDamaged
from napari_agglo.volumes import are_on_disk, in_memory, is_lazy, open_volume

if TYPE_CHECKING:
    from napari_agglo.session._store.store import Store

IMAGE, GOLD, CUE = "image", "gold", "cue"  # keys of inputs; a cue's is "cue NAME"
AFFINITIES = "affinities"  # the key of channels on disk, which are several cues
CUES = "cues"  # the array of all cues, which a session has for its cuts
COPY_BELOW = 10**9  # bytes of an input that is copied into the folder
_READ = 1 << 24  # bytes that a fingerprint reads, about


@dataclass(frozen=True, eq=False)
class Source:
    """An input of a new session: its pixels, and the file they came from, if any.

    Parameters
    ----------
    data : array
        The pixels, of which a fingerprint is taken. Without a `path` they are copied.
    path : str, optional
        The file or folder that has them.
    name : str
        The name on the screen; by default that of the file.
    reader : str, optional
        The plugin of napari that read the file.
    channel : str, optional
        ``AXIS:INDEX`` of the channel that is the cue, where the file has several.
    """

    data: Any
    path: str | None = None
    name: str = ""
    reader: str | None = None
    channel: str | None = None


def fingerprint(data: Any, sample: bool | None = None) -> tuple[tuple[int, ...], str, str]:
    """Return shape, type and a checksum of an array, of which only some planes are read.

    Of a large array on disk, or if `sample` is true, only some boxes are.

    Examples
    --------
    >>> fingerprint(np.zeros((2, 3), ">u2")) == fingerprint(np.zeros((2, 3), "<u2"))
    True
    >>> fingerprint(np.zeros((2, 3))) == fingerprint(np.ones((2, 3)))
    False
    """
    shape = tuple(int(n) for n in data.shape)
    dtype = np.dtype(data.dtype).newbyteorder("<")
    if is_large(data) if sample is None else sample:
        return shape, dtype.str, digest_sample(data)
    if not shape or 0 in shape:
        return shape, dtype.str, digest_all([])
    each = max(1, math.prod(shape[1:]) * dtype.itemsize)
    count = min(shape[0], max(4, _READ // each))
    planes = np.unique(np.linspace(0, shape[0] - 1, count).astype(int))
    sums = [digest_array(plane.astype(dtype, copy=False)) for plane in _read_planes(data, planes)]
    return shape, dtype.str, digest_all(sums)


def _read_planes(data: Any, planes: NDArray[np.intp]) -> Iterator[NDArray[Any]]:
    """Yield planes along the first axis; those of one layer of chunks are read at once.

    A chunk is read and decoded as a whole: one plane after the other, from each chunk as often.
    """
    depth = (getattr(data, "chunks", None) or (1,))[0]
    depth = depth if isinstance(depth, int) else 1  # an array of dask has the sides of each chunk
    each = max(1, math.prod(data.shape[1:]) * np.dtype(data.dtype).itemsize)
    depth = max(1, min(depth, _READ // each))
    for layer in np.unique(planes // depth):
        inside = planes[planes // depth == layer]
        first = int(inside[0])
        slab = np.asarray(data[first : int(inside[-1]) + 1])
        yield from (slab[k - first] for k in inside)


def described_sources(
    sources: Mapping[str, Any],
    folder: Path,
    stored: Mapping[str, Any],
    progress: ProgressCallback | None = None,
) -> tuple[dict[str, SourceNote], dict[str, NDArray[Any]]]:
    """Return the notes on the inputs of a new session, and the arrays to copy.

    `stored` has the arrays that the folder gets anyway, its gold and cues among them.
    """
    notes: dict[str, SourceNote] = {}
    copies: dict[str, NDArray[Any]] = {}
    for key, given in sources.items():
        source = _checked(key, given)
        shape, dtype, checksum = fingerprint(source.data)
        array = None
        if key == GOLD and GOLD in stored:
            array = GOLD
        elif key.startswith(f"{CUE} ") and CUES in stored:
            array = CUES
        elif source.path is None and _can_be_copied(source.data):
            array = f"source_{len(copies)}"
            copies[array] = _plain(in_memory(source.data, key, progress))
        where = None if source.path is None else str(source.path)
        local = where is not None and "://" not in where
        notes[key] = SourceNote(
            name=source.name or (Path(where).name if where else key),
            shape=shape,
            dtype=dtype,
            checksum=checksum,
            path=os.path.abspath(where) if where and local else where,
            relative=_relative(where, folder) if where and local else None,
            reader=source.reader,
            array=array,
            channel=source.channel,
        )
    return notes, copies


def _checked(key: Any, given: Any) -> Source:
    known = key in (IMAGE, GOLD, AFFINITIES) or (isinstance(key, str) and key.startswith(f"{CUE} "))
    if not known:
        raise InvalidInput(
            f"`sources` has the unknown key {key!r}",
            argument="sources",
            remedy='use "image", "gold", "affinities", or "cue NAME" for each cue',
        )
    if isinstance(given, Source):
        return given
    if isinstance(given, (str, os.PathLike)):
        return Source(open_volume(given).data, os.fspath(given))
    stays = is_lazy(given) and isinstance(getattr(given, "dtype", None), np.dtype)
    return Source(given if stays else np.asarray(given))


def _can_be_copied(data: Any) -> bool:
    dtype = np.dtype(data.dtype)
    small = math.prod(data.shape) * dtype.itemsize < COPY_BELOW
    return small and dtype.kind in "biuf" and len(data.shape) > 0


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    kind = np.dtype(np.uint8) if array.dtype == bool else array.dtype.newbyteorder("<")
    return np.ascontiguousarray(array, kind)


def _relative(path: str, folder: Path) -> str | None:
    try:
        return Path(os.path.relpath(os.path.abspath(path), folder)).as_posix()
    except ValueError:  # on another drive
        return None


def place_of(folder: Path, note: SourceNote) -> str | None:
    """Return the file of an input, if it is in its place or beside the folder; else None."""
    if note.path is not None and "://" in note.path:
        return note.path
    beside = None if note.relative is None else os.path.normpath(folder / note.relative)
    for place in (note.path, beside):
        if place is not None and os.path.exists(_file_of(place)):
            return place
    return None


def has_values(note: SourceNote, data: Any) -> bool:
    """Return whether an array is the one that a note was made of."""
    if tuple(int(n) for n in data.shape) != note.shape:
        return False
    marks = fingerprint(data, is_sample(note.checksum))
    return marks == (note.shape, note.dtype, note.checksum)


def open_source(folder: Path, notes: Mapping[str, SourceNote], key: str) -> Any:
    """Open an input that stays in its file; refuse one that is not there, or has other values."""
    if key not in notes:
        raise InvalidInput(
            f"{folder} has no path of the {key}",
            argument="key",
            remedy=f"call sources.move({key!r}, path) with its path",
        )
    note = notes[key]
    place = place_of(folder, note)
    data = None if place is None else open_volume(place).data
    if data is None or not has_values(note, data):
        raise moved_source(folder, key, note, place)
    return data


def moved_source(folder: Path, key: str, note: SourceNote, place: str | None) -> InvalidInput:
    """Return the refusal of an input whose file is not there, or has other values."""
    state = "has other values" if place is not None else "is not there any more"
    return InvalidInput(
        f"The {key} of {folder} was {note.path}, which {state}",
        argument="key",
        remedy=f"call sources.move({key!r}, path) with its present path",
    )


class SessionSources(Mapping[str, SourceNote]):
    """The inputs of a session by ``"image"``, ``"gold"``, ``"affinities"`` and ``"cue NAME"``.

    A mapping of notes with the name, shape, type and file of each; `read` returns the pixels.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getitem__(self, key: str) -> SourceNote:
        return self._store.manifest.sources[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._store.manifest.sources)

    def __len__(self) -> int:
        return len(self._store.manifest.sources)

    def path(self, key: str) -> str | None:
        """Return the file of an input, if it is in its place, also beside a moved session.

        An address on the network is returned unseen.

        Parameters
        ----------
        key : str
            ``"image"``, ``"gold"`` or ``"cue NAME"``.

        Returns
        -------
        str or None
            The path, as `open_volume` takes it; None if there is no such file.
        """
        return place_of(self._store.path, self[key])

    def matches(self, key: str, data: Any) -> bool:
        """Return whether pixels are those of an input, by its fingerprint.

        Parameters
        ----------
        key : str
            ``"image"``, ``"gold"`` or ``"cue NAME"``.
        data : array
            The pixels to compare.

        Returns
        -------
        bool
            Whether shape, type and checksum are the same.
        """
        note = self[key]
        return has_values(note, data)

    def copy(self, key: str) -> NDArray[Any] | None:
        """Return the pixels in the folder; None if it has none. A cue has its 256 levels.

        The folder may have gold and cues also of a session that was created without `sources`.

        Parameters
        ----------
        key : str
            ``"image"``, ``"gold"`` or ``"cue NAME"``.

        Returns
        -------
        ndarray or None
            The pixels.
        """
        note = self.get(key)
        array = (GOLD if key == GOLD else CUES) if note is None else note.array
        if array == CUES:
            return self._cue(key)
        notes = self._store.manifest.arrays
        if array is None or array not in notes:
            return None
        return read_array(self._store.path / ARRAYS, array, notes[array])

    def _cue(self, key: str) -> NDArray[Any] | None:
        graph = self._store.data.graph
        name = key.removeprefix(f"{CUE} ")
        if graph.cues is None or are_on_disk(graph.cues) or name not in graph.cue_names:
            return None
        at = graph.cue_names.index(name)
        if graph.layout.sources and len(graph.layout.sources[at]) > 1:
            return None  # a value for each face is no image
        plane = graph.layout.sources[at][0] if graph.layout.sources else at
        low, high = graph.cue_ranges[at]
        levels = np.linspace(low, high, 256).astype(np.float32)
        shape = graph.superpixels.image.shape
        return np.asarray(levels[graph.cues[plane]].reshape(shape))

    def read(self, key: str) -> Any:
        """Return the pixels of an input, from its file or from the copy in the folder.

        Parameters
        ----------
        key : str
            ``"image"``, ``"gold"`` or ``"cue NAME"``.

        Returns
        -------
        array
            The pixels; lazy if they are in a file.

        Raises
        ------
        InvalidInput
            If there is no such input, or its file is gone or has other values.
        SessionDamaged
            If the copy in the folder is lost.
        """
        if key not in self:
            raise InvalidInput(
                f"{self._store.path} has no input {key!r}",
                argument="key",
                remedy=f"choose one of {', '.join(map(repr, self)) or 'none'}",
            )
        place = self.path(key)
        if place is not None:
            data = open_volume(place).data
            if self.matches(key, data):
                return data
        stored = self.copy(key)
        if stored is None:
            note = self[key]
            if note.array is not None:
                raise SessionDamaged(
                    f"The copy of {key!r} in {self._store.path} is lost",
                    argument="key",
                    remedy=RECOVER,
                )
            raise moved_source(self._store.path, key, note, place)
        return stored

    def move(self, key: str, path: str | os.PathLike[str]) -> None:
        """Remember another place of the file of an input.

        A cue of superpixels on disk, which a cut through a superpixel reads, may be new.

        Parameters
        ----------
        key : str
            ``"image"``, ``"gold"`` or ``"cue NAME"``.
        path : path-like
            The present place of the file.
        """
        text = os.fspath(path)
        place = text if "://" in text else os.path.abspath(text)
        if key not in self and key in {f"{CUE} {n}" for n in self._store.data.graph.cue_names}:
            notes, _ = described_sources({key: place}, self._store.path, {})
            self._store.save_sources({**self, **notes})
            return
        note = replace(self[key], path=place, relative=_relative(place, self._store.path))
        self._store.save_sources({**self, key: note})

    def __repr__(self) -> str:
        return f"SessionSources({', '.join(self) or 'none'})"


def _file_of(place: str) -> str:
    """Return the file of PATH or PATH:KEY."""
    if os.path.exists(place):
        return place
    head, colon, _ = place.rpartition(":")
    return head if colon and len(head) > 1 else place
