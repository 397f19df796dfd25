"""From files to a merge tree, as `segment` and `curve` need it."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_agglo.cli._arguments import check_policy, cue_ranges
from napari_agglo.cli._words import command_words
from napari_agglo.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from napari_agglo._progress import ProgressCallback
    from napari_agglo.agglomeration import MergeTree
    from napari_agglo.cli._files import Inputs
    from napari_agglo.graph import RegionGraph
    from napari_agglo.policy import LearnedPolicy
    from napari_agglo.session import Session


# A session in place of superpixels and cues: its hierarchy with all edits.


BEFORE, WITH = "before edits", "with edits"
_OWN = ("cues", "range", "nan", "spacing", "dams", "policy", "seed")


def add_session(parser: argparse.ArgumentParser, what: str) -> None:
    """Add ``SESSION``, which may be left out, and let what it replaces be left out too."""
    parser.add_argument(
        "session",
        nargs="?",
        metavar="SESSION",
        help=f"folder NAME.agglo, in place of --superpixels and --cues: {what}; --superpixels is "
        "then needed only if they are no longer where the session looks for them",
    )


def is_session(text: str) -> bool:
    """Return whether a path is that of a session, or is meant to be.

    Examples
    --------
    >>> is_session("cells.agglo"), is_session("cells.tif")
    (True, False)
    """
    path = Path(text)
    return path.suffix == ".agglo" or (path / "manifest.json").is_file()


def given_session(arguments: argparse.Namespace, *needed: str) -> str | None:
    """Return the session, if one is given; refuse what does not go with it, or what is lacking.

    Parameters
    ----------
    arguments : Namespace
        As parsed.
    *needed : str
        What is required besides if there is no session, such as ``--gold``.
    """
    text: str | None = arguments.session
    error = arguments.parser.error
    if text is None:
        required = ("--superpixels", "--cues", *needed)
        missing = [name for name in required if not getattr(arguments, name[2:])]
        if missing:
            error(
                f"the following arguments are required: {', '.join(missing)}, or a session, "
                "NAME.agglo, in their place"
            )
        return None
    if not is_session(text):
        if arguments.superpixels or arguments.cues:
            quoted = "; a pattern must be in quotes" if getattr(arguments, "each", False) else ""
            error(f"unrecognized arguments: {text}{quoted}")
        raise InvalidInput(
            f"{text} is no session, which is a folder NAME.agglo; for images give --superpixels "
            "and --cues"
        )
    if getattr(arguments, "each", False):
        raise InvalidInput("--each is for folders of images; give sessions one by one")
    for name in _OWN:
        if getattr(arguments, name, None) != arguments.parser.get_default(name):
            raise InvalidInput(
                f"--{name} does not go with a session, which has its own cues and policy; drop it"
            )
    return text


@contextmanager
def open_session(
    path: str, superpixels: str | None, progress: ProgressCallback | None
) -> Iterator[Session]:
    """Open a session to read it, also while someone works on it."""
    from napari_agglo.session import Session

    try:
        opened = Session.open(path, read_only=True, superpixels=superpixels, progress=progress)
    except InvalidInput as error:
        said = str(error).replace("superpixels=PATH", "--superpixels FILE")
        raise InvalidInput(said.replace("`superpixels`", f"--superpixels {superpixels}")) from error
    with opened as session:
        yield session


def session_trees(
    session: Session, progress: ProgressCallback | None, *, before: bool = True
) -> dict[str, MergeTree]:
    """Return the hierarchy before all edits, if asked, and with them, of the same superpixels."""
    from napari_agglo.compare import refined

    session.look(progress, threshold=math.inf)
    edited = session.tree
    first = {BEFORE: refined(session.unedited_tree, edited.superpixels)} if before else {}
    return {**first, WITH: edited}


def session_golds(session: Session, files: Sequence[str] | None) -> list[NDArray[Any]]:
    """Return the gold standards of a command, or that of the session if it names none."""
    from napari_agglo.cli._arguments import gold_names, gold_options, load_golds
    from napari_agglo.cli._files import open_inputs
    from napari_agglo.cli._words import command_words

    if files:
        names = gold_names(gold_options(files))
        volumes: dict[str, Any] = dict(open_inputs(names, None).volumes)
        volumes["superpixels"] = session.graph.superpixels.image
        with command_words({**names, "superpixels": str(session.path)}):
            return load_golds(volumes, names, "superpixels")
    if session.gold is None:
        raise InvalidInput(
            f"{session.path} has no gold standard of its own; give one with --gold FILE"
        )
    return [session.gold]


def library_names(superpixels: str, cues: Mapping[str, str]) -> dict[str, str]:
    """Return what the library calls each input, and its file."""
    return {"superpixels": superpixels} | {f"cues[{name!r}]": file for name, file in cues.items()}


def check_pipeline(
    arguments: argparse.Namespace, cues: Mapping[str, str], policy: str | None = None
) -> None:
    """Refuse what the arguments alone show to be wrong, for the policy given or that of theirs."""
    policy = check_policy(arguments.policy if policy is None else policy)
    if policy == "mean" and "boundary" not in cues:
        raise InvalidInput(
            f"--policy mean needs a cue called boundary, not only {', '.join(cues)}; "
            "add --cues boundary=FILE"
        )
    cue_ranges(arguments.range, cues)
    if not 0 <= arguments.seed < 2**32:
        raise InvalidInput(f"--seed must be from 0 to {2**32 - 1}, not {arguments.seed}")


def build_tree(
    inputs: Inputs,
    cues: Mapping[str, str],
    arguments: argparse.Namespace,
    progress: ProgressCallback | None,
) -> MergeTree:
    """Agglomerate what has been opened."""
    from napari_agglo.agglomeration import agglomerate

    policy, ordered, bins = plan(arguments.policy, cues)
    graph = build_graph(inputs, ordered, arguments, progress, bins)
    return agglomerate(graph, policy, seed=arguments.seed, progress=progress)


def plan(
    given: str, cues: Mapping[str, str]
) -> tuple[LearnedPolicy | str, dict[str, str], int | None]:
    """Return a policy, and the cues in its order and the bins that its graph must have.

    No bins: the mean of each boundary is enough.
    """
    from napari_agglo.policy import load_policy

    if given.endswith(".npz"):
        policy = load_policy(given)
        wanted = policy.features.cues
        if set(wanted) != set(cues):
            raise InvalidInput(
                f"--policy {given} was trained on the cues {', '.join(wanted)}, and --cues gives "
                f"{', '.join(cues)}; give the same, e.g. --cues {wanted[0]}=FILE"
            )
        return policy, {name: cues[name] for name in wanted}, policy.features.bins
    if given in ("mean", "random"):
        return given, dict(cues), None
    if ":" in given and "" not in sys.path:
        sys.path.insert(0, "")  # a module in the working directory, as `python -m` finds it
    return given, dict(cues), 25


def build_graph(
    inputs: Inputs,
    cues: Mapping[str, str],
    arguments: argparse.Namespace,
    progress: ProgressCallback | None,
    bins: int | None,
) -> RegionGraph:
    """Return the graph of what has been opened: with histograms of so many bins, or the means."""
    from napari_agglo.graph import region_graph

    labels = inputs.volumes["superpixels"]
    evidence = {name: inputs.volumes[f"cues[{name!r}]"] for name in cues}
    _refuse_swapped(inputs, cues)
    with command_words(inputs.files):
        graph = region_graph(
            labels,
            evidence,
            spacing=arguments.spacing,
            ranges=cue_ranges(arguments.range, cues),
            statistics="mean" if bins is None else "all",
            bins=bins or 25,
            dams=arguments.dams,
            nan=arguments.nan,
            progress=progress,
        )
        if graph.n_regions == 0:
            raise InvalidInput(
                "`superpixels` holds no region: all its voxels are 0; make superpixels with "
                "napari-agglo oversegment"
            )
        return graph


def _refuse_swapped(inputs: Inputs, cues: Mapping[str, str]) -> None:
    labels = inputs.volumes["superpixels"]
    for name, file in cues.items():
        cue = inputs.volumes[f"cues[{name!r}]"]
        if labels.dtype.kind == "f" and cue.dtype.kind in "iu":
            raise InvalidInput(
                f"{inputs.files['superpixels']} holds {labels.dtype} and {file} {cue.dtype}: "
                "--superpixels, which are integers, and --cues seem to be swapped"
            )
