"""Which column of a row of statistics holds what.

Everything known of a region, and of a boundary, is one row of 64-bit integers, so that *merging is
adding rows*: in a merge step, across blocks, and in a repair after an edit. Two things are not
plain sums, and are kept so that they stay exact: a region's `contact` loses the faces that a merge
swallows (twice, once for each side), and bounding boxes live apart, merged by minimum and maximum.

Cues are whole numbers 0..255, so sums up to the fourth power are exact for 2**31 pixels.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """Columns of the rows of statistics: for so many axes, cues, histogram bins and powers.

    A region's row is ``count | border | open | contact | coordinates | products | cues``:

    - `count`: pixels;
    - `border`, per axis: faces on the border of the volume;
    - `open`, per axis: faces towards label 0, "no region", dams included;
    - `contact`, per axis: faces of its boundaries with other regions, across dams if these count;
    - `coordinates`, per axis: sum of the pixel index;
    - `products`: sums of products of two pixel indices, upper triangle row by row.

    A boundary's row is ``faces | cues`` with `faces` per axis; a face adds the values of both its
    pixels, so a boundary has twice as many samples as faces. A cue is its sums of powers 1..4,
    then its histogram; or its sum alone where `powers` is 1 and `bins` 0.

    Examples
    --------
    >>> layout = Layout(ndim=3, n_cues=1, bins=25)
    >>> layout.region_width, layout.boundary_width
    (48, 32)
    """

    ndim: int
    n_cues: int
    bins: int
    powers: int = 4

    @property
    def border(self) -> slice:
        return slice(1, 1 + self.ndim)

    @property
    def open(self) -> slice:
        return slice(1 + self.ndim, 1 + 2 * self.ndim)

    @property
    def contact(self) -> slice:
        return slice(1 + 2 * self.ndim, 1 + 3 * self.ndim)

    @property
    def coordinates(self) -> slice:
        return slice(1 + 3 * self.ndim, 1 + 4 * self.ndim)

    @property
    def products(self) -> slice:
        return slice(1 + 4 * self.ndim, self.region_cues)

    @property
    def faces(self) -> slice:
        return slice(0, self.ndim)

    @property
    def cue_width(self) -> int:
        return self.powers + self.bins

    @property
    def region_cues(self) -> int:
        """First column of cue 0 in a region's row."""
        return 1 + 4 * self.ndim + self.ndim * (self.ndim + 1) // 2

    @property
    def boundary_cues(self) -> int:
        """First column of cue 0 in a boundary's row."""
        return self.ndim

    @property
    def region_width(self) -> int:
        return self.region_cues + self.n_cues * self.cue_width

    @property
    def boundary_width(self) -> int:
        return self.boundary_cues + self.n_cues * self.cue_width

    def region_sums(self, cue: int) -> slice:
        start = self.region_cues + cue * self.cue_width
        return slice(start, start + self.powers)

    def region_histogram(self, cue: int) -> slice:
        start = self.region_cues + cue * self.cue_width + self.powers
        return slice(start, start + self.bins)

    def boundary_sums(self, cue: int) -> slice:
        start = self.boundary_cues + cue * self.cue_width
        return slice(start, start + self.powers)

    def boundary_histogram(self, cue: int) -> slice:
        start = self.boundary_cues + cue * self.cue_width + self.powers
        return slice(start, start + self.bins)
