"""From the words of the library to those of the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from napari_agglo.cli._messages import render
from napari_agglo.errors import InvalidInput

Files = Mapping[str, str]
_OPTIONS = {
    "spacing": "--spacing", "sigma": "--sigma", "min_size": "--min-size", "seed": "--seed",
    "kind": "KIND", "threshold": "--threshold", "policy": "--policy", "source": "FILE",
    "ranges": "--range", "value_range": "--range", "nan": "--nan", "per_plane": "--per-plane",
    "scale": "--scale",
}  # fmt: skip


@contextmanager
def command_words(files: Files) -> Iterator[None]:
    """Raise errors of the block again with files and options in place of arguments."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(render(error, {**_OPTIONS, **files})) from error
