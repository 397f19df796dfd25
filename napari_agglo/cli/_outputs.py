"""Writing so that an interrupted run leaves nothing half written."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from napari_agglo.errors import InvalidInput

_LABEL_SUFFIXES = (".tif", ".tiff", ".zarr", ".h5", ".hdf5", ".npz", ".npy", ".png")


def check_label_output(text: str) -> None:
    """Refuse a name that labels cannot be written to, before the work and not after it."""
    path = re.sub(r"(\.h5|\.hdf5):.*", r"\1", text)
    if not path.lower().endswith(_LABEL_SUFFIXES):
        raise InvalidInput(
            f"-o {text}: the name must end in one of {', '.join(_LABEL_SUFFIXES)}, "
            "which says the format"
        )
    check_parent(path)


def check_parent(text: str | Path) -> None:
    """Refuse an output file whose folder does not exist."""
    parent = Path(text).absolute().parent
    if not parent.is_dir():
        raise InvalidInput(f"-o {text}: there is no folder {parent}; make it first")


@contextmanager
def output_folder(path: str | Path) -> Iterator[Path]:
    """Give a temporary folder to fill; its files move to `path` when all went well.

    Files of the same name are replaced, others in `path` stay.
    """
    final = Path(path)
    if final.exists() and not final.is_dir():
        raise InvalidInput(f"-o {final}: this is a file; name a folder")
    check_parent(final)
    temporary = Path(tempfile.mkdtemp(prefix=f".{final.name}.", dir=final.absolute().parent))
    try:
        yield temporary
        final.mkdir(exist_ok=True)
        for item in sorted(temporary.iterdir()):
            target = final / item.name
            if target.is_dir():  # a Zarr array of an earlier run
                shutil.rmtree(target)
            item.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
