"""Folders of separate images, for ``--each``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from napari_agglo.errors import InvalidInput

_SUFFIXES = {".tif", ".tiff", ".png", ".npy"}


def partners(folders: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Pair up the images of several folders by their names without suffix.

    Parameters
    ----------
    folders : mapping of str to str
        What each folder holds, as a message would call it, and its path; the first one leads.

    Returns
    -------
    dict
        Stem of the name to (what it is to path), in alphabetical order.
    """
    listings = {what: _images(what, path) for what, path in folders.items()}
    lead, *others = listings
    for what in others:
        lacking = sorted(listings[lead].keys() - listings[what].keys())
        if lacking:
            raise InvalidInput(
                f"{what} {folders[what]} has no image called {lacking[0]}, which {lead} has; "
                "with --each the names must agree"
            )
    return {
        stem: {what: listing[stem] for what, listing in listings.items()}
        for stem in sorted(listings[lead])
    }


def _images(what: str, path: str) -> dict[str, str]:
    folder = Path(path)
    if not folder.is_dir():
        raise InvalidInput(f"{what} {path}: with --each this must be a folder of images")
    found = [f for f in folder.iterdir() if f.suffix.lower() in _SUFFIXES and f.name[0] != "."]
    if not found:
        raise InvalidInput(
            f"{what} {path}: no image in this folder ({', '.join(sorted(_SUFFIXES))})"
        )
    return {f.stem: str(f) for f in found}
