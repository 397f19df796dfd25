"""Sources of panels: policies, trained if needed, gold, sessions and Labels layers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_agglo._progress import Progress, ProgressCallback
from napari_agglo.agglomeration import MergeTree
from napari_agglo.compare import refined
from napari_agglo.errors import InvalidInput
from napari_agglo.evaluate import minimum, vi_curve
from napari_agglo.graph import RegionGraph
from napari_agglo.learning import train
from napari_agglo.partition import build_tree
from napari_agglo.policy import MeanPolicy, Policy, as_policy, is_training_data, load_policy
from napari_agglo.session import Session
from napari_agglo.widgets._progress_row import duration

if TYPE_CHECKING:
    import pandas as pd


class Mode(Enum):
    """The common property of the panels."""

    THRESHOLD = "same threshold"
    SEGMENTS = "same number of segments"
    BEST = "each at its least VI"
    HALF = "each at 0.5"


@dataclass(frozen=True)
class Cut:
    """A tree, and its errors at every threshold if there is gold."""

    tree: MergeTree
    curve: pd.DataFrame | None = None

    @property
    def first(self) -> float:
        """The threshold of the first merge; inf without merges."""
        return float(self.tree.heights[0]) if self.tree.n_merges else np.inf

    def at_segments(self, n: int) -> float:
        """Return the threshold of `n` segments, or of the nearest possible number."""
        merges = int(np.clip(self.tree.n_superpixels - n, 0, self.tree.n_merges))
        return -np.inf if merges == 0 else float(self.tree.heights[merges - 1])

    def best(self) -> float | None:
        """Return the threshold of the least VI, if there is gold."""
        return None if self.curve is None else float(minimum(self.curve)["threshold"])


def thresholds(cuts: list[Cut], mode: Mode, position: float) -> list[float]:
    """Return the threshold of each panel that has a tree.

    `position` is the threshold of the first, unless the mode fixes it.

    Examples
    --------
    >>> import numpy as np, napari_agglo as agglo
    >>> superpixels = np.array([[1, 2, 3, 4]])
    >>> def cut(values):
    ...     graph = agglo.region_graph(superpixels, np.array([values]))
    ...     return Cut(agglo.agglomerate(graph))
    >>> two = [cut([0.0, 0.2, 0.6, 0.8]), cut([0.0, 0.1, 0.1, 0.3])]
    >>> [round(t, 2) for t in thresholds(two, Mode.SEGMENTS, 0.45)]
    [0.45, 0.1]
    """
    if mode is Mode.HALF:
        return [0.5] * len(cuts)
    if mode is Mode.BEST:
        return [0.5 if (best := cut.best()) is None else best for cut in cuts]
    if mode is Mode.SEGMENTS and cuts:
        n = cuts[0].tree.n_segments(position)
        return [position, *(cut.at_segments(n) for cut in cuts[1:])]
    return [position] * len(cuts)


SESSION = ("edited", "unedited")  # kinds that need the session itself
STRATEGIES = ("flat", "agglo", "lash", "mixed")


@dataclass(frozen=True, eq=False)
class Choice:
    """A segmentation to compare, with its name on the screen.

    The value depends on the kind: the name of a policy ("named") or "strategy", the "current"
    policy, the path of a "file", labels ("gold", "labels"), a "table" over superpixels, or the
    session ("edited", "unedited"); "mean" has none.
    """

    name: str
    kind: str
    value: Any = None
    method: str = "threshold"  # the choice of the segments, of a policy


@dataclass(frozen=True, eq=False)
class PanelData:
    """Input of all panels, copied in the main thread, without layers."""

    graph: RegionGraph
    gold: Any
    policies: dict[str, Policy]  # trained before, by strategy
    training_gold: Any = None  # gold to learn from, where several people have made it


@dataclass(frozen=True, eq=False)
class PanelSource:
    """A choice with its data: a tree, a label image, or names of the superpixels."""

    choice: Choice
    cut: Cut | None = None
    labels: Any = None
    table: Any = None
    policy: Policy | None = None  # of the tree
    seconds: float | None = None  # CPU time of the choice of segments, on the same graph


def prepare(
    choices: list[Choice], shared: PanelData, progress: ProgressCallback
) -> list[PanelSource]:
    """Train, agglomerate and evaluate the choices; `progress` may cancel."""
    sources = []
    for k, choice in enumerate(choices):

        def report_part(inner: Progress, k: int = k, name: str = choice.name) -> None:
            total = 1000 * len(choices)
            done = 1000 * k + round(999 * inner.whole)
            progress(Progress(f"{name}: {inner.stage}", done, total))

        sources.append(_prepare_one(choice, shared, report_part))
    return sources


def _prepare_one(choice: Choice, shared: PanelData, progress: ProgressCallback) -> PanelSource:
    if choice.kind in ("gold", "labels"):
        shape = shared.graph.superpixels.image.shape
        if tuple(choice.value.shape) != shape:
            raise InvalidInput(
                f"{choice.name} has the shape {tuple(choice.value.shape)}, "
                f"but the image has {shape}",
                argument=choice.name,
                remedy="choose labels of the same image",
            )
        return PanelSource(choice, labels=choice.value)
    if choice.kind == "table":
        return PanelSource(choice, table=choice.value)
    policy, seconds = None, None
    if choice.kind in SESSION:
        tree = _session_tree(choice, shared, progress)
    else:
        policy = _policy(choice, shared, progress)
        began = time.thread_time()  # of this thread alone: the window draws meanwhile
        tree = build_tree(shared.graph, policy, choice.method, progress=progress)
        seconds = time.thread_time() - began
    curve = None if shared.gold is None else vi_curve(tree, shared.gold, progress=progress)
    if curve is not None and policy is not None:
        curve.attrs["training"] = is_training_data(policy, shared.graph)
    return PanelSource(choice, cut=Cut(tree, curve), policy=policy, seconds=seconds)


def _session_tree(choice: Choice, shared: PanelData, progress: ProgressCallback) -> MergeTree:
    session: Session = choice.value
    if choice.kind == "edited":
        session.look(progress, threshold=np.inf)
        return session.tree
    # Edits may have divided superpixels since.
    return refined(session.history.unedited_tree, shared.graph.superpixels)


def _policy(choice: Choice, shared: PanelData, progress: ProgressCallback) -> Policy:
    if choice.kind == "mean":
        return MeanPolicy()
    if choice.kind == "named":
        return as_policy(choice.value)
    if choice.kind == "current":
        policy: Policy = choice.value
        return policy
    if choice.kind == "file":
        return load_policy(Path(choice.value))
    known = shared.policies.get(choice.value)
    if known is not None:
        return known
    if shared.gold is None:
        raise InvalidInput(
            f"The strategy {choice.value!r} needs gold labels, and none are chosen",
            argument="gold",
            remedy=("choose them in step 1, Data", "compare another segmentation"),
        )
    gold = shared.gold if shared.training_gold is None else shared.training_gold
    return train(shared.graph, gold, strategy=choice.value, progress=progress)


# Seconds of a training for each thousand boundaries, on one core, as measured on 65,569 boundaries
# by ``python -m benchmarks.bench_learning``; on 8,843 they are two thirds of these.
_SECONDS = {"flat": 0.18, "agglo": 0.73, "lash": 0.22, "mixed": 0.98}


def training_plan(choices: list[Choice], known: set[str], graph: RegionGraph) -> str:
    """Return a sentence on the policies to train before a comparison, and about how long.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([[1, 2, 3]]), np.zeros((1, 3)))
    >>> both = [Choice("flat", "strategy", "flat"), Choice("agglo", "strategy", "agglo")]
    >>> training_plan(both, {"flat", "agglo"}, graph)
    'Uses the trained policies flat and agglo: nothing is trained.'
    >>> training_plan(both, {"flat"}, graph)
    'Trains agglo first, about 1 s. Uses the trained policy flat.'
    """
    wanted = list(dict.fromkeys(one.value for one in choices if one.kind == "strategy"))
    new = [name for name in wanted if name not in known]
    old = [name for name in wanted if name in known]
    uses = f"Uses the trained polic{'y' if len(old) == 1 else 'ies'} {' and '.join(old)}"
    if not new:
        return f"{uses}: nothing is trained." if old else ""
    seconds = sum(_SECONDS[name] for name in new) * graph.n_boundaries / 1000
    trains = f"Trains {' and '.join(new)} first, {duration(seconds)}."
    return f"{trains} {uses}." if old else trains
