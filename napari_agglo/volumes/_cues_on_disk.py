"""Cues on disk: bytes of a box are read, and quantised, when they are asked for.

In its own file: cues that are never in memory as a whole, as `DiskLabels` are for labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._disk_faces import DiskFaces
from napari_agglo.volumes._value_range import Range, ValueFaults, quantise

Box = tuple[slice, ...]
Cutouts = Callable[[Box], NDArray[np.uint8] | None]


class DiskCues:
    """Cues of a volume on disk as bytes, by the same mapping as `check_cues`.

    ``cues[k, rows, columns]`` is a part of cue `k`, and ``cues[:, rows, columns]`` the part of all.
    A value that is not finite counts as the top of the range: cues that were to be refused for it
    were refused when the graph was made.

    Parameters
    ----------
    names : sequence of str
        Names of the cues.
    sources : sequence of callable
        A function for each cue that opens it; it is called on first use.
    ranges : sequence of (low, high)
        The values of each cue that mean 0 and 255.
    shape : tuple of int
        The shape of the volume.
    paths : sequence of str, optional
        The files of the cues, for a session to refer to.
    faces : DiskFaces, optional
        Affinities, whose planes come after those of the cues.
    cutouts : callable, optional
        Return the bytes of all cues in a box, if they are kept elsewhere, as a session keeps those
        around superpixels that it divided.

    Examples
    --------
    >>> cue = np.array([[0.0, 0.5, 1.0]])
    >>> cues = DiskCues(["boundary"], [lambda: cue], [(0.0, 1.0)], (1, 3))
    >>> cues[0, 0:1, 1:3]
    array([[128, 255]], dtype=uint8)
    """

    dtype = np.dtype(np.uint8)

    def __init__(
        self,
        names: Sequence[str],
        sources: Sequence[Callable[[], Any]],
        ranges: Sequence[Range],
        shape: tuple[int, ...],
        paths: Sequence[str] = (),
        faces: DiskFaces | None = None,
        cutouts: Cutouts | None = None,
    ) -> None:
        self.names, self.paths, self.faces = tuple(names), tuple(paths), faces
        self.shape = (len(self.names) + (faces.n_planes if faces else 0), *shape)
        self._sources, self._ranges = tuple(sources), tuple(ranges)
        self._cutouts = cutouts
        self._opened: dict[int, Any] = {}

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: tuple[Any, ...]) -> NDArray[np.uint8]:
        which, box = index[0], tuple(index[1:])
        if isinstance(which, slice):
            kept = None if self._cutouts is None else self._cutouts(box)
            sides = tuple(len(range(n)[side]) for side, n in zip(box, self.shape[1:], strict=True))
            if kept is not None and kept.dtype == np.uint8 and kept.shape == (len(self), *sides):
                return np.ascontiguousarray(kept[which])
            return self._planes(range(len(self))[which], box)
        plane: NDArray[np.uint8] = self._planes([int(which)], box)[0]
        return plane

    def _planes(self, every: Sequence[int], box: Box) -> NDArray[np.uint8]:
        plain = len(self.names)
        of_faces: Any = None
        if self.faces is not None and any(k >= plain for k in every):
            of_faces = self._of_faces(self.faces, box)
        planes = [self._read(k, box) if k < plain else of_faces[k - plain] for k in every]
        return np.stack(planes)

    def _of_faces(self, faces: DiskFaces, box: tuple[Any, ...]) -> NDArray[np.uint8]:
        """Return the planes of faces in a box, whose sides may also be single indices."""
        single = [not isinstance(side, slice) for side in box]
        ends = [
            slice(side, side + 1) if one else slice(*side.indices(n)[:2])
            for side, one, n in zip(box, single, self.shape[1:], strict=True)
        ]
        index: Any = (slice(None), *(0 if one else slice(None) for one in single))
        out: NDArray[np.uint8] = faces.read(tuple(ends))[index]
        return out

    def _read(self, k: int, box: Box) -> NDArray[np.uint8]:
        if k not in self._opened:
            data = self._sources[k]()
            if tuple(int(n) for n in data.shape) != self.shape[1:]:
                raise InvalidInput(
                    f"The cue {self.names[k]!r} has the shape {tuple(data.shape)}, and the volume "
                    f"{self.shape[1:]}",
                    argument="cues",
                    remedy="name the file that the graph was made of",
                )
            self._opened[k] = data
        values = np.ascontiguousarray(self._opened[k][box])
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        out = np.empty(values.size, np.uint8)
        faults: ValueFaults = quantise(values.reshape(-1), self._ranges[k], out)
        if faults.outside:
            raise InvalidInput(
                f"The cue {self.names[k]!r} has values outside of its range "
                f"{self._ranges[k]}: its file is not the one that the graph was made of",
                argument="cues",
                remedy="name the file that the graph was made of",
            )
        return out.reshape(values.shape)

    def __repr__(self) -> str:
        return f"DiskCues({', '.join(self.names)}, shape {self.shape[1:]})"


def are_on_disk(cues: object) -> bool:
    """Return whether the cues of a graph stay on disk."""
    return isinstance(cues, DiskCues)
