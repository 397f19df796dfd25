"""Many separate images, one after another, for ``--each``."""

from __future__ import annotations

import argparse
import glob
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from napari_agglo.cli._files import check_folder_output, refusal, refuse_clash
from napari_agglo.cli._messages import SomeFailed
from napari_agglo.cli._terminal import Console
from napari_agglo.errors import InvalidInput

Result = tuple[str, dict[str, Any]]
SUFFIXES = (
    ".tif", ".tiff", ".png", ".jpg", ".jpeg", ".bmp", ".npy", ".npz", ".h5", ".hdf5", ".zarr"
)  # fmt: skip


def add_each(parser: argparse.ArgumentParser, text: str) -> None:
    """Add ``--each``; `text` says what becomes of the outputs."""
    parser.add_argument(
        "--each",
        action="store_true",
        help="the inputs are folders of separate images of the same names, or patterns such as "
        f'"maps/*_b.tif", matched by the text in place of the *; {text}',
    )


def one_or_each(
    arguments: argparse.Namespace,
    console: Console,
    files: Mapping[str, str],
    outputs: Mapping[str, tuple[str | None, str]],
    work: Callable[[Mapping[str, str], dict[str, str]], Result],
) -> None:
    """Call `work` with the files and outputs of one image, or with ``--each`` of each of many.

    `outputs` maps an option to its text, None for no output, and to the suffix of the files in it
    where it is a folder.
    """
    texts = {option: text for option, (text, _) in outputs.items() if text is not None}
    if not arguments.each:
        refuse_clash(console, texts, files)
        console.result(*work(files, texts))
        return
    images = partners(console, files)
    check_each(console, images, files, outputs)

    def work_in_folders(name: str, files: Mapping[str, str]) -> Result:
        paths = {o: str(Path(text) / f"{name}{outputs[o][1]}") for o, text in texts.items()}
        return work(files, paths)

    for_each(console, images, work_in_folders)


def partners(console: Console, inputs: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Pair up the images of several folders or patterns, `inputs` by their names in the library.

    Return, by the name of each image in alphabetical order, its paths by their names in the
    library. The name of an image is that of its file without suffix, or the text in place of the
    ``*`` of a pattern.
    """
    listings = {name: _images(console.option(name), text) for name, text in inputs.items()}
    everything = set().union(*listings.values())
    lacking = [
        f"{console.option(name)} {inputs[name]} has no {_some(everything - listing.keys())}"
        for name, listing in listings.items()
        if everything - listing.keys()
    ]
    if lacking:
        raise InvalidInput(
            f"with --each the names must agree: {'; '.join(lacking)}",
            argument="each",
            remedy="name the files alike, or choose some by a pattern",
        )
    return {
        image: {name: listing[image] for name, listing in listings.items()}
        for image in sorted(everything)
    }


def check_each(
    console: Console,
    images: Mapping[str, Mapping[str, str]],
    inputs: Mapping[str, str],
    outputs: Mapping[str, tuple[str | None, str]],
) -> None:
    """Refuse an output folder whose files would replace an input.

    `partners` takes `inputs` and returns `images`; `outputs` maps an option to its folder, None for
    no output, and the suffix of the files in it.
    """
    sources = {Path(f).resolve(): f for files in images.values() for f in files.values()}
    taken: dict[Path, str] = {}
    for option, (folder, suffix) in outputs.items():
        if folder is None:
            continue
        check_folder_output(option, folder)
        for name, text in inputs.items():
            if Path(text).resolve() == Path(folder).resolve():
                raise refusal(
                    option, folder, f"{console.option(name)} is read from there", "choose another"
                )
        for name in images:
            path = (Path(folder) / f"{name}{suffix}").resolve()
            if path in sources:
                problem = f"it would replace {sources[path]}, which is read"
                raise refusal(option, folder, problem, "choose another folder")
            if path in taken:
                raise refusal(option, folder, f"it is also {taken[path]}", "choose another")
            taken[path] = option


def for_each(
    console: Console,
    images: Mapping[str, Mapping[str, str]],
    work: Callable[[str, Mapping[str, str]], Result | None],
) -> None:
    """Call `work` for each image and print its results; go on after a failure, and end with it.

    Results are printed one by one, or with ``--json`` as one object at the end. `work` leaves its
    files whole, so that finished images are kept whatever happens to the rest.
    """
    failed: dict[str, int] = {}
    done: dict[str, Result | None] = {}
    try:
        for number, (name, files) in enumerate(images.items()):
            console.image = (number, len(images))
            try:
                done[name] = work(name, files)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(
                    f"interrupted; {len(done)} of {len(images)} done and kept"
                ) from None
            except Exception as error:
                failed[name] = console.fail(error, name)
                continue
            if (result := done[name]) is not None and not console.as_json:
                console.result(*result)
    finally:
        reports = {name: result[1] for name, result in done.items() if result is not None}
        if console.as_json and reports:
            console.result("", {"images": reports})
    if failed:
        raise SomeFailed(
            f"{len(done)} of {len(images)} done; failed: {', '.join(failed)}",
            min(failed.values()),
        )


def _images(option: str, text: str) -> dict[str, str]:
    folder = Path(text)
    if folder.is_dir():
        files = [f for f in folder.iterdir() if f.suffix.lower() in SUFFIXES and f.name[0] != "."]
        named = [(_stem(f), str(f)) for f in files]
    elif "*" in text:
        named = _matching(option, text)
    else:
        problem = "with --each this must be a folder of images, or a pattern"
        raise refusal(option, text, problem, 'give one such as "maps/*.tif" in quotes')
    if not named:
        problem = f"no image there ({', '.join(SUFFIXES)})"
        raise refusal(option, text, problem, "name a folder with some")
    images: dict[str, str] = {}
    for name, path in sorted(named):
        if name in images:
            raise refusal(
                option, text, f"{images[name]} and {path} have one name",
                f'name one kind by a pattern, e.g. "{Path(path).with_stem("*")}"',
            )  # fmt: skip
        images[name] = path
    return images


def _stem(path: Path) -> str:
    return re.sub(r"\.ome$", "", path.stem, flags=re.IGNORECASE)


def _matching(option: str, text: str) -> list[tuple[str, str]]:
    """Return (text in place of the star, PATH:KEY) of the files that match a pattern."""
    if text.count("*") != 1:
        raise refusal(option, text, "a pattern must have one *", "put it for the image's name")
    keyed = re.fullmatch(r"(.*\*[^:]*)(:.*)?", text, re.DOTALL)
    pattern, key = (keyed[1], keyed[2] or "") if keyed else (text, "")
    before, after = map(re.escape, Path(pattern).as_posix().split("*"))
    shape = re.compile(f"{before}([^/]+){after}", re.DOTALL)
    matches = []
    literal = "*".join(glob.escape(part) for part in pattern.split("*"))
    for path in glob.glob(literal):
        match = shape.fullmatch(Path(path).as_posix())
        if match:
            matches.append((match[1], path + key))
    return matches


def _some(names: set[str]) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
    return ", ".join(listed[:5]) + more
