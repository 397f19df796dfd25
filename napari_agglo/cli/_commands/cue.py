"""`napari-agglo cue`: from a bare image to a boundary map."""

from __future__ import annotations

import argparse
from pathlib import Path

NAME = "cue"
SUMMARY = "make a boundary map from an image alone"
DESCRIPTION = (
    "Find lines or edges in an image, in grey or in colours: floats from 0 to 1, high on\n"
    "boundaries. A map that was learned for the tissue is better where there is one."
)
EXAMPLE = "napari-agglo cue image.tif -o boundary.tif"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from napari_agglo.cli._arguments import add_spacing
    from napari_agglo.cli._each import HELP

    parser.add_argument("image", metavar="IMAGE", help="any image, in grey or in colours")
    parser.add_argument(
        "-o", "--output", required=True, metavar="BOUNDARY", help="boundary map to write, a .tif"
    )
    parser.add_argument(
        "--kind",
        default="auto",
        metavar="KIND",
        help="what a boundary looks like: dark_ridges (membranes in electron microscopy), "
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
    parser.add_argument(
        "--each", action="store_true", help=f"{HELP}; BOUNDARY is a folder to write to"
    )


def run(arguments: argparse.Namespace) -> None:
    """Make one map, or one of each of many images."""
    from napari_agglo.cli._each import check_each, for_each, partners
    from napari_agglo.cli._files import check_table_output, refuse_clash
    from napari_agglo.errors import InvalidInput

    given = {"IMAGE": arguments.image}
    if not arguments.each:
        if Path(arguments.output).suffix.lower() not in (".tif", ".tiff"):
            raise InvalidInput(f"-o {arguments.output}: the name must end in .tif")
        check_table_output("-o", arguments.output)
        refuse_clash({"-o": arguments.output}, given)
        print(_one(arguments.image, arguments.output, arguments))
        return
    images = partners(given)
    folder = Path(arguments.output)
    check_each(images, given, {"-o": (arguments.output, ".tif")})

    def work(name: str, files: dict[str, str]) -> str:
        return _one(files["IMAGE"], str(folder / f"{name}.tif"), arguments)

    for_each(images, work)


def _one(file: str, output: str, arguments: argparse.Namespace) -> str:
    from napari_agglo.cli._files import open_image, write_tiff
    from napari_agglo.cli._terminal import progress_line
    from napari_agglo.cli._words import command_words
    from napari_agglo.superpixels import boundary_cue
    from napari_agglo.volumes import replacing

    named = {"image": file, "kind": "--kind"}
    with command_words(named):
        image, colours = open_image(file)
    with command_words(named), progress_line() as progress:
        cue = boundary_cue(
            image.data,
            arguments.kind,
            scale=arguments.scale,
            spacing=arguments.spacing or image.spacing,
            channel_axis=-1 if colours else None,
            progress=progress,
        )
    if arguments.each:
        Path(output).parent.mkdir(exist_ok=True)
    spacing = arguments.spacing or image.spacing
    with replacing(Path(output)) as temporary:
        write_tiff(temporary, cue, spacing)
    return f"{output}: {' x '.join(map(str, cue.shape))} from 0 to 1"
