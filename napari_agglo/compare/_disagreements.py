"""Where two segmentations differ: codes to show, and the largest differences to go to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from napari_agglo.compare._overlaps import Overlaps
from napari_agglo.compare._parts import Side, side
from napari_agglo.errors import InvalidInput, is_whole

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["merged", "split"]
Places = Callable[[NDArray[np.int64]], tuple[NDArray[np.int64], NDArray[np.int64]]]


@dataclass(frozen=True, eq=False)
class Disagreements:
    """Where segmentation a and segmentation b differ.

    A segment of a that b divides has a main part, the largest, on which both agree; its other parts
    are *merged* (with the main part) in a and split in b. Parts of a segment of b are *split* in a
    and merged in b.

    Attributes
    ----------
    codes : ndarray of uint8
        For each pixel, or each superpixel: 0 agree, 1 merged in a, 2 split in a, 3 both at once.
        Where either has no segment, 0.
    overlaps : Overlaps
        The pairs of segments, by dense names.
    """

    codes: NDArray[np.uint8]
    overlaps: Overlaps
    _ids: tuple[NDArray[np.uint64], NDArray[np.uint64]]
    _places: Places

    def __repr__(self) -> str:
        merged, split = (int(one.parts().sum()) for one in self._sides)
        return (
            f"Disagreements({merged} parts merged in a, {self.merged_bits:.3f} bits; "
            f"{split} split in a, {self.split_bits:.3f} bits)"
        )

    @property
    def merged_bits(self) -> float:
        """H(b|a): what a is wrong by through merging, were b right."""
        return float(self._sides[0].bits.sum())

    @property
    def split_bits(self) -> float:
        """H(a|b): what a is wrong by through splitting, were b right."""
        return float(self._sides[1].bits.sum())

    def largest(self, n: int = 20, *, kind: Kind | None = None, min_size: int = 1) -> pd.DataFrame:
        """Return the `n` differences that contribute most to the VI of a and b, largest first.

        Parameters
        ----------
        n : int
            How many at most.
        kind : {"merged", "split"}, optional
            Only what is merged in a, or only what is split in a.
        min_size : int
            Only parts of so many pixels.

        Returns
        -------
        pandas.DataFrame
            One row for each part: ``kind``; ``whole``, the segment that has it, of a if it is
            merged, of b if it is split; ``part`` and ``main``, the segments of the other one that
            hold the part and the main part; ``size`` of the part in pixels; ``bits`` of VI, which
            sum to the VI over all rows; ``voxel_0``, ..., a voxel of the part near its middle; and
            ``box_start_0``, ``box_stop_0``, ..., its bounding box.
        """
        import pandas as pd

        _check(n, kind, min_size)
        rows, kinds = self._ranked(n, kind, min_size)
        columns: dict[str, Any] = {"kind": np.array(get_args(Kind))[kinds]}
        names = (self._ids[0][self.overlaps.first], self._ids[1][self.overlaps.second])
        mains = np.where(kinds == 0, self._sides[0].main[rows], self._sides[1].main[rows])
        merged = kinds == 0
        columns["whole"] = np.where(merged, names[0][rows], names[1][rows])
        columns["part"] = np.where(merged, names[1][rows], names[0][rows])
        columns["main"] = np.where(merged, names[1][mains], names[0][mains])
        columns["size"] = self.overlaps.sizes[rows]
        columns["bits"] = np.where(merged, self._sides[0].bits[rows], self._sides[1].bits[rows])
        voxels, boxes = self._places(rows)
        for axis in range(voxels.shape[1]):
            columns[f"voxel_{axis}"] = voxels[:, axis]
        for axis in range(voxels.shape[1]):
            columns[f"box_start_{axis}"] = boxes[:, 0, axis]
            columns[f"box_stop_{axis}"] = boxes[:, 1, axis]
        return pd.DataFrame(columns)

    @cached_property
    def _sides(self) -> tuple[Side, Side]:
        pairs = self.overlaps
        return (
            side(pairs.first, pairs.n_first, pairs.sizes),
            side(pairs.second, pairs.n_second, pairs.sizes),
        )

    def _ranked(
        self, n: int, kind: Kind | None, min_size: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return which overlaps to list, and whether each is merged (0) or split (1) in a."""
        wanted = [kind in (None, one) for one in get_args(Kind)]
        large = self.overlaps.sizes >= min_size
        rows = [
            np.flatnonzero(one.parts() & large & asked)
            for one, asked in zip(self._sides, wanted, strict=True)
        ]
        kinds = np.repeat([0, 1], [len(part) for part in rows])
        bits = np.concatenate([one.bits[part] for one, part in zip(self._sides, rows, strict=True)])
        order = np.argsort(-bits, kind="stable")[:n]
        return np.concatenate(rows)[order], kinds[order]


def _check(n: Any, kind: Any, min_size: Any) -> None:
    if not (is_whole(n) and n >= 0):
        raise InvalidInput(f"`n` must be a whole number, 0 or more, got {n!r}.")
    if kind is not None and kind not in get_args(Kind):
        raise InvalidInput(f"`kind` must be 'merged', 'split' or None for both, got {kind!r}.")
    if not is_whole(min_size):
        raise InvalidInput(f"`min_size` must be a whole number of pixels, got {min_size!r}.")
