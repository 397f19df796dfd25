"""`napari-agglo cue`: a boundary map from an image alone, or from label images."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from napari_agglo.cli._arguments import add_json, add_output, add_spacing, add_value
from napari_agglo.cli._files import (
    asked_voxel_size,
    check_table_output,
    open_image,
    open_inputs,
    refusal,
    write_tiff,
)
from napari_agglo.cli._image_folders import Result, add_each, one_or_each
from napari_agglo.cli._terminal import Console, Stages

NAME = "cue"
SUMMARY = "make a boundary map from an image alone, or from labels of other tools"
DESCRIPTION = (
    "Find lines or edges in an image, in grey or in colours: floats from 0 to 1, high on\n"
    "boundaries. A map that was learned for the tissue is better where there is one.\n"
    "With --labels the map is that of the borders of segmentations, averaged."
)
EXAMPLE = "napari-agglo cue image.tif -o boundary.tif"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    text = "any image, in grey or in colours; not with --labels"
    parser.add_argument("image", nargs="?", metavar="IMAGE", help=text)
    text = "label images of one shape, whose borders make the map"
    parser.add_argument("--labels", nargs="+", metavar="FILE", help=text)
    text = "distance over which the map of --labels falls off, in the unit of the spacing"
    text += " (default: the smallest spacing; 0: borders alone)"
    add_value(parser, "--width", "W", text, type=float)
    add_output(parser, "BOUNDARY", "boundary map to write, a .tif")
    text = (
        "appearance of a boundary: dark_ridges (membranes in electron microscopy), bright_ridges "
        "(a membrane stain), dark or bright (thick walls), gradient (edges), colour (edges in "
        "colours), oriented (photographs: a map with a channel for each of eight directions, for "
        "--oriented), textons (photographs: words for colour and texture, for --words), or auto"
    )
    add_value(parser, "--kind", "KIND", text, default="auto")
    text = "in voxels, about half the thickness of a membrane (default: 1; edges: 2)"
    add_value(parser, "--scale", "S", text, type=float)
    add_spacing(parser)
    add_json(parser)
    add_each(parser, "BOUNDARY is a folder to write to")


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Make one map, or one of each of many images."""
    output = arguments.output
    if (arguments.image is None) == (arguments.labels is None):
        arguments.parser.error("one of IMAGE and --labels is required, not both")
    if not arguments.each:
        if Path(output).suffix.lower() not in (".tif", ".tiff"):
            raise refusal("-o", output, "the name must end in .tif", "write a TIFF")
        check_table_output("-o", output)

    def work(files: Mapping[str, str], paths: dict[str, str]) -> Result:
        return _make_cue(arguments, console, files, Path(paths["-o"]))

    files = {"image": arguments.image} if arguments.labels is None else {}
    labels = arguments.labels or []
    files |= {f"labels[{k}]" if len(labels) > 1 else "labels": f for k, f in enumerate(labels)}
    one_or_each(arguments, console, files, {"-o": (output, ".tif")}, work)


def _make_cue(
    arguments: argparse.Namespace, console: Console, files: Mapping[str, str], output: Path
) -> Result:
    from napari_agglo.superpixels import (
        boundary_cue,
        boundary_from_labels,
        oriented_boundary,
        textons,
    )
    from napari_agglo.volumes import VoxelSize, replacing

    with console.progress(_stages(arguments.kind) if "image" in files else ()) as progress:
        if "image" in files:
            image, colours = open_image(console, files["image"])
            voxel = asked_voxel_size(image, arguments.spacing, arguments.unit)
            axis = -1 if colours else None
            if arguments.kind == "oriented" and arguments.scale is None:
                oriented_map = oriented_boundary(image.data, channel_axis=axis, progress=progress)
                cue: Any = oriented_map.channels
            elif arguments.kind == "textons":
                cue = textons(image.data, channel_axis=axis, progress=progress).words
            else:
                cue = boundary_cue(
                    image.data,
                    arguments.kind,
                    scale=arguments.scale,
                    spacing=voxel.spacing,
                    channel_axis=axis,
                    progress=progress,
                )
        else:
            inputs = open_inputs(console, files, arguments.spacing, arguments.unit)
            voxel = VoxelSize(inputs.spacing, inputs.unit)
            labels = list(inputs.volumes.values())
            cue = boundary_from_labels(
                labels, width=arguments.width, spacing=voxel.spacing, progress=progress
            )
    output.parent.mkdir(exist_ok=True)
    directions = cue.dtype == "uint8" and cue.ndim == 3
    with replacing(output) as temporary:
        write_tiff(temporary, cue, *voxel, channels_first=directions)
    top = int(cue.max()) if arguments.kind == "textons" else 255 if directions else 1
    text = f"{output}: {' x '.join(map(str, cue.shape))} from 0 to {top}"
    return text, {"output": str(output), "shape": cue.shape}


def _stages(kind: str) -> Stages:
    """Return the stages of a map from an image."""
    if kind in ("oriented", "textons"):
        return ("checking the image", 1), ("", 20)
    choosing = (("choosing", 2),) if kind == "auto" else ()
    return ("checking the image", 1), *choosing, ("finding boundaries", 8), ("normalising", 1)
