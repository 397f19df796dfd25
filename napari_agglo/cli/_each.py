"""Many separate images, one after another, for ``--each``."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from napari_agglo.cli._files import check_folder_output
from napari_agglo.cli._messages import SomeFailed, describe, say
from napari_agglo.errors import InvalidInput

SUFFIXES = (
    ".tif", ".tiff", ".png", ".jpg", ".jpeg", ".bmp", ".npy", ".npz", ".h5", ".hdf5", ".zarr"
)  # fmt: skip
HELP = (
    "the inputs are folders of separate images of the same names, or patterns such as "
    '"maps/*_b.tif", matched by what the * stands for'
)


def partners(inputs: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Pair up the images of several folders or patterns by their names.

    Parameters
    ----------
    inputs : mapping of str to str
        What each holds, as a message would call it, and a folder or a pattern.

    Returns
    -------
    dict
        Name to (what it is to path), in alphabetical order. The name is that of the file without
        suffix, or what the ``*`` of a pattern stands for.
    """
    listings = {what: _images(what, text) for what, text in inputs.items()}
    everything = set().union(*listings.values())
    lacking = [
        f"{what} {inputs[what]} has no {_some(everything - listing.keys())}"
        for what, listing in listings.items()
        if everything - listing.keys()
    ]
    if lacking:
        raise InvalidInput(f"with --each the names must agree: {'; '.join(lacking)}")
    return {
        name: {what: listing[name] for what, listing in listings.items()}
        for name in sorted(everything)
    }


def check_each(
    images: Mapping[str, Mapping[str, str]],
    inputs: Mapping[str, str],
    outputs: Mapping[str, tuple[str, str]],
) -> None:
    """Refuse, before the work, what would replace an input.

    Parameters
    ----------
    images : mapping
        As `partners` gives them.
    inputs : mapping of str to str
        As `partners` takes them.
    outputs : mapping of str to (str, str)
        Option to (folder, suffix of the files in it).
    """
    sources = {Path(f).resolve(): f for files in images.values() for f in files.values()}
    taken: dict[Path, str] = {}
    for option, (folder, suffix) in outputs.items():
        check_folder_output(option, folder)
        for what, text in inputs.items():
            if Path(text).resolve() == Path(folder).resolve():
                raise InvalidInput(
                    f"{option} {folder} is the folder that {what} is read from; choose another"
                )
        for name in images:
            path = (Path(folder) / f"{name}{suffix}").resolve()
            if path in sources:
                raise InvalidInput(
                    f"{option} {folder} would replace {sources[path]}, which is read; "
                    "choose another folder"
                )
            if path in taken:
                raise InvalidInput(f"{option} {folder} is also {taken[path]}; choose another")
            taken[path] = option


def for_each(
    images: Mapping[str, dict[str, str]], work: Callable[[str, dict[str, str]], str | None]
) -> None:
    """Do `work` for each image and print what it returns; go on after a failure, and end with it.

    What is done stays done: `work` leaves its files whole.
    """
    failed: dict[str, int] = {}
    done = 0
    for name, files in images.items():
        try:
            said = work(name, files)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted; {done} of {len(images)} done and kept") from None
        except Exception as error:
            message, failed[name] = describe(error, {})
            say(message if name in message else f"{name}: {message}")
            continue
        done += 1
        if said is not None:
            print(said, flush=True)
    if failed:
        raise SomeFailed(
            f"{done} of {len(images)} done; failed: {', '.join(failed)}", min(failed.values())
        )


def _images(what: str, text: str) -> dict[str, str]:
    folder = Path(text)
    if folder.is_dir():
        files = [f for f in folder.iterdir() if f.suffix.lower() in SUFFIXES and f.name[0] != "."]
        named = [(_stem(f), str(f)) for f in files]
    elif "*" in text:
        named = _matching(what, text)
    else:
        raise InvalidInput(
            f"{what} {text}: with --each this must be a folder of images, or a pattern such as "
            '"maps/*.tif" in quotes'
        )
    if not named:
        raise InvalidInput(f"{what} {text}: no image there ({', '.join(SUFFIXES)})")
    images: dict[str, str] = {}
    for name, path in sorted(named):
        if name in images:
            raise InvalidInput(
                f"{what} {text}: {images[name]} and {path} have one name; name one kind by a "
                f'pattern, e.g. "{Path(path).with_stem("*")}"'
            )
        images[name] = path
    return images


def _stem(path: Path) -> str:
    return re.sub(r"\.ome$", "", path.stem, flags=re.IGNORECASE)


def _matching(what: str, text: str) -> list[tuple[str, str]]:
    """Return (what the star stands for, PATH:KEY) of the files that a pattern matches."""
    if text.count("*") != 1:
        raise InvalidInput(f"{what} {text}: a pattern must have one *, for the image's name")
    keyed = re.fullmatch(r"(.*\*[^:]*)(:.*)?", text, re.DOTALL)
    pattern, key = (keyed[1], keyed[2] or "") if keyed else (text, "")
    before, after = map(re.escape, Path(pattern).as_posix().split("*"))
    shape = re.compile(f"{before}([^/]+){after}", re.DOTALL)
    found = []
    literal = "*".join(glob.escape(part) for part in pattern.split("*"))
    for path in glob.glob(literal):
        match = shape.fullmatch(Path(path).as_posix())
        if match:
            found.append((match[1], path + key))
    return found


def _some(names: set[str]) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
    return ", ".join(listed[:5]) + more
