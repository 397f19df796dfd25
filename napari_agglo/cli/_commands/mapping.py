"""`napari-agglo mapping`: apply the mapping of another program to superpixels."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from napari_agglo.cli._arguments import (
    add_choice,
    add_json,
    add_labels_output,
    add_spacing,
    add_value,
)
from napari_agglo.cli._files import (
    check_axes,
    check_label_output,
    open_inputs,
    place,
    refuse_clash,
    write_labels_output,
)
from napari_agglo.cli._terminal import Console, count

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAME = "mapping"
SUMMARY = "apply the mapping of another program to superpixels"
DESCRIPTION = (
    "A mapping says which superpixel belongs to which segment: a lut or a database of volara, an\n"
    "agglomerate file, attachment or mapping of webKnossos, a state of Neuroglancer. The result\n"
    "is a label image; `session create --mapping` starts a session from it."
)
EXAMPLE = "napari-agglo mapping mapping.json --superpixels superpixels.tif -o labels.tif"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("mapping", metavar="MAPPING", help="file or folder of the mapping")
    parser.add_argument("--superpixels", required=True, metavar="FILE", help="label image")
    add_labels_output(parser, "LABELS")
    add_mapping_options(parser)
    add_spacing(parser)
    add_json(parser)


def add_mapping_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--unmapped``, ``--score`` and ``--above``."""
    text = "superpixels that the mapping does not have keep their id, become 0, or are refused"
    add_choice(parser, "--unmapped", text, "keep", "zero", "refuse")
    add_value(parser, "--score", "COLUMN", "column of the edges in a database of volara")
    text = "join superpixels whose edge in a database has a score above this"
    add_value(parser, "--above", "T", text, type=float)


def apply_mapping(
    arguments: argparse.Namespace, console: Console, file: str, superpixels: Any
) -> NDArray[Any]:
    """Return the segments of superpixels by a mapping, with the options of a command."""
    from napari_agglo.volumes import read_mapping

    console.files["mapping"] = file
    console.options["threshold"] = "--above"
    mapping = read_mapping(file, score=arguments.score, threshold=arguments.above)
    return mapping.apply(superpixels, arguments.unmapped)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Read the mapping and write the segments."""
    import numpy as np

    output = arguments.output
    check_label_output(output)
    files = {"superpixels": arguments.superpixels}
    refuse_clash(console, {"-o": output}, {**files, "mapping": arguments.mapping})
    inputs = open_inputs(console, files, arguments.spacing, arguments.unit)
    superpixels = inputs.volumes["superpixels"]
    check_axes(output, superpixels.ndim)
    with console.progress() as progress:
        labels = apply_mapping(arguments, console, arguments.mapping, superpixels)
        place(output)[0].parent.mkdir(exist_ok=True)
        write_labels_output(
            arguments, output, labels, inputs.spacing, inputs.unit, progress, superpixels.origin
        )
    n = int(np.count_nonzero(np.unique(labels)))
    console.result(f"{output}: {count(n, 'segment')}", {"output": output, "segments": n})
