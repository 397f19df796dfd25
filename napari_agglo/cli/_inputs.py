"""Open the files of a command, on one grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from napari_agglo.cli._words import command_words

if TYPE_CHECKING:
    from napari_agglo.volumes import Volume


@dataclass(frozen=True)
class Inputs:
    """Open files, by what the library calls them, and the spacing that they share, if known."""

    files: Mapping[str, str]
    volumes: Mapping[str, Volume]
    spacing: tuple[float, ...] | None


def open_inputs(files: Mapping[str, str], spacing: tuple[float, ...] | None) -> Inputs:
    """Open files that must agree on their spacing, unless one is given, which then holds for all.

    Parameters
    ----------
    files : mapping of str to str
        What the library calls each input, and its file.
    spacing : tuple of float, optional
        As given on the command line.
    """
    from napari_agglo.volumes import check_same_spacing, check_spacing, open_volume

    with command_words(files):
        volumes = {name: open_volume(file) for name, file in files.items()}
        if spacing is not None:
            for name, volume in volumes.items():
                volumes[name] = replace(volume, spacing=check_spacing(spacing, volume.ndim))
        return Inputs(files, volumes, check_same_spacing(volumes))
