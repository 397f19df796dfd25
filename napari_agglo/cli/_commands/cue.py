"""`napari-agglo cue`: from a bare image to a boundary map."""

from __future__ import annotations

import argparse
from pathlib import Path

from napari_agglo.cli._arguments import add_json, add_spacing
from napari_agglo.cli._each import HELP, Result, check_each, for_each, partners
from napari_agglo.cli._files import (
    check_table_output,
    open_image,
    refusal,
    refuse_clash,
    write_tiff,
)
from napari_agglo.cli._terminal import Console

NAME = "cue"
SUMMARY = "make a boundary map from an image alone"
DESCRIPTION = (
    "Find lines or edges in an image, in grey or in colours: floats from 0 to 1, high on\n"
    "boundaries. A map that was learned for the tissue is better where there is one."
)
EXAMPLE = "napari-agglo cue image.tif -o boundary.tif"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("image", metavar="IMAGE", help="any image, in grey or in colours")
    parser.add_argument(
        "-o", "--output", required=True, metavar="BOUNDARY", help="boundary map to write, a .tif"
    )
    parser.add_argument(
        "--kind",
        default="auto",
        metavar="KIND",
        help="appearance of a boundary: dark_ridges (membranes in electron microscopy), "
        "bright_ridges (a membrane stain), dark or bright (thick walls), gradient (edges), colour "
        "(edges in colours), or auto (default: auto)",
    )
    parser.add_argument(
        "--scale",
        type=float,
        metavar="S",
        help="in voxels, about half the thickness of a membrane (default: 1; edges: 2)",
    )
    add_spacing(parser)
    add_json(parser)
    parser.add_argument(
        "--each", action="store_true", help=f"{HELP}; BOUNDARY is a folder to write to"
    )


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Make one map, or one of each of many images."""
    files, output = {"image": arguments.image}, arguments.output
    if not arguments.each:
        if Path(output).suffix.lower() not in (".tif", ".tiff"):
            raise refusal("-o", output, "the name must end in .tif", "write a TIFF")
        check_table_output("-o", output)
        refuse_clash(console, {"-o": output}, files)
        console.result(*_make_cue(arguments, console, files["image"], Path(output)))
        return
    images = partners(console, files)
    check_each(console, images, files, {"-o": (output, ".tif")})

    def work(name: str, files: dict[str, str]) -> Result:
        return _make_cue(arguments, console, files["image"], Path(output) / f"{name}.tif")

    for_each(console, images, work)


def _make_cue(arguments: argparse.Namespace, console: Console, file: str, output: Path) -> Result:
    from napari_agglo.superpixels import boundary_cue
    from napari_agglo.volumes import replacing

    image, colours = open_image(console, file)
    spacing = arguments.spacing or image.spacing
    with console.progress() as progress:
        cue = boundary_cue(
            image.data,
            arguments.kind,
            scale=arguments.scale,
            spacing=spacing,
            channel_axis=-1 if colours else None,
            progress=progress,
        )
    if arguments.each:
        output.parent.mkdir(exist_ok=True)
    with replacing(output) as temporary:
        write_tiff(temporary, cue, spacing)
    text = f"{output}: {' x '.join(map(str, cue.shape))} from 0 to 1"
    return text, {"output": str(output), "shape": cue.shape}
