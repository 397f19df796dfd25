"""`napari-agglo oversegment`: from a boundary map to superpixels."""

from __future__ import annotations

import argparse
from pathlib import Path

from napari_agglo.cli._arguments import add_json, add_nan, add_spacing, value_range
from napari_agglo.cli._each import HELP, Result, check_each, for_each, partners
from napari_agglo.cli._files import check_axes, check_label_output, open_inputs, refuse_clash
from napari_agglo.cli._terminal import Console, count

NAME = "oversegment"
SUMMARY = "cut an image into superpixels along a boundary map"
DESCRIPTION = "Watershed of a boundary map: superpixels 1..n, 0 only outside the mask."
EXAMPLE = "napari-agglo oversegment cue_boundary.tif -o superpixels.tif"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
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
    add_json(parser)
    parser.add_argument(
        "--each", action="store_true", help=f"{HELP}; SUPERPIXELS is a folder to write to"
    )


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Oversegment one image, or each of many."""
    files = {name: getattr(arguments, name) for name in ("boundary", "mask", "seeds")}
    files = {name: file for name, file in files.items() if file is not None}
    output = arguments.output
    if not arguments.each:
        check_label_output(output)
        refuse_clash(console, {"-o": output}, files)
        console.result(*_oversegment(arguments, console, files, output))
        return
    images = partners(console, files)
    check_each(console, images, files, {"-o": (output, ".tif")})

    def work(name: str, files: dict[str, str]) -> Result:
        return _oversegment(arguments, console, files, str(Path(output) / f"{name}.tif"))

    for_each(console, images, work)


def _oversegment(
    arguments: argparse.Namespace, console: Console, files: dict[str, str], output: str
) -> Result:
    from napari_agglo.superpixels import oversegment
    from napari_agglo.volumes import write_labels

    inputs = open_inputs(console, files, arguments.spacing)
    check_axes(output, inputs.volumes["boundary"].ndim)
    with console.progress() as progress:
        superpixels = oversegment(
            inputs.volumes["boundary"],
            spacing=arguments.spacing,
            per_plane=arguments.per_plane,
            sigma=arguments.sigma,
            min_size=arguments.min_size,
            mask=inputs.volumes.get("mask"),
            seeds=inputs.volumes.get("seeds"),
            value_range=arguments.range,
            nan=arguments.nan,
            progress=progress,
        )
    if arguments.each:
        Path(output).parent.mkdir(exist_ok=True)
    write_labels(output, superpixels, spacing=inputs.spacing)
    n = int(superpixels.max(initial=0))
    return f"{output}: {count(n, 'superpixel')}", {"output": output, "superpixels": n}
