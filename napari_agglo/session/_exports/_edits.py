"""The edits of a session as a table: what was done when, and whether it still counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Literal

from napari_agglo.errors import InvalidInput
from napari_agglo.session._exports._target import writing

State = Literal["live", "undone", "asleep"]


@dataclass(frozen=True)
class EditRow:
    """One edit, as it stands in the table.

    Attributes
    ----------
    sequence : int
        Its number in the journal.
    time : str
        When it was made, as the journal says: ISO 8601, UTC.
    kind : str
        merge, cut, lock, ...
    scale : float, optional
        The threshold at which it was made; None if it has none.
    ids : tuple of int
        The user's ids of what it was made on, in their order.
    state : {"live", "undone", "asleep"}
        Whether it counts; asleep: a later edit stands in its way.
    """

    sequence: int
    time: str
    kind: str
    scale: float | None
    ids: tuple[int, ...]
    state: State

    def __post_init__(self) -> None:
        if self.state not in ("live", "undone", "asleep"):
            raise InvalidInput(f"`state` must be 'live', 'undone' or 'asleep', got {self.state!r}.")


def export_edits(
    path: str | PathLike[str], rows: Iterable[EditRow], *, overwrite: bool = False
) -> Path:
    """Write edits as CSV, whole or not at all.

    Columns: sequence, time, kind, scale (empty if there is none), ids (separated by spaces), state.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> row = EditRow(1, "2031-05-04T13:02:01.250+00:00", "merge", 0.5, (7, 9), "live")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(export_edits(Path(folder) / "edits.csv", [row]).read_text())
    sequence,time,kind,scale,ids,state
    1,2031-05-04T13:02:01.250+00:00,merge,0.5,7 9,live
    """
    import pandas as pd

    columns = ["sequence", "time", "kind", "scale", "ids", "state"]
    table = pd.DataFrame(
        [
            (row.sequence, row.time, row.kind, row.scale, " ".join(map(str, row.ids)), row.state)
            for row in rows
        ],
        columns=columns,
    )
    target = Path(path)
    with writing(target, overwrite) as temporary:
        table.to_csv(temporary, index=False, encoding="utf-8")
    return target
