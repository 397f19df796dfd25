"""`napari-agglo warm`: compilation of the kernels beforehand."""

from __future__ import annotations

import argparse
import time

from napari_agglo.cli._arguments import add_json
from napari_agglo.cli._terminal import Console

NAME = "warm"
SUMMARY = "compile the kernels of all commands and of napari beforehand"
DESCRIPTION = (
    "Compile the kernels and keep them in a cache, which takes about a minute on a new machine or\n"
    "after an update. Otherwise commands, scripts and napari compile the kernels that they need.\n"
    "Run it once where the package is installed for others."
)
EXAMPLE = "napari-agglo warm -v"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_json(parser)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Compile, and print how long it took and where the kernels are."""
    from napari_agglo.session import NOT_KEPT, cache_folder, warm_up

    begun = time.perf_counter()
    with console.progress() as progress:
        warm_up(progress=progress)
    seconds = time.perf_counter() - begun
    folder = cache_folder()
    place = NOT_KEPT if folder is None else f"They are kept in {folder}."
    console.result(
        f"Kernels are ready after {seconds:.0f} s. {place}",
        {"seconds": seconds, "folder": None if folder is None else str(folder)},
    )
