"""What can be compared: policies that are there or are trained for it, gold, and Labels layers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from napari_agglo._progress import Progress, ProgressCallback
from napari_agglo.compare import refined
from napari_agglo.errors import InvalidInput
from napari_agglo.evaluate import vi_curve
from napari_agglo.graph import RegionGraph
from napari_agglo.learning import train
from napari_agglo.policy import MeanPolicy, Policy, load_policy
from napari_agglo.session import Session
from napari_agglo.tree import MergeTree, agglomerate
from napari_agglo.widgets.compare._thresholds import Cut

SESSION = ("edited", "unedited")  # kinds that need the session itself
STRATEGIES = ("flat", "agglo", "lash", "mixed")


@dataclass(frozen=True, eq=False)
class Choice:
    """One entry of the list of what can be compared.

    Attributes
    ----------
    name : str
        What it is called on the screen.
    kind : str
        ``"mean"``, ``"current"``, ``"strategy"``, ``"file"``, ``"gold"``, ``"labels"``,
        ``"table"``, ``"edited"`` or ``"unedited"``.
    value : object
        The strategy, the policy, the path, the array of labels, a table over superpixels, or the
        session.
    """

    name: str
    kind: str
    value: Any = None


@dataclass(frozen=True, eq=False)
class Material:
    """What all panels share, taken on the main thread: arrays, never layers."""

    graph: RegionGraph
    gold: Any
    policies: dict[str, Policy]  # trained for earlier comparisons of this graph


@dataclass(frozen=True, eq=False)
class Prepared:
    """A choice, ready to be shown.

    Attributes
    ----------
    choice : Choice
        What it was made of.
    cut : Cut, optional
        A tree with its errors.
    labels : array, optional
        Or a fixed label image.
    table : array of uint32, optional
        Or fixed names of the superpixels.
    policy : Policy, optional
        What the tree was made by.
    """

    choice: Choice
    cut: Cut | None = None
    labels: Any = None
    table: Any = None
    policy: Policy | None = None


def prepare(
    choices: list[Choice], material: Material, progress: ProgressCallback
) -> list[Prepared]:
    """Train, agglomerate and judge what was chosen; it may be cancelled at any time."""
    made = []
    for k, choice in enumerate(choices):

        def told(inner: Progress, k: int = k, name: str = choice.name) -> None:
            total = 1000 * len(choices)
            done = 1000 * k + round(999 * getattr(inner, "share", inner.fraction))
            progress(Progress(f"{name}: {inner.stage}", done, total))

        made.append(_one(choice, material, told))
    return made


def _one(choice: Choice, material: Material, progress: ProgressCallback) -> Prepared:
    if choice.kind in ("gold", "labels"):
        shape = material.graph.superpixels.image.shape
        if tuple(choice.value.shape) != shape:
            raise InvalidInput(
                f"{choice.name} has the shape {tuple(choice.value.shape)}, but the image has "
                f"{shape}; choose labels of the same image."
            )
        return Prepared(choice, labels=choice.value)
    if choice.kind == "table":
        return Prepared(choice, table=choice.value)
    if choice.kind in SESSION:
        tree = _session_tree(choice, material, progress)
        return Prepared(choice, cut=Cut(tree, _curve(tree, material.gold, progress)))
    policy = _policy(choice, material, progress)
    tree = agglomerate(material.graph, policy, progress=progress)
    return Prepared(choice, cut=Cut(tree, _curve(tree, material.gold, progress)), policy=policy)


def _session_tree(choice: Choice, material: Material, progress: ProgressCallback) -> MergeTree:
    session: Session = choice.value
    if choice.kind == "edited":
        return session.edited_tree(progress)
    return refined(session.tree, material.graph.superpixels)  # some may be divided by now


def _curve(tree: MergeTree, gold: Any, progress: ProgressCallback) -> Any:
    return None if gold is None else vi_curve(tree, gold, progress=progress)


def _policy(choice: Choice, material: Material, progress: ProgressCallback) -> Policy:
    if choice.kind == "mean":
        return MeanPolicy()
    if choice.kind == "current":
        policy: Policy = choice.value
        return policy
    if choice.kind == "file":
        return load_policy(Path(choice.value))
    known = material.policies.get(choice.value)
    if known is not None:
        return known
    if material.gold is None:
        raise InvalidInput(
            f"A policy is trained by the strategy {choice.value!r} from gold, and there is none; "
            "give gold labels in step 1, Data, or choose something else."
        )
    return train(material.graph, material.gold, strategy=choice.value, progress=progress)
