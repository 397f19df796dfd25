"""`napari-agglo pixels`: train a pixel classifier, and make cues of images by it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_agglo.cli._arguments import (
    add_json,
    add_output,
    add_spacing,
    add_value,
    add_verbosity,
)
from napari_agglo.cli._files import (
    asked_voxel_size,
    check_folder_output,
    check_table_output,
    open_image,
    refuse_clash,
    write_tiff,
)
from napari_agglo.cli._image_folders import Result, add_each, one_or_each
from napari_agglo.cli._provenance import add_provenance
from napari_agglo.cli._terminal import Console, count
from napari_agglo.errors import InvalidInput, SetOption

if TYPE_CHECKING:
    from napari_agglo.pixels import PixelClassifier
    from napari_agglo.volumes import VoxelSize

NAME = "pixels"
SUMMARY = "make cues of an image by a pixel classifier"
DESCRIPTION = (
    "train learns classes of pixels, such as boundary and cytoplasm, from strokes or from gold\n"
    "standards; predict writes the probability of each class, as cues of `train` and `segment`."
)
EXAMPLE = "napari-agglo pixels train --image a.tif --labels strokes.tif -o pixels.npz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare both actions and their arguments."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    train = actions.add_parser("train", help="learn from strokes or gold standards")
    _add_train_arguments(train)
    train.set_defaults(run=run_train, parser=train)
    predict = actions.add_parser("predict", help="write the probability of each class")
    _add_predict_arguments(predict)
    predict.set_defaults(run=run_predict, parser=predict)
    for action in (train, predict):
        add_spacing(action)
        add_json(action)
        add_provenance(action)
        add_verbosity(action)


def _add_train_arguments(parser: argparse.ArgumentParser) -> None:
    text = "images to learn from, in grey or in colours"
    parser.add_argument(
        "--image", required=True, nargs="+", action="extend", metavar="FILE", help=text
    )
    truth = parser.add_mutually_exclusive_group(required=True)
    truth.add_argument(
        "--labels", nargs="+", action="extend", metavar="FILE",
        help="strokes, one file for each image: 0 is unknown, k a pixel of the k-th class",
    )  # fmt: skip
    truth.add_argument(
        "--gold", nargs="+", action="extend", metavar="FILE",
        help="label images of whole objects instead: the classes are boundary and interior",
    )  # fmt: skip
    text = "names of the classes of labels 1, 2, ... (default: boundary, cytoplasm, mitochondria, "
    parser.add_argument("--classes", nargs="+", metavar="NAME", help=f"{text}glia, class_5, ...)")
    text = "standard deviations of the Gaussians in voxels (default: 0.7 1 2 4)"
    parser.add_argument("--scales", nargs="+", type=float, metavar="S", help=text)
    text = "filter each plane by itself (default: where planes are more than 2.5 pixels apart)"
    parser.add_argument("--per-plane", action="store_true", default=None, help=text)
    text = "add eigenvalues of the structure tensor, which takes several times as long"
    parser.add_argument("--structure", action="store_true", help=text)
    text = (
        "pixels of each class to learn from at the most (default: 100,000 of strokes; of gold all "
    )
    text += "pixels of the boundary, and as many others)"
    add_value(parser, "--examples", "N", text, type=int)
    add_value(parser, "--seed", "N", "seed of the training", type=int, default=0)
    add_output(parser, "CLASSIFIER.npz", "pixel classifier to write")


def _add_predict_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("image", metavar="IMAGE", help="an image like those of the training")
    parser.add_argument(
        "--classifier", required=True, metavar="CLASSIFIER.npz",
        help="pixel classifier that `pixels train` or the dock wrote",
    )  # fmt: skip
    text = "classes to write (default: all)"
    parser.add_argument("--classes", nargs="+", metavar="NAME", help=text)
    add_output(
        parser, "DIR|NAME.zarr",
        "folder to write a TIFF for each class to, or a Zarr group with an array for each, which "
        "is written block by block, also larger than memory",
    )  # fmt: skip
    add_each(parser, "DIR gets a folder for each image")


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Run an action; its own parser has set another function in place of this one."""
    raise AssertionError("an action is required")


def run_train(arguments: argparse.Namespace, console: Console) -> None:
    """Train and write the classifier."""
    from napari_agglo.pixels import FilterBank, train_pixels

    output, images = arguments.output, arguments.image
    name = "labels" if arguments.labels else "gold"
    truths = arguments.labels or arguments.gold
    if not output.endswith(".npz"):
        raise InvalidInput(
            f"-o {output} must end in .npz",
            argument="path",
            remedy=SetOption("path", str(Path(output).with_suffix(".npz"))),
        )
    check_table_output("-o", output)
    if len(images) != len(truths):
        raise InvalidInput(
            f"--image has {count(len(images), 'file')} and --{name} {len(truths)}",
            argument=name,
            remedy="give one for each image, in the same order",
        )
    files: dict[str, str] = {}
    for k, (image, truth) in enumerate(zip(images, truths, strict=True)):
        own = f"[{k}]" if len(images) > 1 else ""
        files |= {f"images{own}": image, f"{name}{own}": truth}
    refuse_clash(console, {"-o": output}, files)
    sources, marks, colours = _open(console, files, name)
    spacing = asked_voxel_size(sources[0], arguments.spacing, arguments.unit).spacing
    with console.progress() as progress:
        classifier = train_pixels(
            [source.data for source in sources], classes=arguments.classes,
            scales=arguments.scales or FilterBank.scales, per_plane=arguments.per_plane,
            structure=arguments.structure, spacing=spacing, channel_axis=-1 if colours else None,
            examples=arguments.examples, seed=arguments.seed, progress=progress,
            labels=marks if name == "labels" else None, gold=marks if name == "gold" else None,
        )  # fmt: skip
        classifier.save(output)
    examples = classifier.record["examples"]
    listed = ", ".join(f"{n:,} of {one}" for one, n in examples.items())
    first = list(classifier.record["importances"])[:5]
    console.result(
        f"{output}: {count(sum(examples.values()), 'pixel')} ({listed})\n"
        f"most important features: {', '.join(first)}",
        {"output": output, **classifier.record},
    )


def _open(
    console: Console, files: Mapping[str, str], name: str
) -> tuple[list[Any], list[Any], bool]:
    """Return the images, their labels or golds, and whether the images are in colours."""
    from napari_agglo.volumes import check_same_spacing, open_volume

    opened = [open_image(console, f, n) for n, f in files.items() if n.startswith("images")]
    console.files |= files
    marks = [open_volume(f) for n, f in files.items() if n.startswith(name)]
    sources = [volume for volume, _ in opened]
    check_same_spacing({f"images[{k}]": volume for k, volume in enumerate(sources)})
    if len({colours for _, colours in opened}) > 1:
        raise InvalidInput(
            "some of the images are in colours and others are not",
            argument="image",
            remedy="convert them to grey, or pick one channel of each: FILE:c=0",
        )
    return sources, marks, opened[0][1]


def run_predict(arguments: argparse.Namespace, console: Console) -> None:
    """Write the probabilities of one image, or of each of many."""
    from napari_agglo.pixels import load_pixel_classifier

    classifier = load_pixel_classifier(arguments.classifier)
    unknown = [one for one in arguments.classes or [] if one not in classifier.names]
    if unknown:
        raise InvalidInput(
            f"--classes names {unknown[0]}, and those of {arguments.classifier} are "
            f"{', '.join(classifier.names)}",
            argument="classes",
            remedy="name some of these",
        )
    if not arguments.each and not arguments.output.endswith(".zarr"):
        check_folder_output("-o", arguments.output)

    def work(files: Mapping[str, str], paths: dict[str, str]) -> Result:
        return _predict(arguments, console, classifier, files["image"], Path(paths["-o"]))

    files = {"image": arguments.image}
    one_or_each(arguments, console, files, {"-o": (arguments.output, "")}, work)


def _predict(
    arguments: argparse.Namespace,
    console: Console,
    classifier: PixelClassifier,
    file: str,
    output: Path,
) -> Result:
    from napari_agglo.pixels._probability_files import write_probabilities

    image, colours = open_image(console, file)
    voxel = asked_voxel_size(image, arguments.spacing, arguments.unit)
    options: dict[str, Any] = {"spacing": voxel.spacing, "channel_axis": -1 if colours else None}
    chosen = arguments.classes or list(classifier.names)
    if arguments.each:
        output.parent.mkdir(exist_ok=True)
    with console.progress() as progress:
        if output.suffix == ".zarr":
            write_probabilities(
                output, classifier, image.data, voxel, classes=chosen, **options, progress=progress
            )
            cues = [f"{name}={output}:{name}" for name in chosen]
        else:
            maps = classifier.predict(image.data, **options, progress=progress)
            _write_tiffs(output, {name: maps[name] for name in chosen}, voxel)
            cues = [f"{name}={output / name}.tif" for name in chosen]
    return (
        f"{output}: {', '.join(chosen)}, from 0 to 1\nas cues: --cues {' '.join(cues)}",
        {"output": str(output), "cues": dict(cue.split("=", 1) for cue in cues)},
    )


def _write_tiffs(folder: Path, probabilities: Mapping[str, Any], voxel: VoxelSize) -> None:
    from napari_agglo.volumes import replacing

    folder.mkdir(exist_ok=True)
    for name, probability in probabilities.items():
        with replacing(folder / f"{name}.tif") as temporary:
            write_tiff(temporary, probability, *voxel)
