"""Recognise a Zarr folder that is a label image alone, by its files; zarr is not needed."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path


def is_own_labels(folder: Path) -> bool:
    """Whether a folder is an OME-Zarr label image as `write_labels` makes it, and nothing else.

    Only then may it be replaced: anything beside the levels (an image, a note, another array) would
    be lost with it.
    """
    try:
        described = json.loads((folder / "zarr.json").read_text(encoding="utf-8"))
        ome = described["attributes"]["ome"]
        paths = [str(level["path"]) for image in ome["multiscales"] for level in image["datasets"]]
        arrays = [json.loads((folder / path / "zarr.json").read_text("utf-8")) for path in paths]
    except (OSError, ValueError, LookupError, TypeError):
        return False
    if "image-label" not in ome or any("/" in path or ".." in path for path in paths):
        return False
    if not all("int" in str(array.get("data_type")) for array in arrays):
        return False
    if {entry.name for entry in folder.iterdir()} != {"zarr.json", *paths}:
        return False
    return all(
        name == "zarr.json" or re.fullmatch(r"c|\d+", name)  # chunks are called c/0/1/2
        for path in paths
        for _, folders, files in os.walk(folder / path)
        for name in (*folders, *files)
    )
