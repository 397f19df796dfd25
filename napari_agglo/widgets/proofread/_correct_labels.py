"""Work from and for other tools: labels to correct, reviewed segments as gold, tables of edits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from napari.layers import Image, Labels
from napari.utils.notifications import show_info, show_warning
from qtpy.QtWidgets import QFileDialog, QPushButton

from napari_agglo._progress import ProgressCallback, part_of
from napari_agglo.agglomeration import agglomerate
from napari_agglo.errors import InvalidInput
from napari_agglo.policy import MeanPolicy
from napari_agglo.session import Session
from napari_agglo.session._edit_table import OtherSuperpixels
from napari_agglo.session._start_segments import segment_graph_of
from napari_agglo.volumes import Volume, is_on_disk
from napari_agglo.widgets._dataset import Dataset, Placement, length_unit
from napari_agglo.widgets._jobs import Job
from napari_agglo.widgets._layer_levels import lazy_data
from napari_agglo.widgets._napari import role
from napari_agglo.widgets._project import Built, Project, Regions
from napari_agglo.widgets._qt import ask, button, guarded, per_viewer, real_viewer, tell_error
from napari_agglo.widgets.data._layers import (
    convert_to_labels,
    data_of,
    is_ours,
    is_rgb,
    placement_of,
    shape_of,
)
from napari_agglo.widgets.data._selection import Selection
from napari_agglo.widgets.proofread._open_session import (
    Opened,
    checked_path,
    prepare,
    start_opening,
)
from napari_agglo.widgets.proofread._proofreader import Proofreader

APPLY = "apply"  # the job that makes the edits of a table
GOLD = "reviewed gold"  # the job and the layer of reviewed segments
ALL_THE_SAME = "Apply all the same"  # the answer that matches superpixels by id alone
_TABLES = "Table of edits (*.csv *.parquet)"
_MOST_LISTED = 12  # edits that are not possible, in one message


def layer_to_correct(viewer: Any) -> Labels | Image:
    """Return the layer of labels that is selected in the list of layers; refuse another choice.

    Label files open in napari as images, so an image of one channel may be one.
    """
    layer = viewer.layers.selection.active
    scene = per_viewer(viewer, Proofreader).scene
    if not isinstance(layer, (Labels, Image)) or is_ours(layer, scene) or is_rgb(layer):
        raise InvalidInput(
            "Select the layer with the labels of the other tool in the list of layers first",
            argument="segmentation",
            remedy="open its file with File > Open",
        )
    return layer


def correct_labels(viewer: Any, path: Path) -> None:
    """Show a session of the segments of the selected layer; ask before an image becomes labels."""
    viewer = real_viewer(viewer)
    layer = layer_to_correct(viewer)
    target = checked_path(path)
    if isinstance(layer, Labels):
        start_correcting(viewer, layer, str(layer.name), target)
        return
    name = str(layer.name)

    def convert() -> None:
        project = per_viewer(viewer, Project)
        convert_to_labels(
            viewer, project, layer,
            lambda made: start_correcting(viewer, made, name, target, image=layer),
        )  # fmt: skip

    ask(
        "Use the image as labels?",
        f"“{name}” is an image in napari. If its values are whole numbers, one id for each object, "
        "it can be used as labels.",
        {"Use it as labels": convert},
    )


def start_correcting(
    viewer: Any, layer: Labels, name: str, target: Path, image: Any = None
) -> Job | None:
    """Create a session of the segments of a Labels layer, in a worker, and show it.

    With a boundary cue in the Data step, superpixels are computed within the segments; else the
    segments themselves are the superpixels. `image` is the layer of which the labels were made.
    """
    project = per_viewer(viewer, Project)
    labels = data_of(layer)
    dataset = _dataset_to_correct(viewer, layer, name, image)
    sources = per_viewer(viewer, Proofreader).inputs.describe(dataset, dataset.gold)

    def work(progress: ProgressCallback) -> Opened:
        if dataset.cues:
            regions = Regions.of(dataset, part_of(progress, 0.0, 0.6))
        else:
            placed = Volume(labels, dataset.spacing, unit=length_unit(dataset.placement.units))
            graph = segment_graph_of(placed, part_of(progress, 0.0, 0.6))
            regions = Regions(dataset, graph)
        graph, policy = regions.graph, MeanPolicy()
        tree = agglomerate(graph, policy, progress=part_of(progress, 0.6, 0.8))
        target.parent.mkdir(parents=True, exist_ok=True)
        session = Session.create(
            target, graph, policy, tree=tree, segmentation=labels, gold=dataset.gold,
            sources=sources, progress=part_of(progress, 0.8, 0.9),
        )  # fmt: skip
        try:
            prepare(session, part_of(progress, 0.9, 1.0) or progress)
        except BaseException:
            session.close()
            raise
        return session, Built(tree, regions, policy, dataset.gold), {}

    def hide() -> None:
        layer.visible = False  # the session has the same segments

    job = start_opening(viewer, project.jobs.start, f"Opening {name} for corrections", work)
    if job is not None:
        job.ended.connect(lambda: hide() if project.session is not None else None)
    return job


def _dataset_to_correct(viewer: Any, layer: Labels, name: str, former: Any) -> Dataset:
    """Return the labels to correct, with the image, cues and gold of the Data step that fit them.

    The labels, and the image that they were made of, are neither image nor gold themselves.
    """
    labels, placement = data_of(layer), placement_of(layer)
    chosen = per_viewer(viewer, Project).dataset
    if chosen is not None and chosen.cues and chosen.shape == tuple(labels.shape):
        dataset = replace(
            chosen.origin or chosen, start=labels, superpixels=None, partition=None, origin=None
        )
    else:
        selection = per_viewer(viewer, Selection)
        image, gold = selection.image, selection.gold
        dataset = Dataset(name, placement, superpixels=labels)
        if _lies_on(image, placement, labels.shape):
            dataset = replace(dataset, image=data_of(image))
        if isinstance(gold, Labels) and _lies_on(gold, placement, labels.shape, selection.people):
            several = selection.golds()
            one = several[min(selection.person, len(several) - 1)] if several else data_of(gold)
            dataset = replace(dataset, gold=one, golds=several)
    own = [data_of(one) for one in (layer, former) if one is not None]
    roles = {"image": dataset.image, "gold": dataset.gold}
    taken: dict[str, Any] = {
        role: None for role, data in roles.items() if any(data is one for one in own)
    }
    return replace(dataset, **taken)


def _lies_on(
    layer: Any, placement: Placement, shape: tuple[int, ...], people: int | None = None
) -> bool:
    """Return whether a layer has a shape and a placement, without its axis of people."""
    if layer is None:
        return False
    own = tuple(n for axis, n in enumerate(shape_of(layer)) if axis != people)
    return own == tuple(shape) and placement_of(layer, people).matches(placement)


def gold_button(proofreader: Proofreader) -> QPushButton:
    """Return the button that makes a gold standard of the reviewed segments."""
    text = (
        "Make a layer of gold labels from the reviewed segments, 0 elsewhere, and choose it as "
        "gold in the Data step, for the next training or for other tools"
    )
    return button(
        "Use reviewed segments as gold", text, lambda: make_gold(proofreader), "reviewed gold"
    )


def make_gold(proofreader: Proofreader) -> None:
    """Add the reviewed segments as gold labels, or update the layer, and choose it as gold."""
    project, viewer = proofreader.project, proofreader.scene.viewer
    session = project.session
    if session is None:
        return
    placement = project.placement

    def done(gold: Any) -> None:
        name = GOLD.capitalize()
        data = lazy_data([gold]) if is_on_disk(gold) else {"data": gold}
        layer = next((one for one in viewer.layers if one.metadata.get("reviewed_gold")), None)
        if layer is None:
            layer = Labels(
                **data, name=name, visible=False,
                metadata={**role("gold"), "reviewed_gold": True},
                **({} if placement is None else placement.keywords()),
            )  # fmt: skip
            active = viewer.layers.selection.active
            viewer.add_layer(layer)
            viewer.layers.selection.active = active
        else:
            layer.data = data["data"]
        per_viewer(viewer, Selection).choose("gold", layer)
        show_info(f"{session.marks.progress}. The gold labels are now “{layer.name}”.")

    project.worker.run(GOLD, "Collecting gold", lambda _: session.marks.gold(), done)


def apply_button(proofreader: Proofreader) -> QPushButton:
    """Return the button that makes the edits of a table again."""
    text = "Apply the edits of a table: a CSV or parquet file from Export… > Table of edits"

    def choose() -> None:
        path, _ = QFileDialog.getOpenFileName(None, "Apply edits", "", _TABLES)
        if path:
            guarded(lambda: apply_edits(proofreader, path))

    return button("Apply edits…", text, choose, "apply edits")


def apply_edits(proofreader: Proofreader, path: str, other_superpixels: bool = False) -> None:
    """Make the edits of a table in the open session, in a worker; list those not possible.

    Of a table that was made on other superpixels the user is asked first.
    """
    project, session = proofreader.project, proofreader.project.session
    if session is None:
        show_warning("No session is open; start one first.")
        return

    def done(result: Any) -> None:
        project.has_edited(None)
        if result.not_applied:
            lines = [str(one) for one in result.not_applied[:_MOST_LISTED]]
            if len(result.not_applied) > _MOST_LISTED:
                lines.append(f"… and {len(result.not_applied) - _MOST_LISTED} more")
            ask(f"{result}", "\n".join(["These edits are not possible here:", *lines]), {})
        else:
            show_info(f"{Path(path).name}: {result}.")

    def failed(error: Exception) -> None:
        if not isinstance(error, OtherSuperpixels):
            tell_error(error)
            return
        text = error.problem.replace("`table`", Path(path).name)

        def again() -> None:
            apply_edits(proofreader, path, other_superpixels=True)

        ask("Apply edits of other superpixels?", f"{text}.", {ALL_THE_SAME: again})

    def work(progress: ProgressCallback) -> Any:
        return session.apply(path, other_superpixels=other_superpixels, progress=progress)

    project.worker.run(APPLY, "Applying edits", work, done, failed)
