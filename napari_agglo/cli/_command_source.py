"""The source of a command: the superpixels, cues and gold of an image, in files or a session."""

from __future__ import annotations

import argparse
import math
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_agglo.cli._arguments import (
    AFFINITY,
    BOUNDARY,
    add_value,
    check_policy,
    cue_names,
    cue_ranges,
    gold_files,
    graph_files,
    policy_names,
    refuse_beyond,
)
from napari_agglo.cli._files import asked_voxel_size, load_golds, open_inputs
from napari_agglo.cli._terminal import GRAPH, SESSION, TREE, Console, Stages
from napari_agglo.errors import InvalidInput, SetOption, check_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from napari_agglo._progress import ProgressCallback
    from napari_agglo.agglomeration import MergeTree
    from napari_agglo.graph import RegionGraph
    from napari_agglo.policy import Policy
    from napari_agglo.session import Session
    from napari_agglo.volumes import Affinities, OrientedMap, Volume

BEFORE, WITH = "before edits", "with edits"
OWN = " *"  # after the name of an image that a policy was trained on
OWN_NOTE = "* on its own training data: expect a larger error on other data"
# Options that do not go with a session, which has its own cues.
_NOT_OF_SESSIONS = (
    "cues", "affinities", "oriented", "words", "offsets", "range", "nan", "spacing", "dams", "seed",
    "adapt", "method", "beta",
)  # fmt: skip


class FileSource:
    """An image in files, agglomerated by policies.

    Attributes
    ----------
    spacing : tuple of float, optional
        Distance between voxels along each axis, if known.
    unit : str, optional
        Unit of the spacing, if known.
    ndim : int
        Number of axes of the image.
    origin : tuple of float, optional
        Place of the first voxel in a larger volume, if the superpixels state it.
    has_gold : bool
        Whether there is a gold standard.
    records : dict
        The training record of each learned policy, after `trees`.
    trained_here : set of str
        The hierarchies by a policy that was trained on this very image, after `trees`.
    seconds : dict of str to float
        CPU seconds of the choice of segments by each policy, without its graph, after `trees`; none
        of a session, whose segments are chosen already.
    """

    def __init__(
        self,
        arguments: argparse.Namespace,
        console: Console,
        files: Mapping[str, str],
        policies: Mapping[str, str],
    ) -> None:
        self._arguments = arguments
        self._console = console
        self._policies = policies
        self._cues = cue_names(files)
        self._affinities = files.get("affinities")
        self._oriented = files.get("oriented")
        needed = {n: f for n, f in files.items() if n.partition("[")[0] in _ON_ONE_GRID}
        inputs = open_inputs(console, needed, arguments.spacing, arguments.unit)
        self.volumes = inputs.volumes
        self.spacing = inputs.spacing
        self.unit = inputs.unit
        self.ndim = inputs.volumes["superpixels"].ndim
        self.origin = inputs.volumes["superpixels"].origin
        self.has_gold = "gold" in files
        self.records: dict[str, dict[str, Any]] = {}
        self.trained_here: set[str] = set()
        self.seconds: dict[str, float] = {}
        self._graphs: dict[tuple[Any, ...], RegionGraph] = {}

    def graph(
        self,
        progress: ProgressCallback | None,
        cues: list[str] | None = None,
        bins: int | None = None,
    ) -> RegionGraph:
        """Return the graph with histograms of so many bins, or means only; built once for each."""
        from napari_agglo.graph import DEFAULT_BINS, region_graph
        from napari_agglo.volumes import word_cue

        cues = self._cues if cues is None else cues
        if (*cues, bins) in self._graphs:
            return self._graphs[*cues, bins]
        ranges = cue_ranges(self._arguments.range, cues) or {}
        evidence: dict[str, Any] = {}
        for name in cues:
            if name == AFFINITY and self._affinities is not None:
                evidence[name] = read_affinities(
                    self._console, self._affinities, self._arguments, progress
                )
                ranges.pop(name, None)
            elif name == BOUNDARY and self._oriented is not None:
                evidence[name] = read_oriented(
                    self._console, self._oriented, self._arguments, ranges.pop(name, None)
                )
            else:
                evidence[name] = self.volumes[f"cues[{name!r}]"]
                self._refuse_swapped(name)
        for name, volume in self.volumes.items():
            if name.startswith("words[") and bins is not None:
                evidence[name[7:-2]] = word_cue(volume, _WORDS)
        graph = region_graph(
            self.volumes["superpixels"],
            evidence,
            spacing=self._arguments.spacing,
            unit=self._arguments.unit,
            ranges=ranges or None,
            statistics="mean" if bins is None else "all",
            bins=bins or DEFAULT_BINS,
            dams=self._arguments.dams,
            nan=self._arguments.nan,
            progress=progress,
        )
        if graph.n_regions == 0:
            raise InvalidInput(
                "`superpixels` holds no region: all its voxels are 0",
                argument="superpixels",
                remedy="make superpixels with napari-agglo oversegment",
            )
        self._graphs[*cues, bins] = graph
        return graph

    def trees(self, progress: ProgressCallback | None) -> dict[str, MergeTree]:
        """Agglomerate by each policy, on as few graphs as they need."""
        from napari_agglo.partition import build_tree
        from napari_agglo.policy import as_policy, is_training_data, policy_record

        method, beta = self._arguments.method or "threshold", self._arguments.beta
        if beta is not None and method != "multicut":
            raise InvalidInput(
                f"--beta is an option of the multicut, and the method is {method}",
                argument="beta",
                remedy=SetOption("method", "multicut"),
            )
        options = {} if beta is None else {"beta": beta}
        trees = {}
        for name, text in self._policies.items():
            policy, cues, bins = read_policy(
                text, self._cues, self._affinities is not None, self._oriented is not None
            )
            policy = as_policy(policy, self._arguments.seed)
            graph = self.adapted(self.graph(progress, cues, bins), policy, progress)
            began = time.thread_time()
            trees[name] = build_tree(graph, policy, method, progress=progress, **options)
            self.seconds[name] = time.thread_time() - began
            if is_training_data(policy, graph):
                self.trained_here.add(name)
            if (record := policy_record(policy)) is not None:
                self.records[name] = record
        return trees

    def adapted(
        self, graph: RegionGraph, policy: Policy, progress: ProgressCallback | None
    ) -> RegionGraph:
        """Print the differences from the data of the training; adapt the cues if asked to."""
        from napari_agglo.graph import region_graph
        from napari_agglo.policy import adapt_cues, data_differences

        differences = data_differences(policy, graph)
        adapted = [one.cue for one in differences if one.cue and self._arguments.adapt]
        for one in differences:
            if one.cue not in adapted:
                self._console.warn(str(one))
        if not adapted:
            return graph
        cues = adapt_cues(policy, graph)
        self._console.note(f"adapted to the training: {', '.join(adapted)}")
        return region_graph(
            self.volumes["superpixels"],
            cues,
            spacing=self._arguments.spacing,
            unit=self._arguments.unit,
            bins=graph.layout.bins,
            dams=self._arguments.dams,
            progress=progress,
        )

    def golds(self) -> list[NDArray[Any]]:
        """Return the gold standards as arrays of the shape of the superpixels."""
        return load_golds(self.volumes, self.volumes["superpixels"], "superpixels")

    def _refuse_swapped(self, name: str) -> None:
        labels, cue = self.volumes["superpixels"], self.volumes[f"cues[{name!r}]"]
        if labels.dtype.kind == "f" and cue.dtype.kind in "iu":
            raise InvalidInput(
                f"`superpixels` holds {labels.dtype} and `cues[{name!r}]` {cue.dtype}: "
                "--superpixels, which are integers, and --cues seem to be swapped",
                argument="superpixels",
                remedy="exchange them",
            )


def read_affinities(
    console: Console,
    file: str,
    arguments: argparse.Namespace,
    progress: ProgressCallback | None = None,
    limits: tuple[float, float] | None = None,
) -> Affinities:
    """Read the affinities of a file; their range is `limits`, or the one named in ``--range``."""
    from napari_agglo.volumes import add_pick, affinities, open_volume

    console.files["affinities"] = file
    if hasattr(arguments, "cues"):  # a command with several cues, whose ranges have names
        console.options["value_range"] = f"--range {AFFINITY}"
    volume = _in_unit(open_volume(add_pick(file, "c=*")), arguments)
    if limits is None and isinstance(arguments.range, list):
        limits = next((r for name, r in reversed(arguments.range) if name == AFFINITY), None)
    return affinities(
        volume, arguments.offsets, value_range=limits, nan=arguments.nan, progress=progress
    )


def read_oriented(
    console: Console,
    file: str,
    arguments: argparse.Namespace,
    limits: tuple[float, float] | None = None,
) -> OrientedMap:
    """Read the oriented boundary map of a file."""
    from napari_agglo.volumes import add_pick, open_volume, oriented_map

    console.files["array"] = file
    volume = _in_unit(open_volume(add_pick(file, "c=*")), arguments)
    if limits is None and volume.dtype == "uint8":
        limits = (0.0, 255.0)
    return oriented_map(volume, value_range=limits, nan=arguments.nan)


def _in_unit(volume: Volume, arguments: argparse.Namespace) -> Volume:
    """Return channels with their spacing in the unit of the command, or none if one is given."""
    if arguments.spacing is not None:
        return replace(volume, spacing=None, unit=None)
    voxel = asked_voxel_size(volume, None, arguments.unit)
    return replace(volume, spacing=voxel.spacing, unit=voxel.unit)


_ON_ONE_GRID = ("superpixels", "cues", "words", "gold")
_WORDS = 256  # of every image, so that all have the same number


class SessionSource:
    """A session: its hierarchy with all edits, and the one before them if `before`.

    It has the attributes of `FileSource`.
    """

    def __init__(
        self,
        session: Session,
        console: Console,
        files: Mapping[str, str],
        before: bool,
        unit: str | None = None,
    ) -> None:
        self.session = session
        self._console = console
        self._gold_files = {n: f for n, f in files.items() if n.partition("[")[0] == "gold"}
        self._before = before
        self.spacing, self.unit = session.graph.voxel_size.in_unit(unit)
        self.ndim = session.graph.superpixels.image.ndim
        self.origin: tuple[float, ...] | None = None
        self.has_gold = bool(self._gold_files) or session.errors.gold is not None
        self.records: dict[str, dict[str, Any]] = {}
        self.trained_here: set[str] = set()
        self.seconds: dict[str, float] = {}

    def graph(self, progress: ProgressCallback | None) -> RegionGraph:
        """Return the graph of the session, with the superpixels that edits have cut."""
        return self.session.graph

    def trees(self, progress: ProgressCallback | None) -> dict[str, MergeTree]:
        """Return the hierarchies of the same superpixels, before edits and with them."""
        from napari_agglo.compare import refined
        from napari_agglo.policy import is_training_data, policy_record

        if (record := policy_record(self.session.policy)) is not None:
            self.records[self.session.path.stem] = record
        self.session.look(progress, threshold=math.inf)
        edited = self.session.tree
        if is_training_data(self.session.policy, self.session.graph):
            self.trained_here = {BEFORE, WITH} if self._before else {WITH}
        if not self._before:
            return {WITH: edited}
        return {
            BEFORE: refined(self.session.history.unedited_tree, edited.superpixels),
            WITH: edited,
        }

    def golds(self) -> list[NDArray[Any]]:
        """Return the gold standards of the command, or that of the session if it names none."""
        if self._gold_files:
            volumes = open_inputs(self._console, self._gold_files).volumes
            return load_golds(volumes, self.session.graph.superpixels.image, "superpixels")
        return [own_gold(self.session)]


def own_gold(session: Session) -> NDArray[Any]:
    """Return the gold standard that a session has."""
    gold: NDArray[Any] | None = session.errors.gold
    if gold is None:
        raise InvalidInput(
            f"{session.path} has no gold standard of its own",
            argument="gold",
            remedy=SetOption("gold"),
        )
    return gold


def add_session(parser: argparse.ArgumentParser, text: str) -> None:
    """Add ``SESSION``, which may be left out."""
    text = f"folder NAME.agglo, in place of --superpixels and --cues: {text}"
    text += "; --superpixels is then needed only if the session no longer finds them"
    add_value(parser, "session", "SESSION", text, nargs="?")


def add_session_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--superpixels`` and ``--policy`` to a command that takes a session and no images."""
    text = "needed only if the session no longer finds them"
    add_value(parser, "--superpixels", "FILE", text)
    text = (
        "the Python function that is the policy of the session, which a file does not import; "
        "without it, the session is read-only"
    )
    add_value(parser, "--policy", "MODULE:FUNCTION", text)


def is_session(text: str) -> bool:
    """Return whether a path is that of a session, or is meant to be.

    Examples
    --------
    >>> is_session("cells.agglo"), is_session("cells.tif")
    (True, False)
    """
    path = Path(text)
    return path.suffix == ".agglo" or (path / "manifest.json").is_file()


def input_files(arguments: argparse.Namespace, *needed: str) -> dict[str, str]:
    """Return the files that a command reads, by their names in the library.

    `needed` are options that are required, besides superpixels and cues, where there is no session.
    """
    if arguments.session is None:
        check_threshold(arguments)
        evidence = arguments.affinities or arguments.oriented
        required = ("--superpixels", *(() if evidence else ("--cues",)), *needed)
        missing = [name for name in required if not getattr(arguments, name[2:])]
        if missing:
            arguments.parser.error(
                f"the following arguments are required: {', '.join(missing)}, or a session, "
                "NAME.agglo, in their place"
            )
        files = graph_files(
            arguments.superpixels, arguments.cues, arguments.affinities, arguments.oriented,
            arguments.words,
        )  # fmt: skip
    else:
        _check_session(arguments)
        files = {"session": arguments.session}
    gold = getattr(arguments, "gold", None)
    files |= gold_files([gold] if isinstance(gold, str) else gold)
    if getattr(arguments, "image", None):
        files["image"] = arguments.image
    return files


def _check_session(arguments: argparse.Namespace) -> None:
    """Refuse a path that is not a session, and options that do not go with one."""
    text, each = arguments.session, getattr(arguments, "each", False)
    if not is_session(text):
        given = ("superpixels", "cues", "affinities", "oriented", "words")
        if any(getattr(arguments, name) for name in given):
            quoted = "; a pattern must be in quotes" if each else ""
            arguments.parser.error(f"unrecognized arguments: {text}{quoted}")
        raise InvalidInput(
            f"{text} is not a session, which is a folder NAME.agglo",
            argument="session",
            remedy="for images give --superpixels and --cues",
        )
    if each:
        raise InvalidInput(
            "--each is for folders of images", argument="each", remedy="give sessions one by one"
        )
    for name in _NOT_OF_SESSIONS:
        if getattr(arguments, name, None) != arguments.parser.get_default(name):
            raise InvalidInput(
                f"--{name} does not go with a session, which has its own cues",
                argument=name,
                remedy="drop it",
            )
    _session_function(arguments)


def _session_function(arguments: argparse.Namespace) -> str | None:
    """Return the function that a user names as the policy of a session; refuse other policies."""
    given = arguments.policy
    if given == arguments.parser.get_default("policy"):
        return None
    texts = [given] if isinstance(given, str) else given
    if len(texts) > 1 or ":" not in texts[0] or texts[0].endswith(".npz"):
        raise InvalidInput(
            f"A session has its own policy: --policy can only be the function MODULE:FUNCTION that "
            f"the session was created with, not {' '.join(texts)}",
            argument="policy",
            remedy="drop it",
        )
    return str(texts[0])


def check_threshold(arguments: argparse.Namespace) -> None:
    """Refuse a threshold that does not fit a policy of the command."""
    threshold, given = getattr(arguments, "threshold", None), arguments.policy or "mean"
    if threshold is None or 0 <= threshold <= 1:  # which fits any
        return
    from napari_agglo.policy import is_bounded

    for text in [given] if isinstance(given, str) else given:
        learned = check_policy(text).endswith(".npz")
        refuse_beyond(threshold, text, learned or is_bounded(find_policy(text)))


def check_policies(arguments: argparse.Namespace, files: Mapping[str, str]) -> dict[str, str]:
    """Return the policies of a command by name; refuse one that does not fit its cues.

    A policy is read here, so that one that cannot be used is reported before the work. A session
    has its own: then there are none.
    """
    if "session" in files:
        return {}
    cues = cue_names(files)
    given = arguments.policy or ["mean"]
    policies = policy_names([given] if isinstance(given, str) else given)
    for policy in policies.values():
        if check_policy(policy) == "mean" and not {BOUNDARY, AFFINITY} & set(cues):
            raise InvalidInput(
                f"--policy mean needs a cue called boundary, not only {', '.join(cues)}",
                argument="cues",
                remedy=SetOption("cues", key="boundary"),
            )
        read_policy(policy, cues, "affinities" in files, "oriented" in files)
    cue_ranges(arguments.range, cues)
    check_whole("seed", arguments.seed, 0, 2**32 - 1)
    return policies


def read_policy(
    text: str, cues: list[str], affinities: bool = False, oriented: bool = False
) -> tuple[Policy | str, list[str], int | None]:
    """Return a policy, the cues in its order, and the bins that its graph must have.

    No bins: the mean of each boundary is enough. Cues that are parts of affinities, or of an
    oriented map, count as one.
    """
    from napari_agglo.policy import load_policy

    if text in ("mean", "oriented mean", "random"):
        return text, cues, None
    if not text.endswith(".npz"):
        return find_policy(text), cues, 25
    policy = load_policy(text)
    wanted = list(policy.features.cues)
    if affinities:
        parts = re.compile(rf"{AFFINITY}_(long|[zyx\d-]+)")
        whole = (
            AFFINITY if name not in cues and parts.fullmatch(name) else name for name in wanted
        )
        wanted = list(dict.fromkeys(whole))
    if oriented:
        own = (BOUNDARY if name == f"{BOUNDARY}_oriented" else name for name in wanted)
        wanted = list(dict.fromkeys(own))
    if set(wanted) != set(cues):
        raise InvalidInput(
            f"--policy {text} was trained on the cues {', '.join(wanted)}, and --cues gives "
            f"{', '.join(cues)}",
            argument="policy",
            remedy=f"give the same, e.g. --cues {wanted[0]}=FILE",
        )
    return policy, wanted, policy.features.bins


def find_policy(name: str) -> Policy:
    """Return the policy of a name or ``module:function``; a module may be in the working folder."""
    from napari_agglo.policy import as_policy

    if "" not in sys.path:
        sys.path.insert(0, "")  # as `python -m` does
    return as_policy(name)


@contextmanager
def open_source(
    arguments: argparse.Namespace,
    console: Console,
    files: Mapping[str, str],
    policies: Mapping[str, str],
    *,
    before: bool = False,
    after: Stages = (),
    span: tuple[float, float] = (0.0, 1.0),
) -> Iterator[tuple[FileSource | SessionSource, ProgressCallback | None]]:
    """Open the files of one image, or a session, and show the progress of the work on them.

    `after` are the stages after the graphs and trees, and `span` the share of the whole command
    that the work on all images is.
    """
    from napari_agglo.partition import METHODS

    method = getattr(arguments, "method", None)
    if method is not None:
        _ = METHODS[method]  # refused before any file is read
    trees = SESSION if "session" in files else [*GRAPH, *TREE] * len(policies)
    with console.progress([*trees, *after], span) as progress:
        if "session" not in files:
            yield FileSource(arguments, console, files, policies), progress
            return
        with open_session(arguments, console, files["session"], progress) as session:
            unit = getattr(arguments, "unit", None)
            yield SessionSource(session, console, files, before, unit), progress


@contextmanager
def open_session(
    arguments: argparse.Namespace,
    console: Console,
    path: str,
    progress: ProgressCallback | None,
    *,
    read_only: bool = True,
) -> Iterator[Session]:
    """Open a session; by default to read it, also while someone works on it."""
    from napari_agglo.policy import is_bounded
    from napari_agglo.session import Session

    superpixels = arguments.superpixels
    if superpixels is not None:
        console.files["superpixels"] = superpixels
    function = _session_function(arguments)
    with Session.open(
        path, read_only=read_only, superpixels=superpixels, progress=progress,
        policy=None if function is None else find_policy(function),
    ) as session:  # fmt: skip
        console.files["superpixels"] = path
        threshold, policy = getattr(arguments, "threshold", None), session.policy
        refuse_beyond(threshold, policy.name, is_bounded(policy, session.graph))
        yield session
