"""Tables as files: CSV, or parquet where the name says so."""

from __future__ import annotations

from importlib.util import find_spec
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

from napari_agglo.errors import Install, InvalidInput, SetOption

if TYPE_CHECKING:
    import pandas as pd

PARQUET = ".parquet"


def check_table_file(path: Path, argument: str = "path") -> None:
    """Refuse a table as parquet where that cannot be written."""
    if path.suffix.lower() == PARQUET and find_spec("pyarrow") is None:
        raise InvalidInput(
            f"{fspath(path)}: parquet needs pyarrow, which is not installed",
            argument=argument,
            remedy=(
                Install('"napari-agglo[parquet]"'),
                SetOption(argument, str(path.with_suffix(".csv"))),
            ),
        )


def write_rows(table: pd.DataFrame, file: Path, name: Path) -> None:
    """Write a table to a file that will have this name, whose suffix says the format.

    CSV is UTF-8, with one line of headings.
    """
    if name.suffix.lower() == PARQUET:
        table.to_parquet(file, engine="pyarrow", index=False)
    else:
        table.to_csv(file, index=False, encoding="utf-8")
