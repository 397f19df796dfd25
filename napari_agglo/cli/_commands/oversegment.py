"""`napari-agglo oversegment`: from a boundary map to superpixels."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

NAME = "oversegment"
SUMMARY = "cut an image into superpixels along a boundary map"
DESCRIPTION = "Watershed of a boundary map: superpixels 1..n, 0 only outside the mask."
EXAMPLE = "napari-agglo oversegment cue_boundary.tif -o superpixels.tif"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from napari_agglo.cli._arguments import add_nan, add_spacing, value_range
    from napari_agglo.cli._each import HELP

    parser.add_argument("boundary", metavar="BOUNDARY", help="boundary map, high on boundaries")
    parser.add_argument(
        "-o", "--output", required=True, metavar="SUPERPIXELS", help="label image to write"
    )
    parser.add_argument(
        "--per-plane", action="store_true", help="each plane by itself, for anisotropic stacks"
    )
    add_spacing(parser)
    parser.add_argument(
        "--range",
        type=value_range,
        metavar="LOW:HIGH",
        help="the values that mean 0 and 1, needed if the map is not floats from 0 to 1; 255:0 "
        "inverts",
    )
    add_nan(parser)
    parser.add_argument(
        "--sigma",
        type=float,
        metavar="S",
        help="smoothing of the boundary map, in the unit of the spacing (default: half the finest "
        "spacing; 0: none)",
    )
    parser.add_argument(
        "--min-size",
        type=int,
        metavar="N",
        help="smallest superpixel, in voxels (default: 25 in a plane, 125 in a volume, 1 with "
        "--seeds)",
    )
    parser.add_argument("--mask", metavar="FILE", help="only where this is not 0")
    parser.add_argument("--seeds", metavar="FILE", help="label image to grow instead of minima")
    parser.add_argument(
        "--each", action="store_true", help=f"{HELP}; SUPERPIXELS is a folder to write to"
    )


def run(arguments: argparse.Namespace) -> None:
    """Oversegment one image, or each of many."""
    from napari_agglo.cli._each import check_each, for_each, partners
    from napari_agglo.cli._files import check_label_output, refuse_clash

    inputs = {"BOUNDARY": arguments.boundary, "--mask": arguments.mask, "--seeds": arguments.seeds}
    given = {name: path for name, path in inputs.items() if path is not None}
    if not arguments.each:
        check_label_output(arguments.output)
        refuse_clash({"-o": arguments.output}, given)
        print(_one(given, arguments.output, arguments))
        return
    images = partners(given)
    folder = Path(arguments.output)
    check_each(images, given, {"-o": (arguments.output, ".tif")})

    def work(name: str, files: dict[str, str]) -> str:
        return _one(files, str(folder / f"{name}.tif"), arguments)

    for_each(images, work)


def _one(files: dict[str, str], output: str, arguments: argparse.Namespace) -> str:
    from napari_agglo.cli._files import check_label_output, open_inputs
    from napari_agglo.cli._terminal import count, progress_line
    from napari_agglo.cli._words import command_words
    from napari_agglo.superpixels import oversegment
    from napari_agglo.volumes import write_labels

    named = {name.strip("-").lower(): file for name, file in files.items()}
    inputs = open_inputs(named, arguments.spacing)
    if not arguments.each:
        check_label_output(output, ndim=inputs.volumes["boundary"].ndim)
    options: dict[str, Any] = {} if arguments.nan == "refuse" else {"nan": arguments.nan}
    with command_words(named), progress_line() as progress:
        superpixels = oversegment(
            inputs.volumes["boundary"],
            spacing=arguments.spacing,
            per_plane=arguments.per_plane,
            sigma=arguments.sigma,
            min_size=arguments.min_size,
            mask=inputs.volumes.get("mask"),
            seeds=inputs.volumes.get("seeds"),
            value_range=arguments.range,
            progress=progress,
            **options,
        )
    if arguments.each:
        Path(output).parent.mkdir(exist_ok=True)
    write_labels(output, superpixels, spacing=inputs.spacing)
    return f"{output}: {count(int(superpixels.max(initial=0)), 'superpixel')}"
