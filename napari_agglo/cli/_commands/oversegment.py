"""`napari-agglo oversegment`: superpixels of a boundary map."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from napari_agglo.cli._arguments import (
    add_affinities,
    add_json,
    add_labels_output,
    add_nan,
    add_oriented,
    add_spacing,
    add_value,
    value_range,
)
from napari_agglo.cli._command_source import read_affinities, read_oriented
from napari_agglo.cli._files import (
    check_axes,
    check_label_output,
    open_inputs,
    place,
    write_labels_output,
)
from napari_agglo.cli._image_folders import Result, add_each, one_or_each
from napari_agglo.cli._terminal import WRITE, Console, count

if TYPE_CHECKING:
    from napari_agglo.volumes import Affinities, OrientedMap, Volume

NAME = "oversegment"
SUMMARY = "cut an image into superpixels along a boundary map"
DESCRIPTION = "Watershed of a boundary map: superpixels 1..n, 0 only outside the mask."
EXAMPLE = "napari-agglo oversegment cue_boundary.tif -o superpixels.tif"


_MAPS = ("boundary", "affinities", "oriented")
_WHOLE = (
    ("reading", 1), ("checking", 1), ("smoothing", 2), ("finding seeds", 1), ("flooding", 6),
    ("dissolving", 2),
)  # fmt: skip
_PLANES = (("reading", 1), ("checking", 1), ("segmenting planes", 10))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    text = "boundary map, high on boundaries; not with --affinities or --oriented"
    parser.add_argument("boundary", nargs="?", metavar="BOUNDARY", help=text)
    add_affinities(parser)
    add_oriented(parser)
    add_labels_output(parser, "SUPERPIXELS")
    parser.add_argument(
        "--per-plane", action="store_true", help="each plane by itself, for anisotropic stacks"
    )
    add_spacing(parser)
    text = (
        "the values that mean 0 and 1, needed if the map is not floats from 0 to 1; 255:0 inverts"
    )
    add_value(parser, "--range", "LOW:HIGH", text, type=value_range)
    add_nan(parser)
    text = "smoothing of the boundary map, in the unit of the spacing"
    text += " (default: half the finest spacing; 0: none)"
    add_value(parser, "--sigma", "S", text, type=float)
    text = "smallest superpixel, in voxels"
    text += " (default: 25 in a plane, 125 in a volume, 1 with --seeds)"
    add_value(parser, "--min-size", "N", text, type=int)
    add_value(parser, "--mask", "FILE", "only where this is not 0")
    add_value(parser, "--seeds", "FILE", "label image to grow instead of minima")
    add_json(parser)
    add_each(parser, "SUPERPIXELS is a folder to write to")


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Oversegment one image, or each of many."""
    names = (*_MAPS, "mask", "seeds")
    files = {name: getattr(arguments, name) for name in names}
    files = {name: file for name, file in files.items() if file is not None}
    if sum(name in files for name in _MAPS) != 1:
        arguments.parser.error("one of BOUNDARY, --affinities and --oriented is required")
    if not arguments.each:
        check_label_output(arguments.output)

    def work(files: Mapping[str, str], paths: dict[str, str]) -> Result:
        return _oversegment(arguments, console, files, paths["-o"])

    one_or_each(arguments, console, files, {"-o": (arguments.output, ".tif")}, work)


def _oversegment(
    arguments: argparse.Namespace, console: Console, files: Mapping[str, str], output: str
) -> Result:
    from napari_agglo.superpixels import oversegment

    maps = {name: file for name, file in files.items() if name not in _MAPS[1:]}
    inputs = open_inputs(console, maps, arguments.spacing, arguments.unit)
    with console.progress([*(_PLANES if arguments.per_plane else _WHOLE), *WRITE]) as progress:
        boundary: Affinities | OrientedMap | Volume
        limits = arguments.range
        if "affinities" in files:
            file = files["affinities"]
            boundary, limits = read_affinities(console, file, arguments, progress, limits), None
        elif "oriented" in files:
            boundary = read_oriented(console, files["oriented"], arguments, limits)
            limits = None
        else:
            boundary = inputs.volumes["boundary"]
        check_axes(output, len(boundary.shape))
        superpixels = oversegment(
            boundary,
            spacing=arguments.spacing,
            per_plane=arguments.per_plane,
            sigma=arguments.sigma,
            min_size=arguments.min_size,
            mask=inputs.volumes.get("mask"),
            seeds=inputs.volumes.get("seeds"),
            value_range=limits,
            nan=arguments.nan,
            progress=progress,
        )
        place(output)[0].parent.mkdir(exist_ok=True)
        spacing, unit = inputs.spacing, inputs.unit
        if spacing is None:
            spacing, unit = boundary.spacing, boundary.unit
        origin = _origin(inputs.volumes.get("boundary"), files, len(boundary.shape))
        write_labels_output(arguments, output, superpixels, spacing, unit, progress, origin)
    n = int(superpixels.max(initial=0))
    return f"{output}: {count(n, 'superpixel')}", {"output": output, "superpixels": n}


def _origin(
    boundary: Volume | None, files: Mapping[str, str], ndim: int
) -> tuple[float, ...] | None:
    """Return the place of the first voxel that the file of the boundaries states."""
    from napari_agglo.volumes import add_pick, open_volume

    if boundary is None:  # channels, which come before the axes of the image
        file = files.get("affinities") or files["oriented"]
        boundary = open_volume(add_pick(file, "c=*"))
    return None if boundary.origin is None else boundary.origin[-ndim:]
