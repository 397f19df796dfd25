"""Provenance of a result: a JSON file beside it with versions, settings and checksums.

``labels.tif`` gets ``labels.tif.json``. The same command on the same files with the same versions
writes the same bytes but for the member ``run``, which has the time and the machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from napari_agglo._version import __version__
from napari_agglo.cli._files import place

_PACKAGES = (
    "numpy", "scipy", "numba", "scikit-image", "scikit-learn", "pandas", "networkx", "h5py",
    "tifffile", "zarr", "numcodecs", "dask", "distributed",
)  # fmt: skip
_INPUTS = (
    "boundary", "affinities", "mask", "seeds", "superpixels", "cues", "gold", "image", "images",
    "labels", "session", "policy", "classifier", "volumes", "mapping", "segmentation", "table",
    "oriented", "words",
)  # fmt: skip
_OUTPUTS = ("output", "breakdown", "tree", "plot")
_SESSION = ("session",)  # the output of commands that make or change one
_NOT_SETTINGS = ("run", "parser", "provenance", "verbosity", "json", "records")
_BLOCK = 1 << 20


def add_provenance(parser: argparse.ArgumentParser) -> None:
    """Add ``--no-provenance``."""
    parser.add_argument(
        "--no-provenance", dest="provenance", action="store_false",
        help="write no OUTPUT.json with versions, settings and checksums beside the output",
    )  # fmt: skip


def provenance_file(output: str, suffix: str = "") -> Path:
    """Return the file beside an output; a key in a file becomes part of the name.

    Examples
    --------
    >>> provenance_file("a/labels.tif").as_posix(), provenance_file("b.h5:seg/x").as_posix()
    ('a/labels.tif.json', 'b.h5.seg.x.json')
    """
    path, key = place(output)
    given = output[: len(output) - len(key) - 1] if key is not None else output
    name = ".".join([path.name, *(part for part in (key or "").split("/") if part)])
    return Path(given.rstrip("/\\")).with_name(f"{name}{suffix}.json")


def write_provenance(arguments: argparse.Namespace, command: str, began: datetime) -> None:
    """Write the record of a command that has ended well, if it wrote a file that is there.

    Commands that make or change a session have a default `records`, the suffix of their record: the
    record of edits that are applied stands beside that of the session.
    """
    from napari_agglo.volumes import replacing

    suffix = getattr(arguments, "records", None)
    outputs = _OUTPUTS if suffix is None else _SESSION
    named = (getattr(arguments, name, None) for name in (*outputs, "folder"))
    output = next((text for text in named if text), None)
    if not getattr(arguments, "provenance", False) or not output:
        return
    if not place(output)[0].exists():
        return
    record = {
        "napari-agglo": __version__,
        "command": command,
        "settings": _settings(arguments),
        "inputs": {text: checksum(place(text)[0]) for text in _inputs(arguments, outputs)},
        "outputs": {text: checksum(place(text)[0]) for text in sorted(_files(arguments, outputs))}
        | _volumes_of_run(arguments),
        "versions": {"python": platform.python_version(), **_versions()},
        "run": {
            "began": began.isoformat(timespec="seconds"),
            "seconds": round((datetime.now(UTC) - began).total_seconds(), 1),
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        },
    }
    with replacing(provenance_file(output, suffix or "")) as temporary:
        temporary.write_text(json.dumps(record, indent=2, default=str) + "\n", encoding="utf-8")


def _volumes_of_run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the volumes in the folder of a block-wise run with their bytes.

    They have no checksum: they may be larger than what can be read in the time of a run.
    """
    folder = getattr(arguments, "folder", None)
    if folder is None:
        return {}
    volumes = [*Path(folder).glob("*.zarr"), *Path(folder).glob("*.precomputed")]
    return {
        volume.as_posix(): {
            "bytes": sum(file.stat().st_size for file in volume.rglob("*") if file.is_file())
        }
        for volume in sorted(volumes)
    }


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return every option of the command with its value, also those left at their default."""
    settings = {
        name: [asdict(one) for one in value] if _are_records(value) else value
        for name, value in sorted(vars(arguments).items())
        if name not in _NOT_SETTINGS and not callable(value)
    }
    threshold = settings.get("threshold")
    if isinstance(threshold, float) and threshold < 0:
        from napari_agglo.agglomeration import BEFORE, is_before

        settings["threshold"] = BEFORE if is_before(threshold) else threshold
    return settings


def _are_records(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(is_dataclass, value))


def _files(arguments: argparse.Namespace, names: tuple[str, ...]) -> set[str]:
    """Return the texts of some options that name a file or folder that is there."""
    texts = (text for name in names for text in _texts(getattr(arguments, name, None)))
    return {text for text in texts if "://" not in text and place(text)[0].exists()}


def _inputs(arguments: argparse.Namespace, outputs: tuple[str, ...]) -> list[str]:
    """Return the files that a command read; of a block-wise run its plan, which names them."""
    names = tuple(name for name in _INPUTS if name not in outputs)
    files = _files(arguments, names)
    folder = getattr(arguments, "folder", None)
    return sorted(files if folder is None else files | {str(Path(folder) / "plan.json")})


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _texts(list(asdict(value).values()))
    elif isinstance(value, Mapping):
        yield from _texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def checksum(path: Path) -> dict[str, Any]:
    """Return size and SHA-256 of a file, or of all files of a folder with their names."""
    digest, size = hashlib.sha256(), 0
    if path.is_file():
        files = [path]
    else:
        paths = (Path(root) / name for root, _, names in os.walk(path) for name in names)
        files = sorted(file for file in paths if file.is_file())
    for file in files:
        if file != path:
            digest.update(file.relative_to(path).as_posix().encode() + b"\0")
        with file.open("rb") as handle:
            while block := handle.read(_BLOCK):
                digest.update(block)
                size += len(block)
    return {"bytes": size, "sha256": digest.hexdigest()}


def _versions() -> dict[str, str]:
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions
