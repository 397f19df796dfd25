"""`napari-agglo sample`: write an embedded sample to files."""

from __future__ import annotations

import argparse

from napari_agglo.cli._arguments import add_json, add_output
from napari_agglo.cli._terminal import Console

NAME = "sample"
SUMMARY = "write the image, cues and gold of an embedded sample"
DESCRIPTION = (
    "Write an embedded sample as TIFF: image.tif, cue_NAME.tif (floats from 0 to 1) for each cue,\n"
    "and gold.tif (0 is not annotated). The samples are computed, always the same for one seed."
)
EXAMPLE = "napari-agglo sample neuropil2d -o neuropil2d"
UNIT = "micrometer"  # of the spacing of the samples
KINDS = "neuropil3d, neuropil2d or cells2d"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("kind", metavar="KIND", help=KINDS)
    add_output(parser, "DIR", "folder to write to")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed (default: 0)")
    add_json(parser)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Write the files."""
    from napari_agglo.cli._files import output_folder, write_tiff
    from napari_agglo.samples import sample
    from napari_agglo.volumes import write_labels

    drawn = sample(arguments.kind, seed=arguments.seed)
    with output_folder(arguments.output) as folder:
        write_tiff(folder / "image.tif", drawn.image, drawn.spacing, UNIT)
        for name, cue in drawn.cues.items():
            write_tiff(folder / f"cue_{name}.tif", cue, drawn.spacing, UNIT)
        write_labels(folder / "gold.tif", drawn.gold, spacing=drawn.spacing, unit=UNIT)
    files = ["image.tif", *(f"cue_{name}.tif" for name in drawn.cues), "gold.tif"]
    console.result(
        f"{arguments.output}: {', '.join(files)} {drawn.gold.shape}",
        {"output": arguments.output, "files": files, "shape": drawn.gold.shape},
    )
