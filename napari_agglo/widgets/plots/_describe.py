"""What is said of a dot of the breakdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from napari_agglo.widgets.plots._curve import short

if TYPE_CHECKING:
    import pandas as pd

    from napari_agglo.evaluate import Breakdown

Kind = Literal["false merge", "false split"]
_PARTNERS = 4  # that are named


def described(found: Breakdown, kind: Kind, table: pd.DataFrame, row: int) -> str:
    """Return the id, size and bits of a row of `table`, and its largest partners.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.evaluate import breakdown
    >>> found = breakdown(np.array([3, 3, 4, 4]), np.array([1, 1, 1, 1]))
    >>> print(described(found, "false split", found.gold, 0))
    Gold object 1: 4 voxels, 1 bits
    split into 3 (50 %), 4 (50 %)
    """
    split = kind == "false split"
    one, entry = int(table.index[row]), table.iloc[row]
    parts = found.pieces(one) if split else found.merged(one)
    largest = parts.head(_PARTNERS)
    named = [
        f"{who} ({100 * float(part):.3g} %)"
        for who, part in zip(largest["id"], largest["fraction"], strict=True)
    ]
    more = f", and {len(parts) - len(named):,} more" if len(parts) > len(named) else ""
    whose, does = ("Gold object", "split into") if split else ("Segment", "merges gold")
    return (
        f"{whose} {one}: {int(entry['voxels']):,} voxels, {short(entry['contribution'])} bits\n"
        f"{does} {', '.join(named)}{more}"
    )
