"""`napari-agglo oversegment`: from a boundary map to superpixels."""

from __future__ import annotations

import argparse
from typing import Any

NAME = "oversegment"
SUMMARY = "cut an image into superpixels along a boundary map"
DESCRIPTION = "Watershed of a boundary map: superpixels 1..n, 0 only outside the mask."
EXAMPLE = "napari-agglo oversegment cue_boundary.tif -o superpixels.tif"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from napari_agglo.cli._arguments import add_spacing, value_range

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
    parser.add_argument("--sigma", type=float, metavar="S", help="smoothing of the boundary map")
    parser.add_argument("--min-size", type=int, metavar="N", help="smallest superpixel, in voxels")
    parser.add_argument("--mask", metavar="FILE", help="only where this is not 0")
    parser.add_argument("--seeds", metavar="FILE", help="label image to grow instead of minima")
    parser.add_argument(
        "--each",
        action="store_true",
        help="BOUNDARY is a folder of separate images, and SUPERPIXELS the folder to write to",
    )


def run(arguments: argparse.Namespace) -> None:
    """Oversegment one image, or each of a folder."""
    from napari_agglo.cli._each import partners
    from napari_agglo.cli._outputs import check_label_output, output_folder

    inputs = {"BOUNDARY": arguments.boundary, "--mask": arguments.mask, "--seeds": arguments.seeds}
    given = {name: path for name, path in inputs.items() if path is not None}
    if not arguments.each:
        check_label_output(arguments.output)
        count = _one(given, arguments.output, arguments)
        print(f"{arguments.output}: {count} superpixels")
        return
    with output_folder(arguments.output) as folder:
        for stem, files in partners(given).items():
            count = _one(files, folder / f"{stem}.tif", arguments)
            print(f"{arguments.output}/{stem}.tif: {count} superpixels")


def _one(files: dict[str, str], output: Any, arguments: argparse.Namespace) -> int:
    from napari_agglo.cli._arguments import pick_spacing, require_range
    from napari_agglo.cli._terminal import progress_line
    from napari_agglo.superpixels import oversegment
    from napari_agglo.volumes import open_volume, write_labels

    volumes = {name: open_volume(path) for name, path in files.items()}
    boundary = volumes["BOUNDARY"]
    require_range(files["BOUNDARY"], boundary, arguments.range, "--range ")
    spacing = pick_spacing(arguments.spacing, *volumes.values())
    with progress_line() as progress:
        superpixels = oversegment(
            boundary,
            spacing=spacing,
            per_plane=arguments.per_plane,
            sigma=arguments.sigma,
            min_size=arguments.min_size,
            mask=volumes.get("--mask"),
            seeds=volumes.get("--seeds"),
            value_range=arguments.range,
            progress=progress,
        )
    write_labels(output, superpixels, spacing=spacing)
    return int(superpixels.max(initial=0))
